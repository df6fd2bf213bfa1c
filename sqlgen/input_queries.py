"""The SQL of GetStats and of the checks on input tables.

One query per table counts T, V and the largest coordinates, and at the same time every possible
defect of a row; others look for duplicate coordinates. `ucle.stats.measure` interprets the answers.
Tables whose rows hold tiles of a tensor have queries of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

from sqlglot import exp, select

from ucle.foundation.dtypes import DType, Scalar
from ucle.plan.sources import Dictionary, TableSource
from ucle.sqlgen.cached_texts import cached_rows, cached_text
from ucle.sqlgen.entry_rows import ENTRY, entry_rows, key_name, places
from ucle.sqlgen.feature_rows import feature_names
from ucle.sqlgen.input_conditions import is_incomplete, list_parts, wrong_shape
from ucle.sqlgen.input_tables import (
    dictionary_values,
    list_value,
    scalar_value,
    source_table,
    stored_table,
    whole_table,
)
from ucle.sqlgen.pairs_of_times import count_windows
from ucle.sqlgen.run_rows import (
    degrees_of_runs,
    overlapping_run,
    run_length,
    totals_of_runs,
    wrong_end,
)
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import (
    add_alias,
    ascending,
    cast,
    column,
    combined_digest,
    function,
    integer,
    integers,
    is_finite,
    number,
    scale_key,
    select_from,
    strides,
    subquery,
    text,
    total,
)
from ucle.udf_kernels.element_types import typed_name


@cached_text(varying=["prefix"])
def describe_query(source: TableSource, prefix: str = "") -> str:
    """Names and types of the columns of a source's relation."""
    rows = source.times is None and source.features is None and not source.ragged
    rows = rows and source.ends is None
    relation = whole_table if rows else source_table
    query = select(exp.Star()).from_(relation(source, prefix))
    return sql_text(exp.Describe(this=query))


def first_value_query(source: TableSource, prefix: str = "") -> str:
    """One value of the source's value column."""
    assert source.value is not None
    return sql_text(select(column(source.value)).from_(source_table(source, prefix)).limit(1))


class Distinct(Enum):
    """Methods for counting the values of a column."""

    EXACT = "count"
    APPROXIMATE = "approx_count_distinct"
    NOT = "not"


def rows_query(source: TableSource, prefix: str = "") -> str:
    """The number of rows of a source."""
    if source.times is not None and source.times.kind == "window":
        counted = count_windows(source.times, stored_table(source.keys_alone, prefix))
        return sql_text(select(counted.expressions[1].copy()).from_(counted.args["from_"].this))
    if source.ends is not None:
        total = exp.func("coalesce", exp.Sum(this=run_length(source)), integer(0))
        return sql_text(select(total).from_(whole_table(source, prefix)))
    return sql_text(
        select(exp.Count(this=exp.Star())).from_(source_table(source.keys_alone, prefix))
    )


@cached_rows
def stored_columns(source: TableSource) -> exp.Select:
    """The columns of a source's relation that it reads, as they are there."""
    made = source.features is not None or source.times is not None or source.ragged
    every = made or bool(source.wide)
    columns = [exp.Star()] if every else map(column, source.columns)
    return select(*columns).from_(whole_table(source))


def windows_query(source: TableSource, prefix: str = "") -> str:
    """The number of times of windows, of their pairs, and the most pairs of a time on each side."""
    assert source.times is not None
    return sql_text(count_windows(source.times, stored_table(source.keys_alone, prefix)))


