"""FROM clauses: joins whose order is not left to DuckDB, and relations of one tuple, nested.

DuckDB orders the relations of a FROM clause by the number of rows that it expects of them, not by
the size of a row. By that measure a relation of one tuple costs nothing, so that it may be crossed
with one side of a join first. The hash table of the join then has a copy of a whole tensor for each
row of that side: with 84 MB beside 55 tiles, 4.5 GB. A subquery is ordered by itself. Therefore,
where a tensor that may be large is crossed with something, there are only two relations in the FROM
clause.

Relations of one tuple that are nested into each other make one SELECT over few relations. A pass
over the plan decides which relation goes into which (`ucle.plan.nest_keyless`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import unique_names
from ucle.sqlgen.scalar_operators import bracket_value
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    beside,
    column,
    identifier,
    integers_below,
    join,
    select_from,
    subquery,
    table,
)


@dataclass(frozen=True)
class Joined:
    """Relations in a FROM clause: the query without columns, and the columns that can be read.

    `keys` are columns by label, `tensors` by the alias of the relation that has them.
    """

    query: exp.Select
    keys: Mapping[str, exp.Column]
    tensors: Mapping[str, exp.Column]

    def as_one(self, alias: str) -> Joined:
        """Return these relations as one, as a subquery with an alias if there are several."""
        if not self.query.args.get("joins"):
            return self
        columns = (*self.keys.values(), *self.tensors.values())
        wanted = (*self.keys, *self.tensors)
        names = unique_names(wanted)
        read = (add_alias(x, name) for x, name in zip(columns, names, strict=True))
        source = subquery(self.query.select(*read, copy=False), alias)
        outer = [column(name, alias) for name in names]
        count = len(self.keys)
        return Joined(
            select_from(source),
            dict(zip(self.keys, outer[:count], strict=True)),
            dict(zip(self.tensors, outer[count:], strict=True)),
        )


def cross_join(left: Joined, right: Joined) -> Joined:
    """Return each tuple of some relations beside each tuple of others; changes the queries."""
    taken = {*left.tensors, *right.tensors}
    aliases = unique_names(["pairs", "wholes"], {name.casefold() for name in taken})
    one, other = (x.as_one(alias) for x, alias in zip((left, right), aliases, strict=True))
    query = join(one.query, other.query.args["from_"].this, "CROSS")
    return Joined(query, {**one.keys, **other.keys}, {**one.tensors, **other.tensors})


def positions(sizes: Mapping[str, int], beside: str) -> tuple[exp.Expr, Mapping[str, exp.Column]]:
    """A relation with every position of some axes, and its columns.

    Args:
        sizes: the size of each axis, by the name of its column; one axis or more.
        beside: the alias of the other relation in the FROM clause.
    """
    ranges = [integers_below(size, f"{name}_range", name) for name, size in sizes.items()]
    query = select_from(ranges[0])
    for other in ranges[1:]:
        query = join(query, other, "CROSS")
    every = Joined(query, {name: column(name, f"{name}_range") for name in sizes}, {})
    (alias,) = unique_names(["positions"], {beside.casefold()})
    every = every.as_one(alias)
    return every.query.args["from_"].this, every.keys


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
            use.replace(bracket_value(inner._value, type(use.parent)))

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
        query = exp.Select(expressions=[add_alias(self._value, VALUE)])
        if not self._sources:
            return query
        relations = [table(source.name, alias=source.alias) for source in self._sources]
        return beside(query, relations, [source.value() for source in self._sources])
