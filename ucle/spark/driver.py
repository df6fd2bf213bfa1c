"""One partition on the driver, for programs that are too small to be distributed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ucle.database.session import Session
from ucle.foundation.libraries import pa
from ucle.inputs.states import BoundInput
from ucle.partitions.fragments import Fragment, FragmentInput
from ucle.partitions.run_fragment import Task, open_partition, run_on_tables
from ucle.pipeline.artifacts import Compiled
from ucle.plan.sources import Dictionary
from ucle.spark.engine import SparkEngine


class Driver:
    """An engine of one partition, which fetches its inputs."""

    partitions = 1

    def __init__(self, engine: SparkEngine) -> None:
        """Fetch inputs by means of an engine for the cluster."""
        self._engine = engine
        self._session: Session | None = None
        self._kept: dict[int, tuple[FragmentInput, pa.Table]] = {}
        """Rows of fixed inputs, by the identity of what they are for."""
        self._tasks: dict[int, tuple[Fragment, Task]] = {}

    def scan(self, incoming: FragmentInput) -> pa.Table:
        """Return the rows of an input."""
        return self._engine.fetch_rows(incoming)

    def dictionary(self, dictionary: Dictionary) -> pa.Table:
        """Return the positions of ids."""
        return self._engine.dictionary(dictionary)

    def place(self, frame: pa.Table, incoming: FragmentInput) -> pa.Table:
        """Return the rows as they are, as there is one place."""
        if not incoming.kept:
            return frame
        return self._kept.setdefault(id(incoming), (incoming, frame))[1]

    def map(self, fragment: Fragment, placed: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Run a fragment."""
        if id(fragment) not in self._tasks:
            self._tasks[id(fragment)] = fragment, Task.of(self._engine.compiled, fragment)
        _, task = self._tasks[id(fragment)]
        if self._session is None:
            self._session = open_partition()
        return run_on_tables(self._session, task, 0, fragment.tables, placed)

    def collect(self, frame: pa.Table) -> pa.Table:
        """Return all rows."""
        return frame

    def read(self, compiled: Compiled, inputs: Mapping[str, BoundInput]) -> None:
        """Run a program on these inputs from now on."""
        self._engine.read(compiled, inputs)

    def compute(
        self, frames: Mapping[str, pa.Table], wanted: Collection[str]
    ) -> dict[str, pa.Table]:
        """Return the rows of the frames that are wanted; all are computed already."""
        return {name: frames[name] for name in wanted}

    def end_step(
        self,
        frames: Mapping[str, pa.Table],
        wanted: Collection[str],
        carried: Collection[str],
        *,
        due: bool,
    ) -> tuple[dict[str, pa.Table], Mapping[str, pa.Table]]:
        """Return the rows of the frames that are wanted; the others do not depend on any."""
        del carried, due
        return self.compute(frames, wanted), {}

    def close(self) -> None:
        """Close the DuckDB."""
        self._tasks.clear()
        self._kept.clear()
        if self._session is not None:
            self._session.close()
            self._session = None
        self._engine.close()
