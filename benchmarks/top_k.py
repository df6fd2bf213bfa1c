"""The nearest rows of an embedding table for many queries at once, against DuckDB and NumPy.

Each run is a process of its own, which reports its wall time after everything had been read once,
its processor time, and its peak memory. The answers are compared.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import ucle
from benchmarks.larger_than_memory import peak
from benchmarks.measure import THREADS, Table, ratio

WIDTH = 384
SIZES = ((200, 100_000, 10), (200, 100_000, 1), (200, 100_000, 100), (1000, 20_000, 10))
"""Queries, rows, and the number of wanted rows for each query."""

LIMIT = "100MB"
"""Limit of DuckDB's buffers, in which it keeps parts of the table."""

TEXT = """
    S[q,e] += Q[q,d] * E[e,d]
    V[q,r] = top_k[e,r](S[q,e])
    P[q,r] = arg_top_k[e,r](S[q,e])
"""
ONE = "P[q] = argmax[e](Q[q,d] * E[e,d])"
SQL = """
    SELECT q, {best} FROM (
        SELECT Q.i AS q, E.i AS e, array_inner_product(Q.v, E.v) AS s FROM Q, E
    ) GROUP BY q ORDER BY q
"""

Found = NDArray[Any]


def _store(path: Path, queries: int, rows: int) -> None:
    rng = np.random.default_rng(0)
    with duckdb.connect(str(path)) as connection:
        for name, count in (("Q", queries), ("E", rows)):
            values = rng.standard_normal((count, WIDTH)).astype(np.float32)
            lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), WIDTH)
            table = pa.table({"i": np.arange(count, dtype=np.int32), "v": lists})
            connection.register("made", table)
            connection.execute(
                f"CREATE TABLE {name} AS SELECT i, v::FLOAT[{WIDTH}] AS v FROM made"
            ).fetchall()


def _by_ucle(path: str, count: int, limit: str | None) -> Callable[[], Found]:
    options = {} if limit is None else {"memory_limit": limit}
    connection = ucle.connect(path, threads=THREADS, **options)
    inputs = {name: ucle.table(name, ["i"], "v") for name in "QE"}
    text, bounds = (TEXT, {"r": count}) if count > 1 else (ONE, None)
    program = ucle.einsum_program(text, inputs=inputs, bounds=bounds, database=connection)

    def run() -> Found:
        with program.execute() as result:
            return result["P"].to_numpy().reshape(-1, count)

    return run


def _by_duckdb(path: str, count: int, limit: str | None) -> Callable[[], Found]:
    options = {} if limit is None else {"memory_limit": limit}
    connection = duckdb.connect(path, read_only=True, config={"threads": THREADS, **options})
    query = SQL.format(best=f"max_by(e, s, {count})")

    def run() -> Found:
        return np.array([places for _, places in connection.execute(query).fetchall()])

    return run


def _by_numpy(path: str, count: int, limit: str | None) -> Callable[[], Found]:
    with duckdb.connect(path, read_only=True) as connection:
        found = (connection.execute(f"SELECT v FROM {x} ORDER BY i").fetchnumpy() for x in "QE")
        Q, E = (np.stack(list(each["v"])).astype(np.float32) for each in found)

    def run() -> Found:
        scores = Q @ E.T
        best = np.argpartition(scores, -count, axis=1)[:, -count:]
        values = np.take_along_axis(scores, best, axis=1)
        return np.take_along_axis(best, np.argsort(-values, axis=1), axis=1)

    return run


SIDES = {"ucle": _by_ucle, "DuckDB": _by_duckdb, "NumPy": _by_numpy}


def _child(side: str, path: str, count: int, limit: str | None) -> dict[str, Any]:
    """Run once after a run that reads everything, in this process."""
    run = SIDES[side](path, count, limit)
    if side != "DuckDB":  # takes long enough to read everything on the way
        run()
    wall, processor = time.perf_counter(), time.process_time()
    found = run()
    return {
        "wall": time.perf_counter() - wall,
        "processor": time.process_time() - processor,
        "megabytes": peak() / 1e6,
        "found": found.tolist(),
    }


def _measure(side: str, path: Path, count: int, limit: str | None = None) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.top_k", side, str(path), str(count), limit or ""]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, Any] = json.loads(run.stdout)
    return measured


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for queries, rows, count in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "embeddings.duckdb"
            _store(path, queries, rows)
            sides = [("ucle", None), ("ucle", LIMIT), ("NumPy", None)]
            runs: list[list[dict[str, Any]]] = [[] for _ in sides]
            by_sql = _measure("DuckDB", path, count)  # it takes long, and varies little
            for _ in range(rounds):
                for (side, limit), own in zip(sides, runs, strict=True):
                    own.append(_measure(side, path, count, limit))
            _check(by_sql["found"], *(own[0]["found"] for own in runs))
            wall, processor, megabytes = (
                [statistics.median(run[key] for run in own) for own in runs]
                for key in ("wall", "processor", "megabytes")
            )
            yield (
                f"{count} of {rows:,} for {queries:,}",
                f"{by_sql['processor']:.2f}",
                *(f"{seconds:.3f}" for seconds in (processor[0], wall[0], wall[2])),
                ratio(processor[0] / by_sql["processor"]),
                ratio(wall[0] / wall[2]),
                f"{megabytes[0]:.0f}",
                f"{wall[1]:.3f}",
                f"{megabytes[1]:.0f}",
            )


def _check(expected: list[list[int]], *others: list[list[int]]) -> None:
    """Check that positions are the same, apart from some with practically equal values."""
    for found in others:
        same = np.mean(np.array(expected) == np.array(found))
        if same < 0.999:
            raise SystemExit(f"only {same:.1%} of the positions are the same")


TABLE = Table(
    "top_k",
    "The nearest rows for many queries",
    "For each query, the rows with the largest inner products: `10 of 100,000 for 200` are\n"
    f"the first 10 of 100,000 rows, for each of 200 queries. Rows are {WIDTH} float32\n"
    "numbers in a table. DuckDB runs `max_by(e, array_inner_product(Q.v, E.v), k)`, only\n"
    "once; NumPy runs `argpartition` on the product of two arrays in memory. `of DuckDB`\n"
    "divides ucle's processor time by DuckDB's, and `of NumPy` divides ucle's elapsed time\n"
    "by NumPy's. `MB` is the peak memory of the process; the last two columns were measured with\n"
    f"`memory_limit={LIMIT}`. Goals for 10 of 100,000: a fifth of DuckDB's processor time,\n"
    "1.5 times NumPy's time, 300 MB.",
    (
        "first of",
        "DuckDB, processor",
        "ucle, processor",
        "ucle",
        "NumPy",
        "of DuckDB",
        "of NumPy",
        "MB",
        "limited",
        "MB, limited",
    ),
    _rows,
)

if __name__ == "__main__":
    side, path, count, limit = sys.argv[1:]
    print(json.dumps(_child(side, path, int(count), limit or None)))
