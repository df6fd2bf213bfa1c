"""Tasks on packs of rows in RDDs, for `ucle.spark.by_rdds`; executors import this module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.run.execute import NaNError
from ucle.spark.failures import pack_error
from ucle.spark.tasks import (
    FLUSH,
    FragmentTask,
    Pack,
    Piece,
    PlaceTask,
    pack,
    pieces,
    unpack,
)

Report = dict[int, tuple[int, tuple[bytes, ...]]]
"""What a task has made: the bytes of each result by its number, and the packs of small ones."""

Reports = dict[tuple[int, int], Report]
"""The reports of tasks, by run and partition."""

Key = tuple[int, int] | int
"""A relation: a result, by the number of its run and its own; or an input, by its number."""

Packs = Iterator[tuple[int, tuple[Key, Any]]]
"""Packs of rows, each with its relation and the partition that it is for; a pack that stays on its
partition is cut into pieces (`ucle.spark.tasks.Piece`)."""


class MergedReports:
    """How reports are put together (a parameter of an accumulator); a task may report twice."""

    def zero(self, value: Reports) -> Reports:
        """Return no reports."""
        return {}

    def addInPlace(self, value1: Reports, value2: Reports) -> Reports:  # noqa: N802
        """Add some reports to others."""
        value1.update(value2)
        return value1


@dataclass(frozen=True)
class PlacePacks:
    """Places results of fragments; `tasks` are those that have a use for one of them."""

    tasks: Mapping[Key, Sequence[PlaceTask]]

    def __call__(self, packs: Packs) -> Packs:
        """Run the task."""
        try:
            yield from self._place(packs)
        except UcleError as error:
            raise pack_error(error) from None

    def _place(self, packs: Packs) -> Packs:
        waiting, size = defaultdict[Key, list[pa.Table]](list), 0
        for _, (key, value) in packs:
            if key in self.tasks:
                waiting[key].append(unpack(value))
                size += len(value)
            if size > FLUSH:
                yield from self._divide(waiting)
                waiting, size = defaultdict(list), 0
        yield from self._divide(waiting)

    def _divide(self, waiting: Mapping[Key, list[pa.Table]]) -> Packs:
        for key, tables in waiting.items():
            for task in self.tasks[key]:
                yield from placed_packs(task, tables)


def placed_packs(task: PlaceTask, tables: list[pa.Table]) -> Packs:
    """Yield the rows of some tables for the partitions that they belong to."""
    task.context.check_version()
    for part, rows in task.divide(iter(tables)):
        for value in pack(rows):
            yield part, (task.number, value)


def pack_in_transit(row: Any) -> tuple[int, tuple[Key, Any]]:
    """Return a row of a DataFrame in transit (`ucle.spark.tasks.PLACED`) as a pack."""
    number, part, value = row
    return part, (number, value)


def pack_of_result(row: Any) -> tuple[int, tuple[Key, Any]]:
    """Return a row of a DataFrame of results (`ucle.spark.tasks.MADE`) as a pack for no one."""
    number, value = row
    return 0, (number, value)


def result_of_pack(pack_: tuple[int, tuple[tuple[int, int], Any]]) -> tuple[int, Any]:
    """Return a pack of a result as a row of a DataFrame (`ucle.spark.tasks.MADE`)."""
    _, ((_, number), value) = pack_
    return number, value


def itself(part: int) -> int:
    """Return the partition where packs for a partition are."""
    return part


def inputs_of(key: Key, stays: Mapping[Key, Sequence[int]]) -> Sequence[int]:
    """Return the numbers of the inputs that a relation is.

    >>> inputs_of(2, {}), inputs_of((7, 0), {(7, 0): [1, 3]}), inputs_of((7, 1), {(7, 0): [1, 3]})
    ((2,), [1, 3], ())
    """
    return (key,) if isinstance(key, int) else stays.get(key, ())


PIECE_BYTES = 1 << 20
"""The most bytes of a value that stays on a partition that are sent at once."""


@dataclass(frozen=True)
class CutPacks:
    """Cuts packs that stay on a partition into pieces.

    Spark sends them to a Python worker each time, also where it has what they hold. Values of many
    megabytes are copied into new memory several times on this way; pieces of one stay in caches, in
    a fifth of the time. `stays` are results of earlier runs that are where they are wanted, and the
    numbers of the inputs that they are.
    """

    most: int
    stays: Mapping[Key, Sequence[int]]

    def __call__(self, packs: Packs) -> Packs:
        """Run the task."""
        for part, (key, value) in packs:
            for number in inputs_of(key, self.stays):
                for piece in pieces(value, self.most):
                    yield part, (number, piece)


FRAMES = 320
"""The number of batches in which the packs of a partition are kept."""

DOUBLING = 32
"""The number of batches after which each is twice as large as those before it."""


@dataclass(frozen=True)
class Frames:
    """Writes the packs of a partition in `FRAMES` batches: a serializer of PySpark.

    Spark zips partitions with as many elements. Batches of a megabyte or two have most partitions;
    later ones are larger, up to 32 gigabytes of a partition, and those that remain are empty.
    """

    one: Any
    """PySpark's serializer of batches."""

    def dump_stream(self, packs: Packs, stream: Any) -> None:
        """Write packs."""
        self.one.dump_stream(self._batches(packs), stream)

    def _batches(self, packs: Packs) -> Iterator[list[Any]]:
        made, batch, size = 0, list[Any](), 0
        for each in packs:
            value = each[1][1]
            batch.append(each)
            size += len(value.value if isinstance(value, Piece) else value)
            if size >= PIECE_BYTES << made // DOUBLING and made < FRAMES - 1:
                yield batch
                made, batch, size = made + 1, [], 0
        yield batch
        yield from ([] for _ in range(made + 1, FRAMES))


