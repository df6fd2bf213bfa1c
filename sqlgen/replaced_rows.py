"""Statements that replace rows of a kept tensor: each row that differs is found once, by a join.

The entries that differ are a table with a row for each key: its value before, its value now, and
the rowid of its row. All other statements read that table, and reach rows of the kept table by
their rowids, so that the kept table is looked through once.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, select

from ucle.foundation.dtypes import Scalar
from ucle.sqlgen.cached_texts import Rows, cached_rows, cached_text, rows_of, subquery_of
from ucle.sqlgen.input_queries import put_together
from ucle.sqlgen.maintained_tables import (
    BEFORE,
    DELTA,
    FEW,
    NOW,
    Name,
    difference_of,
    rows_at,
    rows_with,
    with_facts_of_keys,
    with_rows,
)
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import (
    VALUE,
    cast,
    column,
    function,
    identifier,
    integer,
    table,
)
from ucle.sqlgen.write_statements import (
    all_rows,
    create_table,
    delete_rows,
    insert_rows,
)

GROWN = "grown entries"
"""The name of numbers by which entries grow, computed once."""

VALUE_NOW, VALUE_BEFORE, ROW = "value now", "value before", "its row"
"""Columns of entries that differ, beside their keys: NULL for the value of an entry that is not
there, and for a rowid where there was none. No label has a blank."""


@cached_text
def create_differing(target: Name, kept: Name, keys: Sequence[str], weight: Scalar | None) -> str:
    """Return CREATE TABLE of no entries that differ, with the types of a kept tensor's columns.

    Digests of rows depend on these types.
    """
    columns: list[exp.Expr] = [
        *map(column, keys),
        *(column(VALUE).as_(identifier(x), quoted=True) for x in (VALUE_BEFORE, VALUE_NOW)),
        column("rowid").as_(identifier(ROW), quoted=True),
    ]
    if weight is not None:
        kind = "DOUBLE" if isinstance(weight, float) else "BIGINT"
        columns.append(cast(exp.null(), kind).as_(identifier(DELTA), quoted=True))
    rows = select(*columns).from_(table(*kept)).limit(0)
    return create_table(target, rows_of(rows), replace=True, temporary=True)


@cached_text
def insert_differing(
    target: Name,
    kept: Name,
    keys: Sequence[str],
    now: Rows,
    masks: Sequence[tuple[Rows, Sequence[str]]] | None,
    weight: Scalar | None,
) -> str:
    """Return INSERT of the entries at which the rows of a query differ from those of a tensor.

    Args:
        target: the table of entries that differ.
        kept: the table of the tensor.
        keys: the columns of its axes.
        now: the present entries, with `keys` and ``val``.
        masks: where they are: queries for keys, with the columns that they share with the tensor;
            None if they are all there are.
        weight: a number of the type of differences; None where these are not wanted.
    """
    before = rows_and_places(kept, [*keys, VALUE])
    if masks and len(masks) == 1 and len(masks[0][1]) == 1:
        ((values, (key,)),) = masks
        before = rows_with(before, key, values)
    elif masks:
        before = rows_at(before, masks)
    new, old = column(VALUE, NOW), column(VALUE, BEFORE)
    columns: list[exp.Expr] = [
        function("coalesce", column(x, BEFORE), column(x, NOW)).as_(identifier(x)) for x in keys
    ]
    columns += _values(old, new)
    if weight is not None:
        columns.append(difference_of(new, old, weight).as_(DELTA, quoted=True))
    joined = _join(select(*columns), now, before, keys, "full")
    differing = joined.where(exp.NullSafeNEQ(this=new.copy(), expression=old.copy()))
    return insert_rows(target, rows_of(differing))


@cached_text
def insert_grown(
    target: Name,
    kept: Name,
    keys: Sequence[str],
    grown: Rows,
    first: Sequence[str],
    weight: Scalar | None,
) -> str:
    """Return INSERT of the entries that differ if a tensor whose fill is 0 grows by some numbers.

    Arguments are those of `insert_differing`; `grown` has `keys` and ``val``, which is not 0. Rows
    are passed over by each of the keys `first` alone, those with the most coordinates.
    """
    grows, old = all_rows((GROWN,)), column(VALUE, BEFORE)
    total = exp.Add(
        this=function("coalesce", old.copy(), integer(0)), expression=column(VALUE, NOW)
    )
    new = function("nullif", total, integer(0))
    columns: list[exp.Expr] = [column(x, NOW).as_(identifier(x)) for x in keys]
    columns += _values(old, new)
    if weight is not None:
        columns.append(difference_of(new, old, weight).as_(DELTA, quoted=True))
    joined = _join(select(*columns), grows, all_rows((FEW,)), keys, "left")
    differing = joined.where(exp.NullSafeNEQ(this=new.copy(), expression=old.copy()))
    few = rows_and_places(kept, [*keys, VALUE])
    for key in first:
        few = rows_with(few, key, all_rows((GROWN,), [key]))
    query = with_rows(with_rows(differing, GROWN, grown), FEW, few)
    return insert_rows(target, rows_of(query))


@cached_rows
def rows_and_places(kept: Name, columns: Sequence[str]) -> exp.Select:
    """Return some columns of a table, with the rowids of its rows."""
    row = column("rowid").as_(ROW, quoted=True)
    return select(*map(column, columns), row).from_(table(*kept))


def _values(old: exp.Expr, new: exp.Expr) -> list[exp.Expr]:
    return [
        old.copy().as_(identifier(VALUE_BEFORE), quoted=True),
        new.copy().as_(identifier(VALUE_NOW), quoted=True),
        column(ROW, BEFORE).as_(identifier(ROW), quoted=True),
    ]


def _join(query: exp.Select, now: Rows, before: Rows, keys: Sequence[str], kind: str) -> exp.Select:
    sides = [subquery_of(now, NOW), subquery_of(before, BEFORE)]
    same = [exp.EQ(this=column(key, NOW), expression=column(key, BEFORE)) for key in keys]
    return query.from_(sides[0]).join(sides[1], on=exp.and_(*same, copy=False), join_type=kind)


@cached_text
def describe_differing(
    name: Name,
    keys: Sequence[str],
    positions: Sequence[str],
    weight: Scalar | None,
    *,
    described: bool = True,
) -> str:
    """Return a query about entries that differ, with one row.

    The columns are the number of entries, of those that were there before and of those that are
    there now, a digest of the latter and one of the former as `digest_of_rows` has it (two columns
    each), and those of `with_facts_of_keys`.
    """
    come, went = "come", "went"
    digests = [
        function("hash", *map(column, keys), column(value)).as_(name_)
        for value, name_ in ((VALUE_NOW, come), (VALUE_BEFORE, went))
    ]
    rows = select(exp.Star(), *digests).from_(table(*name)).subquery("differing")
    there = [exp.Count(this=column(x)) for x in (VALUE_BEFORE, VALUE_NOW)]
    columns: list[exp.Expr] = [exp.Count(this=exp.Star()), *there]
    for digest, value in ((come, VALUE_NOW), (went, VALUE_BEFORE)):
        for each in put_together(digest):
            is_there = exp.not_(exp.Is(this=column(value), expression=exp.null()), copy=False)
            columns.append(exp.Filter(this=each, expression=exp.Where(this=is_there)))
    if not described:
        return sql_text(select(*columns).from_(rows))
    differs_by = weight is not None
    return with_facts_of_keys(columns, rows, name, keys, positions, differs_by=differs_by)


@cached_text
def delete_differing(kept: Name, name: Name, keys: Sequence[str]) -> str:
    """Return DELETE of the rows of a table whose rowids another one has beside their keys."""
    if any(x.casefold() == "rowid" for x in keys):  # a column hides what DuckDB calls so
        return delete_rows(kept, all_rows(name), keys)
    rows = select(column(ROW)).from_(table(*name))
    found = exp.In(this=column("rowid"), query=rows.subquery())
    return sql_text(exp.Delete(this=table(*kept), where=exp.Where(this=found)))


@cached_text
def insert_present(kept: Name, name: Name, keys: Sequence[str]) -> str:
    """Return INSERT of the entries that differ, as they are now."""
    columns = [*map(column, keys), column(VALUE_NOW).as_(identifier(VALUE))]
    there = exp.not_(exp.Is(this=column(VALUE_NOW), expression=exp.null()), copy=False)
    rows = select(*columns).from_(table(*name)).where(there)
    return insert_rows(kept, rows_of(rows))
