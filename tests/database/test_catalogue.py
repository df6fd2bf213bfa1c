"""Notes in a user's database: kept where that may be, and never at the cost of anything else."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import ucle
from ucle.database.open_sessions import open_session
from ucle.database.own_schema import home, read_notes, write_note
from ucle.errors import InputError
from ucle.plan.sources import InMemory, ParquetFile, TableName, TableSource
from ucle.sqlgen.database_queries import FACTS

ROW = ("main.t", "i, v", "1", "it's known")


def source(*parts: str) -> TableSource:
    return TableSource(TableName(parts), ("i",), "v")


@pytest.fixture
def path(tmp_path: Path) -> str:
    with duckdb.connect(str(tmp_path / "data.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 i, 2.0 v").fetchall()
    return str(tmp_path / "data.db")


def test_a_note_outlives_the_connection(path: str) -> None:
    about = {"relation": "main.t"}
    with open_session(path) as session:
        assert home(session, source("t")) == "data"
        assert read_notes(session, "data", FACTS, about) == []
        assert write_note(session, "data", FACTS, ("main.t", "i, v", "0", "replaced"))
        assert write_note(session, "data", FACTS, ROW)
        assert write_note(session, "data", FACTS, ("main.u", *ROW[1:]))
    with open_session(path) as session:
        assert read_notes(session, "data", FACTS, about) == [ROW]
        assert read_notes(session, "data", FACTS, {"relation": "u"}) == []


def test_where_nothing_is_kept(path: str, tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE m AS SELECT 1 i, 2.0 v").fetchall()
        connection.execute(f"ATTACH '{path}' AS other (READ_ONLY)").fetchall()
        session = open_session(connection)
        for names in (["m"], ["other", "t"], ["t"], ["nowhere"]):
            assert home(session, source(*names)) is None
        assert home(session, TableSource(InMemory("table", "m"), ("i",), "v")) is None
        assert home(session, TableSource(ParquetFile("x.parquet"), ("i",), "v")) is None
        assert not write_note(session, "other", FACTS, ROW)
    with duckdb.connect(path) as connection:
        session = open_session(connection)
        assert home(session, TableSource(ParquetFile("x.parquet"), ("i",), "v")) == "data"
        connection.execute(f"ATTACH '{tmp_path / 'more.db'}' AS more").fetchall()
        connection.execute("CREATE TABLE more.m AS SELECT 1 i, 2.0 v").fetchall()
        assert home(session, source("more", "m")) == "more"
        assert write_note(session, "more", FACTS, ROW)
        connection.execute("CREATE TEMP TABLE only_here AS SELECT 1 i, 2.0 v").fetchall()
        assert home(session, source("only_here")) is None
        connection.execute("BEGIN").fetchall()
        assert home(session, source("t")) is None


def test_a_schema_of_that_name_that_is_the_user_s(path: str) -> None:
    """Its tables stay inputs, and what is in the way of a note is left alone."""
    with duckdb.connect(path) as connection:
        connection.execute("CREATE SCHEMA ucle").fetchall()
        connection.execute("CREATE TABLE ucle.facts AS SELECT 1 i, 2.0 v").fetchall()
        connection.execute("CREATE TABLE ucle.mine AS SELECT 1 i, 2.0 v").fetchall()
        session = open_session(connection)
        assert read_notes(session, "data", FACTS, {"relation": "main.t"}) == []
        assert not write_note(session, "data", FACTS, ROW)
        assert connection.execute("FROM ucle.facts").fetchall() == [(1, 2.0)]
        program = ucle.einsum_program("y[i] = 2 * a[i]", a="ucle.mine", database=connection)
        assert program.execute()["y"].to_numpy().tolist() == [0, 4]


def test_what_is_kept_is_no_input(path: str) -> None:
    with open_session(path) as session:
        assert write_note(session, "data", FACTS, ROW)
    for name in ("ucle.facts", "facts", "fact"):
        with pytest.raises(InputError, match="cannot find") as caught:
            ucle.einsum_program("y[i] = 2 * a[i]", a=name, database=path)
        assert "facts" not in (caught.value.hint or "")
