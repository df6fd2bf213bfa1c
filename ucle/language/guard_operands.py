"""Operands kept where functions are defined, inside selections whose condition says that they are.

``when(d[i] > 0, 1 / sqrt(d[i]))`` is never infinite, which no part of it says by itself. So the
operand becomes ``one_if_zero(max(d[i], 0))``: the same number wherever the condition holds, and
elsewhere one that nobody reads. Then the ranges of values (`ucle.ir.ranges`) say that the quotient
is finite, and what it is multiplied with may stay sparse. Only operands of operators that are
undefined somewhere are changed: quotients, roots, logarithms and the like. Takes and returns
resolved statements.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from ucle.foundation.dataclasses import dataclass
from ucle.language.syntax import (
    Binary,
    Bounded,
    Call,
    Expression,
    Number,
    Reduction,
    Statement,
    accesses,
    fold,
    walk,
    with_children,
)
from ucle.language.syntax_to_text import expression_text
from ucle.operators import (
    AND,
    BIT_AND,
    BIT_OR,
    EQUAL,
    GREATEST,
    LEAST,
    LESS,
    LESS_EQUAL,
    NOT,
    NOT_EQUAL,
    ONE_IF_ZERO,
    OR,
    UNLESS,
    WHEN,
    WHEN_HIGHEST,
    WHEN_LOWEST,
    WHEN_ONE,
    Combine,
    PointwiseMap,
)
from ucle.operators.rows import Division

SELECTIONS = {WHEN: True, WHEN_ONE: True, WHEN_LOWEST: True, WHEN_HIGHEST: True, UNLESS: False}
"""For each selection, whether its second operand is read where the first holds or where not."""

CONJUNCTIONS, DISJUNCTIONS = (AND, BIT_AND), (OR, BIT_OR)
"""Operators that hold where both operands hold, or fail where both fail: of integers, one way
alone, which is the way that guards need."""

MOST_PARTS = 200
"""The number of parts up to which operands are compared with conditions."""


@dataclass(frozen=True)
class _Guard:
    """A bound that a condition puts on an expression.

    `bound` has the extreme that keeps the expression within it, and the number, if there is one;
    `nonzero` is True if the expression is not 0 either.
    """

    expression: Expression
    bound: tuple[Combine, float] | None
    nonzero: bool

    @property
    def is_fractional(self) -> bool:
        """True if integers become floats by the bound."""
        return self.bound is not None and not isinstance(self.bound[1], int)

    def apply(self, operand: Expression) -> Expression:
        """Return an operand that is within the bound wherever it is computed."""
        span = operand.span
        if self.bound is not None:
            operand = Bounded(operand, *self.bound, span)
        return Call(ONE_IF_ZERO, (operand,), span) if self.nonzero else operand


def guard_operands(statement: Statement) -> Statement:
    """Rewrite the operands of a statement that conditions keep where functions are defined.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.resolve import resolve
    >>> text = "s[i] = when(d[i] > 0, 1 / sqrt(d[i]))"
    >>> expression_text(guard_operands(resolve(parse_program(text)[0])).expression)
    'when(0 < d[i], 1 / sqrt(one_if_zero(max(d[i], 0))))'
    """
    parts = tuple(walk(statement.expression))
    if not any(isinstance(x, Binary) and x.operator in SELECTIONS for x in parts):
        return statement
    if not any(map(_is_partial, parts)) or len(parts) > MOST_PARTS:
        return statement

    def guard(part: Expression, children: list[Expression]) -> Expression:
        whole = with_children(part, children)
        if not (isinstance(whole, Binary) and whole.operator in SELECTIONS):
            return whole
        value = whole.right
        for each in _list_guards(whole.left, holds=SELECTIONS[whole.operator]):
            value = _guard_value(value, each)
        return replace(whole, right=value)

    return replace(statement, expression=fold(statement.expression, guard))


def _is_partial(expression: Expression) -> bool:
    """True if an operator is undefined for some of its operands."""
    match expression:
        case Binary(operator):
            return operator.undefined_somewhere
        case Call(PointwiseMap() as function):
            return function.undefined_somewhere
    return False


def _keeps_integers(expression: Expression) -> bool:
    """True if an operator makes integers of integers, which have to stay integers then."""
    return isinstance(expression, Binary) and expression.operator.division is not Division.TRUE


def _list_guards(condition: Expression, *, holds: bool) -> Iterator[_Guard]:
    """Yield what a condition that holds, or does not, says about expressions without numbers."""
    match condition:
        case Call(PointwiseMap() as function, (argument,)) if function is NOT:
            yield from _list_guards(argument, holds=not holds)
        case Binary(operator, left, right) if operator in (CONJUNCTIONS if holds else DISJUNCTIONS):
            yield from _list_guards(left, holds=holds)
            yield from _list_guards(right, holds=holds)
        case Binary(operator, left, right) if operator in (LESS, LESS_EQUAL):
            strict = (operator is LESS) == holds
            for one, other, above in ((left, right, not holds), (right, left, holds)):
                bound = _real_number(other)
                if bound is not None and not one.constant:
                    nonzero = strict and bound == 0
                    yield _Guard(one, (GREATEST if above else LEAST, bound), nonzero)
        case Binary(operator, left, right) if operator is (NOT_EQUAL if holds else EQUAL):
            for one, other in ((left, right), (right, left)):
                if isinstance(other, Number) and other.value == 0 and not one.constant:
                    yield _Guard(one, None, nonzero=True)
        case Binary(operator) if operator in (AND, OR, EQUAL, NOT_EQUAL):
            return
        case _ if holds and not condition.constant:
            yield _Guard(condition, None, nonzero=True)


def _real_number(expression: Expression) -> float | None:
    """Return the number that a literal is; None for others, and for truth values and NaN."""
    value = expression.value if isinstance(expression, Number) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    return value


def _guard_value(value: Expression, guard: _Guard) -> Expression:
    """Return a value in which a guarded expression is within its bound below partial operators."""
    sought = _find_key(guard.expression)
    if sought is None:
        return value

    def rewrite(
        part: Expression, children: list[tuple[Expression, Expression]]
    ) -> tuple[Expression, Expression]:
        """The part as it stands, and as it stands below an operator that is undefined somewhere."""
        plain = with_children(part, (one for one, _ in children))
        below = with_children(part, (other for _, other in children))
        if _is_partial(part) and not (guard.is_fractional and _keeps_integers(part)):
            plain = below
        return plain, guard.apply(part) if _find_key(part) == sought else below

    plain, _ = fold(value, rewrite)
    return plain


def _find_key(expression: Expression) -> str | None:
    """The text of an expression, whatever its sums call their labels; None if it has no such key.

    Two expressions with one key have the same value.
    """
    text = expression_text(expression)
    bound = [x for part in walk(expression) if isinstance(part, Reduction) for x in part.over]
    if not bound:
        return text
    if {access.tensor for access in accesses(expression)} & set(bound):
        return None  # in the text, a label could not be told from a tensor
    numbers = {label: f"#{n}" for n, label in enumerate(dict.fromkeys(bound))}
    return re.sub(r"\w+", lambda match: numbers.get(match[0], match[0]), text)
