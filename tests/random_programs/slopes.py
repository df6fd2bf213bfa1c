"""Random programs with a loss, and its slope by differences of what the oracle says."""

from __future__ import annotations

from typing import Any

import numpy as np

import ucle
from ucle.language.parse import parse_program
from ucle.testing.generate import Case
from ucle.testing.oracle import evaluate

Array = np.ndarray[Any, Any]


class Smooth:
    """A random program with a loss, on normal numbers, and the slope along a direction."""

    def __init__(self, case: Case, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.bounds = case.stated
        self.arrays = {
            name: rng.normal(size=x.shape) * 1.3 if x.dtype == np.float64 else x
            for name, x in case.arrays.items()
        }
        self.by = [name for name, x in self.arrays.items() if x.dtype == np.float64 and x.size]
        tensors = evaluate(case.text, self.arrays, bounds=self.bounds)
        every = [*tensors.values(), *self.arrays.values()]
        self.real = all(x.dtype.kind in "bi" or x.dtype == np.float64 for x in every)
        self.finite = self.real and all(np.isfinite(x).all() for x in every)
        self.scale = 1 + max((float(np.abs(x).max()) for x in every if x.size), default=0.0)
        terms = []
        for statement in parse_program(case.text):
            name, labels = statement.target.tensor, statement.target.labels
            if len(set(labels)) == len(labels):
                axes = ",".join(labels)
                weights = f"w_{name}"
                self.arrays[weights] = rng.normal(size=tensors[name].shape)
                read = f"{name}[{axes}] * {weights}[{axes}]"
                terms.append(f"sum[{axes}]({read})" if labels else read)
        self.text = f"{case.text}\nloss_ = " + " + ".join(terms)
        self.there = bool(terms and self.by)
        self.direction = {name: rng.normal(size=self.arrays[name].shape) for name in self.by}

    def loss(self, step: float) -> float:
        moved = {name: self.arrays[name] + step * self.direction[name] for name in self.by}
        return float(evaluate(self.text, {**self.arrays, **moved}, bounds=self.bounds)["loss_"])

    def slope(self) -> float | None:
        """The slope by differences; None where they do not agree, as beside a kink."""
        wide, narrow = ((self.loss(h) - self.loss(-h)) / (2 * h) for h in (1e-5, 3e-6))
        ahead, behind = ((self.loss(h) - self.loss(0)) / h for h in (1e-6, -1e-6))
        kinked = abs(wide - narrow) > 1e-5 * self.scale or abs(ahead - behind) > 1e-4 * self.scale
        return None if kinked or not np.isfinite(wide) else wide

    def program(self, connection: Any) -> ucle.EinsumProgram:
        """The program of the loss."""
        return ucle.einsum_program(
            self.text,
            inputs=self.arrays,
            bounds=self.bounds,
            database=connection,
            outputs=["loss_"],
        )

    def gradient(self, connection: Any) -> ucle.EinsumProgram:
        return self.program(connection).gradient("loss_", self.by)

    def along(self, gradient: ucle.EinsumProgram, connection: Any) -> float:
        """The slope along the direction as the gradient has it."""
        with gradient.execute(connection) as result:
            return self.along_result(gradient, result)

    def along_result(self, gradient: ucle.EinsumProgram, result: Any) -> float:
        """The slope along the direction by the outputs of the gradient."""
        parts = zip(gradient.outputs[1:], self.by, strict=True)
        return sum(
            float((result[name].to_numpy() * self.direction[by]).sum()) for name, by in parts
        )