@cached_text
def statistics_query(
    source: TableSource,
    fill: Scalar,
    prefix: str = "",
    distinct: Distinct = Distinct.EXACT,
    *,
    summed: bool = True,
) -> str:
    """Count T, V, extreme coordinates and NULLs in one pass.

    The result has one row: rows, values that are not NULL, entries (T), a flag that all entries are
    finite, the smallest and the largest of them, then for each axis: keys that are not NULL,
    smallest, largest, V. Where rows that share coordinates are not `summed` first, T is the number
    of their positions.
    """
    entries = entry_rows(source if summed else replace(source, sum_duplicates=False), prefix)
    stored = exp.NEQ(this=column(ENTRY), expression=number(fill, source.dtype))
    count: exp.Expr = exp.Count(this=exp.Star())
    if source.sum_duplicates and not summed:
        axes = range(len(source.keys) + len(source.dense))
        keys: list[exp.Expr] = [column(key_name(axis)) for axis in axes]
        keys = keys or [integer(0)]  # a scalar has one position
        count = _count_distinct(function("hash", *keys), Distinct.APPROXIMATE)
    columns: list[exp.Expr] = [
        add_alias(exp.Count(this=exp.Star()), "rows"),
        add_alias(_count_present(source.dtype), "values"),
        add_alias(_filter(count, stored), "entries"),
        add_alias(_all_finite(source.dtype, stored), "finite"),
        *_extreme_values(source, stored, known=summed or not source.sum_duplicates),
    ]
    for axis in range(len(source.keys) + len(source.dense)):
        key = column(key_name(axis))
        columns += _extremes(key, axis, source)
        different = _filter(_count_distinct(key.copy(), distinct), stored)
        columns.append(
            add_alias(exp.null() if distinct is Distinct.NOT else different, f"v_{axis}")
        )
    return sql_text(select(*columns).from_(entries.subquery("entries")))


def values_query(source: TableSource, fill: Scalar, prefix: str = "") -> str:
    """One row: all rows, entries (T), the least and the largest value.

    For numbers with an order, which are not in arrays. NaN counts as the largest of all, and NULL
    as no entry. That takes half the time of looking at each value by itself.
    """
    stored = exp.NEQ(this=column(ENTRY), expression=number(fill, source.dtype))
    columns: list[exp.Expr] = [
        exp.Count(this=exp.Star()),
        _filter(exp.Count(this=exp.Star()), stored),
        exp.Min(this=column(ENTRY)),
        exp.Max(this=column(ENTRY)),
    ]
    return sql_text(select(*columns).from_(entry_rows(source, prefix).subquery("entries")))


def extents_query(source: TableSource, prefix: str = "") -> str:
    """One row: for each key its values that are not NULL, the smallest and the largest.

    DuckDB answers it from the statistics of a file, if the file has them.
    """
    columns: list[exp.Expr] = []
    for axis in range(len(source.keys)):
        columns += _extremes(column(key_name(axis)), axis, source)
    return sql_text(select(*columns).from_(entry_rows(source, prefix).subquery("entries")))


def arrays_query(source: TableSource, distinct: Distinct, prefix: str = "") -> str:
    """Count the rows of a table of arrays, those with another shape, and its keys as above.

    NULLs among the elements are left to `elements_query` or to NumPy.
    """
    wrong = wrong_shape(source)
    columns: list[exp.Expr] = [
        add_alias(exp.Count(this=exp.Star()), "rows"),
        add_alias(_filter(exp.Count(this=exp.Star()), wrong), "wrong"),
    ]
    columns += key_facts(source, distinct)
    return sql_text(select(*columns).from_(source_table(source, prefix)))


def key_facts(source: TableSource, distinct: Distinct) -> list[exp.Expr]:
    """For each key column: its values that are not NULL, the smallest, the largest, and V."""
    columns: list[exp.Expr] = []
    for axis, name in enumerate(source.keys):
        columns += _extremes(column(name), axis, source)
        different = _count_distinct(column(name), distinct)
        columns.append(
            add_alias(exp.null() if distinct is Distinct.NOT else different, f"v_{axis}")
        )
    return columns


