"""Arithmetic on labels, recognised in expressions: affine functions and conditions.

``2 * i + w - 1`` is an affine function of labels, and so are ``i // 3`` and ``i % 3``, which count
as labels of their own; ``abs(i - j) <= 2`` is a condition on labels. Any other expression
(``i * j``, ``i / 2 < j``) is an ordinary expression of numbers, in which the value of a label is
its coordinate.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce

from ucle import operators
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.affine import Affine, Digit
from ucle.ir.conditions import All, Compare, Condition, Sign, Some, condition_labels
from ucle.ir.vertices import Span
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Coordinate,
    Expression,
    LabelDivision,
    Number,
    fold,
)
from ucle.operators import (
    ADD,
    AND,
    EQUAL,
    LESS,
    LESS_EQUAL,
    MULT,
    NEG,
    NOT_EQUAL,
    OR,
    SUB,
    Combine,
)

LARGEST = 2**31
"""The largest factor and summand of labels, so that results fit into 64 bits."""


def affine_of(expression: Expression) -> Affine | None:
    """Recognise an expression as an affine function of labels; None if it is not one.

    Inside brackets, a name without brackets of its own is a label.

    >>> from ucle.language.parse import parse_program
    >>> print(affine_of(parse_program("x = 3 - 2 * (i + w)")[0].expression))
    -2*i - 2*w + 3
    """
    affine = fold(expression, _affine_of_parts)
    return None if affine is None or _is_large(affine) else affine


def _affine_of_parts(expression: Expression, parts: list[Affine | None]) -> Affine | None:
    match expression, parts:
        case Coordinate(label), []:
            return Affine(((label, 1),))
        case Access(name, bare=True), []:
            return Affine(((name, 1),))
        case Number(int(value)), [] if not isinstance(value, bool):
            return Affine((), value)
        case Binary(operator), [Affine() as left, Affine() as right]:
            match operator:
                case operators.ADD:
                    return left.plus(right)
                case operators.SUB:
                    return left.plus(right, -1)
                case operators.MULT if not left.terms:
                    return right.times(left.constant)
                case operators.MULT if not right.terms:
                    return left.times(right.constant)
        case Call(operators.NEG), [Affine() as inner]:
            return inner.times(-1)
        case LabelDivision(by=by, remainder=remainder), [Affine() as inner]:
            return inner.digit(by, remainder)
    return None


# ---- Conditions ----


def condition_expression(condition: Condition, span: Span) -> Expression:
    """Convert a condition with at least one part to an expression that parses back to it.

    >>> from ucle.ir.vertices import Span
    >>> from ucle.language.syntax_to_text import expression_text
    >>> upper = Compare(Affine.of({"j": 1, "i": -1}, 2), Sign.AT_LEAST)
    >>> expression_text(condition_expression(All((upper, upper.negated)), Span(1, 1)))
    'i <= j + 2 and j + 2 < i'
    """
    match condition:
        case All(parts) | Some(parts):
            operator = AND if isinstance(condition, All) else OR
            each = [condition_expression(part, span) for part in parts]
            return reduce(lambda left, right: Binary(operator, left, right, span), each)
    affine, constant = condition.affine, condition.affine.constant
    operator = {Sign.EQUAL: EQUAL, Sign.UNEQUAL: NOT_EQUAL}.get(condition.sign, LESS_EQUAL)
    if operator is LESS_EQUAL and constant < 0:
        operator, constant = LESS, constant + 1
    less = Affine(tuple((x, -n) for x, n in affine.terms if n < 0), max(-constant, 0))
    more = Affine(tuple((x, n) for x, n in affine.terms if n > 0), max(constant, 0))
    sides = affine_expression(less, span), affine_expression(more, span)
    return Binary(operator, *sides, span)


def affine_expression(affine: Affine, span: Span) -> Expression:
    """Convert a function of labels to an expression that parses back to it."""
    result: Expression | None = None
    for term, factor in affine.terms:
        own: Expression
        if isinstance(term, Digit):
            own = LabelDivision(affine_expression(term.of, span), term.by, term.remainder, span)
        else:
            own = Coordinate(term, span)
        if abs(factor) != 1:
            own = Binary(MULT, Number(abs(factor), span), own, span)
        if result is None:
            result = own if factor > 0 else Call(NEG, (own,), span)
        else:
            result = Binary(ADD if factor > 0 else SUB, result, own, span)
    if result is None:
        return Number(affine.constant, span)
    if affine.constant:
        operator = ADD if affine.constant > 0 else SUB
        result = Binary(operator, result, Number(abs(affine.constant), span), span)
    return result


_Side = tuple[Affine, Fraction]
"""A function of labels, and a constant that is added to it, which may be a fraction."""


@dataclass(frozen=True)
class Distance:
    """``abs`` of a function of labels."""

    of: Affine


_Part = Condition | Affine | Fraction | Distance | None
"""A condition; a function of labels, a number, ``abs`` of a function; or None."""


def conditions_in(expression: Expression) -> dict[int, Condition]:
    """Find the conditions on labels among the parts of an expression, by the ids of the parts."""
    found: dict[int, Condition] = {}

    def part_of(part: Expression, parts: list[_Part]) -> _Part:
        made = _condition_of_parts(part, parts)
        if not isinstance(made, Compare | All | Some):
            return made
        # A condition that is independent of a label in its text, such as i == i, is a number.
        labels = condition_labels(made)
        if labels and set(labels) == set(part.labels):
            found[id(part)] = made
        return made

    fold(expression, part_of)
    return found


def _condition_of_parts(expression: Expression, parts: list[_Part]) -> _Part:
    match expression, parts:
        case Access(), []:
            return None
        case Number(value), []:
            return _number(value)
        case Call(operators.ABS), [Affine() as inner]:
            return Distance(inner)
        case Call(operators.NOT | "logical_not"), [Compare() | All() | Some() as inner]:
            return inner.negated
        case Call(DType.BOOL), [Compare() | All() | Some() as inner]:
            return inner
        case Call(operators.NEG), [Fraction() as number]:
            return -number
        case Binary(operator), [
            Compare() | All() | Some() as left, Compare() | All() | Some() as right
        ]:  # fmt: skip
            return _join_conditions(operator, left, right)
        case Binary(operator), [left, right] if operator in COMPARISONS:
            return _compare_parts(operator, left, right)
    known = [Affine((), int(x)) if isinstance(x, Fraction) and x.denominator == 1 else x
             for x in parts]  # fmt: skip
    if all(isinstance(x, Affine) for x in known):
        affine = _affine_of_parts(expression, [x for x in known if isinstance(x, Affine)])
        return None if affine is None or _is_large(affine) else affine
    return None


def _is_large(affine: Affine) -> bool:
    inner = any(_is_large(term.of) for term, _ in affine.terms if isinstance(term, Digit))
    return inner or any(abs(n) > LARGEST for n in (affine.constant, *(n for _, n in affine.terms)))


def _number(value: Scalar) -> Fraction | None:
    if isinstance(value, bool | complex) or not math.isfinite(value) or abs(value) > LARGEST:
        return None
    return Fraction(value)


def _join_conditions(operator: Combine, left: Condition, right: Condition) -> Condition | None:
    match operator:
        case operators.AND | operators.BIT_AND:
            return All((left, right))
        case operators.OR | operators.BIT_OR:
            return Some((left, right))
        case operators.XOR | operators.BIT_XOR | operators.NOT_EQUAL:
            return Some((All((left, right.negated)), All((left.negated, right))))
        case operators.EQUAL:
            return Some((All((left, right)), All((left.negated, right.negated))))
    return None


COMPARISONS = (LESS, LESS_EQUAL, EQUAL, NOT_EQUAL)


def _compare_parts(operator: Combine, left: _Part, right: _Part) -> Condition | None:
    match left, right:
        case (Distance(inner), other) if (side := _side(other)) is not None:
            return _absolute(operator, inner, side, first=True)
        case (other, Distance(inner)) if (side := _side(other)) is not None:
            return _absolute(operator, inner, side, first=False)
    one, two = _side(left), _side(right)
    if one is None or two is None:
        return None
    return _plain(operator, one, two)


def _side(part: _Part) -> _Side | None:
    if isinstance(part, Fraction):
        return Affine(), part
    return (part, Fraction(0)) if isinstance(part, Affine) else None


def _plain(operator: Combine, left: _Side, right: _Side) -> Condition:
    """The condition of a comparison without ``abs``."""
    affine, constant = right[0].plus(left[0], -1), right[1] - left[1]
    match operator:
        case operators.LESS:  # affine + constant > 0, of integers
            return Compare(affine.plus(Affine((), -math.floor(-constant) - 1)), Sign.AT_LEAST)
        case operators.LESS_EQUAL:
            return Compare(affine.plus(Affine((), -math.ceil(-constant))), Sign.AT_LEAST)
    equal = operator is EQUAL
    if constant.denominator != 1:
        return Some(()) if equal else All(())
    difference = left[0].plus(right[0], -1).plus(Affine((), -int(constant)))
    return Compare(difference, Sign.EQUAL if equal else Sign.UNEQUAL)


def _absolute(operator: Combine, inner: Affine, side: _Side, *, first: bool) -> Condition:
    """The condition that compares ``abs(inner)``, on either side, with a function of labels."""
    both = (inner, Fraction(0)), (inner.times(-1), Fraction(0))
    if operator in (LESS, LESS_EQUAL):
        if first:
            return All(tuple(_plain(operator, x, side) for x in both))
        return Some(tuple(_plain(operator, side, x) for x in both))
    positive = _plain(LESS_EQUAL, (Affine(), Fraction(0)), side)
    equal = All((positive, Some(tuple(_plain(EQUAL, x, side) for x in both))))
    return equal if operator is EQUAL else equal.negated
