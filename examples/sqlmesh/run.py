"""Plan the SQLMesh project twice, and compare its table with NumPy.

To run it: `python examples/sqlmesh/run.py`. Macros need no ucle beside them: it goes with a newer
sqlglot than SQLMesh does.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import duckdb
import numpy as np

PROJECT = Path(__file__).parent
NODES = 300


def plan(folder: Path) -> None:
    """`sqlmesh plan`: what has changed is built."""
    command = ["sqlmesh", "--paths", str(folder), "plan", "--auto-apply", "--no-prompts"]
    subprocess.run(command, cwd=folder, check=True)


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


def main() -> None:
    """In a copy of the project, as SQLMesh writes beside it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "project"
        shutil.copytree(PROJECT, folder)
        for _ in range(2):
            plan(folder)
            check(folder / "example.duckdb")


if __name__ == "__main__":
    main()
