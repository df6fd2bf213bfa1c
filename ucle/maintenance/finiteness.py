"""Expressions that are finite where what they read is: 0 times one of them is 0."""

from __future__ import annotations

from ucle.foundation.dtypes import DType
from ucle.language.syntax import Access, Binary, Call, Expression, Number, Reduction
from ucle.operators import (
    ABS,
    ADD,
    AND,
    DIV,
    EQUAL,
    GREATEST,
    LEAST,
    LESS,
    LESS_EQUAL,
    MULT,
    NEG,
    NOT_EQUAL,
    OR,
    POW,
    RELU,
    SUB,
    SUM,
)

MAPS = (ABS, NEG, RELU)
COMBINES = (ADD, SUB, MULT, LEAST, GREATEST, LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, AND, OR)


def stays_finite(part: Expression) -> bool:
    """True if an expression is finite where its direct operands are, up to overflow.

    >>> from ucle.language.parse import parse_program
    >>> program = parse_program("y[i] = x[i] / max(n[i], 1); z[i] = x[i] / n[i]")
    >>> [stays_finite(statement.expression) for statement in program]
    [True, False]
    """
    match part:
        case Access(indices=indices):
            return indices is None or not any(x.entries is not None for x in indices)
        case Number():
            return True
        case Reduction(operator):
            return operator is SUM
        case Call(function):
            return isinstance(function, DType) or function in MAPS
        case Binary(operator, _, right) if operator is DIV:
            return _is_positive(right)
        case Binary(operator, _, right) if operator is POW:
            return isinstance(right, Number) and _at_least(right, 1)
        case Binary(operator):
            return operator in COMBINES
    return False


def _at_least(number: Number, least: int) -> bool:
    return not isinstance(number.value, complex) and number.value >= least


def _is_positive(divisor: Expression) -> bool:
    """True if an expression is greater than 0 whatever it reads."""
    match divisor:
        case Number(value):
            return not isinstance(value, complex) and value > 0
        case Binary(operator, left, right) if operator is GREATEST:
            return _is_positive(left) or _is_positive(right)
    return False
