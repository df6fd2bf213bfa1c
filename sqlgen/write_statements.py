"""Statements that write the rows of a query into tables and folders."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, select

from ucle.sqlgen.cached_texts import Rows, cached_rows, cached_text, subquery_of, text_of
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import ascending, column, identifier, integer, table, text

Query = exp.Select
"""The type of queries whose rows are written, for modules that pass them on."""

NEW, OLD = "new_rows", "old_rows"


@cached_text
def create_table(
    target: Sequence[str], rows: Rows, *, replace: bool, temporary: bool = False
) -> str:
    """Return CREATE TABLE, under the parts of a name."""
    properties = exp.Properties(expressions=[exp.TemporaryProperty()]) if temporary else None
    return sql_text(
        exp.Create(
            this=table(*target),
            kind="TABLE",
            expression=text_of(rows),
            replace=replace,
            properties=properties,
        )
    )


@cached_text
def insert_rows(target: Sequence[str], rows: Rows) -> str:
    """Return INSERT; columns are matched by name."""
    return sql_text(exp.Insert(this=table(*target), expression=text_of(rows), by_name=True))


@cached_text
def delete_rows(target: Sequence[str], rows: Rows, on: Sequence[str]) -> str:
    """Return DELETE for rows that have the same values in some columns as a row of the query."""
    same = [exp.EQ(this=column(name, NEW), expression=column(name, OLD)) for name in on]
    matching = select(integer(1)).from_(subquery_of(rows, NEW)).where(*same)
    where = exp.Where(this=exp.Exists(this=matching))
    return sql_text(exp.Delete(this=table(*target, alias=OLD), where=where))


@cached_text
def describe(rows: Rows) -> str:
    """Names and types of the columns of a query."""
    return sql_text(exp.Describe(this=text_of(rows)))


@cached_text
def explain_plan(rows: Rows) -> str:
    """The operators by which DuckDB would run a query, as JSON."""
    return f"EXPLAIN (FORMAT json) {rows.text}"


@cached_rows
def all_rows(target: Sequence[str], columns: Sequence[str] = ()) -> exp.Select:
    """All rows of a table, or some of their columns."""
    return select(*(map(column, columns) if columns else [exp.Star()])).from_(table(*target))


@cached_rows
def no_rows(rows: Rows) -> exp.Select:
    """No rows, with the columns of a query."""
    return select(exp.Star()).from_(subquery_of(rows, NEW)).limit(0)


def order_rows(query: exp.Select, order: Sequence[str]) -> exp.Select:
    """The rows of a query in the order of some of its columns."""
    if not order:
        return query
    rows = query.subquery(alias=identifier(NEW))
    return select(exp.Star()).from_(rows).order_by(ascending(*(column(name) for name in order)))


def count_rows_up_to(query: exp.Select, rows: int) -> exp.Select:
    """The number of rows of a query, counted up to a limit."""
    few = query.limit(rows).subquery(alias=identifier(NEW))
    return select(exp.Count(this=exp.Star())).from_(few)


def copy_to_folder(
    query: exp.Query, folder: str, partition_by: Sequence[str], note: tuple[str, str]
) -> str:
    """Return COPY into a folder of Parquet files, partitioned by some columns, with a note."""
    key, value = note
    names = exp.Tuple(expressions=[column(name) for name in partition_by])
    noted = exp.Struct(
        expressions=[exp.PropertyEQ(this=exp.to_identifier(key), expression=text(value))]
    )
    options: dict[str, exp.Expr] = {
        "FORMAT": exp.var("parquet"),
        "PARTITION_BY": names,
        "KV_METADATA": noted,
    }
    return sql_text(
        exp.Copy(
            this=query.subquery(),
            kind=False,
            files=[text(folder)],
            params=[
                exp.CopyParameter(this=exp.var(name), expression=option)
                for name, option in options.items()
            ],
        )
    )
