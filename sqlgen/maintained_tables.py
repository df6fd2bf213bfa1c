"""Statements that keep tables up to date: states of inputs, changed and replaced rows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, select

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.plan.sources import TableSource
from ucle.sqlgen.cached_texts import Rows, cached_rows, cached_text, rows_of, subquery_of, text_of
from ucle.sqlgen.input_queries import digest_of
from ucle.sqlgen.input_tables import source_table
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    ascending,
    cast,
    column,
    combined_digest,
    function,
    group_by_keys,
    identifier,
    integer,
    number,
    table,
    text,
    when,
)
from ucle.sqlgen.write_statements import all_rows

Name = Sequence[str]
"""The parts of the name of a table."""

KEY, STATE = "k{}", "state"
"""The columns of the state of an input: its keys, by number, and its value or a digest of it."""

DELTA, ADDED = "delta", "was added"
"""The columns of changed rows beside their keys; no label has a blank."""

NOW, BEFORE = "now", "before"
"""The names of two states of a tensor that are compared."""

FIRST_LOCAL = 36028797018960000
"""The rowid from which rows are numbered that a transaction has inserted, until it ends."""

FEW = "rows to compare"
"""The name of rows that are computed first; no label, and hardly a table, has it."""

SIDE = "which side"
"""A column beside others that bear the names of labels, none of which has a blank."""


@cached_rows(varying=["last"])
def state_rows(source: TableSource, last: int | None = None) -> exp.Select:
    """Return a query for the state of an input: the keys of each row, with its value.

    Arrays are replaced by a digest. `last` is the last rowid of those that count.
    """
    query = select(*_state_columns(source)).from_(source_table(source))
    return query if last is None else query.where(up_to(last))


def up_to(last: int) -> exp.Expr:
    """The condition that a row is none behind another one."""
    return exp.LTE(this=column("rowid"), expression=integer(last))


def _behind(last: int | Rows) -> exp.Expr:
    end = integer(last) if isinstance(last, int) else subquery_of(last)
    return exp.GT(this=column("rowid"), expression=end)


def _state_columns(source: TableSource) -> list[exp.Expr]:
    columns: list[exp.Expr] = [
        column(name).as_(identifier(key), quoted=True)
        for name, key in zip(source.keys, state_keys(source), strict=True)
    ]
    if source.value is not None:
        value: exp.Expr = column(source.value)
        if source.dense or source.wide:
            value = function("hash", value)
        columns.append(value.as_(identifier(STATE), quoted=True))
    return columns


@cached_text
def absent_keys(name: Name, key: str, rows: Rows) -> str:
    """Return a query that has a row if a key of a table is that of no row of a query."""
    same = exp.EQ(this=column(key, "rows"), expression=column(key, "kept"))
    others = select(integer(1)).from_(subquery_of(rows, "rows")).where(same)
    found = exp.Exists(this=others)
    absent = exp.not_(found, copy=False)
    return sql_text(select(integer(1)).from_(table(*name, alias="kept")).where(absent).limit(1))


@cached_text(varying=["last"])
def count_behind(name: Name, last: int) -> str:
    """Return a query for the number of rows of a table behind a row."""
    return sql_text(select(exp.Count(this=exp.Star())).from_(table(*name)).where(_behind(last)))


def rows_and_last(name: Name, last: int = -1) -> str:
    """Return a query for the number of rows of a table, and for the last rowid.

    Rows that the present transaction has inserted have no rowid yet that lasts. Behind these two
    stands the number of rows behind the row `last`, and only these are looked at: the number of
    all rows is known. Then comes the number of those of them that have no rowid yet that lasts.
    """
    return _rows_and_last(name, last, local=last >= FIRST_LOCAL)


@cached_text(varying=["last"])
def _rows_and_last(name: Name, last: int, *, local: bool) -> str:
    lasts = exp.LT(this=column("rowid"), expression=integer(FIRST_LOCAL))
    most = exp.Filter(this=exp.Max(this=column("rowid")), expression=exp.Where(this=lasts))
    every = select(exp.Count(this=exp.Star())).from_(table(*name)).subquery()
    lasting: exp.Expr = function("coalesce", most, integer(last))
    if local:  # a row of this transaction, before which there are others
        before = function("coalesce", most, integer(-1))
        lasting = select(before).from_(table(*name)).subquery()
    behind = exp.GTE(this=column("rowid"), expression=integer(FIRST_LOCAL))
    pending = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=behind))
    found = [every, lasting, exp.Count(this=exp.Star()), pending]
    return sql_text(select(*found).from_(table(*name)).where(_behind(last)))


def rowid_behind(name: Name, last: int, place: int) -> str:
    """Return a query for the rowid that is at a place among those behind a row, from 1."""
    rows = select(column("rowid")).from_(table(*name)).where(_behind(last))
    few = rows.order_by(ascending(column("rowid"))).limit(place)
    count, most = exp.Count(this=exp.Star()), exp.Max(this=column("rowid"))
    return sql_text(select(count, most).from_(few.subquery("behind")))


@cached_rows(varying=["last", "most"])
def state_rows_behind(source: TableSource, last: int | Rows, most: int | None = None) -> exp.Select:
    """Return the state of the rows of a table behind a row, up to another one.

    `last` is the rowid of that row, or a query for it.
    """
    query = select(*_state_columns(source)).from_(source_table(source)).where(_behind(last))
    return query if most is None else query.where(up_to(most))


@cached_rows
def named_rows(rows: Rows, columns: Sequence[str], names: Sequence[str]) -> exp.Select:
    """Return some columns of a query under other names."""
    pairs = zip(columns, names, strict=True)
    found = [column(old).as_(identifier(new), quoted=True) for old, new in pairs]
    return select(*found).from_(subquery_of(rows, "rows"))


@cached_rows
def side_by_side(queries: Sequence[Rows]) -> exp.Select:
    """Return a query with the columns of some queries, one after the other."""
    query = select(exp.Star()).from_(subquery_of(queries[0], "side_0"))
    for n, each in enumerate(queries[1:], 1):
        query = query.join(subquery_of(each, f"side_{n}"), join_type="cross")
    return query


@cached_rows
def rows_but_value(rows: Rows, value: Scalar) -> exp.Select:
    """Return the rows of a query whose ``val`` is another one; NaN is one value."""
    dtype = DType.COMPLEX128 if isinstance(value, complex) else DType.FLOAT64
    other = exp.NullSafeNEQ(this=column(VALUE), expression=number(value, dtype))
    return select(exp.Star()).from_(subquery_of(rows, "entries")).where(other)


@cached_rows
def rows_that_differ(one: Rows, other: Rows, columns: Sequence[str]) -> exp.Select:
    """Return the rows that one of two queries has more often than the other.

    Behind `columns` stands `SIDE`: how many times more the first one has the row, negative where
    it has it fewer times.
    """
    sides = [
        select(*map(column, columns), integer(sign).as_(SIDE, quoted=True)).from_(
            subquery_of(rows, "rows")
        )
        for rows, sign in ((one, 1), (other, -1))
    ]
    both = exp.union(*sides, distinct=False).subquery("both_sides")
    surplus = exp.Sum(this=column(SIDE))
    return (
        select(*map(column, columns), surplus.as_(SIDE, quoted=True))
        .from_(both)
        .group_by(*map(column, columns))
        .having(exp.NEQ(this=surplus.copy(), expression=integer(0)))
    )


@cached_rows
def changed_rows(
    now: Rows, before: Rows, keys: Sequence[str], value: str | None, weight: Scalar | None
) -> exp.Select:
    """Return the keys of the rows that one of two queries has more often than the other.

    Args:
        now: the present rows.
        before: those with which they are compared.
        keys: columns of both.
        value: another column of both, or none.
        weight: what a row without a value stands for; None where differences are not wanted.

    Returns:
        A row for each key: `keys`, `ADDED`, true if `before` has none of its rows, and, if
        differences are wanted, `DELTA`, by how much the sum of its values has grown.
    """
    columns = [*keys, value] if value is not None else list(keys)
    rows = rows_that_differ(now, before, columns)
    added = exp.GT(this=exp.Min(this=column(SIDE)), expression=integer(0))
    found = [added.as_(ADDED, quoted=True)]
    if weight is not None:
        found.append(_sum_of(value, weight, column(SIDE)).as_(DELTA, quoted=True))
    return _grouped(keys, found, subquery_of(rows, "differing"))


@cached_rows
def changed_entries(
    now: Rows, before: Rows, keys: Sequence[str], weight: Scalar | None
) -> exp.Select:
    """Return the keys of a tensor's entries that differ between two queries.

    The columns are those of `changed_rows`. Each key has at most one row in either query, with a
    value that is not NULL, so that one join of both is enough. `weight` is None where differences
    are not wanted.
    """
    sides = [subquery_of(now, NOW), subquery_of(before, BEFORE)]
    new, old = (column(VALUE, name) for name in (NOW, BEFORE))
    same = [exp.EQ(this=column(key, NOW), expression=column(key, BEFORE)) for key in keys]
    columns: list[exp.Expr] = [
        function("coalesce", column(key, NOW), column(key, BEFORE)).as_(identifier(key))
        for key in keys
    ]
    columns.append(exp.Is(this=old, expression=exp.null()).as_(ADDED, quoted=True))
    if weight is not None:
        columns.append(difference_of(new, old, weight).as_(DELTA, quoted=True))
    matched = exp.and_(*same, copy=False) if same else exp.true()
    joined = select(*columns).from_(sides[0]).join(sides[1], on=matched, join_type="full")
    return joined.where(exp.NullSafeNEQ(this=new.copy(), expression=old.copy()))


def difference_of(new: exp.Expr, old: exp.Expr, weight: Scalar) -> exp.Expr:
    """Return by how much a value differs from another one; NULL stands for 0.

    It is of the widest type of the kind of `weight`, and NULL where it does not fit into that.
    """
    kind = "DOUBLE" if isinstance(weight, float) else "HUGEINT"  # which does not overflow
    ends = [cast(function("coalesce", x.copy(), integer(0)), kind) for x in (new, old)]
    return _of_widest_type(exp.Sub(this=ends[0], expression=ends[1]), weight)


@cached_rows(varying=["last"])
def appended_rows(source: TableSource, last: int | Rows, weight: Scalar | None) -> exp.Select:
    """Return the rows of a table behind a row, as `changed_rows` does.

    `last` is its rowid, or a query for it.
    """
    rows = state_rows_behind(source, last)
    added = added_rows(rows, state_keys(source), state_value(source), weight)
    return select(exp.Star()).from_(subquery_of(added, "added"))


@cached_rows
def added_rows(
    rows: Rows, keys: Sequence[str], value: str | None, weight: Scalar | None
) -> exp.Select:
    """Return the rows of a query as `changed_rows` does if there were none before."""
    found: list[exp.Expr] = [exp.true().as_(ADDED, quoted=True)]
    if weight is not None:
        found.append(_sum_of(value, weight, integer(1)).as_(DELTA, quoted=True))
    return _grouped(keys, found, subquery_of(rows, "rows"))


@cached_rows(varying=["last"])
def rows_behind(source: TableSource, last: int) -> exp.Select:
    """Return a query for the rows of a table behind a row, with the columns that a source reads."""
    return select(*map(column, source.columns)).from_(source_table(source)).where(_behind(last))


@cached_text(varying=["last"])
def repeated_keys(source: TableSource, new: Name, last: int, first: Sequence[str] = ()) -> str:
    """Return a query for the keys of a row of a table that a row up to another one has, too.

    Args:
        source: the table.
        new: the rows, in a table.
        last: the rowid up to which rows are compared with them.
        first: keys that few rows have in common with them, as `rows_at_few` has them.
    """
    keys: list[exp.Expr] = [*map(column, source.keys)] or [integer(1)]
    before = rows_of(select(*keys).from_(source_table(source)).where(up_to(last)))
    return sql_text(_first(rows_at_few(before, all_rows(new, source.keys), source.keys, first)))


def _first(rows: Rows) -> exp.Select:
    return select(exp.Star()).from_(subquery_of(rows, "found")).limit(1)


def _sum_of(value: str | None, weight: Scalar, times: exp.Expr) -> exp.Expr:
    """Return the sum of a column, or of a number for each row, taken some times.

    It is of the widest type of the number's kind, and NULL where it does not fit into that.
    """
    dtype = DType.FLOAT64 if isinstance(weight, float) else DType.INT64
    each = number(weight, dtype) if value is None else column(value)
    total = exp.Sum(this=exp.Mul(this=each, expression=times))
    return _of_widest_type(total, weight)


def _of_widest_type(value: exp.Expr, like: Scalar) -> exp.Expr:
    kind = exp.DataType.Type.DOUBLE if isinstance(like, float) else exp.DataType.Type.BIGINT
    return exp.TryCast(this=value, to=exp.DataType(this=kind))


def _grouped(keys: Sequence[str], found: Sequence[exp.Expr], rows: exp.Subquery) -> exp.Select:
    names = [column(key) for key in keys]
    return group_by_keys(select(*names, *found).from_(rows), names)


@cached_text
def count_changed(
    name: Name, keys: Sequence[str], positions: Sequence[str], *, differs_by: bool
) -> str:
    """Return a query about rows of `changed_rows`: their number, and whether all were added.

    Behind them stand the columns of the table, as a list of their names and one of their types, and
    the columns of `with_facts_of_keys`.
    """
    every = function("coalesce", function("bool_and", column(ADDED)), exp.true())
    names = [*keys, ADDED, *([DELTA] if differs_by else [])]
    types = [function("typeof", function("any_value", column(x))) for x in names]
    lists = [exp.array(*each, copy=False) for each in (list(map(text, names)), types)]
    found = [exp.Count(this=exp.Star()), every, *lists]
    return with_facts_of_keys(found, table(*name), name, keys, positions, differs_by=differs_by)


def with_facts_of_keys(
    columns: Sequence[exp.Expr],
    rows: exp.Expr,
    name: Name,
    keys: Sequence[str],
    positions: Sequence[str],
    *,
    differs_by: bool,
    distinct: bool = True,
) -> str:
    """Return a query with one row: some aggregates, and facts about a table of keys behind them.

    The facts are the largest of each key that is a position; if differences are wanted, the number
    of those that are not NULL, the least and the largest of them, and whether all are finite; then
    for each key its V, and the most rows that have the same one.

    Args:
        columns: the aggregates.
        rows: what they are taken of: the table, or a query over it.
        name: the table.
        keys: its columns of keys.
        positions: those that are positions.
        differs_by: True if differences are wanted.
        distinct: False if several rows may have the same keys.
    """
    found = [*columns, *(exp.Max(this=column(x)) for x in positions)]
    if differs_by:
        finite = function("bool_and", function("isfinite", cast(column(DELTA), "DOUBLE")))
        found += [each(this=column(DELTA)) for each in (exp.Count, exp.Min, exp.Max)]
        found.append(finite)
    alone = distinct and len(keys) == 1  # each row has a coordinate of its own
    if alone:
        count = exp.Count(this=exp.Star())
        found += [count, function("least", count.copy(), integer(1))]
    named = [add_alias(x, f"fact {n}") for n, x in enumerate(found)]
    query = select(exp.Star()).from_(select(*named).from_(rows).subquery("facts"))
    for n, key in enumerate(() if alone else keys):
        times = add_alias(exp.Count(this=exp.Star()), "times")
        groups = select(times).from_(table(*name)).group_by(column(key)).subquery("groups")
        ends = exp.Count(this=exp.Star()), exp.Max(this=column("times"))
        of_key = select(*(add_alias(x, f"{m} of {n}") for m, x in enumerate(ends))).from_(groups)
        query = query.join(of_key.subquery(f"key_{n}"), join_type="cross")
    return sql_text(query)


@cached_rows
def rows_with(rows: Rows, key: str, values: Rows) -> exp.Select:
    """Return the rows of a query in which a column has one of the values that another query has.

    DuckDB looks up integers in a join of this form in an array, where they are near each other.
    """
    distinct = select(exp.Star()).distinct().from_(subquery_of(values, "values"))
    same = exp.EQ(this=column(key, "kept"), expression=column(key, "few"))
    every = exp.Column(this=exp.Star(), table=identifier("kept"))
    found = select(every).from_(subquery_of(rows, "kept"))
    return found.join(distinct.subquery(alias=identifier("few")), on=same)


def with_rows(query: exp.Select, name: str, rows: Rows) -> exp.Select:
    """Return a query that reads the rows of another one, computed once, under a name."""
    return query.with_(identifier(name), text_of(rows), materialized=True)


@cached_rows
def rows_at(rows: Rows, masks: Sequence[tuple[Name | Rows, Sequence[str]]]) -> exp.Select:
    """Return the rows of a query whose keys are those of a row of one of some tables or queries.

    Each of these is given with the columns that it shares with the query.
    """
    found = []
    for mask, keys in masks:
        same = [exp.EQ(this=column(key, "mask"), expression=column(key, "kept")) for key in keys]
        at = subquery_of(mask, "mask") if isinstance(mask, Rows) else table(*mask, alias="mask")
        found.append(exp.Exists(this=select(integer(1)).from_(at).where(*same)))
    kept = subquery_of(rows, "kept")
    return select(exp.Star()).from_(kept).where(exp.or_(*found, copy=False))


@cached_rows
def rows_at_few(rows: Rows, others: Rows, keys: Sequence[str], first: Sequence[str]) -> exp.Select:
    """Return the rows of a query whose keys are those of a row of another one, which are few.

    Rows are passed over by each of the keys `first` alone before all are compared, which takes
    half the time. They are keys of which the other rows have a small share of the values.
    """
    if not first:
        return select(exp.Star()).from_(subquery_of(rows_at(rows, [(others, keys)]), "found"))
    values = [named_rows(others, [key], [key]) for key in first]
    if len(first) == 1:
        few = rows_with(rows, first[0], values[0])
    else:  # a scan looks for values of several columns at once
        found = [
            exp.In(this=column(key), query=subquery_of(x))
            for key, x in zip(first, values, strict=True)
        ]
        few = rows_of(select(exp.Star()).from_(subquery_of(rows, "kept")).where(*found))
    at = rows_at(all_rows((FEW,)), [(others, keys)])
    return with_rows(select(exp.Star()).from_(subquery_of(at, "found")), FEW, few)


@cached_text
def delete_all(name: Name) -> str:
    """Return DELETE for all rows of a table."""
    return sql_text(exp.Delete(this=table(*name)))


@cached_text
def drop_table(name: Name) -> str:
    """Return DROP TABLE IF EXISTS."""
    return sql_text(exp.Drop(tables=[table(*name)], kind="TABLE", exists=True))


@cached_text
def digest_of_rows(rows: Rows, columns: Sequence[str]) -> str:
    """Return a query for the number of rows of another one, and a digest of these columns.

    It does not depend on the order of the rows.
    """
    return sql_text(digest_of(subquery_of(rows, "rows"), columns))


@cached_text
def digests_of_tables(tables: Sequence[tuple[Name, Sequence[str]]]) -> str:
    """Return a query for the digests of columns of tables, as `digest_of_rows` has them.

    There is a row for each table, in order.
    """
    return _in_order([digest_of(table(*name), columns) for name, columns in tables])


@cached_text
def digests_of_queries(queries: Sequence[tuple[Rows, bool]], columns: Sequence[str]) -> str:
    """Return a query for the digests of queries with the same columns, in order.

    Each is given with whether its first two numbers do, as those of `short_digests`: the third is
    NULL then.
    """
    short = combined_digest(function("hash", *map(column, columns)))
    return _in_order(
        [
            select(exp.Count(this=exp.Star()), short.copy(), exp.null()).from_(
                subquery_of(rows, "rows")
            )
            if is_short
            else digest_of(subquery_of(rows, "rows"), columns)
            for rows, is_short in queries
        ]
    )


@cached_text
def short_digests(tables: Sequence[tuple[Name, Sequence[str]]]) -> str:
    """Return a query for the first two numbers of the digests of tables, in order.

    They tell a set of rows: other rows of the same number have another one. Equal rows, which
    cancel each other, would have to be more than there were.
    """
    digests = [combined_digest(function("hash", *map(column, own))) for _, own in tables]
    count = exp.Count(this=exp.Star())
    return _in_order(
        [
            select(count.copy(), digest).from_(table(*name))
            for digest, (name, _) in zip(digests, tables, strict=True)
        ]
    )


def _in_order(queries: Sequence[exp.Select]) -> str:
    """Return a query for the rows of some queries, which have one row each, in their order."""
    if len(queries) == 1:
        return sql_text(queries[0])
    place = "its place"
    numbered = [
        select(integer(n).as_(place, quoted=True), exp.Star()).from_(query.subquery("one"))
        for n, query in enumerate(queries)
    ]
    rows = exp.union(*numbered, distinct=False).subquery("rows")
    every = exp.Star(**{"except_": [identifier(place)]})
    return sql_text(select(every).from_(rows).order_by(ascending(column(place))))


def state_columns(source: TableSource) -> list[str]:
    """Return the columns of `state_rows`."""
    value = state_value(source)
    return [*state_keys(source), *([] if value is None else [value])]


def state_keys(source: TableSource) -> list[str]:
    """Return those of the keys."""
    return [KEY.format(n) for n in range(len(source.keys))]


def state_value(source: TableSource) -> str | None:
    """Return that of the value; None if there is none."""
    return None if source.value is None else STATE


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


@cached_text
def insert_texts(name: Name, columns: int) -> str:
    """Return INSERT of one row of texts, which are parameters."""
    row = exp.Tuple(expressions=[exp.Placeholder() for _ in range(columns)])
    values = exp.Values(expressions=[row])
    return sql_text(exp.Insert(this=table(*name), expression=values))


@cached_text
def replace_text(name: Name, key: str, value: str, replaced: str) -> str:
    """Return UPDATE of a column, by a text that is a parameter, where another one has a text."""
    new = exp.EQ(this=column(replaced), expression=exp.Placeholder())
    same = exp.EQ(this=column(key), expression=text(value))
    where = exp.Where(this=same)
    return sql_text(exp.Update(this=table(*name), expressions=[new], where=where))


@cached_text
def delete_named(name: Name, key: str, value: str) -> str:
    """Return DELETE for the rows with a text in a column."""
    same = exp.EQ(this=column(key), expression=text(value))
    return sql_text(exp.Delete(this=table(*name), where=exp.Where(this=same)))


def failing_query(message: str) -> str:
    """Return a query that fails, which ends a transaction."""
    return sql_text(select(function("error", text(message))))


@dataclass(frozen=True)
class WarmStart:
    """How the start of a loop and its last result make the state from which it goes on."""

    lowers: bool | None
    """True for the smaller one of both, and False for the larger one; None for the result alone."""
    fresh: Name | None = None
    """A table of keys at which there was no entry before: there the start counts."""


@cached_rows
def warm_start(
    begun: Rows,
    source: TableSource,
    kept: Rows,
    keys: Sequence[str],
    fills: tuple[Scalar, Scalar],
    dtype: DType,
    start: WarmStart,
) -> exp.Select:
    """Return the state from which a loop goes on.

    Args:
        begun: the rows of its start, as `state_rows` has them.
        source: the start.
        kept: its last result, with a column ``val``.
        keys: the columns of the keys of that.
        fills: those of both.
        dtype: the type of the state.
        start: how they are put together.
    """
    own = [KEY.format(n) for n in range(len(keys))]
    first: exp.Expr = column(STATE, NOW)
    if source.value is None:
        absent = exp.Is(this=column(own[0], NOW), expression=exp.null())
        first = when(absent, number(fills[0], dtype), number(source.constant, dtype))
    first = function("coalesce", cast(first, dtype), number(fills[0], dtype))
    last: exp.Expr = function("coalesce", column(VALUE, BEFORE), number(fills[1], dtype))
    if start.lowers is not None:
        last = function("least" if start.lowers else "greatest", last, first.copy())
    if start.fresh is not None:
        same = [exp.EQ(this=column(x, "fresh"), expression=column(x, NOW)) for x in own]
        rows = select(integer(1)).from_(table(*start.fresh, alias="fresh")).where(*same)
        last = when(exp.Exists(this=rows), first.copy(), last)
    columns = [
        function("coalesce", column(x, NOW), column(y, BEFORE)).as_(identifier(x))
        for x, y in zip(own, keys, strict=True)
    ]
    same = [
        exp.EQ(this=column(x, NOW), expression=column(y, BEFORE))
        for x, y in zip(own, keys, strict=True)
    ]
    sides = [subquery_of(begun, NOW), subquery_of(kept, BEFORE)]
    joined = select(*columns, cast(last, dtype).as_(identifier(VALUE))).from_(sides[0])
    return joined.join(sides[1], on=exp.and_(*same, copy=False), join_type="full")
