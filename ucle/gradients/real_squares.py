"""Squares of absolute values, replaced by plain squares for real numbers.

The derivative of an absolute value is a sign, which is 0 at 0 and constant on either side. The
second derivative of a square that is taken through it is therefore 0 at 0, where that of x * x is
2. Gradients are of real numbers, so the absolute value is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ucle.language.factors import constant_value
from ucle.language.syntax import Access, Binary, Call, Expression, Statement, fold, with_children
from ucle.language.syntax_to_text import expression_text
from ucle.operators import (
    ABS,
    MULT,
    POW,
    SQUARE,
)


def real_squares(
    expression: Expression,
    is_active: Callable[[Expression], bool],
    sizes: Mapping[str, Statement],
) -> Expression:
    """Replace squares of absolute values in an expression by squares.

    Args:
        expression: resolved.
        is_active: true for its parts whose derivatives are needed.
        sizes: the statements that compute absolute values, by their tensors.
    """

    def rewrite_part(part: Expression, parts: list[Expression]) -> Expression:
        made = with_children(part, parts)
        if not is_active(part):
            return made
        match made:
            case Call(function, (argument,)) if function is SQUARE:
                inner = _size_of(argument, sizes)
                return made if inner is None else Call(SQUARE, (inner,), made.span)
            case Binary(operator, left, right) if operator is MULT:
                one, other = _size_of(left, sizes), _size_of(right, sizes)
                if one is None or other is None:
                    return made
                alike = expression_text(one) == expression_text(other)
                return Call(SQUARE, (one,), made.span) if alike else made
            case Binary(operator, left, right) if operator is POW:
                inner, power = _size_of(left, sizes), constant_value(right)
                if inner is None or not isinstance(power, int | float) or power % 2:
                    return made
                return Binary(operator, inner, right, made.span)
        return made

    return fold(expression, rewrite_part)


def _size_of(part: Expression, sizes: Mapping[str, Statement]) -> Expression | None:
    """The argument of an absolute value; None for any other expression."""
    match part:
        case Call(function, (argument,)) if function is ABS:
            return argument
        case Access(tensor, labels, span, None) if tensor in sizes:
            statement = sizes[tensor]
            own, whole = statement.target.labels, statement.expression
            if not isinstance(whole, Call) or len({*own}) < len(own):
                return None
            (argument,) = whole.arguments
            names = dict(zip(own, labels, strict=True))
            plain = isinstance(argument, Access) and argument.indices is None
            if plain and {*argument.labels} <= names.keys():
                assert isinstance(argument, Access)
                return Access(argument.tensor, tuple(names[x] for x in argument.labels), span)
    return None


def sizes_by_tensor(statements: tuple[Statement, ...]) -> dict[str, Statement]:
    """The statements that compute absolute values, by their tensors."""
    return {
        each.target.tensor: each
        for each in statements
        if isinstance(each.expression, Call) and each.expression.function is ABS
    }