def degrees_query(
    source: TableSource,
    fill: Scalar,
    axes: Sequence[int],
    buckets: int | None = None,
    prefix: str = "",
) -> str:
    """For each of some axes: its number, its coordinates with an entry, and the largest degree.

    For a table of arrays, rows are counted and not entries, if no axis lies in the arrays. With
    `buckets`, coordinates that are equal modulo their number (a power of 2) count as one: both
    answers are then bounds, the first from below, and take a fraction of the time.
    """
    if all(axis < len(source.keys) for axis in axes) and source.dense:
        names = [source.keys[axis] for axis in axes]
        rows = select(
            *(add_alias(column(n), key_name(a)) for n, a in zip(names, axes, strict=True))
        )
        entries, stored = rows.from_(source_table(source, prefix)), None
    else:
        entries = entry_rows(replace(source, sum_duplicates=False), prefix)
        stored = exp.NEQ(this=column(ENTRY), expression=number(fill, source.dtype))
    coordinates = [add_alias(_in_buckets(source, axis, buckets), key_name(axis)) for axis in axes]
    places = select(*coordinates).from_(entries.subquery("entries"))
    if stored is not None:
        places = places.where(stored)
    keys = [column(key_name(axis)) for axis in axes]
    count = add_alias(exp.Count(this=exp.Star()), "times")
    grouping = add_alias(function("grouping", *keys), "which")
    grouped = select(grouping, count).from_(places.subquery("places"))
    sets = exp.GroupingSets(expressions=[exp.Tuple(expressions=[key.copy()]) for key in keys])
    grouped.set("group", exp.Group(grouping_sets=[sets]))
    counts = [exp.Count(this=exp.Star()), exp.Max(this=column("times"))]
    query = select(column("which"), *counts).from_(grouped.subquery("grouped"))
    return sql_text(query.group_by(column("which")))


def coverage_query(
    source: TableSource, fill: Scalar, sizes: Mapping[int, int], prefix: str = ""
) -> str:
    """V of some axes, in one row, counted with one bit for each of so many coordinates.

    That takes half the time of counting distinct values.
    """
    stored = exp.NEQ(this=column(ENTRY), expression=number(fill, source.dtype))
    columns = []
    for axis, size in sizes.items():
        key: exp.Expr = column(key_name(axis))
        if source.is_encoded(axis):
            different = _filter(_count_distinct(key, Distinct.EXACT), stored)
        else:
            ends = integer(0), integer(size - 1)
            bits = function("bitstring_agg", cast(key, "BIGINT"), *ends)
            # A table that has grown in the meantime may have coordinates beyond the size.
            inside = exp.and_(stored.copy(), exp.LT(this=key.copy(), expression=integer(size)))
            different = function("bit_count", _filter(bits, inside))
        columns.append(add_alias(exp.func("coalesce", different, integer(0)), f"v_{axis}"))
    return sql_text(select(*columns).from_(entry_rows(source, prefix).subquery("entries")))


def _in_buckets(source: TableSource, axis: int, buckets: int | None) -> exp.Expr:
    key: exp.Expr = column(key_name(axis))
    if buckets is None:
        return key
    if source.is_encoded(axis):
        key = function("hash", key)
    return exp.BitwiseAnd(this=key, expression=integer(buckets - 1))


def elements_query(
    source: TableSource, fill: Scalar, extremes: Sequence[Scalar], prefix: str = ""
) -> str:
    """Count by kernels: arrays with a NULL, entries (T), all finite, rows with an entry, and ends.

    The ends are the least and the largest number in the arrays, NULL for complex numbers and
    booleans. `extremes` are the numbers that make a tensor not finite, where the fill is one of
    them.
    """
    dtype = source.dtype
    values = list_value(column(source.value or ""), source)
    whole = exp.EQ(this=_kernel("count_null", dtype, values), expression=integer(0))
    packed = exp.Case(ifs=[exp.If(this=whole, true=_kernel("pack", dtype, values.copy()))])
    arrays = select_from(source_table(source, prefix), add_alias(packed, ENTRY))
    array = column(ENTRY)
    if dtype.kind in "bi":
        finite: exp.Expr = exp.true()
    elif extremes:
        size = integer(math.prod(source.dense))
        counts = (_kernel("count_not", dtype, array, number(x, dtype)) for x in extremes)
        finite = exp.and_(*(exp.EQ(this=count, expression=size.copy()) for count in counts))
    else:
        finite = _kernel("all_finite", dtype, array)
    entries = _kernel("count_not", dtype, array, number(fill, dtype))
    ends = [add_alias(end, name) for name, end in _array_ends(source, array).items()]
    found = (add_alias(entries, "entries"), add_alias(finite, "finite"), *ends)
    looked = select_from(subquery(arrays, "arrays"), *found)
    count, some = column("entries"), exp.GT(this=column("entries"), expression=integer(0))
    columns = [
        _filter(exp.Count(this=exp.Star()), exp.Is(this=count, expression=exp.Null())),
        exp.func("coalesce", exp.Sum(this=count.copy()), integer(0)),
        exp.func("coalesce", function("bool_and", column("finite")), exp.true()),
        _filter(exp.Count(this=exp.Star()), some),
        exp.Min(this=column("low")),
        exp.Max(this=column("high")),
    ]
    return sql_text(select_from(subquery(looked, "looked"), *columns))


