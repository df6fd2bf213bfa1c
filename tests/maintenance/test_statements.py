"""How many statements a refresh runs: each costs time, however small the change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest

import ucle
from ucle.database import session as sessions
from ucle.errors import NameResolutionError

MEANS = "s[i] += A[i,j]; n[i] count= A[i,j] != 0; m[i] = s[i] / max(n[i], 1)"
PROGRAMS = {
    "means": (MEANS, {}, {"told": 48, "appended": 44}),
    "sums": ("S[i] += A[i,j]", {}, {"told": 29, "appended": 25}),
    "ten largest": ("s[i,p] = top_k[j,p](A[i,j])", {"p": 10}, {"told": 26, "appended": 22}),
    "total": ("t[] += A[i,j]", {}, {"told": 29, "appended": 25}),
}

EACH_PROGRAM = ("SELECT current_setting('old_implicit_casting')",)
"""Statements that DuckDB 1 takes before each program."""


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the texts of all statements that sessions run within a block."""
    texts, fetch_all = list[str](), sessions.fetch_all

    def record(connection: Any, sql: str, values: Any = None) -> Any:
        texts.append(sql)
        return fetch_all(connection, sql, values)

    with monkeypatch.context() as patch:
        patch.setattr(sessions, "fetch_all", record)
        yield texts


def append(connection: duckdb.DuckDBPyConnection, number: int) -> None:
    """Append rows, which a table of their own has, too."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE new_rows AS "
        f"SELECT 7 * i AS i, 600 + {number} AS j, 1.5 + i AS val FROM range(20) r(i)"
    )
    connection.execute("INSERT INTO A FROM new_rows")


@pytest.mark.parametrize("found", ["told", "appended"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_refreshes(name: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, bounds, most = PROGRAMS[name]
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT i % 2000 AS i, i // 80 AS j, 1.0 + i % 7 AS val "
            "FROM range(40000) r(i)"
        )
        program = ucle.einsum_program(text, A="A", bounds=bounds, database=connection)
        appended = ["A"] if found == "appended" else []
        kept = program.maintain("kept", connection, append_only=appended)
        told: Any = {"inserted": {"A": "new_rows"}, "applied": True} if found == "told" else {}
        for number in range(3):
            append(connection, number)
            with recorded(monkeypatch) as texts:
                kept.refresh(**told)
        texts = [x for x in texts if x not in EACH_PROGRAM]
        repeated = {x for x in texts if texts.count(x) > 1}
        assert not repeated
        assert len(texts) <= most[found], "\n".join(texts)


NOTES = "SELECT part, rows FROM ucle.maintained_parts ORDER BY ALL"


@pytest.mark.parametrize("lost", ["DROP TABLE", "DELETE FROM"])
def test_notes_that_are_gone(lost: str) -> None:
    """As an early version left a database, which kept no notes."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE x AS SELECT i, 1.5 AS val FROM range(3) r(i)")
        program = ucle.einsum_program("y[i] = 2 * x[i]", x="x", database=connection)
        program.maintain("kept", connection)
        before = connection.sql(NOTES).fetchall()
        connection.execute(f"{lost} ucle.maintained_parts")
        other = connection.cursor()
        kept = ucle.maintained("kept", other)
        for _ in range(2):
            connection.execute("UPDATE x SET val = val + 1")
            kept.refresh()
            assert other.sql(NOTES).fetchall() == before
        assert other.sql("SELECT DISTINCT val FROM kept").fetchall() == [(7,)]


def test_a_program_that_is_not_there_leaves_a_transaction() -> None:
    with duckdb.connect() as connection:
        connection.execute("BEGIN; CREATE TABLE x AS SELECT 1 AS i")
        with pytest.raises(NameResolutionError):
            ucle.maintained("kept", connection)
        assert connection.sql("FROM x").fetchall() == [(1,)]
