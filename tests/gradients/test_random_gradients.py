"""Gradients of random programs against differences of what the oracle says, along a direction."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from random_programs.gathers import gathered_case
from random_programs.indices import indexed_case

import ucle
from ucle.errors import UnsupportedError
from ucle.language.parse import parse_program
from ucle.testing.check_matrix import Routes, some_decompositions
from ucle.testing.generate import Case, random_case
from ucle.testing.oracle import evaluate
from ucle.testing.oracle_operators import UndefinedError

DRAWS: dict[str, Callable[[int], Case]] = {
    "expressions": random_case,
    "labels": indexed_case,
    "indices": gathered_case,
}
FEW = 40
"""Seeds of each kind; of about a third a gradient can be told by differences."""

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

    def gradient(self, connection: Any) -> ucle.EinsumProgram:
        program = ucle.einsum_program(
            self.text,
            inputs=self.arrays,
            bounds=self.bounds,
            database=connection,
            outputs=["loss_"],
        )
        return program.gradient("loss_", self.by)

    def along(self, gradient: ucle.EinsumProgram, connection: Any) -> float:
        """The slope along the direction as the gradient has it."""
        with gradient.execute(connection) as result:
            parts = zip(gradient.outputs[1:], self.by, strict=True)
            return sum(
                float((result[name].to_numpy() * self.direction[by]).sum()) for name, by in parts
            )


def check(draw: str, seed: int, routes: Routes) -> bool:
    """Compare the gradients of a case; False if there was nothing to compare."""
    case = DRAWS[draw](seed)
    try:
        smooth = Smooth(case, seed)
    except (UndefinedError, ValueError):
        return False
    if not smooth.there or not smooth.finite or re.search("cum(prod|max|min)", case.text):
        return False
    expected = smooth.slope()
    if expected is None:
        return False
    try:
        gradient = smooth.gradient(routes["native"])
    except UnsupportedError as error:
        if "real numbers" not in str(error):  # some part of it is complex
            raise
        return False
    ways: list[Any] = ["auto", "relational", *some_decompositions(gradient, seed, 2)]
    for n, way in enumerate(ways):
        program = gradient if way == "auto" else gradient.with_decomposition(way)
        found = smooth.along(program, routes[("native", "arrow")[n % 2]])
        assert abs(found - expected) <= 3e-5 * (smooth.scale + abs(expected)), (
            f"{found} and not {expected}, seed {seed}, decomposition {way}\n{smooth.text}"
        )
    return True


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWS)
def test_random_programs(draw: str, routes: Routes) -> None:
    assert sum(check(draw, seed, routes) for seed in range(FEW)) >= FEW // 8


@pytest.mark.fuzz
@pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="`make fuzz` runs it")
@pytest.mark.parametrize("draw", DRAWS)
def test_many_random_programs(draw: str, routes: Routes) -> None:
    for seed in range(FEW, FEW + int(os.environ["UCLE_FUZZ_PROGRAMS"])):
        check(draw, seed, routes)
