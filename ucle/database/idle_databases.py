"""Databases in memory that wait for their next session.

Opening a database and loading the kernels takes ten times as long as a small program. So a session
that ucle opens has a `Lease`: a cursor on such a database, which nobody else uses at the same time.
Temporary tables and registered objects belong to the cursor and disappear with it; the database
then waits for the next session of its kind. It is closed instead if somebody else may have created
something in it: a user who received a relation, or code that wrote a result to it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
from collections import deque
from collections.abc import Callable

import duckdb

WAITING = 4
"""The maximal number of waiting databases; the one that has waited longest is closed first."""

ONE = duckdb.__version__.startswith("1.")
"""True for DuckDB 1, which lacks two safeguards of DuckDB 2.

A forked process that inherits an idle database crashes, and DuckDB 1 does not detect that a process
reads and writes a file through two databases.
"""

_idle: deque[tuple[str | None, duckdb.DuckDBPyConnection]] = deque()


class Lease:
    """The exclusive use of a database in memory by one session."""

    def __init__(self, kind: str | None, make: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        """Take a waiting database, or open one.

        Args:
            kind: databases of one kind are interchangeable; the kind is their temporary directory.
            make: opens a database.
        """
        self._kind = kind
        self.database, self.connection = _waiting(kind) or _with_cursor(make())
        self.shared = ONE
        """True if it must not be reused: somebody else may have created something in it."""
        self._ended = False
        self._process = os.getpid()

    def end(self) -> None:
        """Close the cursor; the database waits for the next lease unless it was shared."""
        if self._ended:
            return
        self._ended = True
        if os.getpid() != self._process:
            _never_close(self.connection, self.database)
            return
        self.connection.close()
        if self.shared:
            self.database.close()
            return
        _idle.append((self._kind, self.database))
        while len(_idle) > WAITING:
            with contextlib.suppress(IndexError):  # another thread did it
                _idle.popleft()[1].close()

    def collected(self) -> None:
        """End the lease after its session was garbage-collected, unless it is shared."""
        if not self.shared:
            self.end()


def _with_cursor(
    database: duckdb.DuckDBPyConnection,
) -> tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection]:
    return database, database.cursor()


def _waiting(
    kind: str | None,
) -> tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection] | None:
    """A waiting database of a kind, and a cursor on it; broken databases are dropped."""
    found, others = None, []
    # Sessions may be collected at any moment and append to the deque: never iterate over it.
    while found is None:
        try:
            entry = _idle.pop()
        except IndexError:
            break
        if entry[0] != kind:
            others.append(entry)
            continue
        with contextlib.suppress(duckdb.Error):
            made = _with_cursor(entry[1])
            made[1].execute("SELECT 1").fetchall()
            found = made
    _idle.extend(reversed(others))
    return found


@atexit.register
def _close_all() -> None:
    while _idle:
        _idle.pop()[1].close()


def _leave_all() -> None:
    while _idle:
        _never_close(_idle.pop()[1])


def _never_close(*connections: duckdb.DuckDBPyConnection) -> None:
    """Keep connections of the parent open in a forked process, which lacks their threads."""
    for connection in connections:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
