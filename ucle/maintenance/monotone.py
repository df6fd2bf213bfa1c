"""Show that a loop may go on from an earlier result after its data has moved in one direction.

Let a step F be monotone in the state and never raise it, as ``next[i] = min(d[i], near[i])`` does,
and let the changed data lower what a step gives: F' <= F. The loop ends at the largest state below
its start that stays as it is. That of F' lies below that of F, so that steps of F' from the old
result come down to it, too. The same holds upwards, for `max` and `or`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ucle.foundation.dataclasses import dataclass
from ucle.ir.tensor_types import TensorType
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
from ucle.maintenance.contractions import in_place_of, is_pair, moving_statements
from ucle.operators import (
    ADD,
    AND,
    ANY,
    EQUAL,
    GREATEST,
    LEAST,
    LESS,
    LESS_EQUAL,
    MAX,
    MIN,
    MULT,
    NOT,
    NOT_EQUAL,
    OR,
    RELU,
    SUB,
    SUM,
    WHEN_HIGHEST,
    WHEN_LOWEST,
)

DOWN, SAME, UP = -1, 0, 1
"""How an expression moves when what it reads does."""


@dataclass(frozen=True)
class Moves:
    """How tensors have moved: those that have not are not named; None if nothing is known."""

    tensors: Mapping[str, int | None]
    types: Mapping[str, TensorType]
    grown: bool = False
    """True if labels have more coordinates than before, so that aggregations have more terms."""

    def of(self, expression: Expression) -> int | None:
        """Return how an expression moves.

        >>> from ucle.language.parse import parse_program
        >>> (statement,) = parse_program("n[j] min= d[i] + A[i,j]")
        >>> Moves({"d": DOWN}, {}).of(resolve(statement).expression)
        -1
        """
        match expression:
            case Number():
                return SAME
            case Access(tensor=name, indices=None):
                return self.tensors.get(name, SAME)
            case Binary(operator=operator, left=left, right=right):
                return self._of_pair(operator, left, right)
            case Call(function=function, arguments=(argument,)) if function in (RELU, NOT):
                moved = self.of(argument)
                return -moved if function is NOT and moved else moved
            case Reduction():
                return self._of_aggregation(expression)
        return self._unless_same(expression)

    def _of_pair(self, operator: object, left: Expression, right: Expression) -> int | None:
        one, other = self.of(left), self.of(right)
        if one == other == SAME:
            return SAME
        if operator is SUB:
            other = None if other is None else -other
        elif operator is WHEN_HIGHEST and one is not None:
            one = -one  # false stands for the highest number
        elif operator is MULT:
            if not (self._is_positive(left) and self._is_positive(right)):
                return None
        elif operator not in (ADD, LEAST, GREATEST, AND, OR, WHEN_LOWEST):
            return None
        directions = {one, other} - {SAME}
        return directions.pop() if len(directions) == 1 else None

    def _of_aggregation(self, expression: Reduction) -> int | None:
        operator, moved = expression.operator, self.of(expression.argument)
        ways = {MIN: DOWN, MAX: UP, ANY: UP}
        if operator is not SUM and operator not in ways:
            return None if self.grown else self._unless_same(expression)
        if not self.grown:
            return moved
        way = ways.get(operator)  # of a sum that has more terms, nothing is known
        return way if way is not None and moved in (SAME, way) else None

    def _unless_same(self, expression: Expression) -> int | None:
        """Nothing moves that reads nothing that has moved."""
        still = all(self.tensors.get(x.tensor, SAME) == SAME for x in accesses(expression))
        return SAME if still else None

    def _is_positive(self, expression: Expression) -> bool:
        if isinstance(expression, Number):
            return not isinstance(expression.value, complex) and expression.value >= 0
        if isinstance(expression, Access) and expression.tensor in self.types:
            type_ = self.types[expression.tensor]
            return type_.dtype.kind in "bif" and type_.every.low >= 0
        return False


def moves_of_insertions(type_: TensorType) -> int | None:
    """Return how a tensor moves when entries are added to it, by its fill."""
    values, fill = type_.entries, type_.fill
    if type_.dtype.kind not in "bif" or isinstance(fill, complex):
        return None
    if not values.finite and values.infinity is None:
        return None  # NaN is in no order
    if values.high <= fill:
        return DOWN
    return UP if values.low >= fill else None


def direction(
    statements: Sequence[Statement],
    state: str,
    after: str,
    types: Mapping[str, TensorType],
    added: Sequence[str],
    *,
    grown: bool = False,
) -> int | None:
    """Return in which direction a loop goes on after entries were added; None if it must not.

    Args:
        statements: of a step.
        state: the input that holds the state.
        after: the tensor that replaces it.
        types: of inputs and tensors, for the present data.
        added: the other inputs to which entries were added; the rest is as before.
        grown: True if labels have more coordinates than before.
    """
    moving = moving_statements(statements, state, after)
    if after not in moving:
        return None
    way = _never_returns(moving[after], state)
    if way is None or _moves(moving, {state: UP}, types).get(after) != UP:
        return None
    data: dict[str, int | None] = {x: moves_of_insertions(types[x]) for x in added}
    every = {x.target.tensor: resolve(x) for x in statements}
    found = _moves(every, data, types, grown=grown).get(after, SAME)
    return way if found in (SAME, way) else None


def _moves(
    statements: Mapping[str, Statement],
    begun: Mapping[str, int | None],
    types: Mapping[str, TensorType],
    *,
    grown: bool = False,
) -> dict[str, int | None]:
    known = dict(begun)
    for name, each in statements.items():
        known[name] = Moves(known, types, grown).of(each.expression)
    return known


def _never_returns(statement: Statement, state: str) -> int | None:
    """Return in which direction alone a step moves each entry of the state."""
    for operator, way in ((LEAST, DOWN), (GREATEST, UP), (OR, UP)):
        if any(
            isinstance(x, Access)
            and x.tensor == state
            and x.indices is None
            and x.labels == statement.target.labels
            for x in _operands(statement.expression, operator)
        ):
            return way
    return None


def _operands(expression: Expression, operator: object) -> list[Expression]:
    if isinstance(expression, Binary) and expression.operator is operator:
        return [*_operands(expression.left, operator), *_operands(expression.right, operator)]
    return [expression]


def asks_for_rest(
    condition: Expression, defined: Mapping[str, Statement], state: str, after: str
) -> bool:
    """True if a condition holds where a step has moved no entry of the state, and only there.

    It is one of the form ``sum[i](after[i] < state[i]) == 0``, with any order of the two, `!=` in
    place of `<`, `any` in place of `sum`, or ``< 1``.
    """
    if isinstance(condition, Call) and condition.function is NOT:
        (read,) = condition.arguments
    elif isinstance(condition, Binary) and isinstance(condition.right, Number):
        most = {EQUAL: 0, LESS: 1, LESS_EQUAL: 0}.get(condition.operator)
        if most is None or condition.right.value != most:
            return False
        read = condition.left
    else:
        return False
    count = in_place_of(read, defined)
    if not isinstance(count, Reduction) or count.operator not in (SUM, ANY):
        return False
    moved = count.argument
    compared = isinstance(moved, Binary) and moved.operator in (LESS, NOT_EQUAL)
    return compared and is_pair(moved.left, moved.right, (state, after), count.over)  # type: ignore[union-attr]
