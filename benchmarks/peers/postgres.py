"""Purely relational SQL on PostgreSQL: a temporary cluster, created and removed by the runner."""

from __future__ import annotations

import contextlib
import glob
import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow.csv as pc

from benchmarks.paper.tasks import Task
from benchmarks.peers import THREADS, SkippedError
from benchmarks.peers.tables import Entries, column_types, entry_table, is_complex

SETTINGS = {
    "listen_addresses": "''",
    "shared_buffers": "1GB",
    "work_mem": "1GB",
    "temp_buffers": "512MB",
    "max_parallel_workers_per_gather": str(THREADS - 1),
    "max_parallel_workers": str(THREADS),
    "fsync": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
"""More memory than by default, and no protection against a crash."""


@contextlib.contextmanager
def cluster(limit: float) -> Iterator[str]:
    """Yield the connection string of a running server; statements are limited to `limit` seconds.

    Raises:
        SkippedError: PostgreSQL is not installed, or does not start.
    """
    programs = _programs()
    user = "postgres" if os.getuid() == 0 else None  # it refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="ucle_postgres_"))
    data = folder / "data"
    settings = SETTINGS | {
        "unix_socket_directories": f"'{folder}'",
        "statement_timeout": f"{1000 * limit:.0f}",  # ends leftovers of a worker
    }

    def call(*command: str | Path) -> None:
        done = subprocess.run(
            command, user=user, cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SkippedError(f"{Path(command[0]).name} failed: {done.stderr.strip()[-200:]}")

    try:
        if user:
            shutil.chown(folder, user)
        call(programs / "initdb", "-D", data, "-U", "ucle", "--auth=trust", "--no-sync")
        with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        call(programs / "pg_ctl", "-D", data, "-l", folder / "log", "-w", "start")
        try:
            yield f"host={folder} user=ucle dbname=postgres"
        finally:
            call(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs; Debian keeps them off the path."""
    found = [Path(p) for p in sorted(glob.glob("/usr/lib/postgresql/*/bin"))]
    if on_path := shutil.which("pg_ctl"):
        found.insert(0, Path(on_path).parent)
    if not found:
        raise SkippedError("not installed: pg_ctl (on Debian, apt-get install postgresql)")
    return found[-1]


class Engine:
    """A session on the runner's cluster, with a table of entries for each input."""

    def __init__(self, postgres: str | None = None, reason: str = "no cluster was started") -> None:
        if postgres is None:
            raise SkippedError(reason)
        self._connection = psycopg.connect(postgres, autocommit=True)

    def load(self, task: Task) -> None:
        """Fill the tables and gather statistics."""
        self._script, self._complex = task.relational, is_complex(task.inputs)
        for name, value in task.inputs.items():
            table = entry_table(value, self._complex)
            columns = column_types(table)
            types = ", ".join(
                f"{column} {'INTEGER' if key else 'DOUBLE PRECISION'}" for column, key in columns
            )
            self._connection.execute(f"CREATE TEMP TABLE {name} ({types})")
            text = io.BytesIO()
            pc.write_csv(table, text, pc.WriteOptions(include_header=False))
            with self._connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
                copy.write(text.getvalue())
            self._connection.execute(f"ANALYZE {name}")

    def run(self) -> None:
        """Create every table of the script."""
        for step in self._script.tables:
            self._connection.execute(f"DROP TABLE IF EXISTS {step.name}")
            self._connection.execute(f"CREATE TEMP TABLE {step.name} AS {step.select}")

    def result(self) -> Any:
        """Return the rows of the last table."""
        rows = self._connection.execute(f"SELECT * FROM {self._script.output}").fetchall()
        return Entries.of_columns(np.array(rows, dtype=np.float64).T, self._complex)

    def close(self) -> None:
        """End the session."""
        self._connection.close()
