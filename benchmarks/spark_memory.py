"""A table of four times the memory of all executors of a Spark of this machine.

``make spark-bench BENCH=spark_memory``. The table is in uncompressed Parquet files; the answer is
compared with NumPy's, which reads the rows in pieces. The resident memory of executors, which are
Java's processes and their Python workers, is sampled all the time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import ucle

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


def resident(pid: int) -> int:
    """Bytes of a process and all its descendants."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):  # it has ended
        return 0
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(resident, map(int, found.stdout.split())))


@contextmanager
def watched() -> Iterator[list[int]]:
    """Record the joint size of all executors at each sample."""
    sizes, ended = [0], threading.Event()
    pattern = ["pgrep", "-f", "CoarseGrainedExecutorBackend"]

    def look() -> None:
        while not ended.wait(0.3):
            there = subprocess.run(pattern, capture_output=True, text=True, check=False)
            sizes.append(sum(map(resident, map(int, there.stdout.split()))))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield sizes
    finally:
        ended.set()
        thread.join()


def session(log: Path, memory: int, limit: str, partitions: int) -> SparkSession:
    """Start a Spark on this machine, each of whose executors has so many megabytes."""
    builder = SparkSession.builder.master(f"local-cluster[{EXECUTORS},1,{memory}]").appName("ucle")
    own = {
        "spark.executor.memory": f"{memory}m",
        "spark.driver.memory": "1g",
        "spark.ucle.memoryLimit": limit,
        "spark.ucle.partitions": str(partitions),
        # Spark's batches are counted in rows, one of which takes 8 kB.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.sql.parquet.columnarReaderBatchSize": "512",
    }
    return builder.config(map={**settings(log), **own}).getOrCreate()


@click.command()
@click.option("--memory", default=512, help="Megabytes of an executor.")
@click.option("--limit", default="400MB", help="What DuckDB may use in a task.")
@click.option("--partitions", default=16)
def main(memory: int, limit: str, partitions: int) -> None:
    """Measure, and print a table."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    rows = -(-TIMES * EXECUTORS * memory * 2**20 // (8 * WIDTH))
    with tempfile.TemporaryDirectory() as folder:
        data, log = Path(folder) / "data", Path(folder) / "log"
        for each in (data, log):
            each.mkdir()
        write(data, rows)
        spark = session(log, memory, limit, partitions)
        weights = spark.range(0, rows, 1, EXECUTORS).selectExpr(
            "cast(id AS INT) AS j", "array(1D, cast(id % 3 AS DOUBLE)) AS val"
        )
        with watched() as sizes:
            started = time.perf_counter()
            program = ucle.einsum_program(
                "Z[k,l] += H[j,k] * G[j,l]", H=str(data), G=weights, database=spark, engine="spark"
            )
            compiled = time.perf_counter()
            with program.execute() as result:
                executed = time.perf_counter()
                np.testing.assert_array_equal(result["Z"].to_numpy(), expected(rows))
        spark.stop()
    print(
        "| data MB | executors MB | times | compile s | execute s | moved MB (estimate) | "
        "stages | peak resident MB of executors |\n|" + " --- |" * 8
    )
    print(
        f"| {rows * WIDTH * 8 / 1e6:.0f} | {EXECUTORS * memory * 2**20 / 1e6:.0f} | "
        f"{rows * WIDTH * 8 / (EXECUTORS * memory * 2**20):.2f} | {compiled - started:.1f} | "
        f"{executed - compiled:.1f} | {program.plan.bytes / 1e6:.0f} | "
        f"{len(program.plan.fragments)} | {max(sizes) / 1e6:.0f} |"
    )


if __name__ == "__main__":
    main()
