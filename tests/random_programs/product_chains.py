"""Random programs of chained products, each from a seed.

`random_case` draws from the whole language, where statements that may be inlined are rare. Here
most statements are products in one algebra, and most of their tensors are used once; some are used
twice, are arguments of a function, or are read along a diagonal.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ucle.operators import AND
from ucle.testing.generate import Case
from ucle.testing.random_inputs import make_input, random_array

ALGEBRAS = (
    ("*", "+=", "float64"),
    ("*", "+=", "float64"),
    ("*", "+=", "float32"),
    ("*", "+=", "complex128"),
    ("*", "+=", "int64"),
    ("+", "min=", "float64"),
    ("+", "max=", "float64"),
    (AND.symbol, "any=", "bool"),
    ("*", "any=", "float64"),
)
LABELS = ("i", "j", "k", "m", "n")


def chain_case(seed: int) -> Case:
    """The case of a seed.

    >>> case = chain_case(7)
    >>> print(case.text.splitlines()[1])
    T1[i,j,n] any= T0[n,i,j] * X2[n,k]
    """
    return _ChainDraw(np.random.default_rng(seed)).case()


class _ChainDraw:
    """One draw of a program."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._operator, self._assign, self._dtype = ALGEBRAS[rng.integers(len(ALGEBRAS))]
        sizes = rng.integers(1, 5, size=2)
        self._bounds = {label: int(sizes[n % 2]) for n, label in enumerate(LABELS)}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._waiting: list[str] = []
        self._arrays: dict[str, Any] = {}

    def case(self) -> Case:
        lines = []
        for number in range(int(self._rng.integers(2, 6))):
            count = 3 if self._rng.random() < 0.3 else 2
            operands = [self._operand(number > 0 and n == 0) for n in range(count)]
            labels = list(dict.fromkeys(x for _, labels in operands for x in labels))
            axes = [x for x in labels if self._rng.random() < 0.6][:3]
            self._rng.shuffle(axes)
            texts = [f"{name}[{','.join(labels)}]" for name, labels in operands]
            expression = self._decorate_product(f" {self._operator} ".join(texts))
            lines.append(f"T{number}[{','.join(axes)}] {self._assign} {expression}")
            self._shapes[f"T{number}"] = tuple(self._bounds[x] for x in axes)
            self._waiting.append(f"T{number}")
        inputs, tables = {}, {}
        for name, array in self._arrays.items():
            fill = {"min=": math.inf, "max=": -math.inf}.get(self._assign)
            if fill is not None and self._rng.random() < 0.2:
                fill = None
            if fill is not None:
                array[self._rng.random(array.shape) < 0.4] = fill
            inputs[name], data = make_input(self._rng, name, array, fill)
            if data is not None:
                tables[name] = data
        return Case("\n".join(lines), self._arrays, inputs, self._bounds, None, tables)

    def _decorate_product(self, product: str) -> str:
        chance = self._rng.random()
        if chance < 0.1 and self._dtype in ("float64", "float32", "int64"):
            return f"relu({product})"
        if chance < 0.2 and self._operator == "*" and self._assign == "+=":
            return f"2 * {product}"
        return product

    def _operand(self, reuse: bool) -> tuple[str, list[str]]:
        """A tensor with labels: an earlier result that is still unused, or an input."""
        if reuse and self._waiting and self._rng.random() < 0.9:
            name = self._waiting[-1]
            if self._rng.random() < 0.9:
                self._waiting.remove(name)
        else:
            name = f"X{len(self._arrays)}"
            rank = int(self._rng.choice((1, 2, 3), p=(0.2, 0.7, 0.1)))
            shape = tuple(self._bounds[LABELS[n]] for n in self._rng.integers(5, size=rank))
            density = float(self._rng.choice((0.3, 0.7, 1.0)))
            self._arrays[name] = random_array(self._rng, shape, density, self._dtype)
            self._shapes[name] = shape
        labels: list[str] = []
        for size in self._shapes[name]:
            fitting = [x for x in LABELS if self._bounds[x] == size]
            fresh = [x for x in fitting if x not in labels]
            diagonal = self._rng.random() < 0.1 or not fresh
            labels.append(str(self._rng.choice(fitting if diagonal else fresh)))
        return name, labels
