"""Programs on a Spark of two workers of this machine, against plain Spark SQL.

``make spark-bench``. Measures the wall time of both in turn, and the bytes that shuffles write,
from Spark's event log, against the estimate. Answers are compared before times count.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from pyspark.sql import SparkSession

import ucle

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "spark"))

from cluster import MASTER, settings  # noqa: E402
from events import shuffled  # noqa: E402
from graph_data import gcn, load  # noqa: E402

GRAPHS = ROOT.parent / "shared" / "data" / "graphs"
WIDTH = 64
HEADER = (
    "program", "ucle s", "Spark SQL s", "times", "moved MB", "estimate MB", "ratio",
    "SQL moves MB", "stages",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A program on Parquet files, the same in Spark's SQL, and its expected result."""

    name: str
    text: str
    inputs: dict[str, Any]
    output: str
    sql: str
    expected: Any


def write(folder: Path, name: str, columns: dict[str, Any]) -> str:
    """Write a Parquet file of two row groups."""
    path = folder / f"{name}.parquet"
    rows = pa.table(columns)
    pq.write_table(rows, path, row_group_size=max(1, -(-len(rows) // 2)))
    return str(path)


def entries(folder: Path, name: str, matrix: Any) -> str:
    """Write a matrix as a file of its entries."""
    coo = sp.coo_array(matrix)
    row, col = (place.astype("i4") for place in coo.coords)
    return write(folder, name, {"i": row, "j": col, "val": coo.data})


def arrays(folder: Path, name: str, matrix: Any) -> str:
    """Write a matrix as a file of its rows."""
    keys = np.arange(len(matrix), dtype="i4")
    return write(folder, name, {"i": keys, "val": pa.array(list(matrix))})


def cases(folder: Path) -> Iterator[Case]:
    """Yield the measured cases."""
    graph, _ = load(GRAPHS / "amazon_photo")
    features = np.random.default_rng(0).random((graph.shape[0], WIDTH))
    yield Case(
        f"SpMM amazon_photo, width {WIDTH}",
        "Z[i,k] += A[i,j] * H[j,k]",
        {
            "A": entries(folder, "photo", graph),
            "H": arrays(folder, "features", features),
            "He": entries(folder, "feature_entries", features),
        },
        "Z",
        "SELECT A.i, He.j AS j, sum(A.val * He.val) AS val FROM A JOIN He ON A.j = He.i "
        "GROUP BY A.i, He.j",
        graph @ features,
    )
    work = gcn(GRAPHS / "planetoid_cora")
    names = {"D": "D", "A": "A", "H": "H", "W1": "W1", "W2": "W2"}
    inputs: dict[str, Any] = {
        name: entries(folder, f"cora_{name}", work.inputs[name]) for name in names
    }
    product = (
        "SELECT x.i, y.j, sum(x.val * y.val) AS val FROM {} x JOIN {} y ON x.j = y.i GROUP BY 1, 2"
    )
    parts = [("t0", "D", "A"), ("t1", "t0", "D"), ("t2", "t1", "H"), ("t3", "t2", "W1")]
    more = [("t4", "t1", "h1"), ("t5", "t4", "W2")]
    steps = [f"{name} AS ({product.format(a, b)})" for name, a, b in parts]
    steps.append("h1 AS (SELECT i, j, greatest(val, 0) AS val FROM t3)")
    steps += [f"{name} AS ({product.format(a, b)})" for name, a, b in more]
    yield Case(
        "GCN planetoid_cora",
        work.text,
        inputs,
        work.output,
        f"WITH {', '.join(steps)} SELECT i, j, greatest(val, 0) AS val FROM t5",
        work.expected,
    )


def measured(log: Path, run: Callable[[], Any]) -> tuple[float, int, Any]:
    """Return seconds, bytes that shuffles have written, and the result of a run."""
    before, started = shuffled(log), time.perf_counter()
    made = run()
    seconds = time.perf_counter() - started
    return seconds, shuffled(log) - before, made


def compare(spark: SparkSession, log: Path, case: Case, rounds: int) -> str:
    """Compare both sides on a case; return a row of the table."""
    for name, path in case.inputs.items():
        spark.read.parquet(path).createOrReplaceTempView(name)
    used = {name: path for name, path in case.inputs.items() if f"{name}[" in case.text}
    program = ucle.einsum_program(case.text, inputs=used, database=spark, engine="spark")
    expected = np.asarray(case.expected.todense() if sp.issparse(case.expected) else case.expected)

    def by_sql() -> Any:
        frame = spark.sql(case.sql).persist()
        frame.count()
        return frame

    ours, theirs, moved, moved_by_sql = [], [], 0, 0
    for number in range(rounds + 1):
        seconds, moved, result = measured(log, program.execute)
        if number == 0:
            np.testing.assert_allclose(
                result[case.output].to_numpy(), expected, rtol=1e-9, atol=1e-9
            )
        result.close()
        ours.append(seconds)
        seconds, moved_by_sql, frame = measured(log, by_sql)
        if number == 0:
            rows = frame.toArrow()
            array = np.zeros(expected.shape)
            array[rows["i"].to_numpy(), rows["j"].to_numpy()] = rows["val"].to_numpy()
            np.testing.assert_allclose(array, expected, rtol=1e-9, atol=1e-9)
        frame.unpersist()
        theirs.append(seconds)
    mine, other = statistics.median(ours[1:]), statistics.median(theirs[1:])
    estimate = program.plan.bytes
    return (
        f"| {case.name} | {mine:.2f} | {other:.2f} | {other / mine:.1f} | {moved / 1e6:.1f} | "
        f"{estimate / 1e6:.1f} | {moved / estimate:.2f} | {moved_by_sql / 1e6:.1f} | "
        f"{len(program.plan.fragments)} |"
    )


@click.command()
@click.option("--rounds", default=3, help="How often each side runs, after once for nothing.")
def main(rounds: int) -> None:
    """Measure, and print a table."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "events"
        log.mkdir()
        builder = SparkSession.builder.master(MASTER).appName("ucle")
        spark = builder.config(map=settings(log)).getOrCreate()
        print(f"| {' | '.join(HEADER)} |\n|{' --- |' * len(HEADER)}")
        for case in cases(Path(folder)):
            print(compare(spark, log, case, rounds), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
