"""Fragments on RDDs of packed rows: the steps of loops on classic Spark.

Spark plans each query on DataFrames anew, which takes longer than a small step. An RDD of packs has
no plan. Packs are placed by the numbers of partitions, so that fixed packs, which were placed
before, stay where they are. Spark sends them to the Python workers in each step, in pieces, for
which this takes little. Workers that have their rows drop the pieces, and others need nothing else
to compute what was lost. Small results, and the sizes of the others, reach the driver with the end
of each task, by an accumulator.

What meets on a partition is zipped, and not united: where partitions are united, Spark runs a task
on any executor of the host that keeps most of them, and the others of this host would fetch what
they do not have. Of partitions that are zipped, the first one says which executor it is. For this,
each partition has as many elements as all others, which are batches of packs (`Frames`).
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
    Frames,
    FramesOfAll,
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
    """Packs in transit, and those that are on their partitions.

    `stays` has the numbers of the inputs that results of earlier runs are, by the keys of packs.
    """

    moving: tuple[Any, ...]
    there: tuple[Any, ...]
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
        here: list[list[tuple[int, tuple[Key, Any]]]] = [[] for _ in range(self._partitions)]
        home: dict[int, Any] = {}
        stays: dict[Key, list[int]] = {}
        made: dict[int, tuple[Frame, dict[Key, list[PlaceTask]]]] = {}
        for number, each in placed.items():
            frame = each.frame
            task = PlaceTask(
                number, each.placement, each.columns, self.labels, frame.number, context
            )
            if frame.is_here:
                for pack in placed_packs(task, [frame.data]):
                    here[pack[0]].append(pack)
            elif frame.number is None:
                rows = frame.data.mapInArrow(task.__call__, PLACED)
                moving.append(rows.rdd.map(pack_in_transit))
            elif _is_home(frame, each.placement):
                home[id(frame.data)] = frame.data
                stays.setdefault(frame.key, []).append(number)
            else:
                _, tasks = made.setdefault(id(frame.data), (frame, {}))
                tasks.setdefault(frame.key, []).append(task)
        for frame, tasks in made.values():
            packs = frame.data if frame.run is not None else frame.data.rdd.map(pack_of_result)
            moving.append(packs.mapPartitions(PlacePacks(tasks)))
        there = list(home.values())
        if any(here):
            there.append(self._handed_over(here))
        return Transit(tuple(moving), tuple(there), stays)

    def _handed_over(self, packs: Sequence[Sequence[Any]]) -> Any:
        """Packs of this process for each partition, which Spark sends along with its task."""
        context, partitions = self._context, self._partitions

        def from_file(path: str) -> Any:
            return context._jvm.PythonRDD.readRDDFromFile(context._jsc, path, partitions)

        def from_socket() -> Any:
            return context._jvm.PythonParallelizeServer(context._jsc.sc(), partitions)

        # As many elements of each partition are divided among as many partitions.
        written = FramesOfAll(Frames(context._unbatched_serializer))
        handed = context._serialize_to_jvm(packs, written, from_file, from_socket)
        return pyspark.RDD(handed, context, self._batches)

    def fix(self, rows: Transit, ends: deque[Any]) -> Persisted:
        """Bring packs in transit to their partitions, to be kept there."""
        work = CutPacks(PIECE_BYTES, rows.stays)
        cut = self._meeting(rows.there, rows.moving).mapPartitions(work)
        with self._same_workers():
            return self._keep(self._framed(cut), ends)

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
        moving: tuple[Any, ...] = ()
        if rows is not None:
            there += rows.there
            moving = rows.moving
        small = frozenset(
            number
            for number, each in enumerate(fragment.made)
            if not each.read.type.rank and each.read.layout.scalar
        )
        run = next(self._runs)
        work = RunPacks(task, run, small, {} if rows is None else rows.stays, self._told)
        made = self._meeting(there, moving).mapPartitionsWithIndex(work)
        with self._same_workers():
            return self._keep(self._framed(made), ends, run)

    def _meeting(self, there: Sequence[Any], moving: Sequence[Any]) -> Any:
        """The packs that are on partitions, together with those that are brought to them."""
        if moving or not there:
            moved = self._partitioned(moving or [self._context.parallelize([], 1)])
            if not there:
                return moved
            # Other workers do this, so that those with tables of fixed rows remain the same.
            there = [*there, self._framed(moved)]
        zipped = reduce(lambda one, other: one.zip(other), (each._jrdd for each in there))
        return pyspark.RDD(zipped, self._context, self._batches)

    def _partitioned(self, packs: Sequence[Any]) -> Any:
        """Bring packs to their partitions."""
        together = packs[0] if len(packs) == 1 else self._context.union(list(packs))
        with self._same_workers():
            return together.partitionBy(self._partitions, itself)

    @cached_property
    def _batches(self) -> Any:
        """What reads packs: elements of RDDs are lists of them, also where they were zipped."""
        return pyspark.serializers.BatchedSerializer(self._context._unbatched_serializer)

    def _framed(self, packs: Any) -> Any:
        """The same packs, in as many elements on each partition."""
        framed = packs._reserialize(Frames(self._context._unbatched_serializer))
        return pyspark.RDD(framed._jrdd, self._context, self._batches)

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
        local = size <= self._local_bytes
        if not local and self._context.getCheckpointDir() is None:
            # A shuffle cuts what tasks know of how their rows were made.
            return {x: replace(each, placement=None) for x, each in frames.items()}
        with action(self._spark, "keep the state of a loop"):
            with self._same_workers():
                short = self._framed(whole.mapPartitions(OnlyKeys(keys)))
            if local:
                # As many elements of each partition are divided among as many partitions.
                rows = self._context._jsc.parallelize(short._jrdd.collect(), self._partitions)
                short = pyspark.RDD(rows, self._context, self._batches)
            else:
                short.checkpoint()
                short._jrdd.count()
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
