"""Contents of wide tables: the entries of each column, and defects, without building arrays.

The columns are read one by one, in one scan. `ucle.stats.measure` combines the answers with those
of the keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ucle.errors import ValueTypeError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.foundation.exact_numbers import HOLDS
from ucle.operators.values import Real
from ucle.plan.sources import Nulls, TableSource
from ucle.sqlgen import wide_queries as sql
from ucle.sqlgen.input_queries import Distinct
from ucle.sqlgen.input_tables import is_null
from ucle.stats.arrays import Fetch, known_ends
from ucle.stats.row_hints import READ_AS_MISSING

MANY_COLUMNS = 100
"""The columns from which on kernels look at rows as arrays.

DuckDB plans thousands of aggregates in seconds: 2,000 columns of 750 rows take 2.8 s, their arrays
0.3 s. Of fewer columns, aggregates cost less than building arrays: 60 of 200,000 rows 0.26 s and
0.7 s.
"""


@dataclass(frozen=True)
class WideColumns:
    """Contents of a wide table."""

    rows: int
    keys: Sequence[Any]
    """For each key the number of its values, the smallest, the largest, and V."""
    entries: tuple[int, ...]
    """T of each column, in any order: its numbers that differ from the fill."""
    finite: bool
    ends: tuple[Real, Real] | None
    """The least and the largest number; None where they are unknown or NaN."""


def wide_columns(
    fetch: Fetch,
    tensor: str,
    source: TableSource,
    fill: Scalar,
    distinct: Distinct,
    prefix: str = "",
) -> WideColumns:
    """Examine all columns of a wide table in one scan; the fill has to be finite.

    Raises:
        ValueTypeError: a value is NULL, and missing values are not allowed.
    """
    (row,) = fetch(sql.entries_query(source, fill, distinct, prefix))
    keys, values = row[1 : 1 + 4 * len(source.keys)], row[1 + 4 * len(source.keys) :]
    width = len(source.wide)
    entries, *others = (values[n : n + width] for n in range(0, len(values), width))
    if source.nulls is Nulls.REFUSED and any(others.pop()):
        check_no_nulls(fetch, tensor, source, prefix)
    return _facts(source, row[0], keys, entries, others)


def _facts(
    source: TableSource,
    rows: Any,
    keys: Sequence[Any],
    entries: Sequence[Any],
    ends: Sequence[Sequence[Any]],
) -> WideColumns:
    """Combine what queries have found, for columns in any order.

    Args:
        source: the table.
        rows: the number of its rows.
        keys: as in `WideColumns`.
        entries: T of each column.
        ends: the least and the largest number of each column; empty for booleans.
    """
    known, finite = None, True
    if rows and ends and ends[0][0] is not None:
        lows, highs = ends
        # NaN is DuckDB's largest number, and the smallest only of columns that hold nothing else.
        low, high = min(lows), max(highs, key=lambda x: (math.isnan(x), x))
        finite = source.dtype.kind != "f" or all(map(math.isfinite, (*lows, *highs)))
        known = known_ends(low, high)
    counts = tuple(int(count or 0) for count in entries)  # NULL without rows
    return WideColumns(int(rows), keys, counts, finite, known)


def check_no_nulls(fetch: Fetch, tensor: str, source: TableSource, prefix: str = "") -> None:
    """Check that no value of a wide table is NULL, unless such values are missing.

    Raises:
        ValueTypeError: one is NULL.
    """
    if source.nulls is Nulls.REFUSED:
        (row,) = fetch(sql.nulls_query(source, prefix))
        _refuse_nulls(fetch, tensor, source, row, prefix)


def _refuse_nulls(
    fetch: Fetch, tensor: str, source: TableSource, nulls: Sequence[int], prefix: str
) -> None:
    if source.nulls is not Nulls.REFUSED or not any(nulls):
        return
    place = next(n for n, count in enumerate(nulls) if count)
    name = source.wide[place]
    others = sum(map(bool, nulls)) - 1
    (example,) = fetch(sql.row_query(source, name, is_null(name), prefix))
    raise ValueTypeError(
        "a value is NULL",
        where=f"input {tensor}, {source.origin}, column {name}",
        expected="a number in every row",
        found=f"{nulls[place]} NULLs, as in the row {tuple(example)}"
        + (f", and more in {others} other columns" if others else ""),
        hint=READ_AS_MISSING,
    )


def check_unfit(fetch: Fetch, tensor: str, source: TableSource, prefix: str = "") -> None:
    """Check that every number of a wide table is one of the element type.

    Raises:
        ValueTypeError: one is not, or would be rounded.
    """
    if not source.unfit:
        return
    source = source.without_features
    (found,) = fetch(sql.unfit_query(source, prefix))
    wrong = next((x for x, lost in zip(source.unfit, found, strict=True) if lost), None)
    if wrong is None:
        return
    name, type_, exact = wrong
    (example,) = fetch(sql.row_query(source, name, sql.is_lost(source, *wrong), prefix))
    raise ValueTypeError(
        f"a number is none of {source.dtype.value}",
        where=f"input {tensor}, {source.origin}, column {name} {type_}",
        expected="numbers that the floats of other columns can hold"
        if exact
        else HOLDS[source.dtype.kind],
        found=f"the row {tuple(example)}",
        hint="ucle.table(..., dtype=float) reads such numbers",
    )