@dataclass(frozen=True)
class FramesOfAll:
    """Writes the packs of all partitions, one after the other: a serializer of PySpark."""

    one: Frames

    def dump_stream(self, partitions: Sequence[Sequence[Any]], stream: Any) -> None:
        """Write the packs of each partition."""
        for packs in partitions:
            self.one.dump_stream(iter(packs), stream)


@dataclass(frozen=True)
class RunPacks:
    """A fragment on the packs of one partition.

    `run` is a number of its own, under which it reports. `small` are the numbers of results whose
    rows are reported, too. `stays` are results of earlier runs that are read where they are, and
    the numbers of the inputs that they are. `told` is the accumulator of reports.
    """

    task: FragmentTask
    run: int
    small: frozenset[int]
    stays: Mapping[Key, Sequence[int]]
    told: Any

    def __call__(self, part: int, packs: Packs) -> Packs:
        """Run the task."""
        report: Report = {}
        try:
            for number, made in self.task.run(self._inputs(part, packs), (part,)):
                values = pack(made)
                few = tuple(values) if number in self.small else ()
                report[number] = sum(map(len, values)), few
                yield from ((part, ((self.run, number), value)) for value in values)
        except (UcleError, NaNError) as error:
            raise pack_error(error) from None
        self.told.add({(self.run, part): report})

    def _inputs(self, part: int, packs: Packs) -> Iterator[Pack]:
        for _, (key, value) in packs:
            piece = value if isinstance(value, Piece) else Piece(value)
            for number in inputs_of(key, self.stays):
                yield number, part, piece


@dataclass(frozen=True)
class OfKeys:
    """The packs of some relations."""

    keys: Collection[Key]

    def __call__(self, pair: tuple[int, tuple[Key, Any]]) -> bool:
        """Return whether a pack is one of them."""
        return pair[1][0] in self.keys


@dataclass(frozen=True)
class OnlyKeys:
    """The same, of the packs of a partition."""

    keys: Collection[Key]

    def __call__(self, packs: Packs) -> Packs:
        """Yield the packs that are of these relations."""
        return filter(OfKeys(self.keys), packs)
