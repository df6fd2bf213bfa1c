"""Databases in memory that wait for the next session that ucle opens."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from database.test_processes import needs_fork, run

import ucle
from ucle.database import idle_databases
from ucle.database.engine import DUCKDB

pytestmark = pytest.mark.skipif(idle_databases.ONE, reason="with DuckDB 1 none waits")

A = np.arange(6.0).reshape(2, 3)
SUMS = [3.0, 12.0]


def program(**more: Any) -> ucle.EinsumProgram:
    return ucle.einsum_program("y[i] += A[i,j]", A=A, **more)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The databases that are opened during a test, which begins without one that waits."""
    paths: list[str] = []
    connect = duckdb.connect

    def noted(database: str = ":memory:", *args: Any, **kwargs: Any) -> duckdb.DuckDBPyConnection:
        paths.append(str(database))
        return connect(database, *args, **kwargs)

    program()  # the scratch database is there
    gc.collect()
    idle_databases._close_all()
    with monkeypatch.context() as patch:
        patch.setattr(duckdb, "connect", noted)
        yield paths
    idle_databases._close_all()


def test_one_serves_many_executions(opened: list[str]) -> None:
    sums = program()
    for n in range(6):
        if n % 2:
            with sums.execute() as result:
                assert result["y"].to_numpy().tolist() == SUMS
        else:  # a result that is not closed, but gone
            assert sums.execute()["y"].to_numpy().tolist() == SUMS
    with sums.prepare() as prepared:
        assert prepared()["y"].to_numpy().tolist() == SUMS
    assert sums.iterate({}, max_steps=2)["y"].to_numpy().tolist() == SUMS
    assert opened == [":memory:"]


def test_nothing_of_one_session_is_there_for_the_next(opened: list[str]) -> None:
    frame = ucle.table(ucle.array(A).to_arrow(), ["i", "j"], "val")
    for kind in (A, frame):
        with ucle.einsum_program("y[i] += A[i,j]", A=kind).execute() as result:
            assert result["y"].to_arrow().num_rows == 2
        with DUCKDB.open(None) as session:
            assert session.fetch("SELECT table_name FROM duckdb_tables()") == []
            assert session.fetch("SELECT view_name FROM duckdb_views() WHERE NOT internal") == []
    with pytest.raises(ucle.errors.NumberRangeError):
        ucle.einsum_program("y += B[i]", B=[2**62] * 3).execute()
    assert opened == [":memory:"]


def test_results_that_are_held_have_one_each(opened: list[str]) -> None:
    results = [program().execute() for _ in range(3)]
    assert [result["y"].to_numpy().tolist() for result in results] == [SUMS] * 3
    assert len(opened) == 3
    del results
    gc.collect()
    assert len(idle_databases._idle) == 3


def test_what_users_may_have_changed_is_not_used_again(opened: list[str]) -> None:
    with program().execute() as result:
        result["y"].to_table("kept")
    relation = program().execute()["y"].relation
    gc.collect()
    assert relation.fetchall() == [(0, 3.0), (1, 12.0)]  # its session has gone
    relation.create("made")
    program().execute()
    with DUCKDB.open(None) as session:
        assert session.fetch("SELECT table_name FROM duckdb_tables()") == []
    assert len(opened) == 3
    assert relation.fetchall() == [(0, 3.0), (1, 12.0)]


def test_few_wait(opened: list[str]) -> None:
    results = [program().execute() for _ in range(idle_databases.WAITING + 2)]
    for result in results:
        result.close()
    assert len(idle_databases._idle) == idle_databases.WAITING


def test_one_that_is_broken_is_let_go(opened: list[str]) -> None:
    program().execute().close()
    idle_databases._idle[0][1].close()
    assert program().execute()["y"].to_numpy().tolist() == SUMS
    assert opened == [":memory:"] * 2


def test_threads(opened: list[str]) -> None:
    def one(number: int) -> bool:
        scaled = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=A, x=np.full(3, number))
        with scaled.execute() as result:
            return bool((result["y"].to_numpy() == A.sum(axis=1) * number).all())

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(one, range(30)))
    assert len(opened) <= 3


def test_files_are_free_between_executions(opened: list[str], tmp_path: Path) -> None:
    """Others may write to them, replace tables, and take them away."""
    path = tmp_path / "a.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE a AS SELECT i, 0 AS j, i + 1.5 AS v FROM range(3) t(i)")
    sums = ucle.einsum_program("y[i] += A[i,j]", A="a", database=path)
    before = len(opened)
    expected = np.array([1.5, 2.5, 3.5])
    for n in range(4):
        with sums.execute() as result:
            np.testing.assert_array_equal(result["y"].to_numpy(), expected)
            if n == 3:
                result["y"].to_table("y")
        with duckdb.connect(path) as connection:
            if n == 1:
                connection.execute(
                    "CREATE OR REPLACE TABLE a AS SELECT i, j, v + 1 AS v FROM (SELECT * FROM a)"
                )
            else:
                connection.execute("UPDATE a SET v = v + 1")
        expected += 1
    assert opened[before:] == [str(path)] * 4  # by the test itself
    path.rename(tmp_path / "b.duckdb")
    with pytest.raises(ucle.errors.DatabaseError, match="does not exist"):
        sums.execute()
    assert sums.execute(tmp_path / "b.duckdb")["y"].to_numpy().tolist() == expected.tolist()


FORK = """
import os, sys
import numpy as np
import ucle

program = ucle.einsum_program("y[i] += A[i,j]", A=np.eye(3))

def answer():
    assert program.execute()["y"].to_numpy().tolist() == [1, 1, 1]

answer()
held = program.execute()
for number in range(3):
    child = os.fork()
    if child == 0:
        if number:
            answer()
        del held
        sys.exit(0)  # with all that a process does at its end
    print(os.waitpid(child, 0)[1])
    answer()
print(held["y"].to_numpy().tolist())
"""


@pytest.mark.slow
@needs_fork
def test_children_have_their_own() -> None:
    assert run(FORK) == "0\n" * 3 + "[1.0, 1.0, 1.0]\n"
