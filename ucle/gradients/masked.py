"""Adjoints that are 0 where a condition does not hold, whatever they are multiplied by there.

Values that `when` leaves out do not affect the loss, so nothing is passed back to them. A factor of
0 does not achieve this: the derivative there may be infinite or NaN, as that of log is at 0, and 0
times that is NaN. So the conditions under which something is passed back are kept with it, and
products are masked again. The conditions are written out only where they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field, replace
from functools import cache, reduce

from ucle.foundation.dataclasses import dataclass
from ucle.ir.vertices import Span
from ucle.language.parse import template
from ucle.language.syntax import Access, Binary, Call, Expression, Number, Reduction, Size
from ucle.operators import (
    ADD,
    AND,
    ANY,
    DIV,
    MULT,
    NEG,
    NOT,
    OR,
    SPARSE_MULT,
    SUB,
    SUM,
    WHEN,
    Combine,
)


@dataclass(eq=False)
class Holds:
    """A condition over labels; its expression is built once, when first needed."""

    labels: frozenset[str]
    make: Callable[[], Expression]
    _expression: Expression | None = field(default=None, init=False)

    @classmethod
    def of(cls, expression: Expression) -> Holds:
        """The condition that an expression differs from 0."""
        return cls(frozenset(expression.labels), lambda: expression)

    @property
    def expression(self) -> Expression:
        """The condition, which differs from 0 where it holds."""
        if self._expression is None:
            self._expression = self.make()
        return self._expression


Conditions = tuple[Holds, ...]


@dataclass(frozen=True)
class Adjoint:
    """An adjoint under conditions: `bare` where they hold, and 0 elsewhere."""

    bare: Expression
    conditions: Conditions = ()
    zero: bool = False
    """True if `bare` is already 0 where one of the conditions does not hold."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the adjoint."""
        own = dict.fromkeys(self.bare.labels)
        if not self.zero:
            own.update(dict.fromkeys(x for c in self.conditions for x in sorted(c.labels)))
        return tuple(own)

    @property
    def whole(self) -> Expression:
        """The adjoint as one expression."""
        return self.bare if self.zero else behind(self.conditions, self.bare)

    def under(self, expression: Expression) -> Adjoint:
        """Put another expression under the same conditions and its own leading ones."""
        own: list[Holds] = []
        while isinstance(expression, Binary) and expression.operator.keeps_where is not None:
            condition = expression.left
            if not expression.operator.keeps_where:
                condition = Call(NOT, (condition,), condition.span)
            own.append(Holds.of(condition))
            expression = expression.right
        return Adjoint(expression, (*self.conditions, *own))

    def sum_over_labels(self, over: Collection[str], span: Span) -> Adjoint:
        """Return the sum over labels; it is 0 where no condition holds at any of them."""
        met = tuple(x for x in self.conditions if not x.labels.isdisjoint(over))
        if not met:
            return replace(self, bare=sum_over_labels(self.bare, over, span))
        left = frozenset(x for each in met for x in each.labels).difference(over)

        def some() -> Expression:
            every = both(met)
            labels = tuple(label for label in every.labels if label in over)
            return Reduction(ANY, labels, every, span)

        others = tuple(x for x in self.conditions if x not in met)
        return Adjoint(
            sum_over_labels(self.whole, over, span), (*others, Holds(left, some)), zero=True
        )


def behind(conditions: Conditions, expression: Expression) -> Expression:
    """Return an expression that is 0 except where conditions hold."""
    return reduce(
        lambda inner, each: Binary(WHEN, each.expression, inner, expression.span),
        reversed(conditions),
        expression,
    )


def both(conditions: Conditions) -> Expression:
    """Return the conjunction of some conditions."""
    parts = [each.expression for each in conditions]
    return reduce(lambda x, y: Binary(AND, x, y, x.span), parts)


def either(parts: Collection[Expression]) -> Expression:
    """Return the disjunction of some conditions."""
    return reduce(lambda x, y: Binary(OR, x, y, x.span), parts)


def sum_over_labels(expression: Expression, over: Collection[str], span: Span) -> Expression:
    """Return the sum over labels, including those along which an expression is constant."""
    own = tuple(label for label in expression.labels if label in over)
    alike = tuple(label for label in over if label not in own)
    if own:
        expression = Reduction(SUM, own, expression, span)
    return Binary(MULT, expression, Size(alike, span), span) if alike else expression


# ---- Texts of derivatives ----


@cache
def only_scales(text: str) -> bool:
    """True if the text of a derivative multiplies g by numbers at most, so that 0 remains 0.

    >>> only_scales("where(x > 0, g, 0.01 * g)"), only_scales("g / x")
    (True, False)
    """
    return _scales(template(text))


def _scales(part: Expression) -> bool:
    match part:
        case Access("g"):
            return True
        case Number(value):
            return value == 0
        case Call("where", (_, left, right)):
            return _scales(left) and _scales(right)
        case Call(function, (argument,)):
            return function is NEG and _scales(argument)
        case Binary(operator, left, right):
            if operator in (ADD, SUB):
                return _scales(left) and _scales(right)
            if operator.keeps_where is not None:
                return _scales(right)
            if operator is MULT and _is_number(left):
                return _scales(right)
            return operator in (MULT, DIV) and _scales(left) and _is_number(right)
    return False


def _is_number(part: Expression) -> bool:
    return isinstance(part, Number | Access) and (isinstance(part, Number) or part.tensor == "size")


@cache
def product_of(text: str) -> Combine | None:
    """Return the operator of a derivative that is the product of g and one value, else None.

    >>> product_of("g * z").name, product_of("2 * g * x")
    ('mult', None)
    """
    match template(text):
        case Binary(operator, Access("g"), Access()) if operator in (MULT, SPARSE_MULT):
            return operator
    return None
