"""The meaning of an EinSum program in plain NumPy: an oracle that shares nothing with ucle.

An expression is a tuple whose first element says what it is:

    ("access", tensor, labels)          A[i,j]
    ("number", value)                   a Python number
    ("binary", operator, left, right)   + - * / ^ min max < <= == != > >= and or xor
    ("call", function, arguments)       relu(x), where(c, x, y), float32(x), ...
    ("fold", aggregation, labels, x)    sum[j](x)

A statement is (tensor, labels, assignment, expression), where the assignment is "=" or names the
aggregation of the whole right-hand side. Every array here has an axis for each of its labels, and
`Value` keeps them together; nothing is clever, so that it can be read against docs/language.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Expression = tuple[Any, ...]
Statement = tuple[str, tuple[str, ...], str, Expression]


class UndefinedError(Exception):
    """NumPy has no such operation, or ucle refuses it by its documentation."""


@dataclass(frozen=True)
class Value:
    """An array with a label for each axis; a Python number where nothing has a type yet."""

    labels: tuple[str, ...]
    data: Any


def evaluate(
    statements: Sequence[Statement],
    inputs: Mapping[str, NDArray[Any]],
    after: Callable[[Any], Any] = lambda array: array,
) -> dict[str, NDArray[Any]]:
    """Every tensor that the statements define; they stand in the order of their dependencies.

    Args:
        statements: the program.
        inputs: the dense inputs.
        after: is applied to the result of every operation.

    Raises:
        UndefinedError: the program has no answer.
    """
    known = dict(inputs)
    results = {}
    for tensor, labels, assignment, expression in statements:
        scope = _Scope(known, set(labels), after)
        if assignment == "=":
            total = scope.summed(expression)
        else:
            total = scope.plain(expression)
            away = tuple(x for x in total.labels if x not in labels)
            total = fold(total, FOLDS_OF[assignment], away)
        known[tensor] = results[tensor] = np.asarray(_laid_out(total, labels))
    return results


def _laid_out(value: Value, labels: Sequence[str]) -> NDArray[Any]:
    if set(value.labels) != set(labels):
        raise UndefinedError("a label of the left side stands nowhere on the right")
    return np.transpose(value.data, [value.labels.index(x) for x in labels])


class _Scope:
    """Evaluates the expressions of one statement."""

    def __init__(
        self, tensors: Mapping[str, NDArray[Any]], kept: set[str], after: Callable[[Any], Any]
    ) -> None:
        self._tensors = tensors
        self._kept = kept
        self._after = after

    def plain(self, expression: Expression) -> Value:
        """An expression in which no label is summed but by its own aggregations."""
        return self._node(expression, [self.plain(x) for x in parts(expression)])

    def summed(self, expression: Expression) -> Value:
        """An expression under "=": a label is summed over the smallest part that holds it."""
        return self._summed(expression, self._kept)

    def _summed(self, expression: Expression, outside: set[str]) -> Value:
        children = parts(expression)
        bound = set(expression[2]) if expression[0] == "fold" else set()
        values = []
        for position, child in enumerate(children):
            others = [free(x) for n, x in enumerate(children) if n != position]
            values.append(self._summed(child, outside.union(bound, *others)))
        value = self._node(expression, values)
        own = tuple(x for x in value.labels if x not in outside)
        if not own:
            return value
        return self._after_value(fold(value, "sum", own))

    def _node(self, expression: Expression, values: list[Value]) -> Value:
        kind = expression[0]
        if kind == "number":
            return Value((), expression[1])
        if kind == "access":
            return _access(self._tensors[expression[1]], expression[2])
        if kind == "fold":
            (value,) = values
            if not set(expression[2]) <= set(value.labels):
                raise UndefinedError("an aggregation over a label that is not there")
            return self._after_value(fold(value, expression[1], expression[2]))
        labels = tuple(dict.fromkeys(x for value in values for x in value.labels))
        arrays = [_spread(value, labels) for value in values]
        with np.errstate(all="ignore"):
            made = apply(expression[1], arrays)
        return self._after_value(Value(labels, made))

    def _after_value(self, value: Value) -> Value:
        return Value(value.labels, self._after(value.data))


def parts(expression: Expression) -> list[Expression]:
    """The expressions inside of an expression."""
    kind = expression[0]
    if kind == "binary":
        return [expression[2], expression[3]]
    if kind == "call":
        return list(expression[2])
    return [expression[3]] if kind == "fold" else []


def free(expression: Expression) -> set[str]:
    """The labels of an expression that its own aggregations do not bind."""
    if expression[0] == "access":
        return set(expression[2])
    inside: set[str] = set().union(*map(free, parts(expression)))
    return inside - set(expression[2]) if expression[0] == "fold" else inside


def _access(array: NDArray[Any], labels: tuple[str, ...]) -> Value:
    """An axis for each different label; a label that stands twice takes the diagonal."""
    different = tuple(dict.fromkeys(labels))
    index = np.ix_(*[np.arange(array.shape[labels.index(x)]) for x in different])
    if not labels:
        return Value((), array[()])
    return Value(different, array[tuple(index[different.index(x)] for x in labels)])


def _spread(value: Value, labels: tuple[str, ...]) -> Any:
    """The array with an axis for each label, of size 1 where it has none."""
    if not isinstance(value.data, np.ndarray | np.generic):
        return value.data
    array = np.asarray(value.data)
    order = [value.labels.index(x) for x in labels if x in value.labels]
    array = array.transpose(order)
    shape = iter(array.shape)
    return array.reshape([next(shape) if x in value.labels else 1 for x in labels])


def _ordered(*arrays: Any) -> None:
    if any(np.asarray(x).dtype.kind == "c" for x in arrays):
        raise UndefinedError("complex numbers have no order")


def _truth(x: Any) -> Any:
    return np.asarray(x) != 0


def _floating(x: Any) -> Any:
    """Convert the argument of a function of real numbers: whole numbers become float64."""
    array = np.asarray(x)
    return array.astype(np.float64) if array.dtype.kind in "bi" else x


def _counted(x: Any) -> Any:
    """Truth values as int64: of their squares NumPy makes int8, which ucle does not have."""
    return np.asarray(x).astype(np.int64) if np.asarray(x).dtype.kind == "b" else x


def apply(name: str, arrays: list[Any]) -> Any:
    """One operation on arrays and Python numbers that fit each other's shapes."""
    try:
        return OPERATIONS[name](*arrays)
    except (TypeError, ValueError, OverflowError) as error:
        raise UndefinedError(str(error)) from error


