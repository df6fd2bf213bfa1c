"""Full disks of four kinds: nothing that was there is lost, and every failure is a typed error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle import errors
from ucle.database import own_schema as catalogue
from ucle.database import statistics_cache

HANGS = 300

TABLE = "CREATE TABLE t AS SELECT range::INT i, (range % 7)::INT j, 1.5 v FROM range(5000)"
SUM = 7500.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("this system has no command mount")
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path, left: int) -> None:
    """Fill a disk up to some bytes."""
    state = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes(state.f_bavail * state.f_frsize - left))


def database(folder: Path) -> str:
    """A file with a table that is large enough for a note, in these tests."""
    path = str(folder / "data.db")
    with duckdb.connect(path) as connection:
        connection.execute(TABLE).fetchall()
    return path


def total(database: Any) -> float:
    program = ucle.einsum_program("y[i] += A[i,j]", A="t", database=database)
    with program.execute() as result:
        return float(result["y"].to_numpy().sum())


@pytest.fixture(autouse=True)
def _all_tables_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics_cache, "NOTED_ENTRIES", 1000)


@pytest.mark.sample(4)
@pytest.mark.parametrize("left", [0, 4096, 300_000])
@pytest.mark.parametrize("own", [True, False])
def test_notes_on_a_disk_that_is_nearly_full(disk: Path, left: int, own: bool) -> None:
    path = database(disk)
    fill(disk, left)
    if own:
        assert total(path) == SUM
    else:
        with ucle.connect(path) as connection:
            assert total(connection) == SUM
            assert connection.execute("SELECT sum(v) FROM t").fetchall() == [(SUM,)]
    (disk / "filler").unlink()
    with duckdb.connect(path) as connection:
        assert connection.execute("SELECT sum(v) FROM t").fetchall() == [(SUM,)]


def test_notes_are_written_where_there_is_space(tmp_path: Path) -> None:
    path = database(tmp_path)
    assert total(path) == SUM
    with duckdb.connect(path) as connection:
        assert len(connection.execute("FROM ucle.facts").fetchall()) == 1


def test_results_on_a_disk_that_is_full(disk: Path) -> None:
    path = database(disk)
    fill(disk, 100_000)
    random = np.random.default_rng(0).random((300, 300))
    program = ucle.einsum_program("y[i,j] = 2 * A[i,j]", A=random, database=path)
    with program.execute() as result:
        for name in ("y.parquet", "y.npy"):
            with pytest.raises(errors.OutputError, match="cannot be written"):
                result["y"].save(disk / name)
        with pytest.raises(errors.UcleError):
            result["y"].to_table("y")
    assert sorted(x.name for x in disk.iterdir() if "data.db" not in x.name) == ["filler"]
    (disk / "filler").unlink()
    with duckdb.connect(path) as connection:
        assert connection.execute("SELECT sum(v) FROM t").fetchall() == [(SUM,)]
        tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        assert ("y",) not in tables


@pytest.mark.slow
def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """The limit on the size of a process's files, which no free space tells of."""
    path = database(tmp_path)
    script = (
        "import resource, sys, os, ucle\n"
        "from ucle.database import statistics_cache\n"
        "statistics_cache.NOTED_ENTRIES = 1000\n"
        "limit = os.path.getsize(sys.argv[1]) + 1000\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
        "program = ucle.einsum_program('y[i] += A[i,j]', A='t', database=sys.argv[1])\n"
        "print(program.execute()['y'].to_numpy().sum())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, path],
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    # DuckDB may say before how far a statement is that takes long on a busy machine.
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, [f"{SUM}"]), done.stderr


def test_a_temporary_folder_that_is_full(tmp_path: Path) -> None:
    settings = {"memory_limit": "40MB", "threads": 1, "temp_directory": str(tmp_path)}
    with ucle.connect(**settings) as connection:
        # DuckDB does not heed it among the settings of an open.
        connection.execute("SET max_temp_directory_size = '1MB'").fetchall()
        connection.execute("CREATE TABLE a AS SELECT range i, random() v FROM range(1000)")
        program = ucle.einsum_program(
            "Y[i,k] = A[i] * B[k]",
            A="a",
            B="a",
            database=connection,
            decomposition="relational",
            memory_limit="10GB",
        )
        with program.execute(connection) as result:
            tables = (result["Y"].to_table(f"y{number}") for number in range(40))
            with pytest.raises((errors.DatabaseError, errors.MemoryLimitError)):
                list(tables)
        assert connection.execute("SELECT count(*) FROM a").fetchall() == [(1000,)]


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["--version"], ["run", "--help"], ["sql", "-"]])
def test_a_command_whose_output_is_full(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "ucle.command.cli", *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command,
            stdout=full,
            stderr=subprocess.PIPE,
            input="y[i] = 2 * [i == 1]",
            text=True,
            timeout=HANGS,
            check=False,
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("Error: ")


def test_whether_there_is_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert catalogue.has_space(database(tmp_path))
    assert not catalogue.has_space(str(tmp_path / "gone.db"))
    monkeypatch.setattr("ucle.database.own_schema.AMPLE", 2**62)
    assert not catalogue.has_space(str(tmp_path / "data.db"))
