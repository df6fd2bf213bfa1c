"""Queries for the coordinates of a table that has grown: which ones had no row before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp, select

from ucle.plan.sources import TableSource
from ucle.sqlgen.cached_texts import cached_text
from ucle.sqlgen.input_tables import source_table
from ucle.sqlgen.maintained_tables import KEY, Name, up_to
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import cast, column, function, identifier, integer, table


@cached_text(varying=["last"])
def count_new_keys(source: TableSource, last: int, changed: Name, axes: Sequence[int]) -> str:
    """Return a query for the number of values of some keys that no row up to another one has.

    Args:
        source: the table.
        last: the rowid of that row.
        changed: a table of changed keys, with columns `KEY`.
        axes: the places of the keys.
    """
    found = []
    for axis in axes:
        key, own = KEY.format(axis), source.keys[axis]
        new = select(column(key)).from_(table(*changed)).distinct()
        before = select(column(own)).from_(source_table(source)).where(up_to(last))
        others = before.subquery(alias=identifier("rows"))
        same = exp.EQ(this=column(own, "rows"), expression=column(key, "new"))
        there = exp.Exists(this=select(integer(1)).from_(others).where(same))
        rows = select(exp.Count(this=exp.Star())).from_(new.subquery(alias=identifier("new")))
        found.append(rows.where(exp.not_(there, copy=False)).subquery())
    return sql_text(select(*found))


@cached_text
def lost_coordinates(source: TableSource, removed: Name, axes: Sequence[int]) -> str:
    """Return a query for the coordinates of removed rows at which a table has no row any more.

    There is a list for each key, NULL where it has none of them.

    Args:
        source: the table.
        removed: these rows, with columns `KEY`.
        axes: the places of the keys.
    """
    found = []
    for axis in axes:
        key = column(KEY.format(axis), "removed")
        rows = select(column(source.keys[axis]).as_(identifier("place"))).from_(
            source_table(source)
        )
        same = exp.EQ(this=column("place", "rows"), expression=key)
        others = rows.subquery(alias=identifier("rows"))
        there = exp.Exists(this=select(integer(1)).from_(others).where(same))
        once = (
            select(exp.Star())
            .distinct()
            .from_(select(column(KEY.format(axis))).from_(table(*removed)).subquery("places"))
        )
        places = function("list", cast(key.copy(), "BIGINT"))
        lost = select(places).from_(once.subquery(alias=identifier("removed")))
        found.append(lost.where(exp.not_(there, copy=False)).subquery())
    return sql_text(select(*found))


@cached_text
def absent_coordinates(source: TableSource, axis: int, size: int) -> str:
    """Return a query for the positions of an axis that no row of a table has, in order."""
    ends = integer(0), integer(size - 1)
    key = cast(column(source.keys[axis]), "BIGINT")
    bits = function("bitstring_agg", key, *ends).as_(identifier("bits"))
    rows = select(bits).from_(source_table(source)).subquery("there")
    every = select(function("unnest", function("range", integer(size))).as_(identifier("place")))
    bit = function("get_bit", column("bits"), cast(column("place"), "INTEGER"))
    found = select(column("place")).from_(every.subquery("every")).join(rows, join_type="cross")
    absent = exp.EQ(this=bit, expression=integer(0))
    return sql_text(found.where(absent).order_by(column("place")))


@cached_text
def now_present(changed: Name, absent: Mapping[int, Sequence[int]]) -> str:
    """Return a query for those of some coordinates that a table of changed keys has.

    There is a row with a list for each key, NULL where it has none of them.

    Args:
        changed: the table, with columns `KEY`.
        absent: the coordinates, by the places of the keys.
    """
    found: list[exp.Expr] = []
    for axis, places in absent.items():
        key = column(KEY.format(axis))
        own = exp.In(this=key.copy(), expressions=[integer(x) for x in places])
        distinct = function("list", exp.Distinct(expressions=[cast(key, "BIGINT")]))
        # An aggregate with FILTER would put all rows into a hash table for DISTINCT.
        found.append(select(distinct).from_(table(*changed)).where(own).subquery())
    return sql_text(select(*found))
