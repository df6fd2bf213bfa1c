"""Rows for the items of lists of different lengths: a row for each, with its position."""

from __future__ import annotations

from sqlglot import exp, select

from ucle.plan.sources import Nulls, TableSource
from ucle.sqlgen.sql_trees import add_alias, cast, column, function, integer


def item_rows(source: TableSource, relation: exp.Expr) -> exp.Query:
    """Select the keys, the positions and the items of a source from its relation.

    Where NULLs are refused, a list that is NULL is one item that is NULL.
    """
    assert source.value is not None
    *keys, position = source.keys
    items: exp.Expr = column(source.value)
    if source.nulls is Nulls.REFUSED:
        items = exp.func("coalesce", items, exp.Array(expressions=[exp.null()]))
    last = exp.func("len", items.copy())
    places = cast(function("unnest", function("range", integer(0), last)), "INTEGER")
    value = function("unnest", items)
    named = add_alias(places, position), add_alias(value, source.value)
    return select(*map(column, keys), *named).from_(relation)
