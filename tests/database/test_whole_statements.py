"""Tables that nobody refers to are not dropped between a statement and the fetching of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ucle.database.temporary_tables import TemporaryTable, sweep
from ucle.database.whole_statements import fetch_all, is_running


class Connection:
    """Holds the result of its last statement, as DuckDB does; a query lets go of a table first."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.tables: list[TemporaryTable] = []

    def execute(self, sql: str, values: Sequence[Any] | None = None) -> Connection:
        self.statements.append(sql)
        if sql == "broken":
            raise ValueError(sql)
        if sql == "query":
            self.tables.clear()  # as the collector may, in this thread or in another
        return self

    def fetchall(self) -> list[tuple[str]]:
        return [(self.statements[-1],)]


def test_a_table_is_dropped_after_the_rows_were_fetched() -> None:
    connection: Any = Connection()
    session: Any = SimpleNamespace(connection=connection)
    connection.tables.append(TemporaryTable(session, "t", "drop"))
    assert fetch_all(connection, "query") == [("query",)]
    assert connection.statements == ["query"]
    sweep(session)
    assert connection.statements == ["query", "drop"]
    assert not is_running(connection)


def test_a_table_is_dropped_at_once_where_nothing_runs() -> None:
    connection: Any = Connection()
    session: Any = SimpleNamespace(connection=connection)
    table = TemporaryTable(session, "t", "drop")
    with pytest.raises(ValueError, match="broken"):
        fetch_all(connection, "broken")
    del table
    assert connection.statements == ["broken", "drop"]
