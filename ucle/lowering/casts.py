"""Replace products with 1.0 by casts to floats, or by nothing if there are floats already.

Functions that are defined by other functions use such products to compute with floats, whatever
their arguments are (`ucle.language.functions`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.foundation.dtypes import DType
from ucle.ir.tensor_types import TensorType
from ucle.language.promotion import expression_type
from ucle.language.syntax import Binary, Call, Expression, Number, fold, walk, with_children
from ucle.operators import MULT


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
