"""Compute statements at the keys of masks alone: the last one, and those that only it reads.

Where a mask is false, a tensor becomes its fill, and no row of it is looked at. A sum takes the
mask as a factor, so that products are joined behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ucle.foundation.dtypes import Scalar
from ucle.ir.vertices import Span
from ucle.language.resolve import resolve
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Expression,
    First,
    Flat,
    ForestCall,
    Number,
    Reduction,
    ScanExpression,
    Statement,
    SystemCall,
    walk,
)
from ucle.maintenance.affected import Mask
from ucle.operators import MULT, OR, SUM, WHEN


def restrict(
    statements: Sequence[Statement],
    masks: Sequence[Mask],
    fills: Mapping[str, Scalar],
    is_finite: Callable[[str], bool],
) -> list[Statement]:
    """Return statements that compute the last one of them at the keys of masks.

    Args:
        statements: in order; the last one reads the others.
        masks: of the tensor of the last one.
        fills: the fills of their tensors.
        is_finite: True for a tensor without NaN and infinities.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.syntax_to_text import statement_text
    >>> program = parse_program("T[i,m] += A[i,l] * H[l,m]; Z[i,m] = relu(T[i,m])")
    >>> for each in restrict(program, [Mask("M", (0,))], {"T": 0, "Z": 0}, lambda name: True):
    ...     print(statement_text(each))
    T[i,m] = sum[l](M[i] * (A[i,l] * H[l,m]))
    Z[i,m] = when(M[i], relu(T[i,m]))
    """
    needed = {statements[-1].target.tensor: list(masks)}
    restricted: list[Statement] = []
    for number in range(len(statements) - 1, -1, -1):
        statement = statements[number]
        own = needed.get(statement.target.tensor)
        if own is None:
            restricted.append(statement)
            continue
        resolved = resolve(statement)
        for read in {x.target.tensor for x in statements[:number]}:
            demand = _demand(read, own, resolved, statements, number)
            if demand is not None:
                needed[read] = demand
        fill = fills[statement.target.tensor]
        restricted.append(_behind(resolved, own, fill, is_finite))
    return restricted[::-1]


def _demand(
    tensor: str,
    masks: Sequence[Mask],
    reader: Statement,
    statements: Sequence[Statement],
    number: int,
) -> list[Mask] | None:
    """Return masks of the entries of a tensor that its only reader needs; None for all of them."""
    readers = [x for x in statements if any(y.tensor == tensor for y in _reads(x.expression))]
    if readers != [statements[number]]:
        return None
    spreading = ScanExpression | First | Flat | ForestCall | SystemCall
    spread = any(isinstance(x, spreading) for x in walk(reader.expression))
    reads = {x for x in _reads(reader.expression) if x.tensor == tensor}
    if spread or len({x.shown for x in reads}) != 1 or any(x.indices for x in reads):
        return None
    (read,) = {x.labels for x in reads}
    target = reader.target.labels
    demanded = []
    for mask in masks:
        labels = [target[axis] for axis in mask.axes]
        if not set(labels) <= set(read):
            return None
        demanded.append(Mask(mask.tensor, tuple(read.index(x) for x in labels)))
    return demanded


def _reads(expression: Expression) -> list[Access]:
    return [x for x in walk(expression) if isinstance(x, Access)]


def _behind(
    resolved: Statement, masks: Sequence[Mask], fill: Scalar, is_finite: Callable[[str], bool]
) -> Statement:
    """Return a statement that is computed at the keys of masks, and is the fill elsewhere."""
    target, span, expression = resolved.target, resolved.span, resolved.expression
    keys = _keys(target.labels, masks, span)
    value: Expression
    finite = all(is_finite(x.tensor) for x in _reads(expression))
    if fill != 0:  # NaN, too
        value = Call("where", (keys, expression, Number(fill, span)), span)
    elif isinstance(expression, Reduction) and expression.operator is SUM and finite:
        product = Binary(MULT, keys, expression.argument, span)
        value = replace(expression, argument=product)
    else:
        value = Binary(WHEN, keys, expression, span)
    return replace(resolved, expression=value, aggregation=None)


def _keys(labels: Sequence[str], masks: Sequence[Mask], span: Span) -> Expression:
    keys: Expression | None = None
    for mask in masks:
        access = Access(mask.tensor, tuple(labels[axis] for axis in mask.axes), span)
        keys = access if keys is None else Binary(OR, keys, access, span)
    assert keys is not None
    return keys
