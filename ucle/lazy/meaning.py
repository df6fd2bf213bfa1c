"""The meaning of a node in the language: its function and its aggregation as an expression.

Where NumPy treats booleans and numbers differently, the types of the operands decide: they are
known when a node is translated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ucle.errors import ValueTypeError
from ucle.foundation.dtypes import DType, Scalar, nearest
from ucle.ir.affine import Affine
from ucle.ir.vertices import Span
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Expression,
    Index,
    Number,
    Reduction,
    with_indices,
)
from ucle.language.syntax_to_text import expression_text
from ucle.lazy.nodes import AVERAGE, TYPED, Apply, Function
from ucle.operators import (
    ABS,
    ADD,
    AND,
    ANY,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    DIV,
    NOT,
    NOT_EQUAL,
    OR,
    PICK,
    SQUARE,
    SUB,
    SUM,
    UNLESS,
    WHEN,
    XOR,
    Combine,
)

Kinds = Sequence[DType | Scalar | None]

INVERT = "bitwise_invert"
SIZE_SQUARED = "size_squared"
"""``x * conj(x)``: for a real number the square, with the derivatives of x * x at 0."""

OF_BOOLEANS = {f"bitwise_{row.name}": row for row in (AND, OR, XOR)}
"""Bitwise operators on booleans, as operators of the language."""

OF_INTEGERS = {row.name.replace("bit_", "bitwise_"): row for row in (BIT_AND, BIT_OR, BIT_XOR)}
"""Bitwise operators on integers, where booleans are 0 and 1."""


def depends_on_types(node: Apply) -> bool:
    """True if the types of its operands determine the meaning of a node."""
    return node.reduce == "dot" or node.function in TYPED


def expression_of(
    node: Apply, parts: Sequence[Expression], kinds: Kinds, over: tuple[str, ...], span: Span
) -> Expression:
    """Translate a node to an expression of its operands.

    Args:
        node: the node.
        parts: its operands as expressions.
        kinds: their types; numbers stand for themselves.
        over: the labels that are aggregated.
        span: a place for messages.

    Raises:
        ValueTypeError: bitwise operators on numbers that are neither booleans nor integers.
    """
    if node.reduce is PICK:
        at, tensor = parts
        assert isinstance(tensor, Access)
        entries = Index(Affine(), entries=at, text=expression_text(at))
        plain = (entries if x in over else Index(Affine(((x, 1),))) for x in tensor.labels)
        return with_indices(tensor, tuple(plain))
    joined = _apply_function(node.function, parts, kinds, span)
    if node.reduce is None:
        return joined
    operator = node.reduce
    if isinstance(operator, str):
        operator = ANY if all(_is_bool(kind) for kind in kinds) else SUM
    return Reduction(operator, over, joined, span)


def _apply_function(
    function: Function | None, parts: Sequence[Expression], kinds: Kinds, span: Span
) -> Expression:
    if function is None:
        return parts[0]
    if function == "where":
        return _choice(parts, kinds, span)
    if function == SIZE_SQUARED:
        (part,) = parts
        if isinstance(kinds[0], DType) and kinds[0].kind == "c":
            part = Call(ABS, (part,), span)
        return Call(SQUARE, (part,), span)
    if function == AVERAGE:
        quotient = Binary(DIV, parts[0], parts[1], span)
        if kinds[0] in (DType.FLOAT32, DType.COMPLEX64):
            assert isinstance(kinds[0], DType)
            return Call(kinds[0], (quotient,), span)
        return quotient
    if function == "difference":
        function = NOT_EQUAL if all(map(_is_bool, kinds)) else SUB
    if isinstance(function, str) and function in (*OF_BOOLEANS, INVERT):
        return _bitwise(function, parts, kinds, span)
    if isinstance(function, Combine):
        return reduce(lambda left, right: Binary(function, left, right, span), parts)
    return Call(function, tuple(parts), span)


def _bitwise(function: str, parts: Sequence[Expression], kinds: Kinds, span: Span) -> Expression:
    for kind in kinds:
        if not (_is_bool(kind) or kind is DType.INT64 or isinstance(kind, int)):
            raise _not_bool(function, kind)
    booleans = all(map(_is_bool, kinds))
    if function == INVERT:
        (part,) = parts
        if booleans:
            return Call(NOT, (part,), span)
        return Binary(BIT_XOR, part, Number(-1, span), span)  # -1 has all bits
    operator = (OF_BOOLEANS if booleans else OF_INTEGERS)[function]
    return reduce(lambda left, right: Binary(operator, left, right, span), parts)


def _choice(parts: Sequence[Expression], kinds: Kinds, span: Span) -> Expression:
    """Translate ``where(c, x, y)``, in the common type of x and y; Python numbers are weak."""
    condition, *values = parts
    samples = [kind.numpy if isinstance(kind, DType) else kind for kind in kinds[1:]]
    common = nearest(np.result_type(*samples))
    assert common is not None
    picked = [
        _cast(Binary(operator, condition, value, span), kind, common, span)
        for operator, value, kind in zip((WHEN, UNLESS), values, kinds[1:], strict=True)
    ]
    return Binary(ADD, picked[0], picked[1], span)


def _cast(value: Expression, kind: DType | Scalar | None, target: DType, span: Span) -> Expression:
    own = kind if isinstance(kind, DType) else nearest(np.result_type(kind))
    return value if own is target else Call(target, (value,), span)


def _is_bool(kind: DType | Scalar | None) -> bool:
    return kind is DType.BOOL or isinstance(kind, bool)


def _not_bool(function: str, kind: DType | Scalar | None) -> ValueTypeError:
    shown = kind.value if isinstance(kind, DType) else repr(kind)
    return ValueTypeError(
        f"there is no {function} of numbers that are neither booleans nor integers",
        where=function,
        expected="comparisons, or tensors of bool or int64",
        found=shown,
        hint="comparisons need parentheses: (a > 0) & (b > 0)",
    )
