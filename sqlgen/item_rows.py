"""Rows for the items of lists of different lengths: a row for each, with its position."""

from __future__ import annotations

from sqlglot import exp, select

from ucle.plan.sources import Nulls, TableSource
from ucle.sqlgen.sql_trees import add_alias, cast, column, function, integer

LIST = "list"


def item_rows(source: TableSource, relation: exp.Expr) -> exp.Query:
    """Select the keys, the positions and the items of a source from its relation.

    Where NULLs are refused, a list that is NULL is one item that is NULL.
    """
    assert source.value is not None
    *keys, position = source.keys
    items: exp.Expr = column(source.value)
    refused = source.nulls is Nulls.REFUSED
    if refused:
        items = exp.func("coalesce", items, exp.Array(expressions=[exp.null()]))
    last = exp.func("len", items.copy())
    places = cast(function("unnest", function("range", integer(0), last)), "INTEGER")
    value = function("unnest", items)
    rows = select(
        *map(column, keys), add_alias(places, position), add_alias(value, source.value)
    ).from_(relation)
    if refused:
        return rows
    kept = select(*map(column, source.keys), column(source.value)).from_(rows.subquery(LIST))
    kept = kept.where(exp.Is(this=column(source.value), expression=exp.Null()).not_())
    if source.nulls is Nulls.OBSERVED:
        there = add_alias(exp.true(), source.value)
        return select(*map(column, source.keys), there).from_(kept.subquery(LIST))
    return kept
