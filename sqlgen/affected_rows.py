"""Statements that read tables at some coordinates of an axis, which are numbered."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, select

from ucle.sqlgen.cached_texts import Rows, cached_rows, cached_text, rows_of, subquery_of
from ucle.sqlgen.maintained_tables import KEY, Name, with_facts_of_keys
from ucle.sqlgen.sql_trees import cast, column, function, identifier, integer, table
from ucle.sqlgen.write_statements import create_table

PLACE = "its place"
"""The column of a coordinate's number; no label has a blank."""

POSITION = "INTEGER"
"""The type of numbers of coordinates, of which there are few."""


@cached_text
def number_keys(target: Name, masks: Sequence[tuple[Rows, str]]) -> str:
    """Return CREATE TABLE of coordinates and their numbers.

    Args:
        target: a temporary table, with a column `KEY` and one of numbers.
        masks: queries for coordinates, and their columns of these.
    """
    own = identifier(KEY.format(0))
    sides = [
        select(column(key).as_(own.copy(), quoted=True)).from_(subquery_of(query, "mask"))
        for query, key in masks
    ]
    found: exp.Query = exp.union(*sides) if len(sides) > 1 else sides[0].distinct()
    place = exp.Window(this=function("row_number"))
    number = cast(exp.Sub(this=place, expression=integer(1)), POSITION)
    rows = select(own.copy(), number.as_(identifier(PLACE), quoted=True))
    numbered = rows.from_(found.subquery("found"))
    return create_table(target, rows_of(numbered), replace=True, temporary=True)


@cached_text
def rows_at_keys(target: Name, rows: Rows, columns: Sequence[str], place: int, keys: Name) -> str:
    """Return CREATE TABLE of the rows at numbered coordinates, with numbers in place of these.

    Args:
        target: a temporary table, with the columns of the query.
        rows: a query.
        columns: its columns.
        place: the place of the column of the coordinates.
        keys: the numbered coordinates.
    """
    own = columns[place]
    found = [
        column(PLACE, "keys").as_(identifier(x), quoted=True) if x == own else column(x, "rows")
        for x in columns
    ]
    same = exp.EQ(this=column(own, "rows"), expression=column(KEY.format(0), "keys"))
    query = select(*found).from_(subquery_of(rows, "rows"))
    query = query.join(table(*keys, alias="keys"), on=same)
    return create_table(target, rows_of(query), replace=True, temporary=True)


@cached_rows
def rows_with_keys(
    rows: Rows, columns: Sequence[str], place: int, keys: Name, names: Sequence[str]
) -> exp.Select:
    """Return the rows of a query with coordinates in place of their numbers, under other names."""
    own = columns[place]
    found = [
        (column(KEY.format(0), "keys") if x == own else column(x, "rows")).as_(
            identifier(y), quoted=True
        )
        for x, y in zip(columns, names, strict=True)
    ]
    same = exp.EQ(this=column(own, "rows"), expression=column(PLACE, "keys"))
    query = select(*found).from_(subquery_of(rows, "rows"))
    return query.join(table(*keys, alias="keys"), on=same)


@cached_text
def describe_rows(name: Name, keys: Sequence[str]) -> str:
    """Return a query for the number of rows of a table, and for V and the most rows of each key."""
    count = exp.Count(this=exp.Star())
    facts = [count], table(*name), name, keys, ()
    return with_facts_of_keys(*facts, differs_by=False, distinct=False)
