"""What a program means, in NumPy on dense tensors: the oracle of every other test.

It reads the syntax tree and nothing else of the compiler, so that the two cannot share a mistake.
Every tensor is a dense array of float64. The rules:

- `=`: a label that is missing on the left is summed over the smallest subexpression that holds all
  of its occurrences.
- `+=`, `*=`, `max=`, `min=`: the right side as a whole is evaluated, then aggregated over what is
  missing on the left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.parse import parse_program
from ucle.syntax import Access, Binary, Call, Expression, Number, Statement, accesses

Array = NDArray[np.float64]
Named = tuple[tuple[str, ...], Array]
"""An array with a label for each of its axes."""

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "leaky_relu": lambda x: np.where(x < 0, 0.01 * x, x),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "neg": np.negative,
    "square": np.square,
    "reciprocal": lambda x: 1.0 / x,
    "sign": np.sign,
}
OPERATORS: dict[str, Callable[[Array, Array], Array]] = {
    "mult": np.multiply,
    "add": np.add,
    "sub": np.subtract,
    "div": np.divide,
    "pow": np.power,
}
FOLDS: dict[str, Callable[..., Array]] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
}


class Evaluation:
    """The value of one statement.

    Every operand of a function or an operator goes through `operand`; the generator of programs
    uses it to tell where values leave the finite numbers.
    """

    def __init__(
        self,
        statement: Statement,
        tensors: Mapping[str, Array],
        operand: Callable[[Array], Array] = lambda array: array,
    ) -> None:
        self._statement = statement
        self._tensors = tensors
        self._operand = operand
        self._total = _occurrences(statement.expression)

    def value(self) -> Array:
        """The tensor on the left, its axes in the order of its labels."""
        target = self._statement.target.labels
        labels, array = self._evaluate(self._statement.expression)
        if self._statement.accumulate is not None:
            gone = tuple(axis for axis, x in enumerate(labels) if x not in target)
            array = np.asarray(FOLDS[self._statement.accumulate](array, axis=gone))
            labels = tuple(x for x in labels if x in target)
        assert set(labels) == set(target)
        return np.array(array.transpose([labels.index(x) for x in target]))

    def _evaluate(self, expression: Expression) -> Named:
        named = self._node(expression)
        if self._statement.accumulate is not None:
            return named
        inside, target = _occurrences(expression), self._statement.target.labels
        done = [x for x in named[0] if x not in target and inside[x] == self._total[x]]
        return _sum(named, done)

    def _node(self, expression: Expression) -> Named:
        match expression:
            case Number(value):
                return (), np.array(value)
            case Access(tensor, labels):
                return _diagonal(self._tensors[tensor], labels)
            case Call(function, argument):
                labels, array = self._evaluate(argument)
                result = FUNCTIONS[function](self._operand(array))
                return labels, np.asarray(result, dtype=np.float64)
            case Binary(operator, left, right):
                one, other = self._evaluate(left), self._evaluate(right)
                every = tuple(dict.fromkeys((*one[0], *other[0])))
                sides = (self._operand(_aligned(side, every)) for side in (one, other))
                return every, OPERATORS[operator](*sides)


def evaluate(
    text: str,
    inputs: Mapping[str, Array],
    operand: Callable[[Array], Array] = lambda array: array,
) -> dict[str, Array]:
    """Every tensor that a program defines, whatever the order of its statements."""
    tensors = {name: np.asarray(array, dtype=np.float64) for name, array in inputs.items()}
    waiting = list(parse_program(text))
    defined: dict[str, Array] = {}
    with np.errstate(all="ignore"):
        while waiting:
            ready = next(s for s in waiting if _names(s.expression) <= tensors.keys())
            waiting.remove(ready)
            name = ready.target.tensor
            tensors[name] = defined[name] = Evaluation(ready, tensors, operand).value()
    return defined


def assert_equal(found: Array, expected: Array, context: str = "") -> None:
    """Equality to 1e-9 of the largest number involved, NaN where NaN is expected."""
    finite = expected[np.isfinite(expected)]
    scale = float(np.abs(finite).max()) if finite.size else 1.0
    np.testing.assert_allclose(
        found, expected, rtol=1e-9, atol=1e-10 * max(scale, 1e-3), err_msg=context
    )


def _names(expression: Expression) -> set[str]:
    return {access.tensor for access in accesses(expression)}


def _occurrences(expression: Expression) -> Counter[str]:
    return Counter(x for access in accesses(expression) for x in set(access.labels))


def _sum(named: Named, gone: list[str]) -> Named:
    labels, array = named
    axes = tuple(labels.index(x) for x in gone)
    return tuple(x for x in labels if x not in gone), np.asarray(array.sum(axis=axes))


def _diagonal(array: Array, labels: tuple[str, ...]) -> Named:
    """The array with one axis for each distinct label, taken along the diagonal."""
    distinct = tuple(dict.fromkeys(labels))
    numbers: list[Any] = [distinct.index(x) for x in labels]
    return distinct, np.einsum(array, numbers, list(range(len(distinct))))


def _aligned(named: Named, every: tuple[str, ...]) -> Array:
    """The array with its axes in the order of `every`; absent ones are broadcast."""
    labels, array = named
    ordered = array.transpose([labels.index(x) for x in every if x in labels])
    return ordered.reshape([
        ordered.shape[[y for y in every if y in labels].index(x)] if x in labels else 1
        for x in every
    ])  # fmt: skip
