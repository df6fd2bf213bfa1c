"""Build the dbt project on two days, the second with more data, and compare its tables with NumPy.

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
MODELS = ("smoothed", "central", "reach", "baskets", "together", "popular")


def build(folder: Path, day: int, rows: int) -> None:
    """`dbt build`: the models in order, each with its tests."""
    places = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    variables = ["--vars", json.dumps({"day": day, "rows": rows})]
    subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", "build", *places, *variables],
        env=os.environ | {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
        check=True,
    )
    results = json.loads((folder / "target" / "run_results.json").read_text())["results"]
    done = {result["unique_id"].split(".")[2]: result["status"] for result in results}
    assert {done[x] for x in MODELS} == {"success"}
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


def check_kept(database: str, day: int) -> None:
    """What is kept up to date against NumPy, on the baskets of all days."""
    with duckdb.connect(database, read_only=True) as connection:
        baskets = connection.execute("SELECT basket, product FROM baskets").fetchnumpy()
        together = connection.execute("SELECT p, q, val FROM together").fetchnumpy()
        popular = connection.execute("SELECT p, val FROM popular").fetchnumpy()
    bought = np.zeros((1000 * (day + 1), 23))
    bought[baskets["basket"], baskets["product"]] = 1
    assert set(baskets["basket"] // 1000) == set(range(1, day + 1))
    found = np.zeros((23, 23))
    found[together["p"], together["q"]] = together["val"]
    np.testing.assert_array_equal(found, bought.T @ bought)
    counts = np.zeros(23)
    counts[popular["p"]] = popular["val"]
    np.testing.assert_array_equal(counts, bought.sum(axis=0))


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
        subprocess.run([sys.executable, str(folder / "set_up.py"), database], check=True)
        for day, rows in ((1, 500), (2, 20000)):
            build(folder, day, rows)
            check(database)
            check_kept(database, day)
        check_macro(folder, database)


if __name__ == "__main__":
    main()
