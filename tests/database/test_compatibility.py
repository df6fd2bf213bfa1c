"""Files that earlier commits have written (`tests/compat`) are read right, or made anew."""

from __future__ import annotations

import gzip
import logging
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


def gram(path: Path | str) -> np.ndarray:
    """The matrix times its transpose."""
    dense = np.zeros((6, 5))
    with duckdb.connect(str(path)) as connection:
        for i, j, value in connection.execute("FROM A").fetchall():
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
    assert len({told for told in caplog.messages if "anew" in told}) == 1
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
