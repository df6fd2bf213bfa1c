"""Fragments on RDDs of packed rows: the steps of loops on classic Spark.

Spark plans each query on DataFrames anew, which takes longer than a small step. An RDD of packs has
no plan. Packs are placed by the numbers of partitions, so that fixed packs, which were placed
before, stay where they are. Spark sends them to the Python workers in each step, in pieces, for
which this takes little. Workers that have their rows drop the pieces, and others need nothing else
to compute what was lost. Small results, and the sizes of the others, reach the driver with the end
of each task, by an accumulator.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from itertools import count
from typing import Any

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import LateModule, pa
from ucle.partitions.fragments import Fragment
from ucle.plan.placement_rules import Placement
from ucle.spark.actions import action
from ucle.spark.frames import Frame, Persisted, Placed, Route, describe, unpacked_values
from ucle.spark.packs import (
    PIECE_BYTES,
    CutPacks,
    Key,
    MergedReports,
    OfKeys,
    OnlyKeys,
    PlacePacks,
    Report,
    RunPacks,
    itself,
    pack_in_transit,
    pack_of_result,
    placed_packs,
    result_of_pack,
)
from ucle.spark.tasks import MADE, PLACED, FragmentTask, PlaceTask, TaskContext

pyspark: Any = LateModule("pyspark")

TRACEBACK = "SPARK_SIMPLIFIED_TRACEBACK"
"""A variable of workers: they leave out frames of Spark's own in the traces of errors."""


@dataclass(frozen=True)
class Transit:
    """Packs in transit, and those that need not move.

    `stays` has the numbers of the inputs that the latter are, by the keys of packs.
    """

    moving: tuple[Any, ...]
    home: tuple[Any, ...]
    stays: Mapping[Key, Sequence[int]]


