"""GetStats on inputs: T, V, degrees, bounds, extremes and finiteness, with all checks.

For small inputs everything is counted (sparse_einsum.txt, Algorithm 2). For large ones V is an
estimate: of key columns by DuckDB's HyperLogLog, whose error is some 4% (DuckDB 1.4: 13%), inside
arrays from a sample of the rows. Degrees are counted, or bounded from above. T, coordinates,
finiteness and all checks cover every row, as computations rely on them. A large table of numbers is
read column by column: its values, its extents, which a file may state, and the positions of its
rows (`ucle.stats.positions`). Defects of a table are reported with table, column and an example
row, before anything is computed. Nothing is written to the database.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ucle.errors import CoordinateError, DuplicateCoordinatesError, ValueTypeError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.exact_numbers import HOLDS
from ucle.ir.ranges import stored_values
from ucle.operators.values import Real, Values
from ucle.plan.sources import Features, Nulls, TableSource
from ucle.sqlgen import input_conditions as conditions
from ucle.sqlgen import input_queries as sql
from ucle.sqlgen.input_queries import Distinct
from ucle.sqlgen.input_tables import is_null
from ucle.sqlgen.run_rows import without_ends
from ucle.sqlgen.wide_queries import keys_query
from ucle.stats.arrays import Elements, Fetch, Look, known_ends, spread
from ucle.stats.model import TensorStatistics
from ucle.stats.positions import Scan, Table
from ucle.stats.row_hints import READ_AS_MISSING, keep_one, leave_out
from ucle.stats.runs import check_ends, measure_runs
from ucle.stats.wide_tables import MANY_COLUMNS, check_no_nulls, check_unfit, wide_columns

EXACT_ENTRIES = 100_000
"""Elements up to which everything is counted, which takes hundredths of a second."""

MOST_GROUPED = 60
"""The most axes for which one query counts groups: DuckDB identifies them by bits of an integer."""

EXACT_DEGREES = 300_000
"""Entries up to which degrees are counted for each coordinate: hundredths of a second."""

BUCKETS = 1 << 14
"""Groups of coordinates for counting degrees of more entries, in a fraction of the time."""

MOST_BITS = 1 << 28
"""Coordinates of one axis that are counted with one bit each, which takes 32 MB in each thread."""

MAY_COVER = 0.8
"""Share of an axis' coordinates from which on an estimated V may mean all of them."""

NEARLY_DENSE = 0.9
"""Share of entries in arrays from which on V is taken to be its bound.

V is no further below its bound than T is below the number of elements.
"""


@dataclass(frozen=True)
class Checked:
    """Properties of one input's data that a program relies on."""

    sizes: tuple[int, ...]
    """For each axis the largest coordinate plus one; the exact size of a dense axis."""
    finite: bool
    entries: float
    """T: the entries that differ from the fill. Rows to be added up count as one position."""
    extremes: tuple[Real, Real] | None
    """The smallest and the largest entry; None where there is none, or no order."""

    def values(self, dtype: DType, fill: Scalar) -> Values:
        """The range of values of the entries."""
        return stored_values(self.entries, self.extremes, fill, dtype, finite=self.finite)


@dataclass(frozen=True)
class MeasuredInput(Checked):
    """Statistics measured of one input's data."""

    distinct: tuple[float, ...]
    exact: bool
    largest: tuple[float, ...] = ()
    """Degrees; empty where they are unknown."""
    counted: frozenset[int] = frozenset()
    """Axes whose V is counted, where it is not `exact`."""
    runs: float = 0.0
    """The rows of a large table of runs, each of which stands for many entries; else 0."""
    absent: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """For some axes whose V is counted, the coordinates without an entry: where these are few, new
    rows tell V."""

    @property
    def statistics(self) -> TensorStatistics:
        """T, V and degrees."""
        known = self.entries, self.distinct, self.exact, self.largest, self.counted
        return TensorStatistics(*known, runs=self.runs, close=not self.exact)

    @property
    def counts(self) -> dict[int, float]:
        """V of the axes for which it is counted."""
        axes = range(len(self.distinct)) if self.exact else sorted(self.counted)
        return {axis: self.distinct[axis] for axis in axes}


