"""Temporary tables of results, which go when nobody holds them any more."""

from __future__ import annotations

import weakref
from typing import Any

import duckdb

from ucle.database.engine_errors import GONE
from ucle.database.quiet import drop_quietly
from ucle.database.session import Session
from ucle.sqlgen.script import column_view, drop_statement, sql_text
from ucle.sqlgen.sql_trees import VALUE

_pending: weakref.WeakKeyDictionary[Any, list[str]] = weakref.WeakKeyDictionary()


def sweep(session: Session) -> None:
    """Drop tables of results that were collected while the connection was busy."""
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
    """A temporary table that is dropped with this object, or by `drop`."""

    def __init__(self, session: Session, name: str, drop: str) -> None:
        self._name = name
        self._finalizer = weakref.finalize(self, _drop, session.connection, drop)

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    @property
    def place(self) -> tuple[str, str]:
        """The table and the column of values."""
        return self._name, VALUE

    @property
    def exists(self) -> bool:
        """Whether it was not dropped; a transaction that was rolled back took it unseen."""
        return self._finalizer.alive

    def drop(self) -> None:
        """Drop the table now."""
        self._finalizer()


class TemporaryColumn:
    """A column of a temporary table of one row, as a relation of its own.

    The table lasts as long as one of its columns does. A relation is made of the column when it is
    asked for its name: what goes on with the column alone does not need one.
    """

    def __init__(self, session: Session, row: TemporaryTable, column: str) -> None:
        self._session = session
        self._row: TemporaryTable | None = row
        self._place = row.name, column
        self._view: TemporaryTable | None = None

    @property
    def name(self) -> str:
        """What the relation is called."""
        if self._view is None:
            source, column = self._place
            name = f"{source} {column}"  # no step is called so
            self._session.fetch(sql_text(column_view(name, source, column)))
            drop = sql_text(drop_statement(name, "VIEW"))
            self._view = TemporaryTable(self._session, name, drop)
        return self._view.name

    @property
    def place(self) -> tuple[str, str]:
        """The table and the column of values."""
        return self._place

    @property
    def exists(self) -> bool:
        """Whether it was not dropped."""
        return self._row is not None and self._row.exists

    def drop(self) -> None:
        """Drop the column now: with the last one the table goes."""
        if self._view is not None:
            self._view.drop()
        self._row = None


Temporary = TemporaryTable | TemporaryColumn
"""Where a result lies."""
