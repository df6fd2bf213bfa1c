"""GetStats on partitions: counts of each partition, and their combination for the whole table.

T and ranges of coordinates combine exactly. V is the size of a set, of which partitions keep the
smallest hashes: `KEPT` hashes estimate it with a standard error of 1 / sqrt(KEPT - 2), that is
3.1%; with fewer hashes it is exact. The largest degree is bounded by the sum of those of the
partitions, not by their maximum, as the rows of one coordinate may lie anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from ucle.database.session import Session
from ucle.database.statistics_cache import known_facts
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.plan.sources import TableSource
from ucle.sqlgen.input_tables import source_table
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import identifier
from ucle.stats.measure import MeasuredInput, combine

KEPT = 1024
"""The number of hashes of coordinates that a partition keeps for each axis."""

HASHES = 2.0**64


@dataclass(frozen=True)
class PartStatistics:
    """Statistics of the rows of one partition: sizes, T and extremes, and hashes of coordinates."""

    measured: MeasuredInput
    hashes: tuple[tuple[int, ...], ...]
    """For each key axis the smallest hashes of its coordinates, in order."""


def combine_statistics(parts: Sequence[PartStatistics]) -> MeasuredInput:
    """Combine the statistics of a table's partitions, of which there is at least one."""
    measured = [part.measured for part in parts]
    keys = len(parts[0].hashes)
    distinct = [
        distinct_of([part.hashes[axis] for part in parts])
        if axis < keys
        else max(each.distinct[axis] for each in measured)
        for axis in range(len(measured[0].sizes))
    ]
    return combine(measured, distinct, exact=len(parts) == 1 and measured[0].exact)


def distinct_of(sketches: Sequence[Sequence[int]]) -> float:
    """Estimate the distinct coordinates of several partitions from the smallest hashes of each.

    >>> distinct_of([(1, 5, 9), (5, 7)])
    4.0
    """
    smallest = sorted(set().union(*sketches))[:KEPT]
    if len(smallest) < KEPT:
        return float(len(smallest))
    return (KEPT - 1) * HASHES / (smallest[-1] + 1)


def part_statistics(
    session: Session, tensor: str, source: TableSource, fill: Scalar
) -> PartStatistics:
    """Measure the rows of a partition, after all checks of each of them.

    Raises:
        UcleError: as `ucle.stats.measure.measure`.
    """
    measured = known_facts(session, tensor, source, fill, "transient")
    hashes = tuple(
        tuple(int(h) for (h,) in session.read(_hashes_query(source, key))) for key in source.keys
    )
    return PartStatistics(measured, hashes)


def _hashes_query(source: TableSource, key: str) -> str:
    """Return SQL for the smallest hashes of the coordinates in a column, one row each."""
    column = sql_text(identifier(key))
    rows = sql_text(source_table(source))
    return f"SELECT DISTINCT hash({column}) AS h FROM {rows} ORDER BY h LIMIT {KEPT}"
