"""Show that a loop forgets where it began: each step brings any two states closer to each other.

Let a step change no entry by more than a matrix M of non-negative numbers, applied to how much the
state has changed, does. If the largest sum of a column of M, or of a row, is less than 1, steps are
a contraction: there is one state that stays as it is, and a loop comes to it from any start. Both
sums are computed by a program, from the statements of the step: coefficients become their absolute
values, differences become sums, and what does not depend on the state is left out. The sums of
columns are the gradient of the sum of all entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import unique_names
from ucle.gradients.differentiate import differentiate
from ucle.language.resolve import resolve
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Expression,
    Number,
    Reduction,
    Statement,
    accesses,
)
from ucle.maintenance.affected import reads_of, statement_like, statements_for
from ucle.operators import (
    ABS,
    ADD,
    DIV,
    GREATEST,
    LEAST,
    LESS,
    LESS_EQUAL,
    MAX,
    MIN,
    MULT,
    NEG,
    RELU,
    SUB,
    SUM,
    WHEN,
    Combine,
)


@dataclass(frozen=True)
class Bound:
    """Statements that compute the largest sum of a column or a row of a step's bound."""

    statements: tuple[Statement, ...]
    columns: str
    """A tensor without axes: by which a step shortens the sum of all differences."""
    rows: str
    """The same of the largest difference."""


def moving_statements(
    statements: Sequence[Statement], state: str, after: str
) -> dict[str, Statement]:
    """Return the statements by which the state after a step depends on that before."""
    own = {x.target.tensor: x for x in statements}
    moving: dict[str, Statement] = {}
    for each in statements_for([after], own):
        if not reads_of(each).isdisjoint({state, *moving}):
            moving[each.target.tensor] = resolve(each)
    return moving


def step_bound(
    statements: Sequence[Statement], state: str, after: str, bounds: Mapping[str, int]
) -> Bound | None:
    """Return what computes by how much a step shortens differences; None if nothing is known.

    Args:
        statements: of a step.
        state: the input that holds the state.
        after: the tensor that replaces it.
        bounds: stated sizes of labels.
    """
    moving = moving_statements(statements, state, after)
    if after not in moving:
        return None
    taken = {x.target.tensor for x in statements} | {
        y.tensor for x in statements for y in accesses(x.expression)
    }

    def new(stem: str) -> str:
        (name,) = unique_names([stem], taken)
        taken.add(name)
        return name

    last, labels = moving[after], moving[after].target.labels
    if not labels:
        return None
    made, sums = list[Statement](), dict[str, str]()
    for kind in ("rows", "columns"):
        names = {name: new(f"{name}_{kind}") for name in moving}
        of = _Bounds(state, names, ones=kind == "rows")
        for name, each in moving.items():
            bound = of.find(each.expression)
            if bound is None:
                return None
            made.append(statement_like(each, names[name], each.target.labels, bound))
        sums[kind] = new(kind)
        operator = MAX if kind == "rows" else SUM
        entries = Access(names[after], labels, last.span)
        made.append(
            statement_like(last, sums[kind], (), Reduction(operator, labels, entries, last.span))
        )
    found = differentiate([*statements, *made], sums["columns"], [state], {}, {}, bounds)
    gradient = Access(found.names[state], labels, last.span)
    largest = Reduction(MAX, labels, Call(ABS, (gradient,), last.span), last.span)
    columns = new("columns")
    return Bound(
        (*found.statements, statement_like(last, columns, (), largest)), columns, sums["rows"]
    )


class _Bounds:
    """The bound of how much an expression changes with the state."""

    def __init__(self, state: str, names: Mapping[str, str], *, ones: bool) -> None:
        self._state, self._names, self._ones = state, names, ones

    def _moves(self, expression: Expression) -> bool:
        return any(x.tensor == self._state or x.tensor in self._names for x in accesses(expression))

    def find(self, expression: Expression) -> Expression | None:
        """Return the bound of an expression that depends on the state; None if none is known."""
        match expression:
            case Access(indices=None, tensor=name):
                if name == self._state and not self._ones:
                    return expression
                if name == self._state:  # as if each entry of the state had changed by 1
                    zero = Binary(MULT, expression, Number(0, expression.span), expression.span)
                    return Binary(ADD, zero, Number(1, expression.span), expression.span)
                return replace(expression, tensor=self._names[name])
            case Binary(operator=operator) if operator in (ADD, SUB, LEAST, GREATEST):
                parts = [expression.left, expression.right]
                return self._sum([x for x in parts if self._moves(x)], expression)
            case Binary(operator=operator) if operator is MULT:
                moving = [x for x in (expression.left, expression.right) if self._moves(x)]
                if len(moving) != 1:
                    return None
                (fixed,) = (x for x in (expression.left, expression.right) if x is not moving[0])
                return self._scaled(moving[0], MULT, fixed, expression)
            case Binary(operator=operator) if operator is DIV and not self._moves(expression.right):
                return self._scaled(expression.left, DIV, expression.right, expression)
            case Binary(operator=operator) if operator is WHEN and not self._moves(expression.left):
                bound = self.find(expression.right)
                return None if bound is None else replace(expression, right=bound)
            case Call(arguments=(argument,)) if expression.function in (NEG, ABS, RELU):
                return self.find(argument)
            case Reduction(operator=operator) if operator in (SUM, MIN, MAX):
                bound = self.find(expression.argument)
                if bound is None:
                    return None
                return replace(expression, operator=SUM, argument=bound)
        return None

    def _sum(self, parts: Sequence[Expression], like: Expression) -> Expression | None:
        found = [x for x in map(self.find, parts) if x is not None]
        if len(found) < len(parts):
            return None
        return reduce(lambda one, other: Binary(ADD, one, other, like.span), found)

    def _scaled(
        self, moving: Expression, operator: Combine, fixed: Expression, like: Expression
    ) -> Expression | None:
        bound = self.find(moving)
        if bound is None:
            return None
        size = Call(ABS, (fixed,), like.span)
        return Binary(operator, bound, size, like.span)


def compares_movement(
    condition: Expression, defined: Mapping[str, Statement], state: str, after: str
) -> object | None:
    """Return by which aggregation a condition measures how far a step moves the state.

    None if it is no condition of the form ``sum[i](abs(after[i] - state[i])) < number``, with `sum`
    or `max`, or with a tensor in place of the measure.
    """
    if not isinstance(condition, Binary) or condition.operator not in (LESS, LESS_EQUAL):
        return None
    if not isinstance(condition.right, Number):
        return None
    measure = in_place_of(condition.left, defined)
    if not isinstance(measure, Reduction) or measure.operator not in (SUM, MAX):
        return None
    moved = measure.argument
    if not isinstance(moved, Call) or moved.function is not ABS:
        return None
    (difference,) = moved.arguments
    if not isinstance(difference, Binary) or difference.operator is not SUB:
        return None
    if not is_pair(difference.left, difference.right, (state, after), measure.over):
        return None
    return measure.operator


def in_place_of(read: Expression, defined: Mapping[str, Statement]) -> Expression:
    """Return the expression of the tensor without axes that is read; another one as it is."""
    if isinstance(read, Access) and not read.labels and read.tensor in defined:
        return resolve(defined[read.tensor]).expression
    return read


def is_pair(
    one: Expression, other: Expression, names: tuple[str, str], over: Sequence[str]
) -> bool:
    """True if two expressions read the state before and after a step, at the same entry."""
    if not isinstance(one, Access) or not isinstance(other, Access):
        return False
    same = one.labels == other.labels and one.indices is other.indices is None
    return same and {one.tensor, other.tensor} == set(names) and set(over) == set(one.labels)
