"""Database files by their paths: read by many, written by one for as long as it writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from numpy.testing import assert_array_equal

import ucle
from ucle.command.cli import main
from ucle.errors import DatabaseError

TEXT = "y[i] += A[i,j] * x[j]"
READER = f"""
import sys, ucle
result = ucle.einsum_program({TEXT!r}, A="a", x=[1.0, 2.0], database=sys.argv[1]).execute()
held = result["y"].relation  # holds the file
print(result["y"].to_numpy().tolist(), flush=True)
input()
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "graph.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE a AS SELECT * FROM (VALUES (0, 0, 1.0), (1, 1, 3.0)) t(i, j, v)"
        )
        connection.execute(
            "CREATE TABLE names AS SELECT * FROM (VALUES (0, 'n'), (1, 'm')) t(i, name)"
        )
    return path


def program(database: Path) -> ucle.EinsumProgram:
    return ucle.einsum_program(TEXT, A="a", x=[1.0, 2.0], database=database)


@pytest.mark.slow
def test_processes_read_one_file(database: Path) -> None:
    command = [sys.executable, "-c", READER, str(database)]
    readers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for reader in readers:
        assert reader.stdout is not None
        assert any("[1.0, 6.0]" in line for line in reader.stdout)  # DuckDB may draw its bar
    with program(database).execute() as result:
        assert_array_equal(result["y"].to_numpy(), [1.0, 6.0])
        with pytest.raises(DatabaseError, match="opened for writing"):
            result["y"].to_table("y")
        assert_array_equal(result["y"].to_numpy(), [1.0, 6.0])
    for reader in readers:
        reader.communicate("\n")
        assert reader.returncode == 0


def test_results_outlive_writing(database: Path) -> None:
    result = program(database).execute()
    result["y"].to_table("y")
    result["y"].to_table("z")
    with duckdb.connect(database) as connection:  # nothing holds the file
        assert connection.execute("SELECT count(*) FROM y JOIN z USING (i)").fetchall() == [(2,)]
        connection.execute("CREATE TABLE other AS SELECT 1")
    assert_array_equal(result["y"].to_numpy(), [1.0, 6.0])
    relation = result["y"].relation
    joined = relation.query("y_", "SELECT name, val FROM y_ JOIN names USING (i) ORDER BY 1")
    assert joined.fetchall() == [("m", 6.0), ("n", 1.0)]
    result["y"].to_table("y", replace=True)
    result.close()


def test_views_and_stored_inputs_of_a_path(database: Path) -> None:
    ucle.einsum_program(
        "w[i] = 2 * A[i,j]", A="a", database=database, decomposition="relational"
    ).create_views()
    stored = ucle.einsum_program(
        TEXT, A="a", x=[1.0, 2.0], database=database, store="A", decomposition={"y": []}
    )
    with stored.execute() as result:
        assert_array_equal(result["y"].to_numpy(), [1.0, 6.0])
    with duckdb.connect(database, read_only=True) as connection:
        assert sorted(connection.execute("FROM w").fetchall()) == [(0, 2.0), (1, 6.0)]
        kept = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'ucle'")
        assert kept.fetchall() != [(0,)]


def test_a_file_that_is_open_here(database: Path) -> None:
    with ucle.connect(database) as connection:
        connection.execute("INSERT INTO a VALUES (2, 0, 5.0)")
        with program(database).execute() as result:
            assert_array_equal(result["y"].to_numpy(), [1.0, 6.0, 5.0])
            result["y"].to_table("y")
        assert connection.execute("SELECT count(*) FROM y").fetchall() == [(3,)]


def test_the_command_reads_only(database: Path, tmp_path: Path) -> None:
    text = tmp_path / "program.ein"
    text.write_text("y[i] += A[i,j]")
    run = ["run", str(text), "-d", str(database), "-i", "A=a", "--read-only"]
    with duckdb.connect(database, read_only=True, config={"allow_unsigned_extensions": "true"}):
        done = CliRunner().invoke(main, run)
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(main, [*run, "--to-table", "y=z"]).exit_code == 2
    assert CliRunner().invoke(main, [*run, "--store", "A"]).exit_code == 2
