"""Temporary tables of results, which are dropped when no object refers to them any more."""

from __future__ import annotations

import weakref
from typing import Any

import duckdb

from ucle.database.change_detection import drop_quietly
from ucle.database.engine_errors import GONE
from ucle.database.session import Session
from ucle.sqlgen.sql_trees import VALUE

_pending: weakref.WeakKeyDictionary[Any, list[str]] = weakref.WeakKeyDictionary()


def sweep(session: Session) -> None:
    """Drop tables of results that were garbage-collected while the connection was busy."""
    for statement in _pending.pop(session.connection, []):
        _drop(session.connection, statement)


def _drop(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    try:
        drop_quietly(connection, statement)
    except GONE:
        pass
    except duckdb.Error:
        _pending.setdefault(connection, []).append(statement)


class TemporaryTable:
    """A temporary table that is dropped when this object is collected, or by `drop`."""

    def __init__(self, session: Session, name: str, drop: str) -> None:
        self._name = name
        self._finalizer = weakref.finalize(self, _drop, session.connection, drop)

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._name

    @property
    def place(self) -> tuple[str, str]:
        """The table and the column of values."""
        return self._name, VALUE

    @property
    def exists(self) -> bool:
        """True unless it was dropped; a rollback may have removed it unnoticed."""
        return self._finalizer.alive

    def drop(self) -> None:
        """Drop the table now."""
        self._finalizer()


class TemporaryColumn:
    """A column of a temporary one-row table, which readers treat as a relation of its own.

    The table exists as long as one of its columns does.
    """

    def __init__(self, row: TemporaryTable, column: str) -> None:
        self._row: TemporaryTable | None = row
        self._place = row.name, column

    @property
    def place(self) -> tuple[str, str]:
        """The table and the column of values."""
        return self._place

    @property
    def exists(self) -> bool:
        """True unless it was dropped."""
        return self._row is not None and self._row.exists

    def drop(self) -> None:
        """Drop the column now; the table is dropped with its last column."""
        self._row = None


Temporary = TemporaryTable | TemporaryColumn
"""The place of a stored result."""
