"""Purely relational SQL on DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb

from benchmarks.paper.tasks import Task
from benchmarks.peers import MEMORY, THREADS
from benchmarks.peers.tables import Entries, entry_table, is_complex


class Engine:
    """A database in memory with a table of entries for each input."""

    def load(self, task: Task) -> None:
        """Fill the tables."""
        self.connection = duckdb.connect(config={"threads": THREADS, "memory_limit": MEMORY})
        self.connection.execute("SET enable_progress_bar = false")
        self._script, self._complex = task.relational, is_complex(task.inputs)
        for name, value in task.inputs.items():
            self.connection.register("source", entry_table(value, self._complex))
            self.connection.execute(f"CREATE TABLE {name} AS FROM source").fetchall()
            self.connection.unregister("source")

    def run(self) -> None:
        """Create every table of the script."""
        for step in self._script.tables:
            self.connection.execute(
                f"CREATE OR REPLACE TEMP TABLE {step.name} AS {step.select}"
            ).fetchall()

    def result(self) -> Any:
        """Return the rows of the last table."""
        table = self.connection.sql(f"FROM {self._script.output}").to_arrow_table()
        return Entries.of_columns([column.to_numpy() for column in table.columns], self._complex)

    def close(self) -> None:
        """Close the database."""
        self.connection.close()