def combine(
    parts: Sequence[MeasuredInput], distinct: Sequence[float], *, exact: bool = False
) -> MeasuredInput:
    """Return the statistics of a table from those of its parts, of which there is at least one.

    Args:
        parts: statistics of sets of rows; no position is in two of them.
        distinct: V of the table, at least as an estimate; T and the sizes limit it.
        exact: True if V is counted.
    """
    entries = float(sum(each.entries for each in parts))
    sizes = tuple(max(axis) for axis in zip(*(each.sizes for each in parts), strict=True))
    largest: tuple[float, ...] = ()
    if all(each.largest for each in parts):
        sums = (sum(axis) for axis in zip(*(each.largest for each in parts), strict=True))
        largest = tuple(min(float(x), entries) for x in sums)
    # The size of an axis with a dictionary is not known.
    limited = (min(v, entries, float(n or entries)) for v, n in zip(distinct, sizes, strict=True))
    ends = [each.extremes for each in parts if each.entries]
    known = [pair for pair in ends if pair is not None]
    extremes = None
    if known and len(known) == len(ends):
        extremes = min(low for low, _ in known), max(high for _, high in known)
    return MeasuredInput(
        sizes,
        all(each.finite for each in parts),
        entries,
        extremes,
        tuple(limited),
        exact,
        largest,
    )


def elements(fetch: Fetch, source: TableSource, prefix: str = "") -> int:
    """The number of elements in the rows of a source; of rows of features, the most."""
    if source.features is not None and not source.dense:
        return math.prod(_feature_degrees(fetch, source, source.features, prefix))
    ((rows,),) = fetch(sql.rows_query(source, prefix))
    return int(rows) * math.prod(source.dense)


def _feature_degrees(
    fetch: Fetch, source: TableSource, features: Features, prefix: str
) -> tuple[int, int]:
    """The most features of a row and the most rows of a feature, which takes no look at values."""
    ((rows,),) = fetch(sql.rows_query(replace(source.without_features, value=None), prefix))
    return len(features.numbers) + len(features.categories), int(rows)


def measure(
    fetch: Fetch,
    look: Look,
    tensor: str,
    source: TableSource,
    fill: Scalar,
    prefix: str = "",
    *,
    exact: bool = True,
    unique: bool = False,
    scan: Scan | None = None,
) -> MeasuredInput:
    """Measure and check one input table.

    Args:
        fetch: runs a query on the connection that sees the table.
        look: looks at the elements of arrays there.
        tensor: name of the tensor, for messages.
        source: the columns to read.
        fill: entries equal to it count as not stored.
        prefix: prepended to the names of tables that were registered from memory.
        exact: whether V is counted, and not estimated.
        unique: whether it is known that no two rows claim the same coordinates.
        scan: reads the positions of a large table; None if queries have to do without.

    Raises:
        CoordinateError: a coordinate is NULL or negative.
        ValueTypeError: a value is NULL, or an array has a wrong length or a NULL in it.
        DuplicateCoordinatesError: two rows claim the same coordinates.
    """
    checks = _Checks(fetch, tensor, source, prefix)
    checks.check_narrowing()
    check_ends(fetch, tensor, source, fill, prefix)
    distinct = Distinct.EXACT if exact else Distinct.APPROXIMATE
    survey = None
    if scan is not None and not exact:
        survey = _survey_columns(checks, fill, scan, counts=True)
    if survey is None:
        survey = _survey(checks, look, fill, distinct, summed=exact)
    if not unique and survey.may_repeat:
        checks.duplicates(survey.sizes, large=not exact)
    assert survey.distinct is not None
    return MeasuredInput(
        survey.sizes,
        survey.finite,
        survey.entries,
        survey.extremes,
        survey.distinct,
        survey.exact,
        survey.largest,
        survey.counted,
        survey.runs,
    )


