"""Queries on tables whose rows hold tiles of a tensor."""

from __future__ import annotations

from sqlglot import exp, select

from ucle.foundation.dtypes import Scalar
from ucle.plan.sources import TableSource
from ucle.sqlgen.entry_rows import ENTRY, entry_rows, places
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import column, integer, named, number


def counts_query(source: TableSource, fill: Scalar, prefix: str = "") -> str:
    """V and the largest degree of each axis in turn, in one row."""
    stored = exp.NEQ(this=column(ENTRY), expression=number(fill, source.dtype))
    positions = places(source)
    keyed = [named(position, f"p{axis}") for axis, position in enumerate(positions)]
    rows = select(*keyed).from_(entry_rows(source.apart, prefix).subquery("entries")).where(stored)
    columns: list[exp.Expr] = []
    for axis in range(len(positions)):
        times = named(exp.Count(this=exp.Star()), "times")
        grouped = select(times).from_(exp.to_table("rows")).group_by(column(f"p{axis}"))
        for aggregate in (exp.Count(this=exp.Star()), exp.Max(this=column("times"))):
            columns.append(select(aggregate).from_(grouped.copy().subquery("grouped")).subquery())
    return sql_text(select(*columns).with_("rows", rows))


def outside_query(
    source: TableSource, fill: Scalar, axis: int, bound: int, prefix: str = ""
) -> str:
    """An entry of the last tile along an axis that lies beyond a bound: keys and the value."""
    size = source.tiles[axis]
    stored = exp.NEQ(this=column(ENTRY), expression=number(fill, source.dtype))
    beyond = exp.GTE(this=places(source)[axis], expression=integer(bound))
    last = exp.GTE(this=column(source.keys[axis]), expression=integer(bound // size))
    inner = entry_rows(source.apart, prefix, where=last).subquery("entries")
    rows = select(*places(source), column(ENTRY)).from_(inner).where(stored).where(beyond)
    return sql_text(rows.limit(1))
