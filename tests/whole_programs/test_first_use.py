"""A new user with a Parquet file of edges copies the README's lines and has a PageRank table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from documents import ROOT, code_blocks

DAMPING, STEPS = 0.85, 20


def readme_lines() -> str:
    """The one block of the README that stores a table of PageRanks."""
    (found,) = (
        block.text
        for block in code_blocks(ROOT / "README.md")
        if block.language == "python" and 'to_table("pagerank"' in block.text
    )
    return found


def pagerank(src: np.ndarray, dst: np.ndarray, names: np.ndarray) -> np.ndarray:
    """PageRank by powers of a scipy matrix; nothing of ucle is in here."""
    where = {name: n for n, name in enumerate(names)}
    places = [where[x] for x in dst], [where[x] for x in src]
    count = len(names)
    links = scipy.sparse.csr_array((np.ones(len(src)), places), shape=(count, count))
    out = links.sum(axis=0)
    follow = links @ scipy.sparse.diags_array(1 / np.maximum(out, 1))
    rank = np.full(count, 1 / count)
    for _ in range(STEPS):
        rank = DAMPING * (follow @ rank + rank[out == 0].sum() / count) + (1 - DAMPING) / count
    return rank


def test_it_takes_less_than_twenty_lines() -> None:
    lines = [line for line in readme_lines().splitlines() if line.strip()]
    assert len(lines) < 20


@pytest.mark.slow
@pytest.mark.parametrize("ids", ["strings", "scattered integers"])
def test_own_file_to_pagerank_table(ids: str, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    # The last twenty of 300 pages have no links, and many pages nobody links to.
    pairs = np.unique(
        np.stack([random.integers(0, 280, 2000), random.integers(0, 300, 2000) ** 2 // 300]), axis=1
    )
    numbers = np.sort(random.choice(10**9, 300, replace=False))
    names = np.array([f"https://{n}.example/" for n in numbers]) if ids == "strings" else numbers
    src, dst = names[pairs[0]], names[pairs[1]]
    pq.write_table(pa.table({"src": src, "dst": dst}), tmp_path / "edges.parquet")

    (tmp_path / "mine.py").write_text(readme_lines(), encoding="utf-8")
    command = [sys.executable, "mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    with duckdb.connect(tmp_path / "web.duckdb", read_only=True) as connection:
        found = connection.sql("SELECT page, val FROM pagerank ORDER BY page").fetchnumpy()
    known = np.unique(np.concatenate([src, dst]))
    expected = pagerank(src, dst, known)
    assert (found["page"] == known).all()
    np.testing.assert_allclose(found["val"], expected, rtol=1e-9)
    assert abs(expected.sum() - 1) < 1e-9
    assert expected.max() > 5 / len(known)  # they are not all the same
