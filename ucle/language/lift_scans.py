"""Running aggregations as statements of their own, of a tensor with a label for each axis.

``Z[i] = cumsum[i](x[i] * y[i]) + 1`` becomes ``Z_part[i] = x[i] * y[i]; Z_scan[i] =
cumsum[i](Z_part[i]); Z[i] = Z_scan[i] + 1``. Takes resolved statements and gives resolved ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ucle.foundation.names import folded, unique_names
from ucle.foundation.stackless import Calls, run
from ucle.language.syntax import (
    Access,
    Accumulation,
    Expression,
    Statement,
    accesses,
    children,
    walk,
    with_children,
)


def lift_scans(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Give each running aggregation a statement of its own.

    >>> from ucle.language.parse import parse_program
    >>> from ucle.language.resolve import resolve
    >>> lifted = lift_scans((resolve(parse_program("Z[i] = cumsum[i](2 * x[i]) + 1")[0]),))
    >>> [str(statement.target) for statement in lifted]
    ['Z_part[i]', 'Z_scan[i]', 'Z[i]']
    """
    if not any(map(_has_scan, statements)):
        return statements
    uses = (x.tensor for s in statements for x in (s.target, *accesses(s.expression)))
    taken = {folded(name) for name in uses}
    lifted: list[Statement] = []
    for statement in statements:
        lifted += _Lift(statement, taken).statements() if _has_scan(statement) else [statement]
    return tuple(lifted)


def _has_scan(statement: Statement) -> bool:
    return any(isinstance(part, Accumulation) for part in walk(statement.expression))


@dataclass
class _Lift:
    """The statements that one becomes."""

    statement: Statement
    taken: set[str]
    made: list[Statement] = field(default_factory=list)

    def statements(self) -> list[Statement]:
        """What there is in the place of the statement, each after those that it uses."""
        expression, labels = self.statement.expression, self.statement.target.labels
        if isinstance(expression, Accumulation) and _is_order_of(labels, expression.labels):
            argument = run(self._lifted(expression.argument))
            whole: Expression = replace(expression, argument=self._named(argument, labels))
        else:
            whole = run(self._lifted(expression))
        return [*self.made, replace(self.statement, expression=whole)]

    def _lifted(self, expression: Expression) -> Calls[Expression]:
        parts = []
        for child in children(expression):
            parts.append((yield self._lifted(child)))
        if not isinstance(expression, Accumulation):
            return with_children(expression, parts) if parts else expression
        labels = tuple(dict.fromkeys(expression.labels))
        source = self._named(parts[0], labels)
        return self._add("scan", labels, replace(expression, argument=source))

    def _named(self, expression: Expression, labels: tuple[str, ...]) -> Access:
        """An expression as a tensor with these labels."""
        plain = isinstance(expression, Access) and expression.indices is None
        if isinstance(expression, Access) and plain and expression.labels == labels:
            return expression
        return self._add("part", labels, expression)

    def _add(self, suffix: str, labels: tuple[str, ...], expression: Expression) -> Access:
        (name,) = unique_names([f"{self.statement.target.tensor}_{suffix}"], self.taken)
        target = Access(name, labels, expression.span)
        self.made.append(
            replace(self.statement, target=target, expression=expression, aggregation=None)
        )
        return target


def _is_order_of(labels: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return len(set(labels)) == len(labels) and set(labels) == set(others)
