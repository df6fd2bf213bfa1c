"""Replace products by simpler expressions where types and ranges of their operands allow it.

Functions that are defined by other functions use products with 1.0 to compute with floats, whatever
their arguments are (`ucle.language.functions`): these become casts, or nothing if there are floats
already.

The backward pass writes `sparse_mult`, in which 0 annihilates, if the gradient passed back is
masked (`ucle.gradients.masked`). For finite numbers that equals `*`, which has more orders, kernels
and rewrites. Expressions whose sizes are numbers and types of the tensors that they read come in,
expressions of equal value go out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ucle.foundation.dtypes import DType
from ucle.ir.ranges import combine_values, map_values
from ucle.ir.tensor_types import TensorType
from ucle.language.promotion import expression_type
from ucle.language.syntax import (
    Access,
    Binary,
    Bounded,
    Call,
    Expression,
    Number,
    Reduction,
    fold,
    walk,
    with_children,
)
from ucle.operators import MULT, SPARSE_MULT, PointwiseMap
from ucle.operators.values import Values, anything, point


def ones_as_casts(expression: Expression, types: Mapping[str, TensorType]) -> Expression:
    """Return the expression with casts in place of products with 1.0."""
    if not any(map(_is_with_one, walk(expression))):
        return expression

    def rewrite_part(part: Expression, parts: list[Expression]) -> Expression:
        if not _is_with_one(part):
            return with_children(part, parts)
        number, dtype = parts[0], expression_type(parts[0], types)
        if not isinstance(dtype, DType):
            return with_children(part, parts)
        return number if dtype.kind in "fc" else Call(DType.FLOAT64, (number,), part.span)

    return fold(expression, rewrite_part)


def _is_with_one(part: Expression) -> bool:
    if not isinstance(part, Binary) or part.operator is not MULT:
        return False
    right = part.right
    return isinstance(right, Number) and isinstance(right.value, float) and right.value == 1


UNKNOWN = anything(DType.FLOAT64, finite=False)


def finite_products(expression: Expression, types: Mapping[str, TensorType]) -> Expression:
    """Return the expression with ordinary products where both sides are finite."""
    if not any(isinstance(x, Binary) and x.operator is SPARSE_MULT for x in walk(expression)):
        return expression
    values: dict[int, Values] = {}
    kept: list[Expression] = []

    def rewrite_part(part: Expression, parts: list[Expression]) -> Expression:
        known = [values[id(each)] for each in parts]
        made = with_children(part, parts)
        match made:
            case Binary(operator) if operator is SPARSE_MULT and all(x.finite for x in known):
                made = Binary(MULT, made.left, made.right, made.span)
        values[id(made)] = _values(made, known, types)
        kept.append(made)  # keep it alive, so that its identity stays unique
        return made

    return fold(expression, rewrite_part)


def _values(part: Expression, known: list[Values], types: Mapping[str, TensorType]) -> Values:
    """Return the range of an expression from the ranges of its parts, by simple rules."""
    dtype = DType.FLOAT64
    match part:
        case Access(tensor):
            return UNKNOWN if types[tensor].dtype.kind == "c" else types[tensor].every
        case Number(value):
            return UNKNOWN if isinstance(value, complex) else point(value, dtype)
        case Binary(operator):
            return combine_values(operator, known[0], known[1], dtype)
        case Bounded(pick=pick, bound=bound):
            return combine_values(pick, known[0], point(bound, dtype), dtype)
        case Call(PointwiseMap() as function):
            return map_values(function, known[0], dtype)
        case Call(DType()):
            return known[0]
        case Reduction():
            finite = anything(dtype, finite=known[0].finite)
            return replace(finite, low=0) if known[0].low >= 0 else finite
    return UNKNOWN
