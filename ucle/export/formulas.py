"""The operators of programs as nodes of ONNX, by their rows.

Operators without a row here have no counterpart in ONNX. Types have already been promoted: all
operands of a formula have the type in which the operator computes, and predicates return booleans.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ucle.export.graph import Value, choose
from ucle.foundation.dtypes import DType
from ucle.operators import (
    ABS,
    ACOS,
    ACOSH,
    ADD,
    ALL,
    AND,
    ANY,
    ASIN,
    ASINH,
    ATAN,
    ATAN2,
    ATANH,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    CEIL,
    CONJ,
    COPYSIGN,
    COS,
    COSH,
    DIV,
    EQUAL,
    ERF,
    EXP,
    EXPM1,
    FINITE,
    FLOOR,
    FLOOR_DIVIDE,
    GELU,
    GREATEST,
    HYPOT,
    ISFINITE,
    ISINF,
    ISNAN,
    LEAKY_RELU,
    LEAST,
    LESS,
    LESS_EQUAL,
    LOG,
    LOG1P,
    LOG2,
    LOG10,
    LOGADDEXP,
    MAX,
    MIN,
    MULT,
    NEG,
    NOT,
    NOT_EQUAL,
    ONE_IF_ZERO,
    OR,
    POW,
    PROD,
    REAL,
    RECIPROCAL,
    RELU,
    REMAINDER,
    ROUND,
    SIGMOID,
    SIGN,
    SILU,
    SIN,
    SINH,
    SOFTPLUS,
    SPARSE_DIV,
    SPARSE_MULT,
    SQRT,
    SQUARE,
    SUB,
    SUM,
    TAN,
    TANH,
    TRUNC,
    UNLESS,
    WHEN,
    WHEN_HIGHEST,
    WHEN_LOWEST,
    WHEN_ONE,
    XOR,
    Combine,
    PointwiseMap,
    Reduce,
)

MapFormula = Callable[[Value], Value]
CombineFormula = Callable[[Value, Value], Value]


def _plain(operator: str) -> MapFormula:
    return lambda x: x.apply(operator)


def _wide(operator: str, formula: MapFormula) -> MapFormula:
    """An operator of float32, and a formula of float64, which runtimes do not have it of."""

    def of_either(x: Value) -> Value:
        narrow = x.dtype is DType.FLOAT32 or x.graph.narrow
        return x.apply(operator) if narrow else formula(x)

    return of_either


def _unless_integer(formula: MapFormula) -> MapFormula:
    """A function that changes no integer."""
    return lambda x: formula(x) if x.dtype.kind == "f" else x


def _absolute(x: Value) -> Value:
    return x.apply("Abs") if x.dtype is not DType.BOOL else x


def _predicate(operator: str) -> MapFormula:
    return lambda x: x.graph.node(operator, (x,), DType.BOOL)


def _is_finite(x: Value) -> Value:
    return ~(_predicate("IsNaN")(x) | _predicate("IsInf")(x))


def _one_if_zero(x: Value) -> Value:
    return choose(x.equals(0), 1, x, x.dtype)


def _log1p(x: Value) -> Value:
    """The logarithm of 1 + x, without the loss of digits where x is small (Kahan)."""
    u = x + 1
    near = u.equals(1)
    quotient = u.apply("Log") * (x / choose(near, 1, u - 1, x.dtype))
    return choose(near, x, choose(x.equals(math.inf), x, quotient, x.dtype), x.dtype)


def _expm1(x: Value) -> Value:
    half = (x * 0.5).apply("Tanh")
    small = 2 * half / (1 - half)
    return choose(_absolute(x) < 0.5, small, x.apply("Exp") - 1, x.dtype)


def _sinh(x: Value) -> Value:
    small = _expm1(_absolute(x))
    size = (small + small / (small + 1)) * 0.5
    return _with_sign(choose(small.equals(math.inf), small, size, x.dtype), x)


def _asinh(x: Value) -> Value:
    size = _absolute(x)
    squared = size * size
    return _with_sign(_log1p(size + squared / (1 + (squared + 1).apply("Sqrt"))), x)


def _with_sign(size: Value, x: Value) -> Value:
    return choose(x < 0, -size, size, x.dtype)


def _gelu(x: Value) -> Value:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + inner.apply("Tanh"))


def _softplus(x: Value) -> Value:
    return x.apply("Max", x.like(0)) + _log1p((-_absolute(x)).apply("Exp"))


MAPS: Mapping[PointwiseMap, MapFormula] = {
    RELU: _plain("Relu"),
    LEAKY_RELU: lambda x: choose(x < 0, 0.01 * x, x, x.dtype),
    SIGMOID: _plain("Sigmoid"),
    GELU: _gelu,
    SILU: lambda x: x * x.apply("Sigmoid"),
    SOFTPLUS: _softplus,
    ERF: _plain("Erf"),
    TANH: _plain("Tanh"),
    EXP: _plain("Exp"),
    LOG: _plain("Log"),
    LOG1P: _log1p,
    EXPM1: _expm1,
    LOG2: lambda x: x.apply("Log") / math.log(2),
    LOG10: lambda x: x.apply("Log") / math.log(10),
    SQRT: _plain("Sqrt"),
    SIN: _plain("Sin"),
    COS: _plain("Cos"),
    TAN: _wide("Tan", lambda x: x.apply("Sin") / x.apply("Cos")),
    ASIN: _plain("Asin"),
    ACOS: _plain("Acos"),
    ATAN: _plain("Atan"),
    SINH: _wide("Sinh", _sinh),
    COSH: _wide("Cosh", lambda x: (x.apply("Exp") + (-x).apply("Exp")) * 0.5),
    ASINH: _wide("Asinh", _asinh),
    ACOSH: _wide("Acosh", lambda x: (x + ((x - 1) * (x + 1)).apply("Sqrt")).apply("Log")),
    ATANH: _wide("Atanh", lambda x: 0.5 * _log1p(2 * x / (1 - x))),
    NEG: lambda x: -x,
    ABS: _absolute,
    SQUARE: lambda x: x * x,
    RECIPROCAL: lambda x: 1 / x,
    SIGN: _plain("Sign"),
    FLOOR: _unless_integer(_plain("Floor")),
    CEIL: _unless_integer(_plain("Ceil")),
    ROUND: _unless_integer(_plain("Round")),
    TRUNC: _unless_integer(lambda x: x.apply("Sign") * _absolute(x).apply("Floor")),
    CONJ: lambda x: x,
    REAL: lambda x: x,
    NOT: lambda x: ~x.cast(DType.BOOL),
    ISNAN: _predicate("IsNaN"),
    ISINF: _predicate("IsInf"),
    ISFINITE: _is_finite,
    FINITE: lambda x: choose(_is_finite(x), x, 0, x.dtype),
    ONE_IF_ZERO: _one_if_zero,
}
"""Functions of one value."""


def _least(x: Value, y: Value) -> Value:
    return x & y if x.dtype is DType.BOOL else x.apply("Min", y)


def _greatest(x: Value, y: Value) -> Value:
    return x | y if x.dtype is DType.BOOL else x.apply("Max", y)


def _remainder(x: Value, y: Value) -> Value:
    """The remainder with the sign of the divisor; that of an integer by 0 is 0."""
    if x.dtype.kind == "i":
        return choose(y.equals(0), 0, x % _one_if_zero(y), x.dtype)
    rest = x % y
    other = ~rest.equals(0) & ((rest < 0) ^ (y < 0))
    return choose(other, rest + y, rest, x.dtype)


def _floor_divide(x: Value, y: Value) -> Value:
    if x.dtype.kind == "i":
        divisor = _one_if_zero(y)
        return choose(y.equals(0), 0, (x - x % divisor) / divisor, x.dtype)
    quotient = ((x - _remainder(x, y)) / y).apply("Round")
    return choose(y.equals(0), x / y, quotient, x.dtype)


def _angle(x: Value, y: Value) -> Value:
    """The angle of the point (y, x), by the arc tangent of the quotient."""
    own = (x / _one_if_zero(y)).apply("Atan")
    turned = own + choose(x < 0, -math.pi, math.pi, x.dtype)
    upright = x.apply("Sign") * (math.pi / 2)
    return choose(y.equals(0), upright, choose(y < 0, turned, own, x.dtype), x.dtype)


def _hypotenuse(x: Value, y: Value) -> Value:
    one, other = _absolute(x), _absolute(y)
    more, less = _greatest(one, other), _least(one, other)
    ratio = less / _one_if_zero(more)
    return more * (1 + ratio * ratio).apply("Sqrt")


def _logaddexp(x: Value, y: Value) -> Value:
    near = choose(x.equals(y), 0, _absolute(x - y), x.dtype)  # also of equal infinities
    return _greatest(x, y) + _log1p((-near).apply("Exp"))


def _sparse_mult(x: Value, y: Value) -> Value:
    return choose(x.equals(0) | y.equals(0), 0, x * y, x.dtype)


def _of_truth(x: Value) -> Value:
    return x.cast(DType.BOOL)


def _selecting(elsewhere: Callable[[Value], Any], negated: bool = False) -> CombineFormula:
    """The second operand where the first one holds, and another number elsewhere."""

    def select(condition: Value, y: Value) -> Value:
        holds = _of_truth(condition)
        if negated:
            return choose(holds, elsewhere(y), y, y.dtype)
        return choose(holds, y, elsewhere(y), y.dtype)

    return select


def _zero(_: Value) -> int:
    return 0


def _end(sign: int) -> Callable[[Value], Any]:
    """The least or the greatest number of a type."""

    def of_type(y: Value) -> Any:
        if y.dtype is DType.BOOL:
            return sign > 0
        if y.dtype.kind == "f":
            return sign * math.inf
        return np.iinfo(np.int64).max if sign > 0 else np.iinfo(np.int64).min

    return of_type


COMBINES: Mapping[Combine, CombineFormula] = {
    MULT: lambda x, y: x * y,
    ADD: lambda x, y: x + y,
    SUB: lambda x, y: x - y,
    DIV: lambda x, y: x / y,
    SPARSE_MULT: _sparse_mult,
    SPARSE_DIV: lambda x, y: choose(x.equals(0), 0, x / y, x.dtype),
    POW: lambda x, y: x.apply("Pow", y),
    LEAST: _least,
    GREATEST: _greatest,
    LESS: lambda x, y: x < y,
    LESS_EQUAL: lambda x, y: x <= y,
    EQUAL: lambda x, y: x.equals(y),
    NOT_EQUAL: lambda x, y: ~x.equals(y),
    AND: lambda x, y: _of_truth(x) & _of_truth(y),
    OR: lambda x, y: _of_truth(x) | _of_truth(y),
    XOR: lambda x, y: _of_truth(x) ^ _of_truth(y),
    WHEN: _selecting(_zero),
    UNLESS: _selecting(_zero, negated=True),
    WHEN_ONE: _selecting(lambda _: 1),
    WHEN_LOWEST: _selecting(_end(-1)),
    WHEN_HIGHEST: _selecting(_end(1)),
    REMAINDER: _remainder,
    FLOOR_DIVIDE: _floor_divide,
    BIT_AND: lambda x, y: x & y,
    BIT_OR: lambda x, y: x | y,
    BIT_XOR: lambda x, y: x ^ y,
    ATAN2: _angle,
    HYPOT: _hypotenuse,
    LOGADDEXP: _logaddexp,
    COPYSIGN: lambda x, y: choose(y < 0, -_absolute(x), _absolute(x), x.dtype),
}
"""Functions of two values."""

REDUCES: Mapping[Reduce, str] = {
    SUM: "ReduceSum",
    PROD: "ReduceProd",
    MAX: "ReduceMax",
    MIN: "ReduceMin",
    ANY: "ReduceMax",
    ALL: "ReduceMin",
}
"""Aggregations; those of truth values are of 0 and 1."""


def reduce_axes(operator: Reduce, value: Value, axes: tuple[int, ...]) -> Value | None:
    """An aggregation over axes; None if there is no operator for it."""
    if operator not in REDUCES:
        return None
    counted = value.cast(DType.INT64) if value.dtype is DType.BOOL else value
    return counted.axes(REDUCES[operator], axes, keepdims=0).cast(value.dtype)