def _array_ends(source: TableSource, array: exp.Expr) -> dict[str, exp.Expr]:
    """The least and the largest number of an array; NULL where they are not needed."""
    size = math.prod(source.dense)
    if source.dtype.kind not in "fi" or not size:
        return {"low": exp.null(), "high": exp.null()}
    return {
        name: _kernel("ein1_sca", source.dtype, text(f"{end} a->"), integers([size]), array)
        for name, end in (("low", "min"), ("high", "max"))
    }


def _kernel(name: str, dtype: DType, *arguments: exp.Expr) -> exp.Expr:
    return function(typed_name(name, dtype.tag), *(x.copy() for x in arguments))


def lists_query(source: TableSource, prefix: str = "") -> str:
    """The arrays of a source as flat lists."""
    values = list_value(column(source.value or ""), source)
    return sql_text(select(add_alias(values, ENTRY)).from_(source_table(source, prefix)))


def places_query(source: TableSource, fill: Scalar, axis: int, every: int, prefix: str = "") -> str:
    """Count the positions of an axis that have an entry, and those that have exactly one.

    About one of `every` rows is examined: always the same ones, independent of the order of
    reading.
    """
    entries = entry_rows(replace(source, sum_duplicates=False), prefix, every)
    stored = exp.NEQ(this=column(ENTRY), expression=number(fill, source.dtype))
    places = select(add_alias(exp.Count(this=exp.Star()), "times")).from_(
        entries.subquery("entries")
    )
    places = places.where(stored).group_by(column(key_name(axis)))
    once = exp.EQ(this=column("times"), expression=integer(1))
    count = exp.Count(this=exp.Star())
    return sql_text(select(count, _filter(count.copy(), once)).from_(places.subquery("places")))


def runs_query(source: TableSource, fill: Scalar, prefix: str = "") -> str:
    """Count runs with a wrong end, all positions and those that are stored; find the last end."""
    return sql_text(totals_of_runs(source, whole_table(source, prefix), _stored_run(source, fill)))


def overlapping_run_query(source: TableSource, prefix: str = "") -> str:
    """Find a run that overlaps the one before it."""
    return sql_text(overlapping_run(source, whole_table(source, prefix)))


def wrong_run_query(source: TableSource, prefix: str = "") -> str:
    """Find a run that has no end, or ends before it begins."""
    query = select(*map(column, source.columns)).from_(whole_table(source, prefix))
    return sql_text(query.where(wrong_end(source)).limit(1))


def degrees_of_runs_query(source: TableSource, fill: Scalar, prefix: str = "") -> str:
    """Find the most positions that share a coordinate, for each key but the last."""
    relation, stored = whole_table(source, prefix), _stored_run(source, fill)
    return sql_text(degrees_of_runs(source, relation, stored, source.keys[:-1]))


def _stored_run(source: TableSource, fill: Scalar) -> exp.Expr:
    return exp.NEQ(this=scalar_value(source), expression=number(fill, source.dtype))


def digest_query(source: TableSource, prefix: str = "") -> str:
    """A digest of the columns that a source reads, independent of the order of the rows."""
    if source.ends is not None:
        relation = whole_table(source, prefix)
        return sql_text(digest_of(relation, source.columns, function("version")))
    names = [*source.keys, *([] if source.value is None else [source.value])]
    return sql_text(digest_of(source_table(source, prefix), names, function("version")))


