"""Bitwise operators and extremes of booleans, replaced by the logical ones that they equal there.

``&`` of booleans is ``and``, ``|`` is ``or`` and ``xor(a, b)`` is ``a xor b``: the logical
operators distribute over ``any`` and ``all``, take masks as factors and have kernels of products.
The least of booleans is ``all``, the greatest ``any``: one entry decides them
(`ucle.plan.early_ends`).
Expressions and types of the tensors that they read come in, expressions of equal value and equal
type go out.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.tensor_types import TensorType
from ucle.language.promotion import expression_type
from ucle.language.syntax import Binary, Expression, Reduction, fold, walk, with_children
from ucle.operators import ALL, AND, ANY, BIT_AND, BIT_OR, BIT_XOR, MAX, MIN, OR, XOR

LOGICAL = {BIT_AND: AND, BIT_OR: OR, BIT_XOR: XOR}
"""The logical operator that equals a bitwise one on booleans."""

DECIDED = {MIN: ALL, MAX: ANY}
"""The logical aggregation that equals an extreme of booleans."""


def bits_as_logic(expression: Expression, types: Mapping[str, TensorType]) -> Expression:
    """Return the expression with logical operators in place of others on booleans.

    Raises:
        ValueTypeError: bitwise operators on numbers that are neither booleans nor integers.
    """
    if not any(map(_may_be_logical, walk(expression))):
        return expression
    known: dict[int, bool] = {}
    """For results of bitwise operators, by identity, whether they are booleans."""
    kept: list[Expression] = []

    def is_boolean(part: Expression) -> bool:
        if (answer := known.get(id(part))) is None:
            answer = _is_boolean(expression_type(part, types))
        return answer

    def rewrite_part(part: Expression, parts: list[Expression]) -> Expression:
        made = with_children(part, parts)
        if isinstance(made, Binary) and (logical := LOGICAL.get(made.operator)) is not None:
            booleans = is_boolean(made.left) and is_boolean(made.right)
            if booleans:
                made = Binary(logical, made.left, made.right, made.span)
            known[id(made)] = booleans
            kept.append(made)  # keep it alive, so that its identity stays unique
        elif isinstance(made, Reduction) and made.operator in DECIDED and is_boolean(made.argument):
            made = Reduction(DECIDED[made.operator], made.over, made.argument, made.span)
        return made

    return fold(expression, rewrite_part)


def _may_be_logical(part: Expression) -> bool:
    if isinstance(part, Binary):
        return part.operator in LOGICAL
    return isinstance(part, Reduction) and part.operator in DECIDED


def _is_boolean(kind: DType | Scalar) -> bool:
    return kind is DType.BOOL or isinstance(kind, bool)
