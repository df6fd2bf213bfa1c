"""Purely relational SQL on Hyper (`tableauhyperapi`)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from tableauhyperapi import Connection, CreateMode, HyperProcess, Telemetry

from benchmarks.paper.tasks import Task
from benchmarks.peers import THREADS
from benchmarks.peers.tables import Entries, entry_table, is_complex


class Engine:
    """A server of its own that ends with this process, and a table of entries for each input."""

    def load(self, task: Task) -> None:
        """Fill the tables from Parquet files."""
        self._script, self._complex = task.relational, is_complex(task.inputs)
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        parameters = {
            "log_dir": str(folder),
            "hard_concurrent_query_thread_limit": str(THREADS),
        }
        self._process = HyperProcess(
            Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters=parameters
        )
        self._connection = Connection(
            self._process.endpoint, str(folder / "db.hyper"), CreateMode.CREATE
        )
        for name, value in task.inputs.items():
            file = folder / f"{name}.parquet"
            pq.write_table(entry_table(value, self._complex), file)
            self._connection.execute_command(
                f"CREATE TABLE {name} AS (SELECT * FROM external('{file}'))"
            )

    def run(self) -> None:
        """Create every table of the script."""
        for step in self._script.tables:
            self._connection.execute_command(f"DROP TABLE IF EXISTS {step.name}")
            self._connection.execute_command(f"CREATE TEMP TABLE {step.name} AS ({step.select})")

    def result(self) -> Any:
        """Return the rows of the last table."""
        rows = self._connection.execute_list_query(f"SELECT * FROM {self._script.output}")
        return Entries.of_columns(np.array(rows, dtype=np.float64).T, self._complex)

    def close(self) -> None:
        """Stop the server."""
        self._connection.close()
        self._process.close()
        self._folder.cleanup()
