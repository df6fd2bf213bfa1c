"""Relations of one tuple, written into each other: one SELECT over few relations.

What is put into what is decided by a pass over the plan (`ucle.plan.nest_keyless`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from ucle.foundation.names import unique_names
from ucle.sqlgen.scalar_operators import bracketed
from ucle.sqlgen.sql_trees import VALUE, column, first_of, identifier, in_list, join, named, table


@dataclass(frozen=True)
class Source:
    """A relation of one tuple in a FROM clause; `listed` is one whose value is put into a list."""

    alias: str
    name: str
    listed: bool = False
    column: str = VALUE

    def value(self) -> exp.Expr:
        """Its value."""
        if self.listed:
            return first_of(column(VALUE, self.alias))
        return column(self.column, self.alias)

    def relation(self) -> exp.Expr:
        """What stands in FROM."""
        relation = table(self.name, alias=self.alias)
        return in_list(relation, self.alias, self.column) if self.listed else relation


class NestedExpression:
    """An expression over relations of one tuple.

    It grows in place: copies would make long chains take the square of their length.
    """

    def __init__(self, value: exp.Expr, sources: Sequence[Source]) -> None:
        self._value = value
        self._sources = tuple(sources)
        self._columns = list(value.find_all(exp.Column))

    def put(self, alias: str, inner: NestedExpression) -> None:
        """Put another expression, which is used up, into the place of a source."""
        (use,) = (c for c in self._columns if c.table == alias)
        others = tuple(source for source in self._sources if source.alias != alias)
        self._columns = [c for c in self._columns if c is not use] + inner._columns
        self._sources = others + inner._rename(others)
        if use is self._value:
            self._value = inner._value
        else:
            use.replace(bracketed(inner._value, type(use.parent)))

    def _rename(self, beside: Sequence[Source]) -> tuple[Source, ...]:
        """Take other aliases than those of sources beside; the sources that are not among them."""
        self._read_lists({(source.name, source.column) for source in beside if source.listed})
        taken = {source.alias.casefold() for source in beside}
        same = {(source.name, source.listed, source.column): source.alias for source in beside}
        aliases, more = {}, []
        for source in self._sources:
            key = source.name, source.listed, source.column
            if key not in same:
                (same[key],) = unique_names([source.alias], taken)
                more.append(replace(source, alias=same[key]))
            aliases[source.alias] = same[key]
        for read in self._columns:
            read.set("table", identifier(aliases[read.table]))
        return tuple(more)

    def _read_lists(self, values: set[tuple[str, str]]) -> None:
        """Read relations that are in lists beside from there, too: one source is enough."""
        aliases = {x.alias for x in self._sources if (x.name, x.column) in values and not x.listed}
        for read in [x for x in self._columns if x.table in aliases]:
            element = first_of(read.copy())
            (inner,) = element.find_all(exp.Column)
            self._columns = [inner if x is read else x for x in self._columns]
            if read is self._value:
                self._value = element
            else:
                read.replace(element)
        self._sources = tuple(
            replace(x, listed=x.listed or x.alias in aliases) for x in self._sources
        )

    def query(self) -> exp.Select:
        """The SELECT."""
        query = exp.Select(expressions=[named(self._value, VALUE)])
        for number, source in enumerate(self._sources):
            if number:
                query = join(query, source.relation(), "CROSS")
            else:
                query = query.from_(source.relation(), copy=False)
        return query
