"""Duplicates, V and degrees of a large table of numbers, from one scan of its keys.

The position of a row is one integer of 64 bits, in which each coordinate has bits of its own. NumPy
sorts positions in a tenth of the time that DuckDB takes, and counts coordinates in a fraction.
Duplicates are found exactly. V is counted on axes of up to `BUCKETS` coordinates; on longer ones
it is an estimate by linear counting, whose error is below 1% while there are fewer than 12
coordinates for each bucket (Whang et al., A linear-time probabilistic counting algorithm, 1990).
Degrees are counted, or bounded from above. The same rows give the same answers in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.arrow_numbers import numpy_array
from ucle.foundation.dataclasses import dataclass
from ucle.plan.sources import TableSource
from ucle.sqlgen import input_queries as sql
from ucle.stats.arrays import Batches

BUCKETS = 1 << 22
"""Counters of an axis, a power of two: 32 MB."""

CHUNK = 1 << 22
"""Positions whose coordinates are computed at a time."""

BATCH = 1 << 17
"""Positions that DuckDB returns at a time, which fit a cache."""

MULTIPLIERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""Those of the generator SplitMix64, whose steps turn any integers into ones that look random."""

Integers = NDArray[np.int64]


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


def by_sorting(batches: Batches, most_bytes: float) -> Scan:
    """Return a scan that holds all positions in memory, if they fit into so many bytes."""

    def scan(table: Table, counts: bool) -> Positions | None:
        if not table.rows or not table.has_positions or table.rows * 8 > most_bytes:
            return None
        positions = _read_positions(batches, table)
        if positions is None:
            return None
        if not _follow(positions, np.greater):
            positions.sort()
        if positions[0] < 0 or positions[-1] >> sum(table.bits):
            return None  # the table has changed since its extents were read
        may_repeat = not _follow(positions, np.not_equal)
        distinct, largest = _count_coordinates(positions, table) if counts else ((), ())
        return Positions(may_repeat, distinct, largest)

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


def _follow(positions: Integers, relation: Callable[[Any, Any], Any]) -> bool:
    """True if each position has a relation to the one before it."""
    later, earlier = positions[1:], positions[:-1]
    return all(
        relation(later[n : n + CHUNK], earlier[n : n + CHUNK]).all()
        for n in range(0, len(later), CHUNK)
    )


def _count_coordinates(
    positions: Integers, table: Table
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """V and the degree of each axis."""
    counters = [np.zeros(min(1 << n, BUCKETS), np.int64) for n in table.bits]
    memory = np.empty(min(CHUNK, len(positions)), np.int64)
    for start in range(0, len(positions), CHUNK):
        chunk = positions[start : start + CHUNK]
        shift = sum(table.bits)
        for bits, counter in zip(table.bits, counters, strict=True):
            shift -= bits
            coordinates = np.right_shift(chunk, shift, out=memory[: len(chunk)])
            np.bitwise_and(coordinates, (1 << bits) - 1, out=coordinates)
            rows = np.bincount(_hash_long(coordinates, bits), minlength=len(counter))
            np.add(counter, rows, out=counter)
    distinct = (
        _estimate_distinct(int(np.count_nonzero(counter)), size)
        for counter, size in zip(counters, table.sizes, strict=True)
    )
    return tuple(distinct), tuple(float(counter.max()) for counter in counters)


def _hash_long(coordinates: Integers, bits: int) -> Integers:
    """The counters of coordinates: one for each, or one for many that a hash picks."""
    if 1 << bits <= BUCKETS:
        return coordinates
    mixed = coordinates.view(np.uint64)
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * multiplier
    return (mixed >> np.uint64(65 - BUCKETS.bit_length())).view(np.int64)


def _estimate_distinct(used: int, size: int) -> float:
    """Estimate the coordinates in so many used counters.

    >>> _estimate_distinct(10, 100), round(_estimate_distinct(BUCKETS // 2, 10**9) / BUCKETS, 2)
    (10.0, 0.69)
    """
    if size <= BUCKETS:  # one counter for each
        return float(used)
    return min(-BUCKETS * math.log1p(-used / BUCKETS), size) if used < BUCKETS else float(size)