def digest_of(rows: exp.Expr, names: Sequence[str], *before: exp.Expr) -> exp.Select:
    """The number of rows and a digest of some columns, independent of the order of the rows.

    They stand behind the columns `before`.
    """
    digest = function("hash", *(column(name) for name in names))
    digests = select(add_alias(digest, "digest")).from_(rows)
    columns: list[exp.Expr] = [*before, exp.Count(this=exp.Star()), *put_together("digest")]
    return select(*columns).from_(digests.subquery("digests"))


def put_together(name: str) -> list[exp.Expr]:
    """The aggregates that make a digest of those in a column, whatever their order."""
    upper = exp.BitwiseRightShift(this=column(name), expression=integer(24))
    return [
        combined_digest(column(name)),
        exp.Sum(this=cast(exp.paren(upper), "BIGINT")),
    ]


def duplicates_query(source: TableSource, prefix: str = "") -> str:
    """Coordinates that more than one row has, with the number of rows; at most one row."""
    keys = [column(key) for key in source.keys]
    count = exp.Count(this=exp.Star())
    shown = [
        cast(key.copy(), "VARCHAR") if encoded else key  # Python may not have the type
        for key, encoded in zip(keys, source.encoded, strict=True)
    ]
    query = select(*shown, count).from_(source_table(source.keys_alone, prefix))
    if keys:
        query = query.group_by(*(key.copy() for key in keys))
    more = exp.GT(this=count.copy(), expression=integer(1))
    return sql_text(query.having(more).limit(1))


def repeated_feature_query(source: TableSource, prefix: str = "") -> str:
    """The name of a feature that two columns of a source with features have; at most one row."""
    name = source.keys[-1]
    names = subquery(feature_names(source, whole_table(source, prefix)), "features")
    more = exp.GT(this=exp.Count(this=exp.Star()), expression=integer(1))
    return sql_text(select_from(names, column(name)).group_by(column(name)).having(more).limit(1))


def not_increasing_query(source: TableSource, sizes: Sequence[int], prefix: str = "") -> str:
    """Return one row if some row does not come after the row that is read before it.

    Where there is none, no two rows share coordinates. The scan ends with the first such row.
    """
    query = _with_last(source, sizes, prefix, exp.Window(this=_last()))
    wrong = exp.LTE(this=column("position"), expression=column("last"))
    return sql_text(query.where(wrong).limit(1))


def equal_neighbours_query(source: TableSource, sizes: Sequence[int], prefix: str = "") -> str:
    """Return one row if two neighbours in sorted order have the same position (or hash).

    Where there is none, no two rows share coordinates. Sorting single numbers takes a fraction of
    the time of grouping rows; rows that are already in order are sorted in no time.
    """
    window = exp.Window(this=_last(), order=ascending(column("position")))
    query = _with_last(source, sizes, prefix, window)
    same = exp.EQ(this=column("position"), expression=column("last"))
    return sql_text(query.where(same).limit(1))


def positions_query(source: TableSource, sizes: Sequence[int], prefix: str = "") -> str:
    """The position of each row."""
    return sql_text(_positions(source, sizes, prefix))


def _positions(source: TableSource, sizes: Sequence[int], prefix: str) -> exp.Select:
    """Positions of rows: offsets, or hashes where offsets would be too large."""
    keys = [column(name) for name in source.keys]
    position: exp.Expr = function("hash", *keys)
    if not any(source.encoded) and math.prod(sizes[: len(keys)]) < 2**62:
        wide = [cast(key, "BIGINT") for key in keys]
        position = total(
            [scale_key(k, n) for k, n in zip(wide, strides(sizes[: len(keys)]), strict=True)]
        )
    return select(add_alias(position, "position")).from_(source_table(source.keys_alone, prefix))


def _with_last(
    source: TableSource, sizes: Sequence[int], prefix: str, window: exp.Expr
) -> exp.Select:
    """Positions with those before them."""
    positions = _positions(source, sizes, prefix)
    pairs = select(column("position"), add_alias(window, "last")).from_(
        positions.subquery("positions")
    )
    return select(integer(1)).from_(pairs.subquery("pairs"))


def _last() -> exp.Expr:
    return function("lag", column("position"))


