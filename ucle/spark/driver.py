"""One partition on the driver, for programs too small to be distributed."""

from __future__ import annotations

from collections.abc import Mapping

from ucle.foundation.libraries import pa
from ucle.partitions.fragments import Fragment, FragmentInput
from ucle.partitions.run_fragment import Task, open_partition, run_on_tables
from ucle.pipeline.artifacts import Compiled
from ucle.spark.engine import SparkEngine


class Driver:
    """An engine of one partition, which fetches its inputs."""

    partitions = 1

    def __init__(self, engine: SparkEngine, compiled: Compiled) -> None:
        self._engine = engine
        self._compiled = compiled

    def scan(self, incoming: FragmentInput) -> pa.Table:
        """Return the rows of an input."""
        return self._engine.fetched(incoming)

    def place(self, frame: pa.Table, incoming: FragmentInput) -> pa.Table:
        """Return the rows as they are, as there is one place."""
        return frame

    def map(self, fragment: Fragment, placed: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Run a fragment."""
        task = Task.of(self._compiled, fragment)
        with open_partition() as session:
            return run_on_tables(session, task, 0, fragment.tables, placed)

    def collect(self, frame: pa.Table) -> pa.Table:
        """Return all rows."""
        return frame

    def close(self) -> None:
        """Do nothing, as nothing is kept."""
