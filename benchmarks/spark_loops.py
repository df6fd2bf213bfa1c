"""Loops on a Spark of two workers of this machine: beside one DuckDB, and plain Spark SQL.

``make spark-bench BENCH=spark_loops``. Measures the time of a step in the three, in turn, and the
bytes that shuffles write in a step, from Spark's event log, against the estimate. Results are
compared before times count. Plain Spark SQL keeps the state of each step with ``localCheckpoint``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyspark.sql import SparkSession

import ucle
from benchmarks.spark import GRAPHS, entries

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "spark"))

from cluster import MASTER, settings  # noqa: E402
from events import shuffled  # noqa: E402
from graph_data import load  # noqa: E402

HEADER = (
    "loop", "steps", "compile s", "first s", "step s", "DuckDB step s", "Spark SQL step s",
    "moved MB a step", "estimate MB", "before MB",
)  # fmt: skip


@dataclass(frozen=True)
class Loop:
    """A program of a step, with the tables that it reads as Parquet files."""

    name: str
    text: str
    tables: dict[str, Any]
    arrays: dict[str, Any]
    outputs: list[str]
    carry: dict[str, str] | None
    steps: int
    train: tuple[str, list[str]] | None = None
    sql: str | None = None
    """The next state ``p`` in Spark's SQL."""


def stored(folder: Path, name: str, matrix: Any) -> Any:
    """Write the entries of a matrix; return the input that reads them."""
    return ucle.table(entries(folder, name, matrix), bounds=list(matrix.shape))


def graph(edges: int, nodes: int) -> Any:
    """A random graph whose columns add up to 1."""
    rng = np.random.default_rng(edges)
    keys = np.unique(rng.integers(0, nodes * nodes, edges))
    row, col = keys // nodes, keys % nodes
    degree = np.bincount(col, minlength=nodes)
    return sp.coo_array((1.0 / degree[col], (row, col)), shape=(nodes, nodes))


def page_rank(folder: Path, edges: int, nodes: int, steps: int) -> Loop:
    """PageRank on a random graph."""
    return Loop(
        f"PageRank, {edges:,} edges",
        f"q[i] += 0.85 * A[i,j] * p[j]\nr[i] = q[i] + 0.15 / {nodes}\n"
        "delta[] = sum[i](abs(r[i] - p[i]))",
        {"A": stored(folder, f"graph_{edges}", graph(edges, nodes))},
        {"p": np.full(nodes, 1 / nodes)},
        ["r", "delta"],
        {"p": "r"},
        steps,
        sql=f"SELECT n.id AS i, coalesce(s.val, 0) + 0.15 / {nodes} AS val FROM range({nodes}) n "
        "LEFT JOIN (SELECT A.i, 0.85 * sum(A.val * p.val) AS val FROM A JOIN p ON A.j = p.i "
        "GROUP BY A.i) s ON n.id = s.i",
    )


def least_squares(folder: Path, users: int, things: int, rank: int) -> Loop:
    """Alternating least squares: a sweep solves a small system for each user and each thing."""
    rng = np.random.default_rng(1)
    seen = sp.random_array((users, things), density=0.02, rng=rng, format="coo")
    ratings = sp.coo_array((rng.integers(1, 6, seen.nnz).astype(float), seen.coords), seen.shape)
    ones = sp.coo_array((np.ones(seen.nnz), seen.coords), seen.shape)
    text = """
        G[u,f,g] += M[u,t] * V[t,f] * V[t,g]
        B[u,f] += R[u,t] * V[t,f]
        I[u,f,g] = inv[f,g](G[u,f,g] + 0.1 * (f == g))
        U[u,f] += I[u,f,g] * B[u,g]
        H[t,f,g] += M[u,t] * U[u,f] * U[u,g]
        C[t,f] += R[u,t] * U[u,f]
        J[t,f,g] = inv[f,g](H[t,f,g] + 0.1 * (f == g))
        W[t,f] += J[t,f,g] * C[t,g]
        loss[] = sum[t,f](square(W[t,f] - V[t,f]))
    """
    tables = {"M": stored(folder, "seen", ones), "R": stored(folder, "ratings", ratings)}
    factors = {"V": rng.random((things, rank))}
    name = f"ALS, {seen.nnz:,} ratings, rank {rank}"
    return Loop(name, text, tables, factors, ["U", "W", "loss"], {"V": "W"}, 10)


