"""Relations of one tuple, nested into each other: one SELECT over few relations.

A pass over the plan decides which relation goes into which (`ucle.plan.nest_keyless`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from ucle.foundation.names import unique_names
from ucle.sqlgen.scalar_operators import bracketed
from ucle.sqlgen.sql_trees import VALUE, beside, column, identifier, named, table


@dataclass(frozen=True)
class SingleRow:
    """A relation of one tuple in a FROM clause, and the column with its value."""

    alias: str
    name: str
    column: str = VALUE

    def value(self) -> exp.Expr:
        """Its value."""
        return column(self.column, self.alias)


class NestedExpression:
    """An expression over relations of one tuple.

    It grows in place: copies would make the time for a long chain quadratic in its length.
    """

    def __init__(self, value: exp.Expr, sources: Sequence[SingleRow]) -> None:
        self._value = value
        self._sources = tuple(sources)
        self._columns = list(value.find_all(exp.Column))

    def put(self, alias: str, inner: NestedExpression) -> None:
        """Put another expression, which is used up, in the place of a source."""
        (use,) = (c for c in self._columns if c.table == alias)
        others = tuple(source for source in self._sources if source.alias != alias)
        self._columns = [c for c in self._columns if c is not use] + inner._columns
        self._sources = others + inner._rename(others)
        if use is self._value:
            self._value = inner._value
        else:
            use.replace(bracketed(inner._value, type(use.parent)))

    def _rename(self, others: Sequence[SingleRow]) -> tuple[SingleRow, ...]:
        """Choose aliases unlike those of other sources; return the sources not among them."""
        taken = {source.alias.casefold() for source in others}
        same = {(source.name, source.column): source.alias for source in others}
        aliases, more = {}, []
        for source in self._sources:
            key = source.name, source.column
            if key not in same:
                (same[key],) = unique_names([source.alias], taken)
                more.append(replace(source, alias=same[key]))
            aliases[source.alias] = same[key]
        for read in self._columns:
            read.set("table", identifier(aliases[read.table]))
        return tuple(more)

    def query(self) -> exp.Select:
        """The SELECT."""
        query = exp.Select(expressions=[named(self._value, VALUE)])
        if not self._sources:
            return query
        relations = [table(source.name, alias=source.alias) for source in self._sources]
        return beside(query, relations, [source.value() for source in self._sources])
