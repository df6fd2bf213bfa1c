"""What an operator passes back to its operands: rows of `ucle.operators` put to use.

An *adjoint* of an expression has an entry for each of its entries: how much the loss grows with
that. It is an expression itself, linear in the adjoint of what it was passed back from, and its
labels are among those of the expression; along the others it is the same everywhere.

Source: reverse-mode differentiation of relational computations, Tang et al., ICML 2023.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from ucle.errors import UnsupportedError
from ucle.foundation.dtypes import DType
from ucle.gradients.masked import Adjoint, Holds, only_scales, product_of
from ucle.ir.scans import Running
from ucle.ir.vertices import Span
from ucle.language.factors import constant_value
from ucle.language.syntax import (
    Accumulation,
    Binary,
    Call,
    Coordinate,
    Expression,
    First,
    Hit,
    Number,
    Reduction,
    Size,
    accesses,
    children,
    fold,
    with_children,
)
from ucle.language.templates import substitute, template
from ucle.language.top_k import FIRST, Gives, Order
from ucle.operators import (
    ADD,
    MULT,
    POW,
    SPARSE_MULT,
    SUB,
    SUM,
    UNLESS,
    WHEN,
    PointwiseMap,
)
from ucle.operators.rows import NONE

Passed = Iterator[tuple[Expression, str]]
"""Operands, and the text of what is passed back to each."""


def passed(expression: Expression) -> Passed:
    """The operands to which an expression passes something back, and by which text.

    Raises:
        UnsupportedError: nothing says what the derivative of the operator is.
    """
    name, texts = _derivatives(expression)
    for operand, text in zip(children(expression), texts, strict=False):
        if operand.constant or text == NONE:
            continue
        if text is None:
            raise UnsupportedError(
                f"nothing says what the derivative of {name} is",
                where=str(expression.span),
                expected="operators with derivatives",
                found=name,
                hint="register_operator(derivative=...) says it for operators of your own",
            )
        yield operand, text


def _derivatives(expression: Expression) -> tuple[str, Sequence[str | None]]:
    """The name of an operator, and the text for each of its operands; none where it is no such."""
    match expression:
        case Call(PointwiseMap() as function):
            return function.name, (function.derivative,)
        case Call(DType() as dtype):
            return dtype.value, ("g" if dtype.kind in "fc" else NONE,)
        case Binary(operator):
            return operator.name, operator.derivatives or (None, None)
        case Reduction(operator):
            return operator.name, (operator.derivative,)
        case Accumulation(along):
            summed_up = isinstance(along, Running) and along.reduce is SUM
            return along.name, (RUNNING_SUM if summed_up else None,)
        case First(function):
            return function.name, ("g" if function.gives is Gives.VALUES else NONE,)
    return "", ()


RUNNING_SUM = "g + g"
"""From a position and from those behind it; `_behind` writes it, as labels are a text's own."""


@cache
def names_in(text: str) -> Counter[str]:
    """How often the text of a derivative has each name."""
    return Counter(part.tensor for part in accesses(template(text)))


def adjoint(
    expression: Expression,
    operand: Expression,
    text: str,
    values: Mapping[str, Expression],
    received: Adjoint,
) -> Adjoint:
    """The adjoint of an operand of an expression.

    Args:
        expression: that is differentiated.
        operand: of it.
        text: what is passed back to that.
        values: what the other names of the text stand for.
        received: g, the adjoint of the expression.
    """
    over = expression.over if isinstance(expression, Reduction) else ()
    span = expression.span
    if isinstance(expression, First):
        return _to_first(expression, received)
    if isinstance(expression, Accumulation):
        made = Adjoint(_behind(expression, received.whole))
    else:
        made = _multiplied(text, values, over, span, received)
    labels = (*expression.labels, *over)
    return made.summed([x for x in labels if x not in operand.labels], span)


def _multiplied(
    text: str,
    values: Mapping[str, Expression],
    over: tuple[str, ...],
    span: Span,
    received: Adjoint,
) -> Adjoint:
    """What the text of a derivative makes of an adjoint, under the same conditions."""

    def of(g: Expression) -> Expression:
        return simplified(substitute(template(text), {**values, "g": g}, over, span))

    operator = product_of(text)
    if operator is SPARSE_MULT or (operator is MULT and received.conditions):
        # As a product with a 0 that annihilates, it is contracted in whatever order is cheapest.
        product = of(received.whole)
        assert isinstance(product, Binary)
        holds = (Holds.of(product.right),) if operator is SPARSE_MULT else ()
        bare = replace(product, operator=SPARSE_MULT)
        return Adjoint(bare, (*received.conditions, *holds), zero=True)
    made = received.under(of(received.bare))
    steady = received.zero and len(made.conditions) == len(received.conditions)
    return replace(made, zero=steady and only_scales(text))


def _to_first(first: First, g: Adjoint) -> Adjoint:
    """What first entries pass back: each to where it stands."""
    end, span = "top_k" if first.function.order is Order.GREATEST else "bottom_k", first.span
    if first.rank is None or first.rank not in g.labels:
        members = replace(first, function=FIRST[f"among_{end}"])
        return g.under(Binary(WHEN, members, g.bare, span))
    positions = replace(first, function=FIRST[f"arg_{end}"])
    hits = Hit(positions, first.label, "", span, permissive=True, own=True)
    return g.under(Binary(WHEN, hits, g.bare, span)).summed((first.rank,), span)


def _behind(expression: Accumulation, g: Expression) -> Expression:
    """What all positions from each one on pass back to a running sum's argument."""
    span, (label,) = expression.span, expression.along.labels
    if label not in g.labels:  # as often as there are such positions
        before = Binary(SUB, Size((label,), span), Coordinate(label, span), span)
        return Binary(MULT, g, before, span)
    whole = Reduction(SUM, (label,), g, span)
    rest = Binary(SUB, whole, Accumulation(expression.along, g, span), span)
    return Binary(ADD, rest, g, span)


def simplified(expression: Expression) -> Expression:
    """The expression without operations on numbers that are known.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.syntax_to_text import expression_text
    >>> text = "d = when(2 != 0, g * 2 * x ^ (2 - 1))"
    >>> expression_text(simplified(parse_program(text)[0].expression))
    'g[] * 2 * x[]'
    """
    return fold(expression, _simplified)


def _simplified(expression: Expression, parts: list[Expression]) -> Expression:
    expression = with_children(expression, parts)
    if not isinstance(expression, Binary):
        return expression
    value = constant_value(expression)
    if value is not None:
        return Number(value, expression.span)
    left, right = (constant_value(x) for x in (expression.left, expression.right))
    match expression.operator:
        case operator if operator is WHEN and left is not None:
            return expression.right if left else Number(0.0, expression.span)
        case operator if operator is UNLESS and left is not None:
            return Number(0.0, expression.span) if left else expression.right
    if expression.operator is POW and right == 1:
        return expression.left
    return expression
