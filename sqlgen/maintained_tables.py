"""Statements that keep tables up to date: states of inputs, changed and replaced rows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, select

from ucle.foundation.dtypes import DType, Scalar
from ucle.plan.sources import TableSource
from ucle.sqlgen.input_queries import digest_of
from ucle.sqlgen.input_tables import source_table
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import VALUE, column, function, identifier, integer, number, table, text

Name = Sequence[str]
"""The parts of the name of a table."""

KEY, STATE = "k{}", "state"
"""The columns of the state of an input: its keys, by number, and its value or a digest of it."""

SIDE = "which side"
"""A column beside others that bear the names of labels, none of which has a blank."""


def state_query(source: TableSource, last: int | None = None) -> exp.Select:
    """Return a query for the state of an input: the keys of each row, with its value.

    Arrays are replaced by a digest. `last` is the last rowid of those that count.
    """
    columns = [
        column(name).as_(identifier(KEY.format(n)), quoted=True)
        for n, name in enumerate(source.keys)
    ]
    if source.value is not None:
        value: exp.Expr = column(source.value)
        if source.dense or source.wide:
            value = function("hash", value)
        columns.append(value.as_(identifier(STATE), quoted=True))
    query = select(*columns).from_(source_table(source))
    if last is None:
        return query
    return query.where(exp.LTE(this=column("rowid"), expression=integer(last)))


def absent_keys(name: Name, key: str, rows: exp.Query) -> str:
    """Return a query that has a row if a key of a table is that of no row of a query."""
    others = rows.copy().subquery(alias=identifier("rows"))
    same = exp.EQ(this=column(key, "rows"), expression=column(key, "kept"))
    found = exp.Exists(this=select(integer(1)).from_(others).where(same))
    absent = exp.not_(found, copy=False)
    return sql_text(select(integer(1)).from_(table(*name, alias="kept")).where(absent).limit(1))


def appended_keys(source: TableSource, last: int) -> exp.Select:
    """Return a query for the keys of the rows of a table behind a row, each once."""
    columns = [
        column(name).as_(identifier(KEY.format(n)), quoted=True)
        for n, name in enumerate(source.keys)
    ]
    behind = exp.GT(this=column("rowid"), expression=integer(last))
    return select(*columns).distinct().from_(source_table(source)).where(behind)


def count_behind(name: Name, last: int) -> str:
    """Return a query for the number of rows of a table behind a row."""
    behind = exp.GT(this=column("rowid"), expression=integer(last))
    return sql_text(select(exp.Count(this=exp.Star())).from_(table(*name)).where(behind))


def rows_and_last(name: Name) -> str:
    """Return a query for the number of rows of a table, and for the last rowid."""
    last = function("coalesce", exp.Max(this=column("rowid")), integer(-1))
    return sql_text(select(exp.Count(this=exp.Star()), last).from_(table(*name)))


def create_as(name: Name, query: exp.Query, *, temporary: bool = False) -> str:
    """Return CREATE OR REPLACE TABLE."""
    properties = exp.Properties(expressions=[exp.TemporaryProperty()]) if temporary else None
    return sql_text(
        exp.Create(
            this=table(*name), kind="TABLE", expression=query, replace=True, properties=properties
        )
    )


def rows_of(name: Name, columns: Sequence[str] = ()) -> exp.Select:
    """Return a query for all rows of a table, or for some of their columns."""
    return select(*(map(column, columns) if columns else [exp.Star()])).from_(table(*name))


def without_value(query: exp.Query, value: Scalar) -> exp.Select:
    """Return the rows of a query whose ``val`` is another one; NaN is one value."""
    dtype = DType.COMPLEX128 if isinstance(value, complex) else DType.FLOAT64
    other = exp.NullSafeNEQ(this=column(VALUE), expression=number(value, dtype))
    return select(exp.Star()).from_(query.subquery("entries")).where(other)


def differing_keys(
    one: exp.Query, other: exp.Query, columns: Sequence[str], keys: Sequence[str]
) -> exp.Select:
    """Return the keys of the rows that two queries with these columns do not have alike.

    Rows are counted: one that both have, but not as often, differs, too.
    """
    sides = [
        select(*map(column, columns), integer(sign).as_(SIDE, quoted=True)).from_(
            query.copy().subquery("rows")
        )
        for query, sign in ((one, 1), (other, -1))
    ]
    both = exp.union(*sides, distinct=False).subquery("both_sides")
    unequal = exp.NEQ(this=exp.Sum(this=column(SIDE)), expression=integer(0))
    rows = select(*map(column, columns)).from_(both).group_by(*map(column, columns))
    differing = rows.having(unequal).subquery("differing")
    return select(*map(column, keys)).distinct().from_(differing)


def matching(name: Name, mask: Name, keys: Sequence[str]) -> exp.Select:
    """Return the rows of a table whose keys are those of a row of another one."""
    return select(exp.Star()).from_(table(*name, alias="kept")).where(_exists(mask, keys))


def delete_matching(name: Name, mask: Name, keys: Sequence[str]) -> str:
    """Return DELETE for the rows of a table whose keys are those of a row of another one."""
    where = exp.Where(this=_exists(mask, keys))
    return sql_text(exp.Delete(this=table(*name, alias="kept"), where=where))


def delete_all(name: Name) -> str:
    """Return DELETE for all rows of a table."""
    return sql_text(exp.Delete(this=table(*name)))


def insert_from(name: Name, query: exp.Query) -> str:
    """Return INSERT of the rows of a query; columns are matched by name."""
    return sql_text(exp.Insert(this=table(*name), expression=query, by_name=True))


def count_rows(name: Name) -> str:
    """Return a query for the number of rows of a table."""
    return sql_text(select(exp.Count(this=exp.Star())).from_(table(*name)))


def drop_table(name: Name) -> str:
    """Return DROP TABLE IF EXISTS."""
    return sql_text(exp.Drop(tables=[table(*name)], kind="TABLE", exists=True))


def digest_of_rows(query: exp.Query, columns: Sequence[str]) -> str:
    """Return a query for the number of rows of another one, and a digest of these columns.

    It does not depend on the order of the rows.
    """
    return sql_text(digest_of(query.copy().subquery("rows"), columns))


def state_columns(source: TableSource) -> list[str]:
    """Return the columns of `state_query`."""
    keys = [KEY.format(n) for n in range(len(source.keys))]
    return keys if source.value is None else [*keys, STATE]


def insert_matching(name: Name, query: exp.Query, mask: Name, keys: Sequence[str]) -> str:
    """Return INSERT of the rows of a query whose keys are those of a row of a table."""
    rows = select(exp.Star()).from_(query.copy().subquery(alias=identifier("kept")))
    return insert_from(name, rows.where(_exists(mask, keys)))


def create_registry(name: Name, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the statements that make a table of texts, with its schema, if there is none."""
    *_, schema, _ = name
    kinds = [exp.ColumnDef(this=identifier(x), kind=exp.DataType.build("VARCHAR")) for x in columns]
    return (
        sql_text(exp.Create(this=table(schema), kind="SCHEMA", exists=True)),
        sql_text(
            exp.Create(
                this=exp.Schema(this=table(*name), expressions=kinds), kind="TABLE", exists=True
            )
        ),
    )


def insert_texts(name: Name, row: Sequence[str]) -> str:
    """Return INSERT of one row of texts."""
    values = exp.Values(expressions=[exp.Tuple(expressions=[text(x) for x in row])])
    return sql_text(exp.Insert(this=table(*name), expression=values))


def delete_named(name: Name, key: str, value: str) -> str:
    """Return DELETE for the rows with a text in a column."""
    same = exp.EQ(this=column(key), expression=text(value))
    return sql_text(exp.Delete(this=table(*name), where=exp.Where(this=same)))


def _exists(mask: Name, keys: Sequence[str]) -> exp.Exists:
    same = [exp.EQ(this=column(key, "mask"), expression=column(key, "kept")) for key in keys]
    return exp.Exists(this=select(integer(1)).from_(table(*mask, alias="mask")).where(*same))
