"""Statements whose rows are fetched before anything else runs on their connection.

A connection of DuckDB holds the result of its last statement. When Python collects a table of ucle
that nobody refers to any longer, in whichever thread, it would run a statement of its own; between
a statement and the fetching of its rows, it would take the place of these rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

_running: dict[int, int] = {}
"""The number of statements whose rows have not been fetched, by the identity of the connection."""


def fetch_all(
    connection: duckdb.DuckDBPyConnection, sql: str, values: Sequence[Any] | None = None
) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows; those of a statement that writes have their number.

    Args:
        connection: the connection, which no other thread uses meanwhile.
        sql: the statement.
        values: those of its parameters.

    Raises:
        duckdb.Error: DuckDB refused it.
    """
    with unfetched(connection):
        return connection.execute(sql, values).fetchall()


@contextlib.contextmanager
def unfetched(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Run a block that runs a statement and fetches its rows in another way than `fetch_all`."""
    key = id(connection)
    _running[key] = _running.get(key, 0) + 1
    try:
        yield
    finally:
        _running[key] -= 1
        if not _running[key]:
            del _running[key]


def is_running(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether rows of a statement are still to be fetched."""
    return id(connection) in _running
