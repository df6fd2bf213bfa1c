"""The cost of statistics next to their program: on the first compilation and later."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import scipy.sparse as sp

import ucle
from benchmarks.measure import THREADS, Table

WIDTH = 64
EDGES_PER_NODE = 7
TEXT = "Z[i,m] += A[i,j] * H[j,m]"


def _store(connection: duckdb.DuckDBPyConnection, edges: int, order: str) -> dict[str, Any]:
    """Store random edges in some order, and features, as tables of a file."""
    nodes = edges // EDGES_PER_NODE
    connection.execute(
        f"""
        CREATE TABLE edges AS
            SELECT DISTINCT ON (i, j) (hash(range) % {nodes})::INT i,
                (hash(range + {edges}) % {nodes})::INT j, 1 + range % 7 / 8e0 v
            FROM range({edges}) ORDER BY {order}"""
    ).fetchall()
    connection.execute(
        f"""
        CREATE TABLE features AS
            SELECT range::INT i,
                list_transform(range({WIDTH}), lambda x: ((x * r.range) % 97)::DOUBLE) v
            FROM range({nodes}) r"""
    ).fetchall()
    connection.execute("CHECKPOINT").fetchall()
    return {
        "A": ucle.table("edges", ["i", "j"], "v", bounds=(nodes, nodes)),
        "H": ucle.table("features", ["i"], "v", shape=(WIDTH,), bounds=(nodes, WIDTH)),
    }


def _seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def _measure(edges: int, order: str) -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        ucle.connect(Path(folder) / "graph.duckdb", threads=THREADS) as connection,
    ):
        tables = _store(connection, edges, order)

        def compiled() -> ucle.EinsumProgram:
            return ucle.einsum_program(TEXT, database=connection, **tables)

        connection.execute("SELECT sum(i), sum(v) FROM edges").fetchall()  # from disk to memory
        connection.execute("SELECT sum(list_sum(v)) FROM features").fetchall()
        first, program = _seconds(compiled)
        again, _ = _seconds(compiled)
        ucle.clear_caches()
        another, _ = _seconds(compiled)
        runs = []
        for _ in range(2):
            seconds, result = _seconds(lambda: program.execute(connection))
            runs.append(seconds)
            result.close()
    yield f"{min(runs):.2f}"
    for seconds in (first, another, again):
        yield f"{seconds:.3f}"
        yield f"{seconds / min(runs):.0%}"


def _rows(_: int) -> Iterator[Sequence[str]]:
    # One-time work of a process, such as building parsers, is not counted.
    ucle.einsum_program(TEXT, A=sp.eye_array(9, format="coo"), H=np.ones((9, WIDTH)))
    for edges in (1_000_000, 10_000_000, 30_000_000):
        for name, order in (("sorted", "i, j"), ("shuffled", "hash(i * 31 + j)")):
            yield f"{edges:,}", name, *_measure(edges, order)


TABLE = Table(
    "statistics",
    "Statistics compared with execution",
    f"`{TEXT}`, width {WIDTH}, float64, {EDGES_PER_NODE} edges per node, tables in a file.\n"
    "There are three compilations: the first one; one in another process, which compares a\n"
    "digest with the one that the first has stored; and another one in the same process.\n"
    "`execution` is the better of two runs, and each `share` is relative to it. Goal: a\n"
    "tenth of the execution.",
    ("edges", "order", "execution", "first", "share", "other process", "share", "same", "share"),
    _rows,
)