def _power(x: Any, y: Any) -> Any:
    return np.power(x, y)


def _select(condition: Any, x: Any, y: Any) -> Any:
    return np.where(_truth(condition), x, y)


def _clip(x: Any, low: Any, high: Any) -> Any:
    _ordered(x, low, high)
    return np.minimum(np.maximum(x, low), high)


def _compared(function: Callable[..., Any]) -> Callable[..., Any]:
    def compare(x: Any, y: Any) -> Any:
        _ordered(x, y)
        return function(x, y)

    return compare


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    def mapped(x: Any) -> Any:
        _ordered(x)
        return function(_floating(x))

    return mapped


def _rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    def mapped(x: Any) -> Any:
        _ordered(x)
        return function(x) if np.asarray(x).dtype.kind == "f" else x

    return mapped


def _relu(x: Any) -> Any:
    _ordered(x)
    return np.maximum(x, 0)


def _cast(type_: str) -> Callable[..., Any]:
    def cast(x: Any) -> Any:
        array = np.asarray(x)
        if array.dtype.kind == "c" and np.dtype(type_).kind != "c":
            raise UndefinedError("a complex number as a real one")
        if array.dtype.kind == "f" and type_ == "int64":
            array = np.trunc(array)
        return array.astype(type_)

    return cast


OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "^": _power,
    "min": _compared(np.minimum),
    "max": _compared(np.maximum),
    "<": _compared(np.less),
    "<=": _compared(np.less_equal),
    ">": _compared(np.greater),
    ">=": _compared(np.greater_equal),
    "==": np.equal,
    "!=": np.not_equal,
    "and": lambda x, y: _truth(x) & _truth(y),
    "or": lambda x, y: _truth(x) | _truth(y),
    "xor": lambda x, y: _truth(x) ^ _truth(y),
    "not": lambda x: ~_truth(x),
    "neg": np.negative,
    "where": _select,
    "when": lambda c, x: np.where(_truth(c), x, np.zeros((), np.asarray(x).dtype)),
    "unless": lambda c, x: np.where(_truth(c), np.zeros((), np.asarray(x).dtype), x),
    "clip": _clip,
    "relu": _relu,
    "abs": np.abs,
    "square": lambda x: np.square(_counted(x)),
    "sign": lambda x: _ordered(x) or np.sign(x),
    "floor": _rounded(np.floor),
    "ceil": _rounded(np.ceil),
    "round": _rounded(np.rint),
    "exp": lambda x: np.exp(_floating(x)),
    "sqrt": lambda x: np.sqrt(_floating(x)),
    "tanh": lambda x: np.tanh(_floating(x)),
    "log": lambda x: np.log(_floating(x)),
    "log1p": _real(np.log1p),
    "sigmoid": _real(lambda x: 1 / (1 + np.exp(-x))),
    "reciprocal": lambda x: 1 / _floating(x),
    "isnan": np.isnan,
    "isfinite": np.isfinite,
    "conj": np.conj,
    "real": lambda x: np.real(x) if np.asarray(x).dtype.kind == "c" else x,
    **{name: _cast(name) for name in ("bool", "int64", "float32", "float64", "complex128")},
}


def _mean(x: NDArray[Any], axes: tuple[int, ...]) -> Any:
    size = int(np.prod([x.shape[a] for a in axes]))
    if size == 0:
        raise UndefinedError("the mean of nothing")
    return np.sum(x, axis=axes) / size


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def folded(x: NDArray[Any], axes: tuple[int, ...]) -> Any:
        _ordered(x)
        if any(x.shape[a] == 0 for a in axes):
            raise UndefinedError("the extreme of nothing")
        return function(x, axis=axes)

    return folded


FOLDS: dict[str, Callable[[NDArray[Any], tuple[int, ...]], Any]] = {
    "sum": lambda x, axes: np.sum(x, axis=axes),
    "prod": lambda x, axes: np.prod(x, axis=axes),
    "min": _extreme(np.min),
    "max": _extreme(np.max),
    "any": lambda x, axes: np.any(_truth(x), axis=axes),
    "all": lambda x, axes: np.all(_truth(x), axis=axes),
    "count": lambda x, axes: np.sum(_truth(x), axis=axes),
    "mean": _mean,
}
FOLDS_OF = {"+=": "sum", "*=": "prod"} | {
    f"{name}=": name for name in ("min", "max", "any", "all", "count", "mean")
}


def fold(value: Value, name: str, away: Sequence[str]) -> Value:
    """An aggregation over some of a value's labels."""
    array = np.asarray(value.data)
    axes = tuple(value.labels.index(x) for x in away)
    with np.errstate(all="ignore"):
        made = FOLDS[name](array, axes)
    return Value(tuple(x for x in value.labels if x not in away), made)
