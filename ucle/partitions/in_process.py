"""Partitions in this process: an engine for tests, which needs no cluster.

Rows are placed on partitions at random, drawn from a seed, so that nothing can rely on an order, or
on two tables being partitioned alike.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ucle.database.session import Session
from ucle.errors import CoordinateError
from ucle.foundation.libraries import pa
from ucle.inputs.states import PlacedInput
from ucle.partitions.fragments import Fragment, FragmentInput
from ucle.partitions.run_fragment import (
    Task,
    divide_rows,
    open_partition,
    partition_of,
    run_on_tables,
)
from ucle.pipeline.artifacts import Planned
from ucle.plan.placement_rules import Spread
from ucle.plan.relation_nodes import Load
from ucle.plan.sources import Dictionary, InMemory, TableSource
from ucle.plan.steps import Plan
from ucle.run.array_tables import array_table
from ucle.sqlgen.input_tables import dictionary_query, table_rows
from ucle.sqlgen.script import sql_text

Frame = Sequence[pa.Table]
"""A table for each partition."""


class InProcess:
    """Partitions in this process, each with a DuckDB of its own while it runs a fragment."""

    def __init__(self, planned: Planned, session: Session, partitions: int, seed: int = 0) -> None:
        """Start with a program.

        Args:
            planned: the program, whose inputs are read.
            session: sees the tables among them.
            partitions: the number of partitions.
            seed: of the initial placement of rows.
        """
        self.partitions = partitions
        self._planned = planned
        self._session = session
        self._random = np.random.default_rng(seed)
        self._kept: dict[int, tuple[FragmentInput, Frame]] = {}
        """Frames that stay where they are, by the identity of what they are for."""
        self._worker: Session | None = None

    def scan(self, incoming: FragmentInput) -> Frame:
        """Return the rows of an input, scattered."""
        origin, inputs = incoming.origin, self._planned.inputs
        assert not isinstance(origin, str)
        if isinstance(origin, Load):
            data = inputs[origin.source.tensor].data
            return self._scatter_rows(array_table(data, origin.type, origin.layout))
        if isinstance(origin, Dictionary):
            return self._scatter_rows(self.dictionary(origin))
        return self._scatter_rows(self._rows(origin.source, inputs[incoming.tensor]))

    def _rows(self, source: TableSource, placed: PlacedInput) -> pa.Table:
        if isinstance(source.origin, InMemory):
            self._session.register(source.origin.name, placed.data)
        try:
            return self._session.table(sql_text(table_rows(source)))
        finally:
            if isinstance(source.origin, InMemory):
                self._session.unregister(source.origin.name)

    def dictionary(self, dictionary: Dictionary) -> pa.Table:
        """Return the ids of a dictionary, with their positions."""
        origins = [source.origin for source, _ in dictionary.columns]
        memory = {origin.name for origin in origins if isinstance(origin, InMemory)}
        for placed in self._planned.inputs.values():
            for source in placed.sources:
                origin = source.origin if isinstance(source, TableSource) else None
                if isinstance(origin, InMemory) and origin.name in memory:
                    self._session.register(origin.name, placed.data)
        try:
            rows = self._session.table(sql_text(dictionary_query(dictionary, "")))
        finally:
            for name in memory:
                self._session.unregister(name)
        if len(rows) != dictionary.size:
            raise CoordinateError(
                "the number of ids differs from that for which the program was compiled",
                where=f"dictionary {dictionary.name}",
                expected=f"{dictionary.size} different ids",
                found=str(len(rows)),
                hint="a table has changed: compile the program again",
            )
        return rows

    def dictionaries(self, plan: Plan) -> dict[str, pa.Table]:
        """Return the tables of a program's dictionaries, for its results."""
        return {each.name: self.dictionary(each) for each in plan.dictionaries}

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
        whole = pa.concat_tables(frame)
        match incoming.placement.spread:
            case Spread.REPLICATED:
                return [whole] * self.partitions
            case Spread.SINGLE:
                return [whole, *[whole.slice(0, 0)] * (self.partitions - 1)]
            case Spread.SCATTERED:
                return self._scatter_rows(whole)
        parts = partition_of(whole, incoming.columns, self.partitions)
        return divide_rows(whole, parts, self.partitions)

    def map(self, fragment: Fragment, placed: Mapping[str, Frame]) -> dict[str, Frame]:
        """Run a fragment on one partition after the other."""
        task = Task.of(self._planned, fragment)
        found: dict[str, list[pa.Table]] = {name: [] for name in task.made}
        for part in range(self.partitions):
            if self._worker is None:
                self._worker = open_partition()
            own = {name: frame[part] for name, frame in placed.items()}
            made = run_on_tables(self._worker, task, part, fragment.tables, own)
            for name, rows in made.items():
                found[name].append(rows)
        return dict(found)

    def collect(self, frame: Frame) -> pa.Table:
        """Return all rows."""
        return pa.concat_tables(frame)

    def read(self, planned: Planned) -> None:
        """Read the inputs of a program from now on."""
        self._planned = planned

    def compute(self, frames: Mapping[str, Frame], wanted: Collection[str]) -> dict[str, pa.Table]:
        """Return the rows of the frames that are wanted; all are computed already."""
        return {name: self.collect(frames[name]) for name in wanted}

    def settle(self, frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
        """Return the frames as they are."""
        return frames

    def shorten(self, frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
        """Return the frames as they are: they do not depend on others."""
        return frames

    def close(self) -> None:
        """Release the frames that are kept."""
        self._kept.clear()
        if self._worker is not None:
            self._worker.close()
            self._worker = None
