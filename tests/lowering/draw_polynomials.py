"""Random programs of sums and products over small integers, whose every form is exact."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np

from ucle.testing.generate import Case

SIZES = {"i": 3, "j": 2, "k": 4}
INPUTS = {"A": "ij", "B": "jk", "C": "ij", "x": "i", "y": "j", "u": "k", "s": ""}
DIVISORS = {"p": "i", "q": ""}
"""Powers of two, and seldom 0."""

DTYPES = ("float64",) * 6 + ("float32", "int64", "complex128", "bool")

Drawn = tuple[str, frozenset[str]]
"""An expression and the labels that it has."""

WEIGHTS = {
    "{} + {}": 4,
    "{} - {}": 4,
    "{} * {}": 6,
    "max({}, {})": 1,
    "(-{})": 1,
    "square({})": 2,
    "{} ^ 2": 1,
    "2 * {}": 1,
    "0.5 * {}": 1,
    "({} + 1)": 1,
    "(1 - {})": 1,
    "({} / 2)": 1,
    "abs({})": 1,
    "per": 2,
    "sum": 4,
}


def drawn_case(seed: int) -> Case:
    """One to three statements of sums and products, some of which use those before."""
    return _Draw(seed).case()


class _Draw:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._arrays = dict(_arrays(np.random.default_rng(seed)))
        self._known: dict[str, str] = dict(INPUTS)

    def case(self) -> Case:
        text = "\n".join(self._statement(name) for name in "EFG"[: self._random.randint(1, 3)])
        arrays = {name: array for name, array in self._arrays.items() if f"{name}[" in text}
        return Case(text, arrays, dict(arrays), {})

    def _statement(self, name: str) -> str:
        expression, labels = self._expression(self._random.randint(1, 4))
        left = sorted(labels)
        if self._random.random() < 0.4:
            left = sorted(self._random.sample(left, self._random.randint(0, len(left))))
        self._known[name] = "".join(left)
        accumulate = "=" if len(left) == len(labels) else "+="
        return f"{name}[{','.join(left)}] {accumulate} {expression}"

    def _access(self) -> Drawn:
        name = self._random.choice(list(self._known))
        return f"{name}[{','.join(self._known[name])}]", frozenset(self._known[name])

    def _expression(self, depth: int) -> Drawn:
        if depth == 0 or self._random.random() < 0.1:
            return self._access()
        (form,) = self._random.choices(list(WEIGHTS), list(WEIGHTS.values()))
        one, labels = self._expression(depth - 1)
        if form == "sum":
            if not labels:
                return one, labels
            over = self._random.sample(sorted(labels), self._random.randint(1, len(labels)))
            return f"sum[{','.join(over)}]({one})", labels.difference(over)
        if form == "per":
            name = self._random.choice(list(DIVISORS))
            below = DIVISORS[name]
            return f"({one} / {name}[{below}])", labels.union(below)
        if form.count("{}") == 1:
            return form.format(f"({one})"), labels
        other, more = self._expression(depth - 1)
        text = form.format(one, other)
        return text if form.startswith("max") else f"({text})", labels | more


def _arrays(rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    arrays = {}
    for name, labels in INPUTS.items():
        shape = [SIZES[label] for label in labels]
        array = rng.integers(-2, 3, shape) * (rng.random(shape) < rng.choice([0.4, 1.0]))
        arrays[name] = np.asarray(array).astype(rng.choice(DTYPES))
    for name, labels in DIVISORS.items():
        shape = [SIZES[label] for label in labels]
        powers = 2.0 ** rng.integers(-1, 3, shape) * rng.choice([1, 1, -1])
        arrays[name] = np.asarray(powers * (rng.random(shape) < rng.choice([0.8, 1.0, 1.0])))
    return arrays
