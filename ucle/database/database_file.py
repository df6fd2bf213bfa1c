"""A database file that ucle opens by its path: for reading, and temporarily for writing.

The file is attached to a database in memory that belongs to the session, so that temporary tables
of results survive when it is detached, or attached in another mode. Readers lock nobody
out: several processes, and connections of the user, can read the same file. After an execution the
file is released.
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
from ucle.foundation.threads import opening
from ucle.sqlgen.database_queries import attach, checkpoint, databases_query, detach, use

MEMORY = "memory"
"""DuckDB's name of the database in memory."""

PATIENCE = 1.0
"""Seconds for which opening a locked file is retried: another process may be writing a note."""


class DatabaseFile:
    """A file attached to a database in memory, under the name that DuckDB gives it.

    Raises:
        duckdb.Error: it cannot be opened for reading while others have it open.
    """

    def __init__(self, path: str, config: dict[str, Any]) -> None:
        self.path = str(Path(path).absolute())
        self._config = config
        self._guard: duckdb.DuckDBPyConnection | None = None
        self.name: str | None = None
        """The name under which it is attached; None if it is not attached."""
        self._writable = False
        spilled = f"{path}.tmp"

        def open_memory() -> duckdb.DuckDBPyConnection:
            with opening:
                return duckdb.connect(config=config | {"temp_directory": spilled})

        self.lease = Lease(spilled, open_memory)
        """The lease of the database in memory."""
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
        if ONE:  # DuckDB 1 does not notice a writer in the same process, which DuckDB 2 refuses
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
        """Detach the file; temporary tables stay."""
        if self.name is not None:
            self.connection.execute(use(MEMORY)).fetchall()
            self.connection.execute(detach(self.name)).fetchall()
            self.name, self._writable = None, False
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def close(self) -> None:
        """Detach the file and end the database in memory."""
        with contextlib.suppress(duckdb.Error):
            self.detach()
        if self.name is not None or os.path.exists(f"{self.path}.tmp"):
            self.lease.shared = True  # only closing the database releases these
        self.lease.end()

    def close_collected(self) -> None:
        """End the lease after its session was garbage-collected, if the file is detached."""
        if self.name is None:
            self.lease.close_collected()

    @property
    def may_write(self) -> bool:
        """True if the permissions of the file allow this user to write it."""
        return os.access(self.path, os.W_OK)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Open the file for writing within a block; afterwards restore its previous state.

        Raises:
            duckdb.Error: it cannot be opened: somebody else reads or writes it.
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
            with contextlib.suppress(duckdb.Error):  # the next opening does it instead
                self.connection.execute(checkpoint(self.name)).fetchall()
        finally:
            self.detach()
            if attached:
                self.attach()

    def _attach_for_writing(self) -> None:
        if ONE:
            with opening:  # fails if this process has the file open, where ATTACH does not
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
