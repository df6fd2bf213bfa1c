"""Temporary tables of results, which go when nobody holds them any more."""

from __future__ import annotations

import weakref
from typing import Any

import duckdb

from ucle.database.engine_errors import GONE
from ucle.database.quiet import drop_quietly
from ucle.database.session import Session

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
        self.name = name
        self._finalizer = weakref.finalize(self, _drop, session.connection, drop)

    @property
    def exists(self) -> bool:
        """Whether it was not dropped; a transaction that was rolled back took it unseen."""
        return self._finalizer.alive

    def drop(self) -> None:
        """Drop the table now."""
        self._finalizer()
