"""Fragments on RDDs of packed rows: the steps of loops on classic Spark.

Spark plans each query on DataFrames anew, which takes longer than a small step. An RDD of packs has
no plan. Packs are placed by the numbers of partitions, so that fixed packs, which were placed
before, stay where they are. Small results, and the sizes of the others, reach the driver with the
end of each task, by an accumulator.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any

from ucle.foundation.libraries import LateModule, pa
from ucle.partitions.fragments import Fragment
from ucle.spark.actions import action
from ucle.spark.frames import Frame, Persisted, Placed, Route, describe, unpacked_values
from ucle.spark.packs import (
    MergedReports,
    OfNumbers,
    PlacePacks,
    Report,
    RunPacks,
    itself,
    pack_of_row,
    placed_packs,
    same,
)
from ucle.spark.tasks import MADE, PLACED, FragmentTask, PlaceTask, TaskContext

pyspark: Any = LateModule("pyspark")

TRACEBACK = "SPARK_SIMPLIFIED_TRACEBACK"
"""A variable of workers: they leave out frames of Spark's own in the traces of errors."""


class ByRdds(Route):
    """A `Route` on RDDs."""

    def __init__(self, session: Any, partitions: int, local_bytes: float) -> None:
        """Run on a session; a state of `local_bytes` may come to the driver."""
        self._spark = session
        self._context = session.sparkContext
        self._partitions = partitions
        self._local_bytes = local_bytes
        self.labels = tuple(range(partitions))
        self._runs = count()

    @contextlib.contextmanager
    def _same_workers(self) -> Iterator[None]:
        """A context in which RDDs are made that run in the Python workers of DataFrames.

        Spark has workers of its own for each set of variables, and queries set this one.
        """
        given = self._context.environment
        own = given.get(TRACEBACK)
        given[TRACEBACK] = "1"
        try:
            yield
        finally:
            del given[TRACEBACK]
            if own is not None:
                given[TRACEBACK] = own

    @cached_property
    def _told(self) -> Any:
        """The accumulator of all reports."""
        return self._context.accumulator({}, MergedReports())

    def place(self, placed: Mapping[int, Placed], context: TaskContext) -> list[Any]:
        """Return packs in transit; those of several relations of one RDD are read together."""
        found: list[Any] = []
        here: list[tuple[int, tuple[int, bytes]]] = []
        made: dict[int, tuple[Any, list[PlaceTask]]] = {}
        for number, each in placed.items():
            frame = each.frame
            task = PlaceTask(
                number, each.placement, each.columns, self.labels, frame.number, context
            )
            if frame.is_here:
                here += placed_packs(task, [frame.data])
            elif frame.number is None:
                rows = frame.data.mapInArrow(task.__call__, PLACED)
                found.append(rows.rdd.map(pack_of_row))
            else:
                made.setdefault(id(frame.data), (frame, []))[1].append(task)
        for frame, tasks in made.values():
            packs = frame.data if frame.route is self else frame.data.rdd
            found.append(packs.mapPartitions(PlacePacks(tuple(tasks))))
        if here:
            found.append(self._context.parallelize(here, min(len(here), self._partitions)))
        return found

    def bring(self, rows: list[Any]) -> Any:
        """Bring packs in transit to their partitions."""
        if not rows:
            return self._context.parallelize([], self._partitions)
        together = rows[0] if len(rows) == 1 else self._context.union(rows)
        with self._same_workers():
            return together.partitionBy(self._partitions, itself)

    def meet(self, fixed: Any, rows: list[Any]) -> Any:
        """Bring packs in transit to those that were brought before, which do not move."""
        return fixed.union(self.bring(rows))

    def run(
        self, rows: Any, task: FragmentTask, fragment: Fragment, ends: deque[Any]
    ) -> Persisted:
        """Run a fragment on packs that are on their partitions."""
        small = frozenset(
            number
            for number, each in enumerate(fragment.made)
            if not each.read.type.rank and each.read.layout.scalar
        )
        run = next(self._runs)
        work = RunPacks(task, run, small, self._told)
        data = rows.mapPartitionsWithIndex(work)
        with self._same_workers():
            return Persisted(data, ends, pyspark.StorageLevel.MEMORY_AND_DISK, run=run)

    def keep(self, data: Any, ends: deque[Any]) -> Persisted:
        """Have Spark keep packs that are on their partitions."""
        return Persisted(data, ends, pyspark.StorageLevel.MEMORY_AND_DISK)

    def compute(self, frames: Mapping[str, Frame], wanted: Collection[str]) -> dict[str, pa.Table]:
        """Compute frames of one RDD; return the rows of those that are wanted."""
        reports = self._reports(frames)
        return {
            name: unpacked_values(
                (x for each in reports if frame.number in each for x in each[frame.number][1]),
                frame,
            )
            for name, frame in frames.items()
            if name in wanted and frame.number is not None
        }

    def _reports(self, frames: Mapping[str, Frame]) -> list[Report]:
        """What the tasks have made that computed an RDD, which they do now if they have not yet."""
        frame = next(iter(frames.values()))
        owner = frame.owner
        assert owner is not None
        assert owner.run is not None
        if not owner.reports:
            if len(self._reports_of(owner.run)) < self._partitions:
                with action(self._spark, describe("compute", frames)):
                    frame.data._jrdd.count()  # by Java alone; RDD.count asks for Python again
            told = self._reports_of(owner.run)
            owner.reports = [told[part] for part in sorted(told)]
        return list(owner.reports)

    def _reports_of(self, run: int) -> dict[int, Report]:
        return {part: told for (of, part), told in list(self._told.value.items()) if of == run}

    def forget(self, live: Collection[int]) -> None:
        """Forget what the tasks of all other runs have reported."""
        told = self._told.value
        for key in [key for key in list(told) if key[0] not in live]:
            del told[key]

    def shorten(self, frames: Mapping[str, Frame]) -> dict[str, Frame]:
        """Return frames of one RDD so that lost rows are computed from these."""
        numbers = tuple({each.number for each in frames.values() if each.number is not None})
        sizes = [x.get(n, (0,))[0] for x in self._reports(frames) for n in numbers]
        data = next(iter(frames.values())).data.filter(OfNumbers(numbers))
        with action(self._spark, "keep the state of a loop"), self._same_workers():
            if sum(sizes) <= self._local_bytes:
                short = self._context.parallelize(data.collect(), self._partitions)
            elif self._context.getCheckpointDir() is not None:
                short = data.mapPartitions(same)
                short.checkpoint()
                short._jrdd.count()
            else:
                return dict(frames)
        return {name: replace(each, data=short, owner=None) for name, each in frames.items()}

    def collect(self, frame: Frame) -> pa.Table:
        """Return all rows, in this process."""
        with action(self._spark, "fetch rows"), self._same_workers():
            packs = frame.data.filter(OfNumbers((frame.number or 0,))).collect()
        return unpacked_values((value for _, value in packs), frame)

    def relation(self, frame: Frame) -> Any:
        """Return a DataFrame of the packs of a frame."""
        packs = frame.data.filter(OfNumbers((frame.number or 0,)))
        return self._spark.createDataFrame(packs, MADE, verifySchema=False)
