"""Results that follow their data: a refresh against a full run, by the share of rows that changed.

Each refresh and each full run follows a change of its own, so that neither finds what the other one
has measured: rows of the graph are inserted. A full run recompiles for the changed data, as a
refresh does, and writes the table of its output. The answers are compared.

    python -m benchmarks.run maintenance --rounds 3
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import duckdb

import ucle
from benchmarks.measure import THREADS, Table, ratio

SHARES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
SIZES = (200_000, 2_000_000)
WIDTH = 8


@dataclass(frozen=True)
class Job:
    """A program over a graph of `A[i,j]`, features `H[i,k]` and weights `W[k,n]`."""

    name: str
    text: str
    output: str


JOBS = (
    Job("sums by node", "S[i] += A[i,j]", "S"),
    Job("aggregation of neighbours", "T[i,k] += A[i,j] * H[j,k]", "T"),
    Job(
        "layer of a graph network",
        "T[i,k] += A[i,j] * H[j,k]; Z[i,n] = relu(T[i,k] * W[k,n])",
        "Z",
    ),
    Job("counts of wedges", "C[i] += A[i,j] * A[j,k]", "C"),
    Job("items chosen together", "C[i,k] += A[j,i] * A[j,k]", "C"),
    Job("sum of everything", "s[] += A[i,j] * H[j,k]", "s"),
)


def _new_edges(nodes: int, count: int) -> str:
    return (
        f"SELECT DISTINCT (random() * {nodes - 1})::BIGINT AS i, "
        f"(random() * {nodes - 1})::BIGINT AS j FROM range({count})"
    )


def _create(edges: int) -> duckdb.DuckDBPyConnection:
    connection, nodes = ucle.connect(threads=THREADS), edges // 10
    connection.execute("SELECT setseed(0.5)").fetchall()
    connection.execute(
        f"CREATE TABLE A AS SELECT *, 1.0::DOUBLE AS val FROM ({_new_edges(nodes, edges)})"
    )
    connection.execute(
        f"CREATE TABLE H AS SELECT i, k, random() AS val "
        f"FROM range({nodes}) a(i), range({WIDTH}) b(k)"
    )
    connection.execute(
        f"CREATE TABLE W AS SELECT k, n, random() - 0.5 AS val "
        f"FROM range({WIDTH}) a(k), range({WIDTH}) b(n)"
    )
    return connection


def _differ(connection: duckdb.DuckDBPyConnection, one: str, other: str) -> float:
    """The largest difference between two tables, infinite if their keys differ."""
    keys = [x[0] for x in connection.sql(f"DESCRIBE {one}").fetchall() if x[0] != "val"]
    matched = f"USING ({', '.join(keys)})" if keys else "ON true"
    ((found,),) = connection.sql(
        f"SELECT max(coalesce(abs(a.val - b.val), 'inf'::DOUBLE)) FROM {one} a "
        f"FULL JOIN {other} b {matched} "
        "WHERE coalesce(a.val, 0) <> 0 OR coalesce(b.val, 0) <> 0"
    ).fetchall()
    return float(found or 0)


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for edges in SIZES:
        for job in JOBS:
            with _create(edges) as connection:
                names = [x for x in "AHW" if f"{x}[" in job.text]
                inputs = {name: name for name in names}
                program = ucle.einsum_program(job.text, inputs=inputs, database=connection)
                kept = program.maintain("kept", connection, append_only=["A"])
                for share in SHARES:
                    times = [
                        _round(connection, program, kept, job, share, edges) for _ in range(rounds)
                    ]
                    full, refreshed = (median(x) for x in zip(*times, strict=True))
                    yield (
                        job.name,
                        f"{edges:,}",
                        f"{share:.3%}",
                        f"{full:.3f}",
                        f"{refreshed:.3f}",
                        ratio(refreshed / full),
                    )


def _round(
    connection: duckdb.DuckDBPyConnection,
    program: ucle.EinsumProgram,
    kept: ucle.Maintained,
    job: Job,
    share: float,
    edges: int,
) -> tuple[float, float]:
    insert = (
        f"INSERT INTO A SELECT *, 1.0 FROM "
        f"({_new_edges(edges // 10, max(1, int(share * edges)))}) ANTI JOIN A USING (i, j)"
    )
    connection.execute(insert)
    start = time.perf_counter()
    kept.refresh()
    refreshed = time.perf_counter() - start
    connection.execute(insert)
    start = time.perf_counter()
    with program.recompile().execute() as result:
        result[job.output].to_table("whole", mode="replace")
    full = time.perf_counter() - start
    kept.refresh()
    differ = _differ(connection, "kept", "whole")
    assert differ < 1e-9 * max(1.0, edges), f"{job.name}: {differ}"
    return full, refreshed


TABLE = Table(
    "maintenance",
    "Results that follow their data",
    "Seconds of a refresh and of a full run after some rows were appended to the edges.",
    ("program", "edges", "new", "full run", "refresh", "ratio"),
    _rows,
)
