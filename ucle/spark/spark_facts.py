"""GetStats on Spark: each partition checks and measures its rows; the driver combines."""

from __future__ import annotations

import functools
import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ucle.database.session import Session
from ucle.errors import DuplicateCoordinatesError
from ucle.foundation.dtypes import Scalar
from ucle.partitions.statistics import combine_statistics, part_statistics
from ucle.plan.sources import TableName, TableSource
from ucle.spark.actions import action
from ucle.spark.tasks import RowsTask, TaskContext, binary_value
from ucle.stats.measure import MeasuredInput

ROWS = "rows"

MOST_BYTES = 1 << 28
"""Bytes of rows that a task measures together."""


def measure_on_spark(
    frame: Any, tensor: str, source: TableSource, fill: Scalar, memory: str | None, tasks: int
) -> MeasuredInput | None:
    """Measure a DataFrame as `source` reads it; None where it has no rows.

    `memory` is the limit of a task, and `tasks` the most tasks; a task takes several partitions,
    as there may be many small ones.

    Raises:
        UcleError: as `ucle.stats.measure.measure`.
    """
    there = replace(source.apart, origin=TableName((ROWS,)), table=True)
    rows = frame.select(*(frame[f"`{name}`"] for name in source.columns))
    task = RowsTask(
        functools.partial(_measure, tensor=tensor, source=there, fill=fill),
        ROWS,
        made=False,
        context=TaskContext(kernels=False, memory=memory),
        most=MOST_BYTES,
    )
    rows = rows.coalesce(tasks)
    with action(frame.sparkSession, f"measure {tensor}"):
        found = rows.mapInArrow(task.__call__, "part binary").collect()
    if not found:
        return None
    if len(found) > 1:
        with action(frame.sparkSession, f"check {tensor} for duplicates"):
            _check_duplicates(rows, tensor, source)
    return combine_statistics([pickle.loads(row["part"]) for row in found])  # our own


def _measure(
    session: Session, table: str, *, tensor: str, source: TableSource, fill: Scalar
) -> pa.Table:
    statistics = part_statistics(session, tensor, source, fill)
    return pa.table({"part": binary_value(pickle.dumps(statistics))})


def _check_duplicates(rows: Any, tensor: str, source: TableSource) -> None:
    """Check by a shuffle that rows of different partitions have different coordinates."""
    if source.sum_duplicates:
        return
    keys = [f"`{name}`" for name in source.keys]
    if source.symmetric:
        one, other = keys[:2]
        keys[:2] = [f"least({one}, {other})", f"greatest({one}, {other})"]
    named = [f"{key} AS {name}" for key, name in zip(keys, _places(source), strict=True)]
    grouped = rows.selectExpr(*named, "1 AS rows").groupBy(*_places(source)).count()
    twice = grouped.where("count > 1").limit(1).collect()
    if twice:
        pairs = zip(source.keys, _places(source), strict=True)
        place = ", ".join(f"{name} = {twice[0][place]}" for name, place in pairs)
        raise DuplicateCoordinatesError(
            "several rows claim the same coordinates",
            where=f"input {tensor}",
            expected="one row for each position",
            found=f"{twice[0]['count']} rows at {place or 'the only position'}",
            hint="pass ucle.table(..., duplicates='sum') to add them up",
        )


def _places(source: TableSource) -> list[str]:
    return [f"key_{n}" for n, _ in enumerate(source.keys)]