def network(folder: Path) -> Loop:
    """Training of a graph convolution network with two layers on planetoid_cora."""
    adjacency, _ = load(GRAPHS / "planetoid_cora")
    rng = np.random.default_rng(2)
    nodes, width, hidden, classes = adjacency.shape[0], 64, 16, 7
    text = """
        T[i,f] += A[i,j] * X[j,f]
        H[i,h] = relu(sum[f](T[i,f] * W1[f,h]))
        S[i,h] += A[i,j] * H[j,h]
        P[i,c] += S[i,h] * W2[h,c]
        loss[] = mean[i,c](square(P[i,c] - Y[i,c]))
    """
    arrays = {
        "X": rng.normal(size=(nodes, width)),
        "Y": rng.normal(size=(nodes, classes)),
        "W1": rng.normal(size=(width, hidden)) / 8,
        "W2": rng.normal(size=(hidden, classes)) / 4,
    }
    tables = {"A": stored(folder, "cora", sp.coo_array(adjacency).astype(float))}
    name = f"GCN training, planetoid_cora, width {width}"
    return Loop(name, text, tables, arrays, ["loss"], None, 20, ("loss", ["W1", "W2"]))


def loops(folder: Path, *, large: bool) -> Iterator[Loop]:
    """Yield the measured loops."""
    yield page_rank(folder, 1_000_000, 100_000, 12)
    yield network(folder)
    yield least_squares(folder, 2_000, 1_500, 8)
    if large:
        yield page_rank(folder, 10_000_000, 1_000_000, 10)


def compiled(loop: Loop, database: Any, **options: Any) -> Any:
    """Compile the program of a step."""
    program = ucle.einsum_program(
        loop.text,
        inputs={**loop.tables, **loop.arrays},
        outputs=loop.outputs,
        database=database,
        **options,
    )
    if loop.train is not None:
        program = program.minimize(*loop.train, ucle.optim.adam(0.01))
    return program


def by_sql(spark: SparkSession, loop: Loop, steps: int) -> float | None:
    """Seconds of a step in plain Spark SQL, after one for nothing."""
    if loop.sql is None:
        return None
    spark.read.parquet(loop.tables["A"].relation).createOrReplaceTempView("A")
    spark.table("A").persist().count()
    (start,) = loop.arrays.values()
    rows = pa.table({"i": np.arange(len(start), dtype="i4"), "val": start})
    spark.createDataFrame(rows).createOrReplaceTempView("p")
    times = []
    for _ in range(steps):
        started = time.perf_counter()
        spark.sql(loop.sql).localCheckpoint().createOrReplaceTempView("p")
        times.append(time.perf_counter() - started)
    spark.table("A").unpersist()
    return float(np.median(times[1:]))


def measure(spark: SparkSession, log: Path, loop: Loop) -> str:
    """Compare the three on a loop; return a row of the table."""
    started = time.perf_counter()
    program = compiled(loop, spark, engine="spark")
    compile_seconds = time.perf_counter() - started
    times, moved = [], []
    name = loop.train[0] if loop.train else loop.outputs[-1]
    numbers = []
    with program.prepare(carry=loop.carry) as run:
        for _ in range(loop.steps):
            before, started = shuffled(log), time.perf_counter()
            result = run()
            times.append(time.perf_counter() - started)
            numbers.append(result[name].number)
            moved.append(shuffled(log) - before)
    plan = program.step_plan(loop.carry)
    connection = ucle.connect(threads=2)
    alone = compiled(loop, connection)
    own, expected = [], []
    with alone.prepare(connection, carry=loop.carry) as run:
        for _ in range(loop.steps):
            started = time.perf_counter()
            result = run()
            own.append(time.perf_counter() - started)
            expected.append(float(result[name].to_numpy()))
    np.testing.assert_allclose(numbers, expected, rtol=1e-6)
    plain = by_sql(spark, loop, min(loop.steps, 4))
    return (
        f"| {loop.name} | {loop.steps} | {compile_seconds:.1f} | {times[0]:.1f} | "
        f"{np.median(times[1:]):.2f} | {np.median(own[1:]):.2f} | "
        f"{'' if plain is None else f'{plain:.2f}'} | {np.median(moved[1:]) / 1e6:.2f} | "
        f"{plan.bytes / 1e6:.2f} | {plan.bytes_once / 1e6:.1f} |"
    )


@click.command()
@click.option("--large", is_flag=True, help="Also ten million edges.")
@click.option("--only", default="", help="Only loops whose name begins like this.")
def main(large: bool, only: str) -> None:
    """Measure, and print a table."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    warnings.simplefilter("ignore", FutureWarning)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "events"
        log.mkdir()
        builder = SparkSession.builder.master(MASTER).appName("ucle")
        spark = builder.config(map=settings(log)).getOrCreate()
        print(f"| {' | '.join(HEADER)} |\n|{' --- |' * len(HEADER)}")
        for loop in loops(Path(folder), large=large):
            if loop.name.startswith(only):
                print(measure(spark, log, loop), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
