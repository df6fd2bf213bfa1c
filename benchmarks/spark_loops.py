"""Loops on a Spark of two workers of this machine: beside one DuckDB, and plain Spark SQL.

``make spark-bench BENCH=spark_loops``, with ``ARGS=network`` only this loop. The three take their
steps in turn. Measures the wall time of a step, the processor time of all processes in it, and the
bytes that shuffles write, from Spark's event log, against the estimate; of the first step, what it
moves more than others. Results are compared before times count, and the losses of a network also
with PyTorch's (``TORCH=torch`` installs it). Spark has answered a query before ucle compiles, so
that its own start counts for neither. Plain Spark SQL keeps the state of each step with
``localCheckpoint``.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import ucle
from benchmarks import training
from benchmarks.processes import processor_seconds
from benchmarks.spark import arrays as row_arrays
from benchmarks.spark import entries

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "spark"))

from cluster import settings  # noqa: E402
from events import shuffled  # noqa: E402

MASTER = os.environ.get("UCLE_SPARK_MASTER", "local-cluster[2,1,2048]")
HEADER = (
    "loop", "steps", "compile s", "first s", "all steps s", "step s", "DuckDB step s",
    "goal s", "Spark SQL step s", "times", "step CPU s", "DuckDB CPU s", "Spark SQL CPU s",
    "times", "moved MB a step", "estimate MB", "ratio", "before MB", "estimate MB", "ratio",
    "first and last value", "differs from DuckDB", "from PyTorch",
)  # fmt: skip


REGRESSION = (200_000, 64, 16)
"""Rows, features and targets."""

CLOSE = 1e-6
"""How far losses may be from those of others, as a share of them."""


def nothing(step: int) -> dict[str, NDArray[np.float64]]:
    """Return no arrays, for a step that is given none."""
    del step
    return {}


def allowed(alone: float) -> float:
    """Seconds that a step may take, given those of one DuckDB with the same cores."""
    return 2.5 * alone + 0.5


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
    until: float = 0.0
    """The last output at which the loop ends."""
    train: tuple[str, list[str], Any] | None = None
    """A loss, and what an optimiser changes."""
    given: Callable[[int], dict[str, NDArray[np.float64]]] = nothing
    """Arrays that a step is given from memory, by its number."""
    peer: Callable[[int], list[float]] | None = None
    """The losses of so many steps of PyTorch."""
    sql: str | None = None
    """The next state ``p`` in Spark's SQL, from the tables by their names."""
    entries: dict[str, str] = field(default_factory=dict)
    """Files of entries that SQL reads in the place of tables with arrays."""


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