def with_coverage(
    fetch: Fetch, source: TableSource, fill: Scalar, measured: MeasuredInput, prefix: str = ""
) -> MeasuredInput:
    """Return the statistics with V counted, not estimated, where all coordinates may have an entry.

    Where a table has a row for each node, sums over the nodes' edges are never empty, so that it
    matters to quotients whether V is exactly the size of an axis or only close to it.
    """
    if measured.exact:
        return measured
    likely = [
        axis
        for axis in countable_axes(fetch, source, measured, prefix)
        if axis not in measured.counted
        and MAY_COVER * measured.sizes[axis] <= measured.distinct[axis]
    ]
    counts = coverage(fetch, source, fill, measured, likely, prefix)
    if not counts:
        return measured
    distinct = tuple(counts.get(axis, v) for axis, v in enumerate(measured.distinct))
    return replace(measured, distinct=distinct, counted=measured.counted.union(counts))


def countable_axes(
    fetch: Fetch, source: TableSource, checked: Checked, prefix: str = "", *, exact: bool = False
) -> Sequence[int]:
    """Return the axes whose coordinates can be counted in little time, or all if `exact`.

    They depend on the data alone, because the rows stored of a result depend on them.
    """
    every = range(len(source.keys) + len(source.dense))
    if source.sum_duplicates or (source.ends is not None and checked.entries > EXACT_ENTRIES):
        return ()
    if exact or (not source.dense and checked.entries <= EXACT_DEGREES):
        return every
    # There are at least as many elements as entries.
    if checked.entries <= EXACT_ENTRIES and elements(fetch, source, prefix) <= EXACT_ENTRIES:
        return every
    positions = [axis for axis in range(len(source.keys)) if not source.is_encoded(axis)]
    return () if source.dense else positions


def coverage(
    fetch: Fetch,
    source: TableSource,
    fill: Scalar,
    checked: Checked,
    axes: Sequence[int],
    prefix: str = "",
) -> dict[int, float]:
    """Count V of those of some axes along which there may be an entry at every coordinate."""
    sizes = {
        axis: checked.sizes[axis]
        for axis in axes
        if source.is_encoded(axis) or 0 < checked.sizes[axis] <= min(checked.entries, MOST_BITS)
    }
    if not sizes:
        return {}
    (row,) = fetch(sql.coverage_query(source, fill, sizes, prefix))
    return dict(zip(sizes, map(float, row), strict=True))


def degree(fetch: Fetch, source: TableSource, fill: Scalar, axis: int) -> float:
    """Count the entries at the fullest coordinate of a key, one that is no axis of arrays."""
    found = fetch(sql.degrees_query(source, fill, (axis,)))
    return float(max((most for *_, most in found), default=0))


def check(
    fetch: Fetch,
    look: Look,
    tensor: str,
    source: TableSource,
    fill: Scalar,
    *,
    exact: bool = False,
    unique: bool = False,
    scan: Scan | None = None,
    rows: int | None = None,
) -> Checked:
    """Check one input table and do nothing more; arguments and errors are those of `measure`.

    `rows` is the number of its rows, where that is known. Other values are those that `measure`
    would find: entry by entry for small tables, and for all tables if `exact`.
    """
    checks = _Checks(fetch, tensor, source, "")
    checks.check_narrowing()
    check_ends(fetch, tensor, source, fill)
    size = elements(fetch, source) if rows is None else rows * math.prod(source.dense)
    large, survey = size > EXACT_ENTRIES, None
    if scan is not None and large and not exact and not unique:
        survey = _survey_columns(checks, fill, scan, counts=False)
    if survey is None:
        survey = _survey(checks, look, fill, Distinct.NOT, summed=exact or not large)
    if not unique and survey.may_repeat:
        checks.duplicates(survey.sizes, large=large)
    return Checked(survey.sizes, survey.finite, survey.entries, survey.extremes)


@dataclass(frozen=True)
class _Survey:
    """Results of the queries; V (`distinct`) is None where it was not wanted."""

    entries: float
    finite: bool
    extremes: tuple[Real, Real] | None
    sizes: tuple[int, ...]
    distinct: tuple[float, ...] | None
    exact: bool = False
    largest: tuple[float, ...] = ()
    counted: frozenset[int] = frozenset()
    may_repeat: bool = True
    """False if it was found that no two rows claim the same coordinates."""
    runs: float = 0.0


