"""Constants and products inside expressions, recognised before they are lowered."""

from __future__ import annotations

from dataclasses import dataclass

from ucle.operators import COMBINES, MAPS
from ucle.syntax import Access, Binary, Call, Expression, Number


@dataclass(frozen=True)
class ScalarCase:
    """A binary expression one side of which is a constant."""

    value: float
    first: bool
    other: Expression


def scalar_case(expression: Binary) -> ScalarCase | None:
    """The constant and the other side, where just one side is a constant."""
    if len(flatten_product(expression)[1]) > 1:
        return None  # a product takes its constants along and scales once, after the sums
    left, right = constant_value(expression.left), constant_value(expression.right)
    if left is not None and right is None:
        return ScalarCase(left, True, expression.right)
    if right is not None and left is None:
        return ScalarCase(right, False, expression.left)
    return None


def constant_value(expression: Expression) -> float | None:
    """The value of an expression without tensors; None where there is one."""
    match expression:
        case Number(value):
            return value
        case Access():
            return None
        case Call(function, argument):
            inner = constant_value(argument)
            return None if inner is None or function not in MAPS else MAPS[function].scalar(inner)
        case Binary(operator, left, right):
            one, other = constant_value(left), constant_value(right)
            if one is None or other is None:
                return None
            return COMBINES[operator].scalar(one, other)


def flatten_product(expression: Expression) -> tuple[float, list[Expression]]:
    """The constant coefficient and the factors of a product."""
    if (constant := constant_value(expression)) is not None:
        return constant, []
    match expression:
        case Binary("mult", left, right):
            one, factors = flatten_product(left)
            other, more = flatten_product(right)
            return one * other, [*factors, *more]
        case _:
            return 1.0, [expression]
