"""Joins of which DuckDB is not left to choose the order.

It orders the relations of one FROM clause by how many rows it expects of them, and not by what a
row holds. A relation of one tuple costs nothing by that, so that it may be crossed with one side of
a join first, and the table that the join makes of that side has a copy of a whole tensor for each
row: with 84 MB beside 55 tiles, 4.5 GB. What stands in a subquery is ordered by itself. So where a
tensor that may be large is crossed with something, there are two relations in the FROM clause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from ucle.foundation.names import unique_names
from ucle.sqlgen.sql_trees import column, integers_below, join, named, select_from, subquery


@dataclass(frozen=True)
class Joined:
    """Relations in a FROM clause: the query, without columns, and what there is to be read.

    `keys` are columns by label, `tensors` by the alias of the relation that has them.
    """

    query: exp.Select
    keys: Mapping[str, exp.Column]
    tensors: Mapping[str, exp.Column]

    def as_one(self, alias: str) -> Joined:
        """The same as one relation, under an alias if there are several."""
        if not self.query.args.get("joins"):
            return self
        columns = (*self.keys.values(), *self.tensors.values())
        wanted = (*self.keys, *self.tensors)
        names = unique_names(wanted)
        read = (named(x, name) for x, name in zip(columns, names, strict=True))
        source = subquery(self.query.select(*read, copy=False), alias)
        outer = [column(name, alias) for name in names]
        count = len(self.keys)
        return Joined(
            select_from(source),
            dict(zip(self.keys, outer[:count], strict=True)),
            dict(zip(self.tensors, outer[count:], strict=True)),
        )


def crossed(left: Joined, right: Joined) -> Joined:
    """Each tuple of some relations beside each of others; it changes the queries."""
    taken = {*left.tensors, *right.tensors}
    aliases = unique_names(["pairs", "wholes"], {name.casefold() for name in taken})
    one, other = (x.as_one(alias) for x, alias in zip((left, right), aliases, strict=True))
    query = join(one.query, other.query.args["from_"].this, "CROSS")
    return Joined(query, {**one.keys, **other.keys}, {**one.tensors, **other.tensors})


def positions(sizes: Mapping[str, int], beside: str) -> tuple[exp.Expr, Mapping[str, exp.Column]]:
    """A relation with every position of some axes, and its columns.

    Args:
        sizes: how many positions an axis has, by the name of its column; of one axis or more.
        beside: the alias of what stands in the FROM clause, too.
    """
    ranges = [integers_below(size, f"{name}_range", name) for name, size in sizes.items()]
    query = select_from(ranges[0])
    for other in ranges[1:]:
        query = join(query, other, "CROSS")
    every = Joined(query, {name: column(name, f"{name}_range") for name in sizes}, {})
    (alias,) = unique_names(["positions"], {beside.casefold()})
    every = every.as_one(alias)
    return every.query.args["from_"].this, every.keys
