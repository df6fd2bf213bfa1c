"""A table of four times the memory of all executors of a Spark of this machine, and of the driver.

``make spark-bench BENCH=spark_memory``. The table is in uncompressed Parquet files. A product reads
it once, and with ``ARGS="--steps 3"`` gradient descent reads it in each step. Answers are compared
with NumPy's, which reads the rows in pieces. The resident memory of executors, which are Java's
processes and their Python workers, is sampled all the time, and so is that of the driver: of its
Java process, in which a cluster of this machine has its master, and of this one.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import ucle
from benchmarks.processes import family

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "spark"))

from cluster import settings  # noqa: E402

EXECUTORS = 2
TIMES = 4
"""The table's size as a multiple of the memory of all executors."""

WIDTH = 1000
PIECE = 2000
"""Rows that are made at a time."""

FILES = 16

RATE = 1e-7
"""Of gradient descent."""


def piece(start: int, stop: int) -> NDArray[np.float64]:
    """Some rows of the table: integers, so that sums are exact in any order."""
    rows = np.arange(start, stop)
    return ((rows[:, None] * 31 + np.arange(WIDTH) * 17) % 101).astype(np.float64)


def pieces(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each piece."""
    for first in range(start, stop, PIECE):
        yield first, min(first + PIECE, stop)


def write(folder: Path, rows: int) -> None:
    """Write the table as files of some row groups each."""
    schema = pa.schema([("j", pa.int32()), ("val", pa.list_(pa.float64()))])
    for number in range(FILES):
        path = folder / f"part-{number:02}.parquet"
        options: dict[str, Any] = {"compression": "NONE", "use_dictionary": False}
        with pq.ParquetWriter(path, schema, **options) as writer:
            for start, stop in pieces(rows * number // FILES, rows * (number + 1) // FILES):
                values = pa.array(piece(start, stop).ravel())
                ends = pa.array(np.arange(0, len(values) + 1, WIDTH, dtype="i4"))
                keys = pa.array(np.arange(start, stop, dtype="i4"))
                arrays = [keys, pa.ListArray.from_arrays(ends, values)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def expected(rows: int) -> NDArray[np.float64]:
    """Compute the answer with NumPy over all rows."""
    total = np.zeros((WIDTH, 2))
    for start, stop in pieces(0, rows):
        weights = np.stack([np.ones(stop - start), np.arange(start, stop) % 3], axis=1)
        total += piece(start, stop).T @ weights
    return total


def expected_losses(rows: int, steps: int) -> list[float]:
    """Compute the losses of gradient descent with NumPy over all rows."""
    weights, losses = np.zeros(WIDTH), []
    for _ in range(steps):
        slope, squares = np.zeros(WIDTH), 0.0
        for start, stop in pieces(0, rows):
            read = piece(start, stop)
            missed = read @ weights - np.arange(start, stop) % 3
            slope += read.T @ missed
            squares += float(missed @ missed)
        losses.append(squares / rows)
        weights -= RATE * 2.0 / rows * slope
    return losses


@dataclass
class Peaks:
    """The most resident bytes of processes at any time."""

    executors: int = 0
    driver: int = 0
    """Java's process of the driver."""
    python: int = 0
    """This process."""


@contextmanager
def watched() -> Iterator[Peaks]:
    """Record the sizes of all executors together, and of the driver."""
    peaks, ended = Peaks(), threading.Event()

    def look() -> None:
        while not ended.wait(0.3):
            executors = family("CoarseGrainedExecutorBackend").values()
            peaks.executors = max(peaks.executors, sum(x.resident for x in executors))
            mine = family()
            peaks.python = max(peaks.python, mine[os.getpid()].resident)
            for each in mine.values():
                if each.parent == os.getpid() and "SparkSubmit" in each.command:
                    peaks.driver = max(peaks.driver, each.resident)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def session(log: Path, memory: int, driver: int, limit: str, partitions: int) -> SparkSession:
    """Start a Spark on this machine, each of whose executors has so many megabytes."""
    builder = SparkSession.builder.master(f"local-cluster[{EXECUTORS},1,{memory}]").appName("ucle")
    own_settings = {
        "spark.executor.memory": f"{memory}m",
        "spark.driver.memory": f"{driver}m",
        "spark.ucle.memoryLimit": limit,
        "spark.ucle.partitions": str(partitions),
        # Spark's batches are counted in rows, one of which takes 8 kB.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.sql.parquet.columnarReaderBatchSize": "512",
    }
    return builder.config(map={**settings(log), **own_settings}).getOrCreate()


@dataclass(frozen=True)
class Run:
    """What was measured of a program."""

    compile: float
    seconds: tuple[float, ...]
    """Of an execution, or of each step."""
    bytes: float
    """What moves by estimate: once, or before the first step."""
    bytes_of_step: float
    stages: int


def multiply(spark: SparkSession, data: Path, rows: int) -> Run:
    """Multiply the table with two columns."""
    weights = spark.range(0, rows, 1, EXECUTORS).selectExpr(
        "cast(id AS INT) AS j", "array(1D, cast(id % 3 AS DOUBLE)) AS val"
    )
    started = time.perf_counter()
    program = ucle.einsum_program(
        "Z[k,l] += H[j,k] * G[j,l]", H=str(data), G=weights, database=spark, engine="spark"
    )
    compiled = time.perf_counter()
    with program.execute() as result:
        executed = time.perf_counter()
        np.testing.assert_array_equal(result["Z"].to_numpy(), expected(rows))
    plan = program.plan
    return Run(compiled - started, (executed - compiled,), plan.bytes, 0.0, len(plan.fragments))


def descend(spark: SparkSession, data: Path, rows: int, steps: int) -> Run:
    """Fit numbers of the rows by gradient descent."""
    target = spark.range(0, rows, 1, EXECUTORS).selectExpr(
        "cast(id AS INT) AS j", "cast(id % 3 AS DOUBLE) AS val"
    )
    started = time.perf_counter()
    program = ucle.einsum_program(
        "p[j] += H[j,k] * w[k]; loss[] = mean[j](square(p[j] - y[j]))",
        H=str(data),
        y=ucle.table(target, bounds=[rows]),
        w=np.zeros(WIDTH),
        database=spark,
        engine="spark",
    ).minimize("loss", ["w"], ucle.optim.sgd(RATE))
    plan = program.step_plan()
    compiled = time.perf_counter()
    times, losses = [], []
    with program.prepare() as run:
        for _ in range(steps):
            began = time.perf_counter()
            losses.append(run()["loss"].number)
            times.append(time.perf_counter() - began)
    np.testing.assert_allclose(losses, expected_losses(rows, steps), rtol=1e-9)
    return Run(compiled - started, tuple(times), plan.bytes_once, plan.bytes, len(plan.fragments))


@click.command()
@click.option("--memory", default=512, help="Megabytes of an executor.")
@click.option("--driver", default=512, help="Megabytes of the driver.")
@click.option("--limit", default="400MB", help="What DuckDB may use in a task.")
@click.option("--partitions", default=16)
@click.option("--steps", default=0, help="Take so many steps of gradient descent.")
@click.option("--size", default=0, help="Megabytes of the table; 0 for four times the executors'.")
def main(memory: int, driver: int, limit: str, partitions: int, steps: int, size: int) -> None:
    """Measure, and print a table."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    there = EXECUTORS * memory * 2**20
    rows = -(-(size * 10**6 or TIMES * there) // (8 * WIDTH))
    with tempfile.TemporaryDirectory() as folder:
        data, log = Path(folder) / "data", Path(folder) / "log"
        for each in (data, log):
            each.mkdir()
        write(data, rows)
        spark = session(log, memory, driver, limit, partitions)
        with watched() as peaks:
            run = descend(spark, data, rows, steps) if steps else multiply(spark, data, rows)
        spark.stop()
    print(
        "| data MB | executors MB | driver MB | compile s | execute s | moved MB (estimate) | "
        "in a step | stages | peak resident MB: executors | driver's Java | driver's Python |\n|"
        + " --- |"
        * 11
    )
    print(
        f"| {rows * WIDTH * 8 / 1e6:.0f} | {there / 1e6:.0f} | {driver * 2**20 / 1e6:.0f} | "
        f"{run.compile:.1f} | {', '.join(f'{x:.1f}' for x in run.seconds)} | "
        f"{run.bytes / 1e6:.0f} | {run.bytes_of_step / 1e6:.3f} | {run.stages} | "
        f"{peaks.executors / 1e6:.0f} | {peaks.driver / 1e6:.0f} | {peaks.python / 1e6:.0f} |"
    )


if __name__ == "__main__":
    main()
