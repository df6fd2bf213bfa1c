"""Duplicates, V and degrees of a large table of numbers, from one scan of its keys.

The position of a row is one integer of 64 bits, in which each coordinate has bits of its own. Loops
over positions (`ucle.stats.position_counts`) take a fraction of the time that DuckDB takes.
Duplicates are found exactly. V is counted on axes of up to `BUCKETS` coordinates; on longer ones
it is an estimate by linear counting, whose error is below 1% while there are fewer than 12
coordinates for each bucket (Whang et al., A linear-time probabilistic counting algorithm, 1990).
Degrees are counted, or bounded from above. The same rows give the same answers in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ucle.foundation.arrow_numbers import numpy_array
from ucle.foundation.dataclasses import dataclass
from ucle.plan.sources import TableSource
from ucle.sqlgen import input_queries as sql
from ucle.stats.arrays import Batches
from ucle.stats.position_counts import Integers, count_coordinates, may_repeat

BUCKETS = 1 << 22
"""Counters of an axis, a power of two: 32 MB."""

POSITION_BYTES = 14
"""The most bytes that each position takes, with what finds those that are equal."""

BATCH = 1 << 17
"""Positions that DuckDB returns at a time, which fit a cache."""


@dataclass(frozen=True)
class Positions:
    """Properties of the positions of all rows of a table."""

    may_repeat: bool
    """False if no two rows share all coordinates."""
    distinct: tuple[float, ...]
    """For each key its coordinates in any row, or an estimate; empty if they were not wanted."""
    largest: tuple[float, ...]
    """For each key the most rows that share a coordinate, or an upper bound."""


@dataclass(frozen=True)
class Table:
    """A table of numbers whose extents are known."""

    source: TableSource
    sizes: tuple[int, ...]
    """For each key its largest coordinate plus one."""
    rows: int
    prefix: str = ""

    @property
    def has_positions(self) -> bool:
        """True if integers of 64 bits can number the positions."""
        source = self.source
        plain = source.keys and not source.dense and not any(source.encoded)
        return bool(plain) and sum(self.bits) < 63

    @property
    def bits(self) -> tuple[int, ...]:
        """For each key the bits of its largest coordinate."""
        return tuple(max(size - 1, 0).bit_length() for size in self.sizes)


Scan = Callable[[Table, bool], Positions | None]
"""Reads positions, and counts coordinates if told to; None where they do not fit into memory."""


def by_positions(batches: Batches, most_bytes: float) -> Scan:
    """Return a scan that holds all positions in memory, if they fit into so many bytes."""

    def scan(table: Table, counts: bool) -> Positions | None:
        if not table.rows or not table.has_positions or table.rows * POSITION_BYTES > most_bytes:
            return None
        positions = _read_positions(batches, table)
        if positions is None:
            return None
        if positions.min() < 0 or positions.max() >> sum(table.bits):
            return None  # the table has changed since its extents were read
        distinct, largest = _count_coordinates(positions, table) if counts else ((), ())
        return Positions(may_repeat(positions), distinct, largest)

    return scan


def _read_positions(batches: Batches, table: Table) -> Integers | None:
    """Read the positions of all rows; None if the table does not have as many as stated."""
    positions = np.empty(table.rows, np.int64)
    end = 0
    query = sql.positions_query(table.source, [1 << n for n in table.bits], table.prefix)
    for batch in batches(query, BATCH):
        column = batch.column(0)
        start, end = end, end + len(column)
        if column.null_count or end > table.rows:
            return None
        positions[start:end] = numpy_array(column)
    return positions if end == table.rows else None


def _count_coordinates(
    positions: Integers, table: Table
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """V and the degree of each axis."""
    shift, distinct, largest = sum(table.bits), [], []
    for bits, size in zip(table.bits, table.sizes, strict=True):
        shift -= bits
        counter = count_coordinates(positions, shift, bits, BUCKETS)
        distinct.append(_estimate_distinct(int(np.count_nonzero(counter)), size))
        largest.append(float(counter.max()))
    return tuple(distinct), tuple(largest)


def _estimate_distinct(used: int, size: int) -> float:
    """Estimate the coordinates in so many used counters.

    >>> _estimate_distinct(10, 100), round(_estimate_distinct(BUCKETS // 2, 10**9) / BUCKETS, 2)
    (10.0, 0.69)
    """
    if size <= BUCKETS:  # one counter for each
        return float(used)
    return min(-BUCKETS * math.log1p(-used / BUCKETS), size) if used < BUCKETS else float(size)
