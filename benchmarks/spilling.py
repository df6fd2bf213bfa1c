"""An SpMM whose aggregate state alone is three times DuckDB's memory limit.

It runs in a process of its own, on a database file. The largest resident size of that process is
compared with the limit plus its size before the first statement.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np

import ucle
from benchmarks.measure import THREADS, Table, ratio

LIMIT = 500 << 20
WIDTH = 128
GROUPS = 3 * LIMIT // (8 * WIDTH)
SOURCES = 20_000


def prepare(path: Path) -> None:
    """Write a file with a sparse matrix of two entries a row, and a dense one of few rows."""
    with duckdb.connect(str(path), config={"threads": THREADS}) as connection:
        connection.execute(
            f"""CREATE TABLE A AS
            SELECT (x // 2)::INT AS i, ((hash(x // 2) + x % 2) % {SOURCES})::INT AS j,
                1 + x % 3 AS v
            FROM range({2 * GROUPS}) t(x) ORDER BY hash(x + 1)"""
        ).fetchall()
        connection.execute(
            f"""CREATE TABLE H AS
            SELECT x::INT AS j, [((x * 7 + y) % 11)::DOUBLE FOR y IN range({WIDTH})] AS v
            FROM range({SOURCES}) t(x)"""
        ).fetchall()


def peak() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(path: str) -> dict[str, float]:
    """Run the measured process; return seconds, base and peak in bytes, and a check sum."""
    with ucle.connect(path, threads=THREADS, memory_limit=f"{LIMIT}B") as connection:
        program = ucle.einsum_program(
            "Z[i,k] += A[i,j] * H[j,k]",
            A=ucle.table("A", ["i", "j"], "v", bounds=(GROUPS, SOURCES)),
            H=ucle.table("H", ["j"], "v", shape=(WIDTH,), bounds=(SOURCES, WIDTH)),
            database=connection,
            decomposition={"Z": ["i", "j"]},
        )
        base = peak()
        start = time.perf_counter()
        with program.execute(connection) as result:
            seconds = time.perf_counter() - start
            high = peak()
            total = check_sum(connection, result["Z"])
    return {"seconds": seconds, "base": base, "peak": high, "sum": total}


def check_sum(connection: duckdb.DuckDBPyConnection, tensor: ucle.TensorRelation) -> float:
    """Return the sum of a few groups, drawn evenly."""
    picked = tensor.stored.filter(f"i % {GROUPS // 100} = 0")
    return float(sum(np.sum(value) for _, value in picked.fetchall()))


def expected_sum(path: Path) -> float:
    """Return the same sum by plain SQL."""
    with duckdb.connect(str(path), config={"threads": THREADS}) as connection:
        row = connection.execute(
            f"""SELECT sum(A.v * list_sum(H.v)) FROM A JOIN H USING (j)
            WHERE i % {GROUPS // 100} = 0"""
        ).fetchone()
    assert row is not None
    return float(row[0])


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.duckdb"
        prepare(path)
        expected = expected_sum(path)
        command = [sys.executable, "-m", "benchmarks.spilling", str(path)]
        for _ in range(min(rounds, 3)):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"the spilling run failed:\n{done.stderr}")
            found = json.loads(done.stdout)
            if found["sum"] != expected:
                raise SystemExit(f"the spilling run is wrong: {found['sum']}, not {expected}")
            above = found["peak"] - found["base"]
            yield (
                f"{3 * LIMIT >> 20} MiB",
                f"{LIMIT >> 20} MiB",
                f"{found['seconds']:.2f}",
                f"{found['base'] / 2**20:.0f} MiB",
                f"{found['peak'] / 2**20:.0f} MiB",
                ratio(above / LIMIT),
            )


TABLE = Table(
    "spilling",
    "Aggregate states three times as large as the memory limit",
    "`base` is the memory of the process before the first statement. Goal: a peak below the\n"
    "base plus 1.5 times the limit.",
    ("state", "limit", "seconds", "base", "peak", "(peak - base) / limit"),
    _rows,
)

if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1])))
