"""Plan the SQLMesh project on two days, and compare its tables with NumPy.

To run it: `UCLE_PYTHON=... python examples/sqlmesh/run.py`, with the Python of an environment that
has ucle, for `set_up.py`. SQLMesh needs no ucle beside it: that goes with a newer sqlglot.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np

PROJECT = Path(__file__).parent
NODES = 300


def plan(folder: Path, day: int) -> None:
    """`sqlmesh plan` on the morning after a day of January: what has changed is built."""
    now = ["--execution-time", f"2026-01-0{day + 1}"]
    command = [str(Path(sys.executable).with_name("sqlmesh")), "--paths", str(folder), "plan"]
    subprocess.run([*command, "--auto-apply", "--no-prompts", *now], cwd=folder, check=True)


def load(database: Path, day: int) -> None:
    """What another system writes: the baskets of a day."""
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS raw")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS raw.baskets (day INTEGER, basket INTEGER, product INTEGER)"
        )
        connection.execute(
            "INSERT INTO raw.baskets SELECT DISTINCT $1, 1000 * $1 + i % 97, i * i * $1 % 23 "
            "FROM range(500) t(i)",
            [day],
        )


def matrix(connection: duckdb.DuckDBPyConnection, table: str) -> np.ndarray:
    """A table of links as an array."""
    made = np.zeros((NODES, NODES))
    for src, dst, weight in connection.execute(f"SELECT src, dst, weight FROM {table}").fetchall():
        made[src, dst] = weight
    return made


def check(database: Path) -> None:
    """The model against NumPy."""
    with duckdb.connect(str(database)) as connection:
        edges = matrix(connection, "graph.edges")
        np.testing.assert_allclose(matrix(connection, "graph.reach"), edges @ edges, atol=1e-12)


def check_kept(database: Path, days: int) -> None:
    """What is kept up to date against NumPy, on the baskets of all days."""
    with duckdb.connect(str(database)) as connection:
        baskets = connection.execute("SELECT basket, product FROM raw.baskets").fetchnumpy()
        popular = connection.execute("SELECT product, baskets FROM shop.popular").fetchnumpy()
    assert set(baskets["basket"] // 1000) == set(range(1, days + 1))
    counts = np.zeros(23)
    counts[popular["product"]] = popular["baskets"]
    np.testing.assert_array_equal(counts, np.bincount(baskets["product"], minlength=23))


def main() -> None:
    """In a copy of the project, as SQLMesh writes beside it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "project"
        shutil.copytree(PROJECT, folder)
        database = folder / "example.duckdb"
        for day in (1, 2):
            load(database, day)
            if day == 1:
                python = os.environ.get("UCLE_PYTHON", sys.executable)
                subprocess.run([python, str(folder / "set_up.py"), str(database)], check=True)
            plan(folder, day)
            check(database)
            check_kept(database, day)


if __name__ == "__main__":
    main()
