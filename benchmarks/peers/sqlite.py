"""Purely relational SQL on SQLite, in memory and with indexes on joined columns."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np

from benchmarks.paper.tasks import Task
from benchmarks.peers.tables import Entries, column_types, entry_table, is_complex


class Engine:
    """A database in memory with a table of entries for each input."""

    def load(self, task: Task) -> None:
        """Fill the tables, index every column of coordinates, and gather statistics."""
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._script, self._complex = task.relational, is_complex(task.inputs)
        for name, value in task.inputs.items():
            table = entry_table(value, self._complex)
            columns = column_types(table)
            types = ", ".join(f"{c} {'INTEGER' if key else 'REAL'}" for c, key in columns)
            self._connection.execute(f"CREATE TABLE {name} ({types})")
            marks = ", ".join("?" * len(columns))
            rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
            self._connection.execute("BEGIN")
            self._connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
            self._connection.execute("COMMIT")
            for column, key in columns:
                if key:
                    self._connection.execute(f"CREATE INDEX {name}_{column} ON {name} ({column})")
        self._connection.execute("ANALYZE")

    def run(self) -> None:
        """Create every table of the script."""
        for step in self._script.tables:
            self._connection.execute(f"DROP TABLE IF EXISTS {step.name}")
            self._connection.execute(f"CREATE TEMP TABLE {step.name} AS {step.select}")

    def result(self) -> Any:
        """Return the rows of the last table."""
        rows = self._connection.execute(f"SELECT * FROM {self._script.output}").fetchall()
        return Entries.of_columns(np.array(rows).T, self._complex)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