def has_rdds(session: Any) -> bool:
    """Return whether a session is one of classic Spark: Spark Connect has no RDDs."""
    return hasattr(session, "_jsparkSession")


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

    def place(self, placed: Mapping[int, Placed], context: TaskContext) -> Transit | None:
        """Return packs in transit; those of several relations of one RDD are read together."""
        if not placed:
            return None
        moving: list[Any] = []
        here: list[tuple[int, tuple[Key, Any]]] = []
        home: dict[int, Any] = {}
        stays: dict[Key, list[int]] = {}
        made: dict[int, tuple[Frame, dict[Key, list[PlaceTask]]]] = {}
        for number, each in placed.items():
            frame = each.frame
            task = PlaceTask(
                number, each.placement, each.columns, self.labels, frame.number, context
            )
            if frame.is_here:
                here += placed_packs(task, [frame.data])
            elif frame.number is None:
                rows = frame.data.mapInArrow(task.__call__, PLACED)
                moving.append(rows.rdd.map(pack_in_transit))
            elif not each.kept and _is_home(frame, each.placement):
                home[id(frame.data)] = frame.data
                stays.setdefault(frame.key, []).append(number)
            else:
                _, tasks = made.setdefault(id(frame.data), (frame, {}))
                tasks.setdefault(frame.key, []).append(task)
        for frame, tasks in made.values():
            packs = frame.data if frame.run is not None else frame.data.rdd.map(pack_of_result)
            moving.append(packs.mapPartitions(PlacePacks(tasks)))
        if here:
            moving.append(self._context.parallelize(here, min(len(here), self._partitions)))
        return Transit(tuple(moving), tuple(home.values()), stays)

    def fix(self, rows: Transit, ends: deque[Any]) -> Persisted:
        """Bring packs in transit to their partitions, to be kept there."""
        whole = self._bring(rows)
        cut = whole.mapPartitions(CutPacks(PIECE_BYTES), preservesPartitioning=True)
        return self._keep(self._at_home(cut, whole), ends)

    def run(
        self,
        fixed: Persisted | None,
        rows: Transit | None,
        task: FragmentTask,
        fragment: Fragment,
        ends: deque[Any],
    ) -> Persisted:
        """Run a fragment."""
        there = [] if fixed is None else [fixed.data]
        if rows is not None or fixed is None:
            there.append(self._bring(rows))
        packs = reduce(_both, there)
        small = frozenset(
            number
            for number, each in enumerate(fragment.made)
            if not each.read.type.rank and each.read.layout.scalar
        )
        run = next(self._runs)
        work = RunPacks(task, run, small, {} if rows is None else rows.stays, self._told)
        made = packs.mapPartitionsWithIndex(work, preservesPartitioning=True)
        return self._keep(self._at_home(made, packs), ends, run)

    def _bring(self, rows: Transit | None) -> Any:
        """Bring packs in transit to their partitions, with those that are there."""
        if rows is None:
            return self._partitioned([self._context.parallelize([], 1)])
        moved = [self._partitioned(rows.moving)] if rows.moving else []
        return reduce(_both, [*rows.home, *moved])

    def _partitioned(self, packs: Sequence[Any]) -> Any:
        together = packs[0] if len(packs) == 1 else self._context.union(list(packs))
        with self._same_workers():
            return together.partitionBy(self._partitions, itself)

    def _at_home(self, made: Any, packs: Any) -> Any:
        """Packs that were made of others on their partitions, so that both can be read together.

        Both are pickled lists, but the classes that read them have other names. Spark would write
        lists of another class again, and forget where they are.
        """
        with self._same_workers():
            again = pyspark.RDD(made._jrdd, self._context, packs._jrdd_deserializer)
        again.partitioner = packs.partitioner
        return again

    def _keep(self, packs: Any, ends: deque[Any], run: int | None = None) -> Persisted:
        """Have Spark keep packs as they are: to compress them takes longer than to read them."""
        return Persisted(packs, ends, pyspark.StorageLevel.MEMORY_AND_DISK_DESER, run=run)

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
        if not owner.computed:
            if len(self._reports_of(owner.run)) < self._partitions:
                with action(self._spark, describe("compute", frames)):
                    frame.data._jrdd.count()  # by Java alone; RDD.count asks for Python again
            told = self._reports_of(owner.run)
            owner.reports = [told[part] for part in sorted(told)]
            owner.computed = True
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
        keys = {each.key for each in frames.values()}
        numbers = {each.number for each in frames.values()}
        reports = self._reports(frames)
        size = sum(own for each in reports for n, (own, _) in each.items() if n in numbers)
        whole = next(iter(frames.values())).data
        data = whole.filter(OfKeys(keys))
        with action(self._spark, "keep the state of a loop"), self._same_workers():
            if size <= self._local_bytes:
                local = self._context.parallelize(data.collect(), self._partitions)
                short = self._partitioned([local])
            elif self._context.getCheckpointDir() is not None:
                copied = whole.mapPartitions(OnlyKeys(keys), preservesPartitioning=True)
                short = self._at_home(copied, whole)
                short.checkpoint()
                short._jrdd.count()
            else:
                # A shuffle cuts what tasks know of how their rows were made.
                return {x: replace(each, placement=None) for x, each in frames.items()}
        return {name: replace(each, data=short, owner=None) for name, each in frames.items()}

    def collect(self, frame: Frame) -> pa.Table:
        """Return all rows, in this process."""
        with action(self._spark, "fetch rows"), self._same_workers():
            packs = frame.data.filter(OfKeys({frame.key})).collect()
        return unpacked_values((value for _, (_, value) in packs), frame)

    def relation(self, frame: Frame) -> Any:
        """Return a DataFrame of the packs of a frame."""
        with self._same_workers():
            packs = frame.data.filter(OfKeys({frame.key})).map(result_of_pack)
            return self._spark.createDataFrame(packs, MADE, verifySchema=False)


def _is_home(frame: Frame, wanted: Placement) -> bool:
    """True if the packs of a frame are in an RDD, and where they are wanted."""
    return frame.run is not None and frame.placement is not None and frame.placement.serves(wanted)


def _both(one: Any, other: Any) -> Any:
    return one.union(other)
