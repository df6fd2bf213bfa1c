"""Databases in memory that wait for their next session.

To open one and to load the kernels takes ten times as long as a small program. So a session that
ucle opens has a `Lease`: a cursor on such a database, which nobody else uses in the meantime.
Temporary tables, and what is registered, are the cursor's, and go with it; the database then waits
for the next session of its kind. It does not where somebody else may have made something in it: a
user who was given a relation, or what a result was written to.
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
"""Databases that wait at most; the one that has waited for the longest is closed first."""

ONE = duckdb.__version__.startswith("1.")
"""Whether it is DuckDB 1, where a forked process that was left such a database ends in a fault, and
which does not notice it if a process reads and writes a file by two of them."""

_idle: deque[tuple[str | None, duckdb.DuckDBPyConnection]] = deque()


class Lease:
    """The use of a database in memory by one session."""

    def __init__(self, kind: str | None, make: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        """Take a database that waits, or open one.

        Args:
            kind: databases of one kind are opened alike: by their temporary directory.
            make: opens one.
        """
        self._kind = kind
        self.database, self.connection = _waiting(kind) or _with_cursor(make())
        self.shared = ONE
        """Whether it is not to wait: somebody else may have made something in it."""
        self._ended = False
        self._process = os.getpid()

    def end(self) -> None:
        """Close the cursor; the database waits for the next lease if nobody else has had it."""
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
        """The same where the session has gone by itself: what a user holds of it stays."""
        if not self.shared:
            self.end()


def _with_cursor(
    database: duckdb.DuckDBPyConnection,
) -> tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection]:
    return database, database.cursor()


def _waiting(
    kind: str | None,
) -> tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection] | None:
    """A database of a kind that waits, and a cursor on it; those that are broken are let go."""
    found, others = None, []
    # Sessions are collected at any moment, and theirs join: nothing here goes over the deque.
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
    """Keep connections of its parent open in a forked process, which has not their threads."""
    for connection in connections:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
