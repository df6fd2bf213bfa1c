"""Tasks on packs of rows in RDDs, for `ucle.spark.by_rdds`; executors import this module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa

from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.run.execute import NaNError
from ucle.spark.failures import pack_error
from ucle.spark.tasks import FLUSH, FragmentTask, PlaceTask, pack, unpack

Report = dict[int, tuple[int, tuple[bytes, ...]]]
"""What a task has made: the bytes of each result by its number, and the packs of small ones."""

Reports = dict[tuple[int, int], Report]
"""The reports of tasks, by run and partition."""

Packs = Iterator[tuple[int, Any]]
"""Numbers of relations, each with a pack of rows."""

PlacedPacks = Iterator[tuple[int, tuple[int, Any]]]
"""The same, each with the partition for which it is."""


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
    """Places the results of a fragment, by each of the tasks that have a use for one of them."""

    tasks: tuple[PlaceTask, ...]

    def __call__(self, packs: Packs) -> PlacedPacks:
        """Run the task."""
        try:
            yield from self._place(packs)
        except UcleError as error:
            raise pack_error(error) from None

    def _place(self, packs: Packs) -> PlacedPacks:
        for task in self.tasks:
            task.context.check_version()
        waiting, size = defaultdict[int, list[pa.Table]](list), 0
        for number, value in packs:
            waiting[number].append(unpack(value))
            size += len(value)
            if size > FLUSH:
                yield from self._divide(waiting)
                waiting, size = defaultdict(list), 0
        yield from self._divide(waiting)

    def _divide(self, waiting: defaultdict[int, list[pa.Table]]) -> PlacedPacks:
        for task in self.tasks:
            assert task.made is not None
            yield from placed_packs(task, waiting[task.made])


def placed_packs(task: PlaceTask, tables: list[pa.Table]) -> PlacedPacks:
    """Yield the rows of some tables for the partitions that they belong to."""
    for part, rows in task.divide(iter(tables)):
        for value in pack(rows):
            yield part, (task.number, value)


def pack_of_row(row: Any) -> tuple[int, tuple[int, Any]]:
    """Return a row of a DataFrame in transit (`ucle.spark.tasks.PLACED`) as a placed pack."""
    number, part, value = row
    return part, (number, value)


def itself(part: int) -> int:
    """Return the partition where packs for a partition are."""
    return part


@dataclass(frozen=True)
class RunPacks:
    """A fragment on the packs of one partition.

    `run` is a number of its own, under which it reports; `small` are the numbers of results whose
    rows are reported, too. `told` is the accumulator.
    """

    task: FragmentTask
    run: int
    small: frozenset[int]
    told: Any

    def __call__(self, part: int, packs: PlacedPacks) -> Packs:
        """Run the task."""
        report: Report = {}
        rows = ((number, part, value) for _, (number, value) in packs)
        try:
            for number, made in self.task.run(rows, (part,)):
                values = pack(made)
                few = tuple(values) if number in self.small else ()
                report[number] = sum(map(len, values)), few
                yield from ((number, value) for value in values)
        except (UcleError, NaNError) as error:
            raise pack_error(error) from None
        self.told.add({(self.run, part): report})


@dataclass(frozen=True)
class OfNumbers:
    """The packs of some relations."""

    numbers: Collection[int]

    def __call__(self, pair: tuple[int, Any]) -> bool:
        """Return whether a pack is one of them."""
        return pair[0] in self.numbers


def same(packs: Packs) -> Packs:
    """Return all packs."""
    return packs