def _survey(
    checks: _Checks, look: Look, fill: Scalar, distinct: Distinct, *, summed: bool
) -> _Survey:
    """Examine the data by the method for its size, whether V is counted or not."""
    source = checks.source
    if source.times is not None and source.times.kind == "window":
        return _survey_windows(checks)
    if source.ends is not None and not summed:
        return _survey_runs(checks, look, fill, distinct)
    if source.dense and not source.sum_duplicates and not summed:
        if 0 < len(source.wide) < MANY_COLUMNS and cmath.isfinite(fill):
            return _survey_wide(checks, fill, distinct)
        return _survey_arrays(checks, look, fill, distinct)
    checks.arrays()
    found = _survey_entries(checks, fill, distinct, summed=summed)
    if not source.ragged:
        return found
    # Lists without items have positions, too.
    rows = _Checks(checks.fetch, checks.tensor, source.lists_alone, checks.prefix)
    (row,) = rows.fetch(sql.statistics_query(rows.source, False, rows.prefix, Distinct.NOT))
    own = rows.keys(row[0], row[6:])
    return replace(found, sizes=(*own, *found.sizes[len(own) :]))


def _survey_runs(checks: _Checks, look: Look, fill: Scalar, distinct: Distinct) -> _Survey:
    """Examine a large table of runs, whose rows stand for many entries, by its rows."""
    source, fetch, prefix = checks.source, checks.fetch, checks.prefix
    rows = _Checks(fetch, checks.tensor, without_ends(source), prefix)
    found = _survey(rows, look, fill, distinct, summed=False)
    runs = measure_runs(fetch, source, fill, found.entries, found.distinct, prefix)
    return replace(
        found,
        entries=runs.entries,
        sizes=(*found.sizes[:-1], max(runs.size, found.sizes[-1])),
        distinct=runs.distinct,
        exact=False,
        largest=runs.largest,
        counted=found.counted - {len(source.keys) - 1},
        may_repeat=False,
        runs=found.entries,
    )


def _survey_windows(checks: _Checks) -> _Survey:
    """Count the pairs of times in windows, which are distinct, without making them."""
    ((times, pairs, met, meeting),) = checks.fetch(sql.windows_query(checks.source, checks.prefix))
    ends = known_ends(True, True) if pairs else None
    return _Survey(
        float(pairs),
        True,
        ends,
        (0, 0),
        (float(times), float(times)),
        True,
        (float(met or 0), float(meeting or 0)),
        may_repeat=False,
    )


def _survey_entries(checks: _Checks, fill: Scalar, distinct: Distinct, *, summed: bool) -> _Survey:
    """Examine every entry with its coordinates; rows that share them may be `summed` first."""
    source = checks.source
    grouped = distinct is Distinct.EXACT and not source.sum_duplicates
    # The query for degrees counts V as well.
    asked = Distinct.NOT if grouped else distinct
    query = sql.statistics_query(source, fill, checks.prefix, asked, summed=summed)
    (row,) = checks.fetch(query)
    rows, values, entries, finite, low, high, *columns = row
    apart = source.sum_duplicates and not summed
    if apart and (values < rows or not cmath.isfinite(fill)):  # the sums may differ
        every = distinct if distinct is Distinct.NOT else Distinct.EXACT
        return _survey_entries(checks, fill, every, summed=True)
    sizes = checks.keys(rows, columns)
    if values < rows and not source.dense:
        checks.null_values(rows - values)
    exact = distinct is Distinct.EXACT
    distinct_counts: tuple[float, ...] | None = None
    largest: tuple[float, ...] = ()
    by_group = frozenset[int]()
    if distinct is not Distinct.NOT:
        counted: Sequence[float] = columns[3::4]
        if exact or not source.sum_duplicates:  # else the rows per entry are unknown
            axes = range(len(source.keys) + len(source.dense))
            whole = exact or entries <= EXACT_DEGREES
            group_counts, largest = _count_degrees(checks, fill, axes, whole=whole)
            if whole and not source.sum_duplicates:
                counted = group_counts
                by_group = frozenset() if exact else frozenset(axes)
        bounds = [entries] * len(source.keys) + [min(entries, n) for n in source.dense]
        distinct_counts = tuple(
            float(min(v, bound)) for v, bound in zip(counted, bounds, strict=True)
        )
    totals = float(entries), bool(finite), known_ends(low, high)
    return _Survey(*totals, sizes, distinct_counts, exact, largest, by_group)


