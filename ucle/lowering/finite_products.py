"""Replace products in which 0 annihilates by ordinary ones if all operands are finite.

The backward pass writes `sparse_mult` if the gradient passed back is masked
(`ucle.gradients.masked`). For finite numbers that equals `*`, which has more orders, kernels and
rewrites. Takes an expression whose sizes are numbers, and the types of the tensors that it reads;
gives an expression of equal value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ucle.foundation.dtypes import DType
from ucle.ir.ranges import combine_values, map_values
from ucle.ir.tensor_types import TensorType
from ucle.language.syntax import (
    Access,
    Binary,
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
        case Call(PointwiseMap() as function):
            return map_values(function, known[0], dtype)
        case Call(DType()):
            return known[0]
        case Reduction():
            finite = anything(dtype, finite=known[0].finite)
            return replace(finite, low=0) if known[0].low >= 0 else finite
    return UNKNOWN
