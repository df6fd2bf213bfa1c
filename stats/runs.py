"""Statistics of tables of runs, whose rows stand for many entries, by these rows.

The run axis has as many coordinates with an entry as it has positions, or entries, at most; that is
an estimate. All else is counted, as of other tables.
"""

from __future__ import annotations

from collections.abc import Sequence

from ucle.errors import CoordinateError, DuplicateCoordinatesError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.plan.sources import TableSource
from ucle.sqlgen import input_queries as sql
from ucle.stats.arrays import Fetch


@dataclass(frozen=True)
class RunStatistics:
    """What a table of runs holds."""

    entries: float
    size: int
    """The position before which the last run ends."""
    distinct: tuple[float, ...] | None
    largest: tuple[float, ...]


def check_ends(
    fetch: Fetch, tensor: str, source: TableSource, fill: Scalar, prefix: str = ""
) -> None:
    """Check that all runs have an end behind their begin, and that no two overlap.

    Raises:
        CoordinateError: a run has no end, or ends before it begins.
        DuplicateCoordinatesError: two runs share a position.
    """
    if source.ends is None:
        return
    where = f"input {tensor}, {source.origin}"
    ((wrong, *_),) = fetch(sql.runs_query(source, fill, prefix))
    if wrong:
        example = fetch(sql.wrong_run_query(source, prefix))
        raise CoordinateError(
            "a run has no end, or ends before it begins",
            where=f"{where}, column {source.ends}",
            expected="the position behind the last one of the run",
            found=f"{wrong} such rows" + "".join(f", as the row {row}" for row in example[:1]),
        )
    for row in fetch(sql.overlapping_run_query(source, prefix)):
        place = ", ".join(f"{key} = {x}" for key, x in zip(source.keys, row, strict=True))
        raise DuplicateCoordinatesError(
            "two runs overlap",
            where=where,
            expected="one run for each position",
            found=f"two at {place}",
        )


def measure_runs(
    fetch: Fetch,
    source: TableSource,
    fill: Scalar,
    rows: float,
    distinct: Sequence[float] | None,
    prefix: str = "",
) -> RunStatistics:
    """Measure a large table of runs.

    Args:
        fetch: runs a query on the connection that sees the table.
        source: the columns.
        fill: runs of it count as not stored.
        rows: the runs that are stored.
        distinct: V of the keys, as those of a table of rows; None where it is not wanted.
        prefix: prepended to the names of tables that were registered from memory.
    """
    ((_, _, entries, size),) = fetch(sql.runs_query(source, fill, prefix))
    total = float(entries)
    if distinct is None:
        return RunStatistics(total, int(size), None, ())
    *others, _ = distinct
    degrees: Sequence[float] = ()
    if others:
        (degrees,) = fetch(sql.degrees_of_runs_query(source, fill, prefix))
    # Those of a position belong to as many other coordinates, of which there are no more than rows.
    meeting = min(rows, others[0]) if len(others) == 1 else rows if others else 1.0
    largest = (*(float(degree or 0) for degree in degrees), meeting)
    own = min(float(size), total)
    return RunStatistics(
        total, int(size), (*others, own), tuple(min(each, total) for each in largest)
    )