def page_rank(folder: Path, edges: int, nodes: int, steps: int, until: float = 0.0) -> Loop:
    """PageRank on a random graph, for some steps or until it changes less."""
    return Loop(
        f"PageRank, {edges:,} edges{f' to {until:g}' if until else ''}",
        f"q[i] += 0.85 * A[i,j] * p[j]\nr[i] = q[i] + 0.15 / {nodes}\n"
        "delta[] = sum[i](abs(r[i] - p[i]))",
        {"A": stored(folder, f"graph_{edges}", graph(edges, nodes))},
        {"p": np.full(nodes, 1 / nodes)},
        ["r", "delta"],
        {"p": "r"},
        steps,
        until,
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
    """Training of a graph network with dropout, whose mask comes from memory in each step."""
    data = training.network("planetoid_cora", 16)
    return Loop(
        "GCN training, planetoid_cora, 16 hidden",
        training.TEXT,
        {"A": stored(folder, "cora", data.adjacency), "X": stored(folder, "words", data.features)},
        {"Y": data.shares, "W1": data.first, "W2": data.second, "keep": data.mask(0)},
        ["loss"],
        None,
        20,
        train=("loss", ["W1", "W2"], training.optimiser(data)),
        given=lambda step: {"keep": data.mask(step)},
        peer=training.torch_steps(data) if importlib.util.find_spec("torch") else None,
    )


def regression(folder: Path, rows: int, width: int, targets: int) -> Loop:
    """Gradient descent of linear regression with several targets, which moves what it adds up."""
    rng = np.random.default_rng(3)
    features, values = rng.normal(size=(rows, width)), rng.normal(size=(rows, targets))
    tables, files = {}, {}
    for name, matrix in {"X": features, "Y": values}.items():
        path = row_arrays(folder, name, matrix)
        tables[name] = ucle.table(path, bounds=list(matrix.shape))
        files[name] = entries(folder, f"{name}_entries", matrix)
    rate = 1.0 / rows
    return Loop(
        f"regression, {rows:,} rows of {width}, {targets} targets",
        f"""
        P[i,c] += X[i,f] * W[f,c]
        E[i,c] = P[i,c] - Y[i,c]
        G[f,c] += X[i,f] * E[i,c]
        V[f,c] = W[f,c] - {rate} * G[f,c]
        loss[] = mean[i,c](square(E[i,c]))
        """,
        tables,
        {"W": np.zeros((width, targets))},
        ["V", "loss"],
        {"W": "V"},
        10,
        sql="WITH P AS (SELECT X.i, p.j, sum(X.val * p.val) AS val FROM X JOIN p ON X.j = p.i "
        "GROUP BY X.i, p.j), E AS (SELECT P.i, P.j, P.val - Y.val AS val FROM P JOIN Y "
        "ON P.i = Y.i AND P.j = Y.j), G AS (SELECT X.j AS i, E.j, sum(X.val * E.val) AS val "
        "FROM X JOIN E ON X.i = E.i GROUP BY X.j, E.j) "
        f"SELECT p.i, p.j, p.val - {rate} * G.val AS val FROM p JOIN G "
        "ON p.i = G.i AND p.j = G.j",
        entries=files,
    )


LOOPS: dict[str, Callable[[Path], Loop]] = {
    "page_rank": lambda folder: page_rank(folder, 1_000_000, 100_000, 200, 1e-10),
    "network": network,
    "least_squares": lambda folder: least_squares(folder, 2_000, 1_500, 8),
    "regression": lambda folder: regression(folder, *REGRESSION),
    "large_page_rank": lambda folder: page_rank(folder, 10_000_000, 1_000_000, 10),
}
"""The measured loops, each with the files that it reads in a folder."""


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
        program = program.minimize(*loop.train)
    return program


class Times:
    """Wall and processor times of steps."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.processor: list[float] = []

    def run(self, step: Callable[[], Any]) -> Any:
        """Run a step, and note what it takes."""
        before, started = processor_seconds(), time.perf_counter()
        made = step()
        self.wall.append(time.perf_counter() - started)
        self.processor.append(processor_seconds() - before)
        return made

    def step(self) -> float:
        """Median wall time of all steps but the first."""
        return float(np.median(self.wall[1:])) if self.wall[1:] else math.nan

    def step_processor(self) -> float:
        """Median processor time of all steps but the first."""
        return float(np.median(self.processor[1:])) if self.wall[1:] else math.nan


def cell(number: float, form: str = ".2f") -> str:
    """A number in a table, which may be unknown."""
    return "" if math.isnan(number) else format(number, form)


def ratio(one: float, other: float) -> float:
    """A quotient, unknown where there is nothing to divide by."""
    return one / other if other else math.nan


def sql_step(spark: SparkSession, loop: Loop) -> Callable[[], Any] | None:
    """A function that takes a step in plain Spark SQL."""
    if loop.sql is None:
        return None
    paths = {name: each.relation for name, each in loop.tables.items()} | loop.entries
    for name, path in paths.items():
        spark.read.parquet(path).createOrReplaceTempView(name)
        spark.table(name).persist().count()
    (start,) = loop.arrays.values()
    keys = dict(
        zip("ij", np.indices(start.shape, dtype="i4").reshape(start.ndim, -1), strict=False)
    )
    rows = pa.table({**keys, "val": start.ravel()})
    spark.createDataFrame(rows).createOrReplaceTempView("p")
    return lambda: spark.sql(loop.sql).localCheckpoint().createOrReplaceTempView("p")


def measure(spark: SparkSession, log: Path, loop: Loop, most_sql: int) -> str:
    """Compare the three on a loop; return a row of the table."""
    started = time.perf_counter()
    program = compiled(loop, spark, engine="spark")
    compile_seconds = time.perf_counter() - started
    swap = [*loop.given(0)]
    plan = program.step_plan(loop.carry, swap=swap)
    name = loop.train[0] if loop.train else loop.outputs[-1]
    connection = ucle.connect(threads=2)
    by_sql = sql_step(spark, loop)
    ours, alone, plain = Times(), Times(), Times()
    moved, numbers, expected = [], [], []
    with (
        program.prepare(carry=loop.carry, swap=swap) as run,
        compiled(loop, connection).prepare(connection, carry=loop.carry, swap=swap) as run_alone,
    ):
        for number in range(loop.steps):
            given = loop.given(number)
            before = shuffled(log)
            result = ours.run(lambda given=given: run(**given))
            moved.append(shuffled(log) - before)
            numbers.append(result[name].number)
            by_duckdb = alone.run(lambda given=given: run_alone(**given))
            expected.append(float(by_duckdb[name].to_numpy()))
            if by_sql is not None and number < most_sql:
                plain.run(by_sql)
                if number == 0:
                    check_state(spark, loop, result)
            if numbers[-1] < loop.until:
                break
    spark.catalog.clearCache()
    from_duckdb = difference(numbers, expected)
    from_torch = "" if loop.train is None else "not installed"
    if loop.peer is not None:
        from_torch = difference(numbers, loop.peer(len(numbers)))
    once = moved[0] - np.median(moved[1:])
    return " | ".join(
        (
            f"| {loop.name} | {len(numbers)} | {compile_seconds:.1f} | {ours.wall[0]:.1f}",
            f"{sum(ours.wall):.1f} | {ours.step():.2f} | {alone.step():.3f}",
            f"{allowed(alone.step()):.2f} | {cell(plain.step())}",
            cell(plain.step() / ours.step(), ".1f"),
            f"{ours.step_processor():.2f} | {alone.step_processor():.3f}",
            cell(plain.step_processor()),
            cell(plain.step_processor() / ours.step_processor(), ".1f"),
            f"{np.median(moved[1:]) / 1e6:.3f} ({min(moved[1:]) / 1e6:.3f} to "
            f"{max(moved[1:]) / 1e6:.3f}) | {plan.bytes / 1e6:.3f}",
            cell(ratio(float(np.median(moved[1:])), plan.bytes)),
            f"{once / 1e6:.1f} | {plan.bytes_once / 1e6:.1f}",
            f"{cell(ratio(once, plan.bytes_once))} | {numbers[0]:.4g}, {numbers[-1]:.4g}",
            f"{from_duckdb} | {from_torch} |",
        )
    )


def difference(numbers: list[float], expected: list[float]) -> str:
    """Return the largest difference of the numbers of some steps, as a share of those expected."""
    np.testing.assert_allclose(numbers, expected, rtol=CLOSE, atol=1e-13)
    return f"{np.max(np.abs(np.subtract(numbers, expected)) / np.abs(expected)):.0e}"


def check_state(spark: SparkSession, loop: Loop, result: Any) -> None:
    """Compare the state that plain Spark SQL has made with ours of the same step."""
    assert loop.carry is not None
    (output,) = loop.carry.values()
    expected = result[output].to_numpy()
    rows = spark.table("p").toArrow()
    state = np.zeros(expected.shape)
    state[tuple(rows[key].to_numpy() for key in "ij"[: state.ndim])] = rows["val"].to_numpy()
    np.testing.assert_allclose(state, expected, rtol=1e-9, atol=1e-12)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(LOOPS)))
@click.option("--sql-steps", default=6, help="The most steps of plain Spark SQL, which is slow.")
def main(names: tuple[str, ...], sql_steps: int) -> None:
    """Measure, and print a table."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    warnings.simplefilter("ignore", FutureWarning)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "events"
        log.mkdir()
        builder = SparkSession.builder.master(MASTER).appName("ucle")
        options = {**settings(log), "spark.executor.memory": "2g"}
        spark = builder.config(map=options).getOrCreate()
        spark.range(1000).repartition(2).selectExpr("sum(id)").collect()
        print(f"| {' | '.join(HEADER)} |\n|{' --- |' * len(HEADER)}")
        for name in names or LOOPS:
            print(measure(spark, log, LOOPS[name](Path(folder)), sql_steps), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
