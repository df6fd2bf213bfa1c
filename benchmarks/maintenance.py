"""Results that follow their data: a refresh against a full run, by the share of rows that changed.

Each refresh and each full run follows a change of its own, so that neither finds what the other one
has measured: rows of the graph are inserted. A full run recompiles for the changed data, as a
refresh does, and writes the table of its output. The answers are compared.

    python -m benchmarks.run maintenance --rounds 3
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import duckdb

import ucle
from benchmarks.measure import THREADS, Table, ratio

SHARES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
SIZES = (200_000, 2_000_000)
WIDTH = 8


@dataclass(frozen=True)
class Job:
    """A program over edges `A[i,j]`, features `H[i,k]`, weights `W[k,n]` and numbers `r[i]`."""

    name: str
    text: str
    output: str
    bounds: dict[str, int] = field(default_factory=dict)
    delta: str = ""
    """What one writes by hand: the rows by which the output grows, from `A` and its `new_rows`."""


GRAPH_LAYER = "T[i,k] += A[i,j] * H[j,k]; Z[i,n] = relu(T[i,k] * W[k,n])"

JOBS = (
    Job(
        "two layers of a graph network",
        f"{GRAPH_LAYER}; U[i,n] += A[i,j] * Z[j,n]; Y[i,m] = U[i,n] * W[n,m]",
        "Y",
    ),
    Job(
        "attention along edges",
        "S[i,j] = when(A[i,j], exp(sum[k](H[i,k] * H[j,k]))); n[i] += S[i,j]; "
        "O[i,k] += S[i,j] * H[j,k]; Y[i,k] = O[i,k] / max(n[i], 1e-9)",
        "Y",
    ),
    Job(
        "step of PageRank",
        "links[i] += A[i,j]; Y[j] = 0.15 + 0.85 * sum[i](A[i,j] * r[i] / max(links[i], 1))",
        "Y",
    ),
    Job(
        "triangles and clustering",
        "t[i] += A[i,j] * A[j,k] * A[i,k]; d[i] += A[i,j]; c[i] = t[i] / max(d[i] * d[i], 1)",
        "c",
    ),
    Job(
        "items chosen together",
        "C[i,k] += A[j,i] * A[j,k]",
        "C",
        delta="""
            SELECT a.j AS i, b.j AS k, sum(a.val * b.val) AS val
            FROM new_rows a JOIN A b USING (i) GROUP BY ALL
            UNION ALL
            SELECT a.j, b.j, sum(a.val * b.val) FROM A a JOIN new_rows b USING (i) GROUP BY ALL
            UNION ALL
            SELECT a.j, b.j, -sum(a.val * b.val) FROM new_rows a JOIN new_rows b USING (i)
            GROUP BY ALL
        """,
    ),
    Job(
        "TF-IDF",
        "df[j] count= A[i,j] != 0; idf[j] = log(1e6 / max(df[j], 1)); X[i,j] = A[i,j] * idf[j]",
        "X",
    ),
    Job(
        "least squares over a join",
        "G[k,l] += A[i,j] * H[j,k] * H[j,l]; b[k] += A[i,j] * H[j,k] * r[i]; "
        "Y[k] = inv[k,l](G[k,l]) * b[l]",
        "Y",
    ),
    Job("ten largest of each row", "s[i,p] = top_k[j,p](A[i,j])", "s", {"p": 10}),
    Job(
        "sums by group",
        "S[i] += A[i,j]",
        "S",
        delta="SELECT i, sum(val) AS val FROM new_rows GROUP BY ALL",
    ),
    Job(
        "means by group",
        "s[i] += A[i,j]; n[i] count= A[i,j] != 0; m[i] = s[i] / max(n[i], 1)",
        "m",
    ),
)


VALUE = "(1 + (31 * i + j) % 7)::DOUBLE"


def _new_edges(nodes: int, count: int) -> str:
    return (
        f"SELECT DISTINCT (random() * {nodes - 1})::BIGINT AS i, "
        f"(random() * {nodes - 1})::BIGINT AS j FROM range({count})"
    )


def _create(edges: int) -> duckdb.DuckDBPyConnection:
    connection, nodes = ucle.connect(threads=THREADS), edges // 10
    connection.execute("SELECT setseed(0.5)").fetchall()
    connection.execute(
        f"CREATE TABLE A AS SELECT *, {VALUE} AS val FROM ({_new_edges(nodes, edges)})"
    )
    connection.execute(
        f"CREATE TABLE H AS SELECT i, k, random() AS val "
        f"FROM range({nodes}) a(i), range({WIDTH}) b(k)"
    )
    connection.execute(f"CREATE TABLE r AS SELECT i, random() AS val FROM range({nodes}) a(i)")
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
                names = [x for x in "AHWr" if f"{x}[" in job.text]
                inputs = {name: name for name in names}
                program = ucle.einsum_program(
                    job.text,
                    inputs=inputs,
                    database=connection,
                    outputs=[job.output],
                    bounds=job.bounds or None,
                )
                kept = program.maintain("kept", connection, append_only=["A"])
                if job.delta:
                    connection.execute("CREATE TABLE by_hand AS FROM kept")
                for share in SHARES:
                    times = [
                        _round(connection, program, kept, job, share, edges) for _ in range(rounds)
                    ]
                    full, refreshed, by_hand = (median(x) for x in zip(*times, strict=True))
                    yield (
                        job.name,
                        f"{edges:,}",
                        f"{share:.3%}",
                        f"{full:.3f}",
                        f"{refreshed:.3f}",
                        ratio(refreshed / full),
                        f"{by_hand:.3f}" if by_hand else "",
                    )


def _insert(connection: duckdb.DuckDBPyConnection, count: int, edges: int) -> None:
    """Append new edges, which are in a table of their own, too."""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE new_rows AS SELECT *, {VALUE} AS val "
        f"FROM ({_new_edges(edges // 10, count)}) ANTI JOIN A USING (i, j)"
    )
    connection.execute("INSERT INTO A FROM new_rows")


def _round(
    connection: duckdb.DuckDBPyConnection,
    program: ucle.EinsumProgram,
    kept: ucle.Maintained,
    job: Job,
    share: float,
    edges: int,
) -> tuple[float, float, float]:
    """Seconds of a full run, of a refresh, and of what is written by hand, 0 if nothing is."""
    count = max(1, int(share * edges))
    _insert(connection, count, edges)
    by_hand = _by_hand(connection, job) if job.delta else 0.0
    start = time.perf_counter()
    kept.refresh()
    refreshed = time.perf_counter() - start
    if job.delta:
        _check(connection, "by_hand", job, edges)
    _insert(connection, count, edges)
    if job.delta:
        _by_hand(connection, job)
    start = time.perf_counter()
    with program.recompile().execute() as result:
        result[job.output].to_table("whole", mode="replace", rows="nonfill")
    full = time.perf_counter() - start
    kept.refresh()
    _check(connection, "whole", job, edges)
    return full, refreshed, by_hand


def _check(connection: duckdb.DuckDBPyConnection, other: str, job: Job, edges: int) -> None:
    differ = _differ(connection, "kept", other)
    assert differ < 1e-8 * max(1.0, edges), f"{job.name}, {other}: {differ}"


def _by_hand(connection: duckdb.DuckDBPyConnection, job: Job) -> float:
    """Add what the output grows by to a table; return the seconds that it takes."""
    keys = ", ".join(x[0] for x in connection.sql("DESCRIBE kept").fetchall() if x[0] != "val")
    start = time.perf_counter()
    connection.execute(f"""
        BEGIN;
        CREATE OR REPLACE TEMP TABLE delta AS
        SELECT {keys}, sum(val) AS val FROM ({job.delta}) GROUP BY {keys};
        CREATE OR REPLACE TEMP TABLE grown AS
        SELECT {keys}, coalesce(by_hand.val, 0) + delta.val AS val
        FROM delta LEFT JOIN by_hand USING ({keys});
        DELETE FROM by_hand USING delta WHERE ({_pairs(keys)});
        INSERT INTO by_hand BY NAME FROM grown;
        COMMIT;
    """)
    return time.perf_counter() - start


def _pairs(keys: str) -> str:
    return " AND ".join(f"by_hand.{x} = delta.{x}" for x in keys.split(", "))


TABLE = Table(
    "maintenance",
    "Results that follow their data",
    "Seconds of a refresh and of a full run after some rows were appended to the edges, and of SQL "
    "that is written by hand for this change: the terms that are new are added to the table.",
    ("program", "edges", "new", "full run", "refresh", "ratio", "by hand"),
    _rows,
)
