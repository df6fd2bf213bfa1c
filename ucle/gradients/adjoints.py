"""Adjoints of the operands of an operator, from the derivatives in `ucle.operators`.

An *adjoint* of an expression has an entry for each of its entries: the derivative of the loss with
respect to that entry. It is an expression itself, linear in the adjoint of the expression that it
was passed back from. Its labels are among those of the expression; along the others it is constant.

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
from ucle.ir.axis_functions import Running
from ucle.ir.forests import NAME as FOREST
from ucle.ir.linear_systems import NAME as SOLVE
from ucle.ir.vertices import Span
from ucle.language.factors import constant_value
from ucle.language.functions import FIRST, Direction, Gives
from ucle.language.parse import template
from ucle.language.syntax import (
    Binary,
    Call,
    Coordinate,
    Expression,
    First,
    Flat,
    ForestCall,
    Hit,
    Number,
    Reduction,
    ScanExpression,
    Size,
    SystemCall,
    accesses,
    children,
    fold,
    walk,
    with_children,
)
from ucle.language.templates import substitute
from ucle.operators import (
    ADD,
    EQUAL,
    MULT,
    POW,
    SPARSE_MULT,
    SUB,
    SUM,
    WHEN,
    PointwiseMap,
)
from ucle.operators.rows import NONE

Passed = Iterator[tuple[Expression, str]]
"""Operands, each with the text of its derivative."""


def pass_to_operands(expression: Expression) -> Passed:
    """Yield the operands to which an expression passes something back, with their derivatives.

    Raises:
        UnsupportedError: the operator has no derivative.
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
                hint="state the derivative of your own operators: "
                "register_operator(derivative=...)",
            )
        yield operand, text


def _derivatives(expression: Expression) -> tuple[str, Sequence[str | None]]:
    """The name of an operator, and the derivative for each operand; empty for anything else."""
    match expression:
        case Call(PointwiseMap() as function):
            return function.name, (function.derivative,)
        case Call(DType() as dtype):
            return dtype.value, ("g" if dtype.kind in "fc" else NONE,)
        case Binary(operator):
            return operator.name, operator.derivatives or (None, None)
        case Reduction(operator):
            return operator.name, (operator.derivative,)
        case ScanExpression(along):
            summed_up = isinstance(along, Running) and along.reduce is SUM
            return along.name, (RUNNING_SUM if summed_up else None,)
        case First(function):
            return function.name, ("g" if function.gives is Gives.VALUES else NONE,)
        case Flat():
            return "a ranking along several labels", (None,)
        case ForestCall():
            return FOREST, (None, None)
        case SystemCall():
            return SOLVE, (None, None)
    return "", ()


RUNNING_SUM = "g + g"
"""The derivative of a running sum: the sum over positions from each one on (`_behind`)."""


@cache
def names_in(text: str) -> Counter[str]:
    """Count the occurrences of each name in the text of a derivative."""
    return Counter(part.tensor for part in accesses(template(text)))


@cache
def compares(text: str) -> bool:
    """Return whether the text of a derivative asks which operands equal the result.

    >>> compares("when(x == z, g)"), compares("when(x == y, g * z)")
    (True, False)
    """
    return any(
        isinstance(part, Binary)
        and part.operator is EQUAL
        and {x.tensor for x in accesses(part)} >= {"x", "z"}
        for part in walk(template(text))
    )


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
        text: the derivative with respect to it.
        values: the values of the other names in the text.
        received: g, the adjoint of the expression.
    """
    over = expression.over if isinstance(expression, Reduction) else ()
    span = expression.span
    if isinstance(expression, First):
        return _to_first(expression, received)
    if isinstance(expression, ScanExpression):
        made = Adjoint(_behind(expression, received.whole))
    else:
        made = _multiply_adjoint(text, values, over, span, received)
    labels = (*expression.labels, *over)
    return made.sum_over_labels([x for x in labels if x not in operand.labels], span)


def _multiply_adjoint(
    text: str,
    values: Mapping[str, Expression],
    over: tuple[str, ...],
    span: Span,
    received: Adjoint,
) -> Adjoint:
    """Multiply the derivative by an adjoint, under the same conditions."""

    def of(g: Expression) -> Expression:
        return simplify_expression(substitute(template(text), {**values, "g": g}, over, span))

    operator = product_of(text)
    if operator is SPARSE_MULT or (operator is MULT and received.conditions):
        # As a product with a 0 that annihilates, it is contracted in the cheapest order.
        product = of(received.whole)
        assert isinstance(product, Binary)
        holds = (Holds.of(product.right),) if operator is SPARSE_MULT else ()
        bare = replace(product, operator=SPARSE_MULT)
        return Adjoint(bare, (*received.conditions, *holds), zero=True)
    made = received.under(of(received.bare))
    steady = received.zero and len(made.conditions) == len(received.conditions)
    return replace(made, zero=steady and only_scales(text))


def _to_first(first: First, g: Adjoint) -> Adjoint:
    """The adjoint of a top-k argument: each value is passed back to its position."""
    end, span = "top_k" if first.function.order is Direction.GREATEST else "bottom_k", first.span
    if first.rank is None or first.rank not in g.labels:
        members = replace(first, function=FIRST[f"among_{end}"])
        return g.under(Binary(WHEN, members, g.bare, span))
    positions = replace(first, function=FIRST[f"arg_{end}"])
    hits = Hit(positions, first.label, "", span, permissive=True, own=True)
    return g.under(Binary(WHEN, hits, g.bare, span)).sum_over_labels((first.rank,), span)


def _behind(expression: ScanExpression, g: Expression) -> Expression:
    """The adjoint of a running sum's argument: the sum over all positions from each one on."""
    span, (label,) = expression.span, expression.along.labels
    if label not in g.labels:  # once for each such position
        before = Binary(SUB, Size((label,), span), Coordinate(label, span), span)
        return Binary(MULT, g, before, span)
    whole = Reduction(SUM, (label,), g, span)
    rest = Binary(SUB, whole, ScanExpression(expression.along, g, span), span)
    return Binary(ADD, rest, g, span)


def simplify_expression(expression: Expression) -> Expression:
    """Fold operations on constants in an expression.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.syntax_to_text import expression_text
    >>> text = "d = when(2 != 0, g * 2 * x ^ (2 - 1))"
    >>> expression_text(simplify_expression(parse_program(text)[0].expression))
    'g[] * 2 * x[]'
    """
    return fold(expression, _simplify_node)


def _simplify_node(expression: Expression, parts: list[Expression]) -> Expression:
    expression = with_children(expression, parts)
    if not isinstance(expression, Binary):
        return expression
    value = constant_value(expression)
    if value is not None:
        return Number(value, expression.span)
    left, right = (constant_value(x) for x in (expression.left, expression.right))
    keeps_where = expression.operator.keeps_where
    if keeps_where is not None and left is not None:
        return expression.right if bool(left) is keeps_where else Number(0.0, expression.span)
    if expression.operator is POW and right == 1:
        return expression.left
    return expression
