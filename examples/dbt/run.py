"""Build the dbt project twice, on little and on more data, and compare its tables with NumPy.

To run it: `python examples/dbt/run.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import ucle

PROJECT = Path(__file__).parent
NODES, WIDTH = 300, 4


def build(folder: Path, rows: int) -> None:
    """`dbt build`: the models in order, each with its tests."""
    places = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    variables = ["--vars", json.dumps({"rows": rows})]
    subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", "build", *places, *variables],
        env=os.environ | {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
        check=True,
    )
    results = json.loads((folder / "target" / "run_results.json").read_text())["results"]
    done = {result["unique_id"].split(".")[2]: result["status"] for result in results}
    assert done["smoothed"] == done["central"] == done["reach"] == "success"
    assert done["nothing_is_negative"] == "pass"


def check(database: str) -> None:
    """The model against NumPy."""
    with duckdb.connect(database, read_only=True) as connection:
        edges = connection.execute("SELECT src, dst, weight FROM edges").fetchall()
        features = connection.execute("SELECT val FROM features ORDER BY node").fetchall()
        smoothed = connection.execute("SELECT i, val FROM smoothed").fetchall()
        reach = connection.execute("SELECT src, dst, weight FROM reach").fetchall()
        central = connection.execute("SELECT node FROM central ORDER BY total DESC").fetchall()
    adjacency: Any = np.zeros((NODES, NODES))
    for src, dst, weight in edges:
        adjacency[src, dst] = weight
    weights = np.cos(np.arange(8 * WIDTH)).reshape(8, WIDTH)
    expected = np.maximum(adjacency @ np.array([val for (val,) in features]) @ weights, 0)
    found = np.zeros((NODES, WIDTH))
    for i, val in smoothed:
        found[i] = val
    np.testing.assert_allclose(found, expected, atol=1e-12)
    totals = expected.sum(axis=1)
    np.testing.assert_allclose([totals[i] for (i,) in central], np.sort(totals)[::-1][:10])
    steps = np.zeros((NODES, NODES))
    for src, dst, weight in reach:
        steps[src, dst] = weight
    np.testing.assert_allclose(steps, adjacency @ adjacency, atol=1e-12)


def check_macro(folder: Path, database: str) -> None:
    """The macro in the project is the one that the program in it makes."""
    program = ucle.einsum_program(
        (PROJECT / "steps.ein").read_text(),
        A="edges",
        database=database,
        decomposition="relational",
    )
    assert program.macro_sql() in (folder / "macros" / "steps.sql").read_text()


def main() -> None:
    """Two builds in a copy of the project, as dbt writes beside it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "project"
        shutil.copytree(PROJECT, folder)
        database = os.environ["EXAMPLE_DATABASE"] = str(folder / "example.duckdb")
        for rows in (500, 20000):
            build(folder, rows)
            check(database)
        check_macro(folder, database)


if __name__ == "__main__":
    main()
