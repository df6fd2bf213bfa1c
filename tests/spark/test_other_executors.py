"""Executors whose ucle is not the driver's: a typed error, or what needs nothing of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cluster import MASTER, REMOTE, settings

pytest.importorskip("pyspark.sql", reason="`make spark-test` runs it")
pytestmark = pytest.mark.skipif(
    REMOTE is not None or not MASTER.startswith("local-cluster") or shutil.which("java") is None,
    reason="there are no executors of their own",
)

NO_KERNELS = """
from pathlib import Path

import ucle.udf_kernels.native

ucle.udf_kernels.native.LIBRARY = Path("/nonexistent/kernels")
"""
OLD_VERSION = """
import ucle.foundation.version

ucle.foundation.version.__version__ = "0.0.1"
"""

# One process has one session, and its executors have one environment.
SCRIPT = """
import json
import sys

from pyspark.sql import SparkSession

import ucle

master, options, decompositions = json.loads(sys.argv[1])
spark = SparkSession.builder.master(master).config(map=options).getOrCreate()
edges = spark.range(100).selectExpr("cast(id % 7 AS INT) i", "cast(id div 7 AS INT) j", "1D v")
features = ucle.table(spark.range(15).selectExpr("cast(id AS INT) j", "array(1D, 2D) x"))
told = {}
for decomposition in decompositions:
    try:
        program = ucle.einsum_program(
            "Z[i,k] += A[i,j] * H[j,k]", A=edges, H=features, database=spark, engine="spark",
            decomposition=decomposition,
        )
        with program.execute() as result:
            told[decomposition] = result["Z"].to_numpy().tolist()
    except ucle.errors.UcleError as error:
        told[decomposition] = f"{type(error).__name__}: {error}"
spark.stop()
print(json.dumps(told))
"""


def tried(folder: Path, start: str, *decompositions: str) -> dict[str, Any]:
    """The results of programs on executors whose Python begins with a text."""
    for name in ("python", "events"):
        (folder / name).mkdir()
    (folder / "python" / "sitecustomize.py").write_text(start, encoding="utf-8")
    options = {
        **settings(folder / "events"),
        "spark.executorEnv.PYTHONPATH": str(folder / "python"),
    }
    told = json.dumps([MASTER, options, decompositions])
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, told],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def test_executors_without_kernels(tmp_path: Path) -> None:
    told = tried(tmp_path, NO_KERNELS, "as-written", "relational")
    assert "ExecutionError: spark: an executor has no kernels" in told["as-written"]
    assert told["relational"] == [[15.0, 30.0]] * 2 + [[14.0, 28.0]] * 5


def test_executors_with_another_version(tmp_path: Path) -> None:
    told = tried(tmp_path, OLD_VERSION, "relational")["relational"]
    assert "ExecutionError: spark: an executor has another version of ucle" in told
    assert "0.0.1" in told