def _extreme_values(source: TableSource, stored: exp.Expr, known: bool = True) -> list[exp.Expr]:
    """The smallest and the largest entry; NULL where rows are still to be added up."""
    if not known or source.dtype.kind == "c":
        return [add_alias(exp.null(), "low"), add_alias(exp.null(), "high")]
    return [
        add_alias(_filter(exp.Min(this=column(ENTRY)), stored), "low"),
        add_alias(_filter(exp.Max(this=column(ENTRY)), stored), "high"),
    ]


def _all_finite(dtype: DType, stored: exp.Expr) -> exp.Expr:
    finite = function("bool_and", _is_finite(column(ENTRY), dtype))
    return exp.func("coalesce", _filter(finite, stored), exp.true())


def _extremes(key: exp.Expr, axis: int, source: TableSource) -> list[exp.Expr]:
    """Number of keys, the smallest and the largest; keys of a dictionary have no size."""
    encoded = source.is_encoded(axis)
    return [
        add_alias(exp.Count(this=key.copy()), f"keys_{axis}"),
        add_alias(exp.null() if encoded else exp.Min(this=key.copy()), f"min_{axis}"),
        add_alias(exp.null() if encoded else exp.Max(this=key.copy()), f"max_{axis}"),
    ]


def _count_present(dtype: DType) -> exp.Expr:
    """The number of entries that are not NULL; a complex number with a NULL part does not count."""
    if dtype.kind != "c":
        return exp.Count(this=column(ENTRY))
    return _filter(exp.Count(this=exp.Star()), exp.not_(is_incomplete(column(ENTRY))))


def _count_distinct(key: exp.Expr, distinct: Distinct) -> exp.Expr:
    if distinct is Distinct.EXACT:
        return exp.Count(this=exp.Distinct(expressions=[key]))
    return function("approx_count_distinct", key)


@cached_text(varying=["prefix"])
def dictionary_size_query(dictionary: Dictionary, prefix: str = "") -> str:
    """The number of distinct values in the columns of a dictionary."""
    values = dictionary_values(dictionary, prefix).subquery("values")
    return sql_text(select(exp.Count(this=exp.Star())).from_(values))


def absent_query(one: Dictionary, other: Dictionary, prefix: str = "") -> str:
    """A value of one dictionary that another one lacks, if there is any."""
    # A union of tables needs brackets: EXCEPT and UNION bind alike, from the left.
    others = select(column("value")).from_(dictionary_values(other, prefix).subquery("others"))
    missing = exp.except_(dictionary_values(one, prefix), others, distinct=True)
    rows = select(exp.Star()).from_(missing.subquery("missing"))
    return sql_text(rows.order_by(column("value")).limit(1))


def example_query(
    source: TableSource, condition: exp.Expr, columns: Sequence[tuple[str, str]], prefix: str = ""
) -> str:
    """One row that meets a condition, with columns of these names and types.

    Times with a zone are returned as text: Python may lack the package that represents them.
    """
    shown = [
        cast(column(name), "VARCHAR") if "TIME ZONE" in type_ else column(name)
        for name, type_ in columns
    ]
    rows = select(*shown).from_(source_table(source, prefix))
    return sql_text(rows.where(condition).limit(1))


def _is_finite(entry: exp.Expr, dtype: DType) -> exp.Expr:
    match dtype.kind:
        case "f":
            return is_finite(entry)
        case "c":
            return exp.and_(*(is_finite(part) for part in list_parts(entry)))
    return exp.true()


def _filter(aggregate: exp.Expr, condition: exp.Expr) -> exp.Expr:
    return exp.Filter(this=aggregate, expression=exp.Where(this=condition.copy()))


def counts_query(source: TableSource, fill: Scalar, prefix: str = "") -> str:
    """V and the largest degree of each axis in turn, in one row."""
    stored = exp.NEQ(this=column(ENTRY), expression=number(fill, source.dtype))
    positions = places(source)
    keyed = [add_alias(position, f"p{axis}") for axis, position in enumerate(positions)]
    rows = select(*keyed).from_(entry_rows(source.apart, prefix).subquery("entries")).where(stored)
    columns: list[exp.Expr] = []
    for axis in range(len(positions)):
        times = add_alias(exp.Count(this=exp.Star()), "times")
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
