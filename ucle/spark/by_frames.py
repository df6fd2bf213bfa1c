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

    def place(self, placed: Mapping[int, Placed], context: TaskContext) -> list[Any]:
        """Return rows in transit."""
        found = []
        for number, each in placed.items():
            made = each.frame.number
            task = PlaceTask(number, each.placement, each.columns, self.labels, made, context)
            rows = each.frame.relation()
            found.append(rows.mapInArrow(task.__call__, PLACED))
        return found

    def bring(self, rows: list[Any]) -> Any:
        """Bring rows in transit to all partitions, with a row for each of these."""
        labels = spark.array(*(spark.lit(label) for label in self.labels))
        seeds = self._spark.range(self._partitions).select(
            spark.lit(SEED).cast("int").alias(SOURCE),
            spark.element_at(labels, spark.col("id").cast("int") + 1).cast("int").alias(PART),
            spark.lit(None).cast("binary").alias(ROWS),
        )
        return self._shuffled([seeds, *rows])

    def meet(self, fixed: Any, rows: list[Any]) -> Any:
        """Bring rows in transit to those that were brought before; Spark may move all."""
        return self._shuffled([fixed, self._shuffled(rows)])

    def _shuffled(self, rows: list[Any]) -> Any:
        return reduce(_both, rows).repartition(self._partitions, PART)

    def run(
        self, rows: Any, task: FragmentTask, fragment: Fragment, ends: deque[Any]
    ) -> Persisted:
        """Run a fragment on rows that are on their partitions."""
        return Persisted(rows.mapInArrow(task.__call__, MADE), ends)

    def keep(self, data: Any, ends: deque[Any]) -> Persisted:
        """Have Spark keep a DataFrame."""
        return Persisted(data, ends)

    def compute(self, frames: Mapping[str, Frame], wanted: Collection[str]) -> dict[str, pa.Table]:
        """Compute frames of one DataFrame; return the rows of those that are wanted."""
        data = next(iter(frames.values())).data
        small = {name: frame for name, frame in frames.items() if name in wanted}
        with action(self._spark, describe("compute", frames)):
            if not small:
                data.count()
                return {}
            numbers = ", ".join(str(frame.number) for frame in small.values())
            rows = data.where(f"{SOURCE} IN ({numbers})").toArrow()
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
