"""Fragments on DataFrames: for programs that run once, and for all on Spark Connect.

Rows are packed for their partitions when a fragment reads them (`ucle.spark.tasks`), and Spark
shuffles the packs by the numbers of partitions (`ucle.spark.labels`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from ucle.foundation.libraries import LateModule, pa
from ucle.partitions.fragments import Fragment
from ucle.spark.actions import action
from ucle.spark.frames import Frame, Persisted, Placed, Route, describe, unpacked
from ucle.spark.labels import partition_labels
from ucle.spark.tasks import (
    MADE,
    PART,
    PLACED,
    ROWS,
    SEED,
    SOURCE,
    FragmentTask,
    PlaceTask,
    TaskContext,
)

pc: Any = LateModule("pyarrow.compute")
spark: Any = LateModule("pyspark.sql.functions")
types: Any = LateModule("pyspark.sql.pandas.types")


class ByFrames(Route):
    """A `Route` on DataFrames."""

    def __init__(self, session: Any, partitions: int, local_bytes: float) -> None:
        """Run on a session; a state of `local_bytes` may come to the driver."""
        self._spark = session
        self._partitions = partitions
        self._local_bytes = local_bytes
        self.labels = partition_labels(partitions)

    def upload(self, rows: pa.Table) -> Any:
        """Return a DataFrame of the rows of a table in this process."""
        if len(rows):
            return self._spark.createDataFrame(rows)
        # For an empty table Spark Connect 4.0 needs the schema.
        return self._spark.createDataFrame([], types.from_arrow_schema(rows.schema))

    def place(self, placed: Mapping[int, Placed], context: TaskContext) -> Any:
        """Return a DataFrame of rows in transit."""
        found = []
        for number, each in placed.items():
            made = each.frame.number
            task = PlaceTask(number, each.placement, each.columns, self.labels, made, context)
            rows = each.frame.relation()
            found.append(rows.mapInArrow(task.__call__, PLACED))
        return reduce(_both, found) if found else None

    def fix(self, rows: Any, ends: deque[Any]) -> Persisted:
        """Bring rows in transit to their partitions, to be kept there."""
        return Persisted(self._shuffled(_both(self._seeds(), rows)), ends)

    def run(
        self,
        fixed: Persisted | None,
        rows: Any,
        task: FragmentTask,
        fragment: Fragment,
        ends: deque[Any],
    ) -> Persisted:
        """Run a fragment."""
        if fixed is None:
            seeds = self._seeds()
            brought = self._shuffled(seeds if rows is None else _both(seeds, rows))
        elif rows is None:
            brought = fixed.data
        else:
            # Rows that are shuffled alike meet where they are; some servers move them all.
            brought = self._shuffled(_both(fixed.data, self._shuffled(rows)))
        return Persisted(brought.mapInArrow(task.__call__, MADE), ends)

    def _seeds(self) -> Any:
        """A row for each partition, so that each of them runs."""
        labels = spark.array(*(spark.lit(label) for label in self.labels))
        return self._spark.range(self._partitions).select(
            spark.lit(SEED).cast("int").alias(SOURCE),
            spark.element_at(labels, spark.col("id").cast("int") + 1).cast("int").alias(PART),
            spark.lit(None).cast("binary").alias(ROWS),
        )

    def _shuffled(self, rows: Any) -> Any:
        """Put the rows of each partition of ours on one of Spark's (`ucle.spark.labels`)."""
        return rows.repartition(self._partitions, PART)

    def compute(self, frames: Mapping[str, Frame], wanted: Collection[str]) -> dict[str, pa.Table]:
        """Compute frames of one DataFrame; return the rows of those that are wanted."""
        first = next(iter(frames.values()))
        data, owner = first.data, first.owner
        small = {name: frame for name, frame in frames.items() if name in wanted}
        if owner is not None and owner.computed and not small:
            return {}
        with action(self._spark, describe("compute", frames)):
            if small:
                numbers = ", ".join(str(frame.number) for frame in small.values())
                rows = data.where(f"{SOURCE} IN ({numbers})").toArrow()
            else:
                data.count()
        if owner is not None:
            owner.computed = True
        return {
            name: unpacked(rows.filter(pc.equal(rows[SOURCE], frame.number)), frame)
            for name, frame in small.items()
        }

    def shorten(self, frames: Mapping[str, Frame]) -> dict[str, Frame]:
        """Return frames of one DataFrame so that lost rows are computed from these."""
        frame = next(iter(frames.values()))
        data = frame.data
        with action(self._spark, "keep the state of a loop"):
            size = data.selectExpr(f"sum(length({ROWS}))").collect()[0][0] or 0
            if size > self._local_bytes:
                return dict(frames)
            local = self._spark.createDataFrame(data.toArrow())
        return {name: replace(each, data=local, owner=None) for name, each in frames.items()}

    def collect(self, frame: Frame) -> pa.Table:
        """Return all rows, in this process."""
        with action(self._spark, "fetch rows"):
            rows = self.relation(frame).toArrow()
        return rows if frame.number is None else unpacked(rows, frame)

    def relation(self, frame: Frame) -> Any:
        """Return a DataFrame of the rows of a frame, packed if a fragment has made them."""
        if frame.is_here:
            return self.upload(frame.data)
        if frame.number is None:
            return frame.data
        return frame.data.where(f"{SOURCE} = {frame.number}")


def _both(one: Any, other: Any) -> Any:
    return one.union(other)
