"""A database file that ucle opens by its path: for reading, and for writing while it writes.

The file is attached to a database in memory that belongs to the session, so that temporary tables
of results stay when it is detached, or attached in another mode. Whoever only reads locks nobody
out: several processes, and connections of the user, read the same file. After an execution nothing
holds it any more.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb

from ucle.database.idle_databases import ONE, Lease
from ucle.foundation.fork_safety import opening
from ucle.sqlgen.database_queries import attach, checkpoint, databases_query, detach, use

MEMORY = "memory"
"""What DuckDB calls the database in memory."""

PATIENCE = 1.0
"""Seconds for which a file that is locked is asked for: another process may be writing a note."""


class DatabaseFile:
    """A file beside a database in memory, under the name that DuckDB gives it.

    Raises:
        duckdb.Error: it cannot be opened for reading beside what else has it open.
    """

    def __init__(self, path: str, config: dict[str, Any]) -> None:
        self.path = str(Path(path).absolute())
        self._config = config
        self._guard: duckdb.DuckDBPyConnection | None = None
        self.name: str | None = None
        """Under which it is attached; None while it is not."""
        self._writable = False
        spilled = f"{path}.tmp"

        def open_memory() -> duckdb.DuckDBPyConnection:
            with opening:
                return duckdb.connect(config=config | {"temp_directory": spilled})

        self.lease = Lease(spilled, open_memory)
        """Of the database in memory."""
        self.connection = self.lease.connection
        try:
            self.attach()
        except BaseException:
            self.close()
            raise

    def attach(self) -> None:
        """Attach the file for reading, if it is not attached."""
        if self.name is None:
            _patiently(self._attach)

    def _attach(self) -> None:
        if ONE:  # it does not notice a connection of the same process that writes, where 2 refuses
            with opening:
                self._guard = duckdb.connect(self.path, read_only=True, config=self._config)
        try:
            self._attach_as(writable=False)
        except BaseException:
            self.detach()
            raise

    def _attach_as(self, *, writable: bool) -> None:
        with opening:
            self.connection.execute(attach(self.path, read_only=not writable)).fetchall()
        rows = self.connection.execute(databases_query()).fetchall()
        (self.name,) = (row[0] for row in rows if row[1] and os.path.samefile(row[1], self.path))
        self._writable = writable
        self.connection.execute(use(self.name)).fetchall()

    def detach(self) -> None:
        """Let go of the file; temporary tables stay."""
        if self.name is not None:
            self.connection.execute(use(MEMORY)).fetchall()
            self.connection.execute(detach(self.name)).fetchall()
            self.name, self._writable = None, False
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def close(self) -> None:
        """Let go of the file and end the database in memory."""
        with contextlib.suppress(duckdb.Error):
            self.detach()
        if self.name is not None or os.path.exists(f"{self.path}.tmp"):
            self.lease.shared = True  # only its end lets go of these
        self.lease.end()

    def collected(self) -> None:
        """The same where the session has gone by itself, after its execution."""
        if self.name is None:
            self.lease.collected()

    @property
    def may_write(self) -> bool:
        """Whether its owner lets this user write the file."""
        return os.access(self.path, os.W_OK)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A block in which the file is open for writing; then it is as it was before.

        Raises:
            duckdb.Error: it cannot be had: somebody else reads or writes it.
        """
        if self._writable:
            yield
            return
        attached = self.name is not None
        self.detach()
        try:
            _patiently(self._attach_for_writing)
            yield
            assert self.name is not None
            with contextlib.suppress(duckdb.Error):  # or when it is opened next
                self.connection.execute(checkpoint(self.name)).fetchall()
        finally:
            self.detach()
            if attached:
                self.attach()

    def _attach_for_writing(self) -> None:
        if ONE:
            with opening:  # it says whether this process has the file open, where ATTACH does not
                duckdb.connect(self.path, config=self._config).close()
        self._attach_as(writable=True)


def _patiently(ask: Callable[[], None]) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            ask()
            return
        except duckdb.IOException as error:
            if "lock" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.02)
