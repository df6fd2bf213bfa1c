"""Log records, their names, and their absence where nobody listens."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import ucle
from ucle.database import statistics_cache
from ucle.udf_kernels import native

TEXT = "y[i] += A[i,j] * A[i,j]"


@pytest.fixture
def path(tmp_path: Path) -> str:
    statistics_cache.forget()
    with duckdb.connect(str(tmp_path / "data.db")) as connection:
        connection.execute(
            "CREATE TABLE edges AS SELECT i::INT AS i, i::INT AS j, 2.0 AS v FROM range(7) s(i)"
        ).fetchall()
    return str(tmp_path / "data.db")


def messages(caplog: pytest.LogCaptureFixture, name: str, level: int) -> list[str]:
    found = [r for r in caplog.records if r.name == f"ucle.{name}" and r.levelno == level]
    return [record.getMessage() for record in found]


def test_what_info_tells(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "ucle"):
        program = ucle.einsum_program(TEXT, A="edges", database=path, store="A")
        program.execute().close()
    assert all(record.levelno == logging.INFO for record in caplog.records)
    measured, *_ = messages(caplog, "statistics", logging.INFO)
    assert measured.startswith("measured A (edges) (0.")
    (compiled,) = messages(caplog, "compile", logging.INFO)
    vertex = program.compiled.program.by_name["y"]
    decomposed = vertex.text(program.compiled.decomposed.decompositions["y"])
    assert compiled.splitlines()[1:] == [f"  {decomposed}"]
    assert f"route {program.route}" in compiled
    executed = messages(caplog, "execute", logging.INFO)[-1]
    assert executed.startswith("executed in 0.")
    assert "y: " in executed
    assert "rows" in executed


def test_what_debug_adds(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "ucle"):
        program = ucle.einsum_program(TEXT, A="edges", database=path, decomposition="relational")
        program.execute().close()
        (statement,) = messages(caplog, "execute", logging.DEBUG)
        caplog.clear()
        ucle.einsum_program(TEXT, A="edges", database=path)
    assert statement.startswith("step y: ")
    assert 'FROM "edges"' in statement
    assert "A (edges) is remembered" in messages(caplog, "statistics", logging.DEBUG)


def test_what_is_stored(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "ucle"):
        ucle.einsum_program(TEXT, A="edges", database=path, store="A")
    (stored,) = messages(caplog, "store", logging.INFO)
    assert stored.startswith("stored A (edges) as data.ucle.edges_")


def test_what_is_stale(path: str, caplog: pytest.LogCaptureFixture) -> None:
    given = ucle.table("edges", bounds=[20_000, 20_000])
    program = ucle.einsum_program(
        "y[i] += A[i,j]", A=given, database=path, decomposition="relational"
    )
    with duckdb.connect(path) as connection:
        connection.execute("DELETE FROM edges").fetchall()
        connection.execute("INSERT INTO edges SELECT i, i, 1 FROM range(20000) s(i)").fetchall()
    with caplog.at_level(logging.INFO, "ucle"), pytest.warns(ucle.StaleStatisticsWarning):
        program.execute().close()
    (checked,) = messages(caplog, "statistics", logging.INFO)
    assert checked.startswith("checked A (edges)")
    stale, executed = messages(caplog, "execute", logging.INFO)
    assert "A (edges) held 7 entries" in stale
    assert "y: 20,000 rows" in executed


@pytest.fixture
def _damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build of the kernels that DuckDB cannot load."""
    broken = tmp_path / native.LIBRARY.name
    broken.write_bytes(b"nothing")
    monkeypatch.setattr(native, "LIBRARY", broken)


@pytest.mark.usefixtures("_damaged")
def test_why_kernels_are_slow_is_told_once_a_connection(caplog: pytest.LogCaptureFixture) -> None:
    """It used to be INFO, as where the connection forbids extensions."""
    with (
        caplog.at_level(logging.WARNING, "ucle"),
        duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection,
    ):
        for _ in range(3):
            program = ucle.einsum_program("y[i] += A[i]", A=[1, 2], database=connection)
            program.execute().close()
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("ucle", logging.WARNING)
    message = record.getMessage()
    assert message.startswith("kernels take the slower Arrow route: DuckDB refuses to load")
    assert "not a DuckDB extension" in message


@pytest.mark.usefixtures("_damaged")
def test_evaluations_without_a_database_tell_it_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ucle.database.open_sessions._scratch", [])
    with caplog.at_level(logging.WARNING, "ucle"):
        for _ in range(3):
            assert ucle.einsum("i,i", [1.0, 2.0], [3.0, 4.0]) == 11
    assert len(caplog.records) == 1


def test_connections_that_forbid_extensions_warn_of_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "ucle"), duckdb.connect() as connection:
        ucle.einsum_program("y[i] += A[i]", A=[1, 2], database=connection)
    (told,) = [x for x in caplog.records if "Arrow route" in x.getMessage()]
    assert (told.name, told.levelno) == ("ucle.execute", logging.INFO)


@pytest.mark.slow
def test_nothing_is_printed_unasked(path: str) -> None:
    script = (
        "import sys, ucle\n"
        f"program = ucle.einsum_program({TEXT!r}, A='edges', database=sys.argv[1])\n"
        "program.execute().close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
