"""Statements for changes of inputs that a caller tells: their rows, and how they fit states."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, select

from ucle.foundation.dtypes import Scalar
from ucle.plan.sources import TableSource
from ucle.sqlgen.cached_texts import AnyQuery, cached_rows, cached_text, tree_of
from ucle.sqlgen.input_tables import source_table, whole_table
from ucle.sqlgen.maintained_tables import KEY, STATE, Name
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import cast, column, function, identifier, integer, number, table


@cached_rows
def no_rows(source: TableSource, columns: Sequence[str]) -> exp.Select:
    """Return a query without rows for some columns of a relation, in their types."""
    return select(*map(column, columns)).from_(whole_table(source)).limit(0)


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


def rows_not_at(query: AnyQuery, keys: Sequence[str], others: AnyQuery) -> exp.Select:
    """Return the rows of a query whose keys are those of no row of another one."""
    kept = tree_of(query).subquery(alias=identifier("kept"))
    same = [exp.EQ(this=column(key, "others"), expression=column(key, "kept")) for key in keys]
    rows = tree_of(others).subquery(alias=identifier("others"))
    found = exp.Exists(this=select(integer(1)).from_(rows).where(*same))
    return select(exp.Star()).from_(kept).where(exp.not_(found, copy=False))


def surplus_rows(query: AnyQuery, others: AnyQuery) -> exp.Except:
    """Return the rows that a query has more often than another one."""
    return exp.except_(tree_of(query).copy(), tree_of(others).copy(), distinct=False)


def rows_after(
    before: AnyQuery, keys: Sequence[str], deleted: AnyQuery, inserted: AnyQuery
) -> exp.Select:
    """Return the rows of a query without those at deleted keys, and with inserted ones."""
    return rows_of_both(rows_not_at(before, keys, deleted), inserted)


def rows_of_both(one: AnyQuery, other: AnyQuery) -> exp.Select:
    """Return the rows of two queries."""
    both = exp.union(tree_of(one).copy(), tree_of(other).copy(), distinct=False)
    return select(exp.Star()).from_(both.subquery("rows"))


@cached_text
def first_row(query: AnyQuery) -> str:
    """Return a query for one of the rows of another one."""
    return sql_text(select(exp.Star()).from_(tree_of(query).subquery("found")).limit(1))


@cached_text
def count_rows(query: AnyQuery) -> str:
    """Return a query for the number of rows of another one."""
    return sql_text(select(exp.Count(this=exp.Star())).from_(tree_of(query).subquery("counted")))


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


missing_rows, rows_too_many = cached_rows(rows_not_at), cached_rows(surplus_rows)
all_of_both, changed_state = cached_rows(rows_of_both), cached_rows(rows_after)
"""Texts of queries, which are remembered."""
