"""Reports of an execution while it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import chain, pairwise, repeat
from typing import Any

import duckdb
import pytest

import ucle
from ucle.database import session
from ucle.database.engine import DUCKDB
from ucle.foundation.progress import Progress

TEXT = "n[i] += A[i,j]; y[i,k] += A[i,j] * n[j] * A[k,j]"
SETTINGS = "FROM duckdb_settings() WHERE name LIKE 'enable_progress%' ORDER BY name"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with ucle.connect() as opened:
        opened.execute(
            "CREATE TABLE edges AS SELECT (i * 7919 % 9000)::INT AS i, (i // 80)::INT AS j, 1 AS v "
            "FROM range(100000) s(i)"
        ).fetchall()
        yield opened


def compile_on(connection: duckdb.DuckDBPyConnection) -> ucle.EinsumProgram:
    given = ucle.table("edges", duplicates="sum", bounds=[9000, 9000])
    return ucle.einsum_program(
        TEXT, A=given, database=connection, outputs=["n", "y"], decomposition="relational"
    )


def check(seen: list[Progress]) -> None:
    assert (seen[0].number, seen[0].share) == (1, 0)
    assert (seen[-1].number, seen[-1].share) == (seen[-1].steps, 1)
    assert seen[-1].total == 1
    for before, after in pairwise(seen):
        assert (before.number, before.share) <= (after.number, after.share)
    assert {"n", "y"} <= {progress.step for progress in seen}


def test_every_step_is_told(connection: duckdb.DuckDBPyConnection) -> None:
    before = connection.sql(SETTINGS).fetchall()
    seen: list[Progress] = []
    threads = set()

    def watch(progress: Progress) -> None:
        seen.append(progress)
        threads.add(threading.current_thread())

    with compile_on(connection).execute(progress=watch) as result:
        assert result["n"].to_numpy().sum() == 100_000
    check(seen)
    assert threads == {threading.current_thread()}
    assert connection.sql(SETTINGS).fetchall() == before


def test_in_another_thread(connection: duckdb.DuckDBPyConnection) -> None:
    program, seen = compile_on(connection), []
    cursor = connection.cursor()
    thread = threading.Thread(target=lambda: program.execute(cursor, progress=seen.append).close())
    thread.start()
    thread.join()
    check(seen)


@pytest.mark.parametrize("share", [0, 1])
def test_what_it_raises_ends_the_execution(
    connection: duckdb.DuckDBPyConnection, share: int
) -> None:
    def watch(progress: Progress) -> None:
        if progress.share == share:
            raise TimeoutError

    before = connection.sql(SETTINGS).fetchall()
    with pytest.raises(TimeoutError):
        compile_on(connection).execute(progress=watch)
    temporary = "SELECT count(*) FROM duckdb_tables() WHERE temporary"
    assert connection.sql(temporary).fetchall() == [(0,)]
    assert connection.sql(SETTINGS).fetchall() == before


@pytest.mark.skipif(
    not hasattr(duckdb.DuckDBPyConnection, "query_progress"), reason="DuckDB does not tell"
)
def test_duckdb_counts_within_a_statement() -> None:
    """A statement that does not end by itself is seen to move, and ended."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE long AS SELECT range AS i FROM range(2000000)").fetchall()
        program = ucle.einsum_program(
            "y += sqrt(exp(sigmoid(tanh(A[i] * B[j]))))",
            A=ucle.table("long", ["i"]),
            B=ucle.table("long", ["i"]),
            database=connection,
            decomposition="relational",
        )

        def watch(progress: Progress) -> Any:
            if 0 < progress.share < 1:
                raise InterruptedError(progress.share)

        with pytest.raises(InterruptedError):
            program.execute(progress=watch)


@pytest.mark.sample(1)
@pytest.mark.parametrize("later", [-1.0, 10.0])
def test_what_was_done_stays_done(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    """DuckDB knows less of a statement with another pipeline, and nothing of one that ends."""
    told = chain([20.0, 40.0], repeat(later))
    monkeypatch.setattr(session, "_percent_done", lambda _: next(told))
    monkeypatch.setattr(session, "INTERVAL", 0.001)
    seen: list[Progress] = []
    compile_on(connection).execute(progress=seen.append).close()
    check(seen)
    assert 0.4 in {progress.share for progress in seen}


def test_settings_of_the_connection_come_back(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET enable_progress_bar = true").fetchall()
    opened = DUCKDB.open(connection)
    before = connection.sql(SETTINGS).fetchall()
    with opened.enable_counting():
        assert connection.sql(SETTINGS).fetchall() != before
    assert connection.sql(SETTINGS).fetchall() == before
    connection.execute("BEGIN").fetchall()
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT error('no')").fetchall()
    with opened.enable_counting():  # in a transaction that was aborted
        pass
    connection.execute("ROLLBACK").fetchall()
    assert connection.sql(SETTINGS).fetchall() == before


def test_what_is_told_may_run_another_program(connection: duckdb.DuckDBPyConnection) -> None:
    """A callback may run another program, on a thread of its own for its statements."""
    answers = []

    def watch(progress: Progress) -> None:
        if 0 < progress.share < 1 and not answers:
            answers.append(ucle.einsum("i,i->", [1, 2], [3, 4]))

    compile_on(connection).execute(progress=watch).close()
    assert answers == [11]
