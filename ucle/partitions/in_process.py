"""Partitions in this process: an engine for tests, which needs no cluster.

Rows are placed on partitions at random, drawn from a seed, so that nothing can rely on an order, or
on two tables being partitioned alike.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ucle.database.session import Session
from ucle.foundation.libraries import pa
from ucle.inputs.states import BoundInput
from ucle.partitions.divide import divide_rows, partition_of
from ucle.partitions.fragments import Fragment, FragmentInput
from ucle.partitions.placed_files import rows_of_files
from ucle.partitions.run_fragment import Task, open_partition, run_on_tables
from ucle.partitions.tables import dictionary_rows, rows_of
from ucle.pipeline.artifacts import Compiled
from ucle.plan.placement_rules import SCATTERED, Spread
from ucle.plan.relation_nodes import Load
from ucle.plan.sources import Dictionary
from ucle.run.array_tables import array_table

Frame = Sequence[pa.Table]
"""A table for each partition."""


class Made(list[pa.Table]):
    """The results of a fragment on each partition, with the placement that they have there."""

    placement = SCATTERED


class InProcess:
    """Partitions in this process, each with a DuckDB of its own while it runs a fragment."""

    def __init__(
        self, compiled: Compiled, session: Session, partitions: int, seed: int = 0
    ) -> None:
        """Start with a program.

        Args:
            compiled: the program, whose inputs are read.
            session: sees the tables among them.
            partitions: the number of partitions.
            seed: of the initial placement of rows.
        """
        self.partitions = partitions
        self.read(compiled, compiled.named_inputs)
        self._session = session
        self._random = np.random.default_rng(seed)
        self._kept: dict[int, tuple[FragmentInput, Frame]] = {}
        """Frames that stay where they are, by the identity of what they are for."""
        self._tasks: dict[int, tuple[Fragment, Task]] = {}
        """Tasks of fragments, by their identity."""
        self._worker: Session | None = None

    def scan(self, incoming: FragmentInput) -> Frame:
        """Return the rows of an input, scattered."""
        origin = incoming.origin
        assert not isinstance(origin, str)
        if incoming.files is not None:
            return self._scatter_rows(incoming.files.names)
        if isinstance(origin, Load):
            data = self._inputs[origin.source.tensor].loaded
            return self._scatter_rows(array_table(data, origin.table_type, origin.layout))
        if isinstance(origin, Dictionary):
            return self._scatter_rows(self.dictionary(origin))
        return self._scatter_rows(rows_of(self._session, origin.source, self._inputs))

    def dictionary(self, dictionary: Dictionary) -> pa.Table:
        """Return the ids of a dictionary, with their positions."""
        return dictionary_rows(self._session, dictionary, self._inputs)

    def _scatter_rows(self, rows: pa.Table) -> Frame:
        parts = self._random.integers(self.partitions, size=len(rows))
        return divide_rows(rows, parts, self.partitions)

    def place(self, frame: Frame, incoming: FragmentInput) -> Frame:
        """Bring the rows to their placement."""
        if not incoming.kept:
            return self._place(frame, incoming)
        if id(incoming) not in self._kept:
            self._kept[id(incoming)] = incoming, self._place(frame, incoming)
        return self._kept[id(incoming)][1]

    def _place(self, frame: Frame, incoming: FragmentInput) -> Frame:
        if isinstance(frame, Made) and frame.placement.serves(incoming.placement):
            return frame
        whole = pa.concat_tables(frame)
        if incoming.files is not None:
            parts = partition_of(whole, incoming.columns, self.partitions)
            empty = self._no_rows(incoming)
            return [
                pa.concat_tables([empty, *rows_of_files(files, empty.schema)])
                for files in divide_rows(whole, parts, self.partitions)
            ]
        match incoming.placement.spread:
            case Spread.REPLICATED:
                return [whole] * self.partitions
            case Spread.SINGLE:
                return [whole, *[whole.slice(0, 0)] * (self.partitions - 1)]
            case Spread.SCATTERED:
                return self._scatter_rows(whole)
        parts = partition_of(whole, incoming.columns, self.partitions)
        return divide_rows(whole, parts, self.partitions)

    def _no_rows(self, incoming: FragmentInput) -> pa.Table:
        """The columns that a table in files has here."""
        source = incoming.table
        assert source is not None
        return rows_of(self._session, source, self._inputs).schema.empty_table()

    def map(self, fragment: Fragment, placed: Mapping[str, Frame]) -> dict[str, Frame]:
        """Run a fragment on one partition after the other."""
        if id(fragment) not in self._tasks:
            self._tasks[id(fragment)] = fragment, Task.of(self._compiled, fragment)
        _, task = self._tasks[id(fragment)]
        found = {name: Made() for name in task.made}
        for each in fragment.made:
            found[each.read.step].placement = each.placement.stored
        for part in range(self.partitions):
            if self._worker is None:
                self._worker = open_partition()
            own = {name: frame[part] for name, frame in placed.items()}
            made = run_on_tables(self._worker, task, part, fragment.tables, own)
            for name, tables in found.items():
                tables.append(made[name] if name in made else tables[0].slice(0, 0))
        return dict(found)

    def collect(self, frame: Frame) -> pa.Table:
        """Return all rows."""
        return pa.concat_tables(frame)

    def read(self, compiled: Compiled, inputs: Mapping[str, BoundInput]) -> None:
        """Run a program on these inputs from now on."""
        self._compiled = compiled
        self._inputs = inputs

    def compute(self, frames: Mapping[str, Frame], wanted: Collection[str]) -> dict[str, pa.Table]:
        """Return the rows of the frames that are wanted; all are computed already."""
        return {name: self.collect(frames[name]) for name in wanted}

    def end_step(
        self,
        frames: Mapping[str, Frame],
        wanted: Collection[str],
        carried: Collection[str],
        *,
        due: bool,
    ) -> tuple[dict[str, pa.Table], Mapping[str, Frame]]:
        """Return the rows of the frames that are wanted; the others do not depend on any."""
        del carried, due
        return self.compute(frames, wanted), {}

    def close(self) -> None:
        """Release the frames that are kept."""
        self._tasks.clear()
        self._kept.clear()
        if self._worker is not None:
            self._worker.close()
            self._worker = None
