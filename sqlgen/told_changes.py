"""Statements for changes of inputs that a caller tells: their rows, and how they fit states."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, select

from ucle.foundation.dtypes import Scalar
from ucle.plan.sources import TableSource
from ucle.sqlgen.cached_texts import Rows, cached_rows, cached_text, subquery_of, text_of
from ucle.sqlgen.input_tables import source_table, whole_table
from ucle.sqlgen.maintained_tables import KEY, STATE, Name
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import cast, column, function, identifier, integer, number, table


@cached_rows
def columns_as(
    source: TableSource, columns: Sequence[tuple[str, str]], prefix: str = ""
) -> exp.Select:
    """Return some columns of a relation, each given with the name that it gets."""
    found = [column(name).as_(identifier(new), quoted=True) for name, new in columns]
    return select(*found).from_(whole_table(source, prefix))


@cached_text
def broken_numbers(source: TableSource, name: str, prefix: str = "") -> str:
    """Return a query for a number in a column of a relation that is not an integer."""
    rounded = exp.NEQ(this=column(name), expression=function("round", column(name)))
    return sql_text(select(column(name)).from_(whole_table(source, prefix)).where(rounded).limit(1))


@cached_rows
def stored_keys(source: TableSource) -> exp.Select:
    """Return the keys of the rows that a source represents; a number for each without keys."""
    keys: list[exp.Expr] = [column(x) for x in source.keys]
    return select(*(keys or [integer(1)])).from_(source_table(source))


@cached_rows
def rows_not_at(rows: Rows, keys: Sequence[str], others: Rows) -> exp.Select:
    """Return the rows of a query whose keys are those of no row of another one."""
    same = [exp.EQ(this=column(key, "others"), expression=column(key, "kept")) for key in keys]
    found = exp.Exists(this=select(integer(1)).from_(subquery_of(others, "others")).where(*same))
    kept = select(exp.Star()).from_(subquery_of(rows, "kept"))
    return kept.where(exp.not_(found, copy=False))


@cached_rows
def rows_after(before: Rows, keys: Sequence[str], deleted: Rows, inserted: Rows) -> exp.Select:
    """Return the rows of a query without those at deleted keys, and with inserted ones."""
    both = rows_of_both(rows_not_at(before, keys, deleted), inserted)
    return select(exp.Star()).from_(subquery_of(both, "rows"))


@cached_rows
def rows_of_both(one: Rows, other: Rows) -> exp.Query:
    """Return the rows of two queries."""
    return exp.union(subquery_of(one), subquery_of(other), distinct=False)


@cached_text
def first_row(rows: Rows) -> str:
    """Return a query for one of the rows of another one."""
    return sql_text(select(exp.Star()).from_(subquery_of(rows, "found")).limit(1))


@cached_text
def look_for(counted: Rows, others: Sequence[Rows]) -> str:
    """Return a query for the number of rows of a query, and whether each of others has a row."""
    there = [exp.Exists(this=text_of(x)) for x in others]
    count = exp.Count(this=exp.Star())
    return sql_text(select(count, *there).from_(subquery_of(counted, "counted")))


@cached_text
def ends_of_rows(name: Name, source: TableSource, fill: Scalar) -> str:
    """Return a query about rows of the state of an input, which has one number in each row.

    Its columns are the number of rows, that of entries, the smallest and the largest entry, and the
    largest coordinate along each axis; NULL along those that a dictionary numbers.
    """
    value = number(source.constant, source.dtype)
    if source.value is not None:
        value = cast(column(STATE), source.dtype)
    entry = exp.NEQ(this=value.copy(), expression=number(fill, source.dtype))
    ends: list[exp.Expr] = [exp.null(), exp.null()]
    if source.dtype.kind != "c":
        ends = [exp.Min(this=value.copy()), exp.Max(this=value.copy())]
    filtered = [
        x
        if isinstance(x, exp.Null)
        else exp.Filter(this=x, expression=exp.Where(this=entry.copy()))
        for x in (exp.Count(this=exp.Star()), *ends)
    ]
    largest = [
        exp.null() if source.is_encoded(n) else exp.Max(this=column(KEY.format(n)))
        for n in range(len(source.keys))
    ]
    return sql_text(select(exp.Count(this=exp.Star()), *filtered, *largest).from_(table(*name)))
