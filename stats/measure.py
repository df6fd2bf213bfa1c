"""GetStats on inputs: T, V, bounds and finiteness from the data, with every check on the way.

Counts are exact and take one pass of SQL per table (sparse_einsum.txt, Algorithm 2). What is wrong
with a table is reported with table, column and an example row, before anything is computed. Nothing
is written to the database.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ucle.dtypes import Scalar
from ucle.errors import CoordinateError, DuplicateCoordinatesError, ValueTypeError
from ucle.sources import TableSource
from ucle.sqlgen import statistics as sql
from ucle.stats.model import TensorStatistics

Fetch = Callable[[str], Sequence[Sequence[Any]]]
"""Runs a query and returns its rows."""


@dataclass(frozen=True)
class Measured:
    """What the data of one input says."""

    statistics: TensorStatistics
    sizes: tuple[int, ...]
    """For each axis one more than the largest coordinate; the exact size of a dense axis."""
    finite: bool


def measure(
    fetch: Fetch, tensor: str, source: TableSource, fill: Scalar, prefix: str = ""
) -> Measured:
    """Measure and check one input table.

    Args:
        fetch: runs a query on the connection that sees the table.
        tensor: name of the tensor, for messages.
        source: the columns to read.
        fill: entries equal to it count as not stored.
        prefix: stands before the names of tables that were registered from memory.

    Raises:
        CoordinateError: a coordinate is NULL or negative.
        ValueTypeError: a value is NULL, or an array has a wrong length or a NULL in it.
        DuplicateCoordinatesError: two rows claim the same coordinates.
    """
    checks = _Checks(fetch, tensor, source, prefix)
    if source.dense:
        checks.arrays()
    (row,) = fetch(sql.statistics_query(source, fill, prefix))
    rows, values, entries, finite = row[:4]
    axes = [
        row[4 + 4 * axis : 8 + 4 * axis] for axis in range(len(source.keys) + len(source.dense))
    ]
    for axis, (present, smallest, largest, _) in enumerate(axes[: len(source.keys)]):
        checks.nulls(source.keys[axis], rows - present)
        if not source.encoded[axis]:
            checks.range(source.keys[axis], smallest, largest)
    if values < rows and not source.dense:
        checks.null_values(rows - values)
    if not source.sum_duplicates:
        checks.duplicates()
    sizes = [
        0 if largest is None or encoded else int(largest) + 1
        for (_, _, largest, _), encoded in zip(axes, source.encoded, strict=False)
    ]
    statistics = TensorStatistics(
        float(entries), tuple(float(axis[3]) for axis in axes), exact=True
    )
    return Measured(statistics, (*sizes, *source.dense), bool(finite))


class _Checks:
    """Turns what a query found wrong into an error with an example row."""

    def __init__(self, fetch: Fetch, tensor: str, source: TableSource, prefix: str) -> None:
        self._fetch = fetch
        self._source = source
        self._prefix = prefix
        self._where = f"input {tensor}, {source.origin}"

    def arrays(self) -> None:
        """Every array is there, has the shape of the first, and holds no NULL."""
        condition = sql.wrong_length(self._source)
        if example := self._example(condition):
            shape = " x ".join(map(str, self._source.dense))
            raise ValueTypeError(
                "an array does not have the shape of the tensor",
                where=f"{self._where}, column {self._source.value}",
                expected=f"{shape} numbers in every row, none of them NULL",
                found=f"the row {example}",
            )

    def nulls(self, name: str, nulls: int) -> None:
        """No coordinate is NULL."""
        if nulls:
            raise CoordinateError(
                "a coordinate is NULL",
                where=f"{self._where}, column {name}",
                expected="a coordinate in every row",
                found=f"{nulls} NULLs, as in the row {self._example(sql.is_null(name))}",
            )

    def range(self, name: str, smallest: int | None, largest: int | None) -> None:
        """No coordinate is negative, or beyond 64 bits."""
        where = f"{self._where}, column {name}"
        if smallest is not None and (smallest < 0 or (largest or 0) >= 2**63 - 1):
            example = self._example(sql.outside(name, 0, 2**63 - 1))
            raise CoordinateError(
                "a coordinate is outside its bound",
                where=where,
                expected="integers from 0",
                found=f"{smallest if smallest < 0 else largest}, as in the row {example}",
            )

    def null_values(self, nulls: int) -> None:
        """No value is NULL."""
        assert self._source.value is not None
        example = self._example(sql.is_null(self._source.value))
        raise ValueTypeError(
            "a value is NULL",
            where=f"{self._where}, column {self._source.value}",
            expected="a number in every row",
            found=f"{nulls} NULLs, as in the row {example}",
        )

    def duplicates(self) -> None:
        """No two rows claim the same coordinates."""
        found = self._fetch(sql.duplicates_query(self._source, self._prefix))
        if found:
            *coordinates, count = found[0]
            position = ", ".join(
                f"{name} = {value}"
                for name, value in zip(self._source.keys, coordinates, strict=True)
            )
            raise DuplicateCoordinatesError(
                "several rows claim the same coordinates",
                where=self._where,
                expected="one row for each position",
                found=f"{count} rows at {position or 'the only position'}",
                hint="pass ucle.table(..., duplicates='sum') to add them up",
            )

    def _example(self, condition: Any) -> tuple[Any, ...] | None:
        rows = self._fetch(sql.example_query(self._source, condition, self._prefix))
        return tuple(rows[0]) if rows else None
