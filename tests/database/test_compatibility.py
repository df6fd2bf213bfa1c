"""Files that earlier commits have written (`tests/compat`) are read right, or made again."""

from __future__ import annotations

import contextlib
import gzip
import logging
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

import ucle
from ucle.database import statistics_cache

FILES = Path(__file__).parents[1] / "compat"


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = tmp_path / "old.db"
    place.write_bytes(gzip.decompress((FILES / "a71095e.db.gz").read_bytes()))
    return str(place)


def gram(place: str | duckdb.DuckDBPyConnection) -> np.ndarray:
    """The matrix times its transpose."""
    if isinstance(place, str):
        with duckdb.connect(place) as connection:
            return gram(connection)
    dense = np.zeros((6, 5))
    for i, j, value in place.execute("FROM A").fetchall():
        dense[i, j] = value
    return dense @ dense.T


def compiled(path: str, **options: object) -> ucle.EinsumProgram:
    decomposition = {"Y": {"i"}}
    return ucle.einsum_program(
        "Y[i,k] += A[i,j] * A[k,j]", A="A", database=path, decomposition=decomposition, **options
    )


def test_notes_and_kept_tables(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics_cache, "NOTED_ENTRIES", 1)
    statistics_cache.forget()
    with duckdb.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM ucle.facts").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM ucle.layouts").fetchall() == [(2,)]
    with caplog.at_level(logging.WARNING, "ucle"):
        found = compiled(path).execute()["Y"].to_numpy()
    np.testing.assert_allclose(found, gram(path))
    assert len({told for told in caplog.messages if "again" in told}) == 1
    program = compiled(path, store="A")
    np.testing.assert_allclose(program.execute()["Y"].to_numpy(), gram(path))
    caplog.clear()
    later = compiled(path)
    assert '"ucle"."A_by_i' in later.to_sql()
    np.testing.assert_allclose(later.execute()["Y"].to_numpy(), gram(path))
    assert caplog.messages == []


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_files_with_metadata(path: str, suffix: str) -> None:
    program = ucle.einsum_program("Z[i,k] = 2 * Y[i,k]", Y=str(FILES / f"a71095e.{suffix}"))
    found = program.execute()["Z"].to_numpy()
    np.testing.assert_allclose(found, 2 * gram(path))


@pytest.fixture
def later(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with kernels to a copy of the database that 98dc81d wrote."""
    place = tmp_path / "98dc81d.db"
    place.write_bytes(gzip.decompress((FILES / "98dc81d.db.gz").read_bytes()))
    with contextlib.closing(ucle.connect(str(place))) as connection:
        yield connection


NEWER = pytest.mark.skipif(
    int(duckdb.__version__.split(".")[0]) < 2,
    reason="macros and notes are of the DuckDB that has written them",
)


@pytest.mark.parametrize(
    "source", ['"Y"', '"P"', "kept", pytest.param("\"Y\"(A_table := 'A')", marks=NEWER)]
)
def test_views_tables_and_macros_of_98dc81d(source: str, later: duckdb.DuckDBPyConnection) -> None:
    expected = gram(later)
    rows = later.execute(f"SELECT i, k, val FROM {source}").fetchall()
    found = np.zeros_like(expected)
    for i, k, value in rows:
        found[i, k] = value
    np.testing.assert_allclose(found, expected)


def test_a_script_of_98dc81d(later: duckdb.DuckDBPyConnection) -> None:
    script = (FILES / "98dc81d.sql").read_text(encoding="utf-8")
    rows = later.execute(script).fetchall()
    found = np.array([values for _, values in sorted(rows)])
    np.testing.assert_allclose(found, gram(later))


@NEWER
def test_notes_of_98dc81d(
    later: duckdb.DuckDBPyConnection, caplog: pytest.LogCaptureFixture
) -> None:
    """Its kept tables are read as they are, and nothing is measured again."""
    with caplog.at_level(logging.WARNING, "ucle"):
        program = ucle.einsum_program(
            "Y[i,k] += A[i,j] * A[k,j]", A="A", database=later, decomposition={"Y": {"i"}}
        )
        assert '"ucle"."A_by_i' in program.to_sql()
        np.testing.assert_allclose(program.execute()["Y"].to_numpy(), gram(later))
    assert caplog.messages == []
