"""Macros in the place of functions: refused by name, wherever DuckDB would call them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

import ucle
from ucle.database import macro_check
from ucle.errors import DatabaseError

MACROS = [
    "sum(x) AS 42",
    "count(x) AS 42",
    "count_star() AS 42",
    '"+"(a, b) AS 42',
    '"*"(a, b) AS 42',
    "Abs(x) AS 42",
    "list_value(a) AS 42",
    "current_setting(x) AS 'data.other'",
    "current_database() AS 'nowhere'",
    "duckdb_functions() AS TABLE SELECT 1",
    "duckdb_databases() AS TABLE SELECT 1",
    "range(x) AS TABLE SELECT 1",
]


def compiled(database: object) -> ucle.EinsumProgram:
    return ucle.einsum_program("y[i] += A[i,j]", A="t", database=database)


@pytest.fixture
def path(tmp_path: Path) -> str:
    with duckdb.connect(str(tmp_path / "data.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT range i, range j, 1.0 v FROM range(3)")
        connection.execute("CREATE SCHEMA other").fetchall()
    return str(tmp_path / "data.db")


@pytest.mark.sample(3)
@pytest.mark.parametrize("macro", MACROS)
def test_macros_in_a_file(path: str, macro: str) -> None:
    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE MACRO {macro}").fetchall()
    name = macro.partition("(")[0].strip('"')
    with pytest.raises(DatabaseError, match="take the place of functions") as caught:
        compiled(path)
    assert f"data.main.{name}" in (caught.value.found or "").split(", ")
    with ucle.connect(path) as connection, pytest.raises(DatabaseError, match="macros"):
        compiled(connection)


def test_a_macro_that_comes_between_two_executions(path: str) -> None:
    program = compiled(path)
    with duckdb.connect(path) as connection:
        connection.execute("CREATE MACRO sum(x) AS 42").fetchall()
    with pytest.raises(DatabaseError, match="macros"):
        program.execute()
    with duckdb.connect(path) as connection:
        connection.execute("DROP MACRO sum").fetchall()
    assert program.execute()["y"].to_numpy().tolist() == [1, 1, 1]


def test_temporary_macros(path: str) -> None:
    with ucle.connect(path) as connection:
        connection.execute("CREATE TEMP MACRO sum(x) AS 42").fetchall()
        with pytest.raises(DatabaseError, match="macros") as caught:
            compiled(connection)
        assert caught.value.found == "temp.main.sum"
        assert compiled(connection.cursor()).execute()["y"].to_numpy().tolist() == [1, 1, 1]


def test_macros_that_are_in_nobody_s_way(path: str) -> None:
    with duckdb.connect(path) as connection:
        connection.execute("CREATE MACRO other.sum(x) AS 42").fetchall()
        connection.execute("CREATE MACRO my_sum(x) AS 42").fetchall()
    assert compiled(path).execute()["y"].to_numpy().tolist() == [1, 1, 1]
    with ucle.connect(path) as connection:
        connection.execute("SET search_path = 'other,main'").fetchall()
        with pytest.raises(DatabaseError, match="macros") as caught:
            compiled(connection)
        assert caught.value.found == "data.other.sum"


def test_what_ucle_opens_for_itself_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """To look takes longer than most of what `ucle.einsum` is given to do."""
    monkeypatch.setattr(macro_check, "macros_query", lambda: pytest.fail("it was looked at"))
    assert ucle.einsum("i,i", np.arange(3.0), np.arange(3.0)) == 5


def test_a_loop_does_not_look_again(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its step is compiled on the connection that has just been opened."""
    looked = []
    query = macro_check.macros_query
    monkeypatch.setattr(macro_check, "macros_query", lambda: looked.append(1) or query())
    text = "next[i] = y[i] / 2 + sum[j](A[i,j])"
    program = ucle.einsum_program(text, y=np.ones(3), A="t", database=path)
    program.iterate({"y": "next"}, max_steps=2)
    assert len(looked) == 1
    scratch = ucle.einsum_program("next[i] = y[i] / 2", y=np.ones(3))
    scratch.iterate({"y": "next"}, max_steps=2)
    assert len(looked) == 1