def _survey_columns(checks: _Checks, fill: Scalar, scan: Scan, *, counts: bool) -> _Survey | None:
    """Examine a large table of numbers column by column; None for small and other tables."""
    source, prefix = checks.source, checks.prefix
    plain = source.keys and not source.dense and not source.sum_duplicates and not source.ends
    if not plain or any(source.encoded) or source.dtype.kind == "c" or not cmath.isfinite(fill):
        return None
    ((rows, entries, low, high),) = checks.fetch(sql.values_query(source, fill, prefix))
    if entries <= EXACT_DEGREES:
        return None
    ((*columns,),) = checks.fetch(sql.extents_query(source, prefix))
    described = [
        x for axis in range(len(source.keys)) for x in (*columns[3 * axis : 3 * axis + 3], 0)
    ]
    sizes = checks.keys(rows, described)
    positions = scan(Table(source, sizes, rows, prefix), counts and entries == rows)
    if positions is None:
        return None
    if entries < rows:  # V and ends are those of the other rows, unless there are NULLs
        distinct = Distinct.APPROXIMATE if counts else Distinct.NOT
        whole = _survey_entries(checks, fill, distinct, summed=False)
        return replace(whole, may_repeat=positions.may_repeat)
    # NaN is DuckDB's largest number, so that the ends tell whether all numbers are finite.
    finite = all(map(math.isfinite, (low, high)))
    totals = float(entries), finite, known_ends(low, high)
    v = positions.distinct if counts else None
    may_repeat = positions.may_repeat
    return _Survey(*totals, sizes, v, largest=positions.largest, may_repeat=may_repeat)


def _count_degrees(
    checks: _Checks, fill: Scalar, axes: Sequence[int], *, whole: bool
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """V and degrees of some axes; a lower and an upper bound where not `whole`."""
    source = checks.source
    if not axes:
        return (), ()
    if source.features is not None and not whole and len(axes) == len(source.keys) == 2:
        degrees = _feature_degrees(checks.fetch, source, source.features, checks.prefix)
        return (1.0, 1.0), tuple(map(float, degrees))
    if len(axes) > MOST_GROUPED:
        first, others = axes[:MOST_GROUPED], axes[MOST_GROUPED:]
        parts = [_count_degrees(checks, fill, some, whole=whole) for some in (first, others)]
        (one, largest_of_one), (other, largest_of_other) = parts
        return (*one, *other), (*largest_of_one, *largest_of_other)
    buckets = None if whole else BUCKETS
    query = sql.degrees_query(checks.source, fill, axes, buckets, checks.prefix)
    distinct_counts, largest = [0.0] * len(axes), [0.0] * len(axes)
    for ungrouped, coordinates, most in checks.fetch(query):
        # Each bit of `ungrouped` is an axis that was not grouped by, the first axis the highest.
        grouped = (1 << len(axes)) - 1 - ungrouped
        at = len(axes) - grouped.bit_length()
        distinct_counts[at], largest[at] = float(coordinates), float(most)
    return tuple(distinct_counts), tuple(largest)


def _survey_arrays(checks: _Checks, look: Look, fill: Scalar, distinct: Distinct) -> _Survey:
    """Examine the rows of a table of arrays, and their elements without their coordinates."""
    source = checks.source
    if source.wide:
        ((rows, *columns),) = checks.fetch(keys_query(source, distinct, checks.prefix))
    else:
        query = sql.arrays_query(source, distinct, checks.prefix)
        ((rows, wrong, *columns),) = checks.fetch(query)
        if wrong:
            checks.arrays()
    sizes = checks.keys(rows, columns)
    contents = look(source, fill, checks.prefix)
    if contents.incomplete:
        checks.arrays()
    totals = float(contents.entries), contents.finite, contents.ends
    if distinct is Distinct.NOT:
        return _Survey(*totals, sizes, None)
    single_key = len(source.keys) == 1
    outside = [contents.filled] if single_key else [min(v, contents.filled) for v in columns[3::4]]
    inside: Sequence[float] = source.dense
    if contents.entries < NEARLY_DENSE * rows * math.prod(source.dense):
        inside = spread(checks.fetch, source, contents, fill, checks.prefix, EXACT_ENTRIES)
    distinct_counts = tuple(float(min(v, contents.entries)) for v in (*outside, *inside))
    largest = _array_degrees(checks, fill, rows, contents)
    return _Survey(*totals, sizes, distinct_counts, largest=largest)


def _survey_wide(checks: _Checks, fill: Scalar, distinct: Distinct) -> _Survey:
    """Examine the columns of a wide table one by one."""
    source = checks.source
    found = wide_columns(checks.fetch, checks.tensor, source, fill, distinct, checks.prefix)
    sizes = checks.keys(found.rows, found.keys)
    entries = sum(found.entries)
    totals = float(entries), found.finite, found.ends
    if distinct is Distinct.NOT:
        return _Survey(*totals, sizes, None)
    # At most as many rows have an entry, and at least as many as in the fullest column.
    filled = min(found.rows, entries)
    outside = [filled] if len(source.keys) == 1 else [min(v, filled) for v in found.keys[3::4]]
    inside = sum(map(bool, found.entries))
    distinct_counts = tuple(map(float, (*outside, inside)))
    contents = Elements(0, entries, found.finite, filled)
    largest = _array_degrees(checks, fill, found.rows, contents)
    return _Survey(*totals, sizes, distinct_counts, largest=largest)


def _array_degrees(
    checks: _Checks, fill: Scalar, rows: int, contents: Elements
) -> tuple[float, ...]:
    """Degrees of the axes of a table of arrays, as if all elements of its rows were entries."""
    source = checks.source
    size = math.prod(source.dense)
    degrees: Sequence[float] = (1,)  # no two rows share all of their keys
    if len(source.keys) != 1:
        whole = rows <= EXACT_DEGREES
        _, degrees = _count_degrees(checks, fill, range(len(source.keys)), whole=whole)
    outside = [min(float(n * size), float(contents.entries)) for n in degrees]
    others = (contents.filled * size // max(n, 1) for n in source.dense)
    return (*outside, *(float(min(n, contents.entries)) for n in others))


class _Checks:
    """Turns defects that a query found into an error with an example row."""

    def __init__(self, fetch: Fetch, tensor: str, source: TableSource, prefix: str) -> None:
        self.fetch = fetch
        self.source = source
        self.prefix = prefix
        self.tensor = tensor
        self._where = f"input {tensor}, {source.origin}"

    def check_narrowing(self) -> None:
        """Check that every value is a number of the element type, if the column may have others."""
        source = self.source
        check_unfit(self.fetch, self.tensor, source, self.prefix)
        if source.narrowed is None:
            return
        wider = "complex" if source.dtype.kind == "c" else "float"
        if example := self._example(conditions.is_lost_by_narrowing(source)):
            raise ValueTypeError(
                f"a number is none of {source.dtype.value}",
                where=f"{self._where}, column {source.value}",
                expected=HOLDS[source.dtype.kind],
                found=f"the row {example}",
                hint=f"ucle.table(..., dtype={wider}) reads such numbers",
            )

    def arrays(self) -> None:
        """Check that every array exists, has the shape of the first, and holds no NULL."""
        if self.source.wide:
            check_no_nulls(self.fetch, self.tensor, self.source, self.prefix)
        if self.source.wide or not self.source.dense:
            return
        condition = conditions.wrong_length(self.source)
        if example := self._example(condition):
            shape = " x ".join(map(str, self.source.dense))
            missing = any(_has_null(value) for value in example)
            raise ValueTypeError(
                "a number in an array is NULL"
                if missing
                else "an array does not have the shape of the tensor",
                where=f"{self._where}, column {self.source.value}",
                expected=f"{shape} numbers in every row, none of them NULL",
                found=f"the row {example}",
                hint=f"a view with list_transform({self.source.value}, lambda x: coalesce(x, 0)) "
                "has a number there"
                if missing
                else "ucle.table(..., ragged='position') reads lists of different lengths",
            )

    def keys(self, rows: int, columns: Sequence[Any]) -> tuple[int, ...]:
        """Check that coordinates exist and are in range; return sizes of axes, 0 for dictionaries.

        `columns` has four values for each key: rows that have it, the smallest, the largest, V.
        """
        sizes = []
        for axis, name in enumerate(self.source.keys):
            present, smallest, largest = columns[4 * axis : 4 * axis + 3]
            self.nulls(name, rows - present)
            self.range(name, smallest, largest)
            sizes.append(0 if largest is None else int(largest) + 1)
        return (*sizes, *self.source.dense)

    def nulls(self, name: str, nulls: int) -> None:
        """Check that no coordinate is NULL."""
        if nulls:
            raise CoordinateError(
                "a coordinate is NULL",
                where=f"{self._where}, column {name}",
                expected="a coordinate in every row",
                found=f"{nulls} NULLs, as in the row {self._example(is_null(name))}",
                hint=leave_out(self.source.origin, name),
            )

    def range(self, name: str, smallest: int | None, largest: int | None) -> None:
        """Check that no coordinate is negative or beyond 64 bits."""
        where = f"{self._where}, column {name}"
        if smallest is not None and (smallest < 0 or (largest or 0) >= 2**63 - 1):
            example = self._example(conditions.outside(name, 0, 2**63 - 1))
            raise CoordinateError(
                "a coordinate is outside its bound",
                where=where,
                expected="integers from 0",
                found=f"{smallest if smallest < 0 else largest}, as in the row {example}",
                hint="ucle.table(..., coordinates='dictionary') takes ids that are not positions",
            )

    def null_values(self, nulls: int) -> None:
        """Raise the error that values are NULL, with an example row."""
        assert self.source.value is not None
        example = self._example(conditions.no_value(self.source))
        raise ValueTypeError(
            "a value is NULL",
            where=f"{self._where}, column {self.source.value}",
            expected="a number in every row",
            found=f"{nulls} NULLs, as in the row {example}",
            hint=READ_AS_MISSING
            if self.source.features is not None or self.source.ragged
            else f"{leave_out(self.source.origin, self.source.value)}, and {READ_AS_MISSING}",
        )

    def duplicates(self, sizes: Sequence[int], large: bool) -> None:
        """Check that no two rows have the same coordinates, unless they are to be added up.

        Grouping millions of rows takes longer than most programs. Where the rows are in order, one
        scan shows that no two are equal; else their positions are sorted. Only if some rows look
        equal are the rows grouped, which tells which ones they are.
        """
        if self.source.sum_duplicates:
            return
        if large and self.source.keys:
            for query in (sql.not_increasing_query, sql.equal_neighbours_query):
                if not self.fetch(query(self.source, sizes, self.prefix)):
                    return
        repeated = self.fetch(sql.duplicates_query(self.source, self.prefix))
        if repeated:
            *coordinates, count = repeated[0]
            position = ", ".join(
                f"{name} = {value}"
                for name, value in zip(self.source.keys, coordinates, strict=True)
            )
            raise DuplicateCoordinatesError(
                "several rows claim the same coordinates",
                where=self._where,
                expected="one row for each position",
                found=f"{count} rows at {position or 'the only position'}",
                hint=keep_one(self.source.origin, self.source.keys, self.source.value),
            )

    def _example(self, condition: Any) -> tuple[Any, ...] | None:
        source = self.source
        described = self.fetch(sql.describe_query(source, self.prefix))
        columns = [(str(row[0]), str(row[1])) for row in described]
        if source.wide or source.nulls is not Nulls.REFUSED:  # a subquery has no more columns
            read = source.keys if source.wide else source.columns
            columns = [each for each in columns if each[0] in read]
        query = sql.example_query(source.keys_alone, condition, columns, self.prefix)
        rows = self.fetch(query)
        return tuple(rows[0]) if rows else None


def _has_null(value: object) -> bool:
    """Return whether a list, or one inside it, has a NULL."""
    return isinstance(value, list | tuple) and any(x is None or _has_null(x) for x in value)
