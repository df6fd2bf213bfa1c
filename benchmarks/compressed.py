"""The kernels of compressed tensors against scipy, called directly on whole matrices.

One call is one task, so both sides have one thread. The graphs are a random one and a real one;
entries are stacked in row order and in random order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from benchmarks.measure import Table, expect_close, race, ratio
from benchmarks.workloads import GRAPHS, load, power_law
from ucle.udf_kernels import Csr, load_extension

WIDTH, DEPTH = 64, 64
BLOCK = 8192
"""Entries for which inner products are computed at a time: all at once would copy gigabytes."""


@dataclass(frozen=True)
class Call:
    """One line: a kernel over tables of one BLOB each, and the same work in scipy."""

    name: str
    query: str
    reference: Callable[[], Any]
    sparse: bool
    """True if the result is compressed, False if it is dense."""


def _csr(matrix: Any) -> Csr:
    matrix.sort_indices()
    ptr, idx = (part.astype("<u4") for part in (matrix.indptr, matrix.indices))
    return Csr(*matrix.shape, ptr, idx, matrix.data)


def _put(connection: duckdb.DuckDBPyConnection, name: str, blob: bytes) -> None:
    connection.execute(f"CREATE TABLE {name} AS SELECT ?::BLOB AS v", [blob])


def _put_entries(connection: duckdb.DuckDBPyConnection, name: str, matrix: Any, order: Any) -> None:
    row, col, val = (part[order] for part in (*matrix.tocoo().coords, matrix.data))
    connection.execute(
        f"CREATE TABLE {name} AS SELECT row::BIGINT AS row, col::BIGINT AS col, val"
        " FROM (SELECT unnest($row) AS row, unnest($col) AS col, unnest($val) AS val)",
        {"row": row, "col": col, "val": val},
    )


def _inner_products(graph: Any, q: Any, k: Any) -> Any:
    rows, columns = graph.tocoo().coords
    values = np.empty(len(rows))
    for start in range(0, len(rows), BLOCK):
        part = slice(start, start + BLOCK)
        values[part] = np.einsum("ek,ek->e", q[rows[part]], k[columns[part]])
    return sp.csr_array((values * graph.data, (rows, columns)), shape=graph.shape)


def calls(connection: duckdb.DuckDBPyConnection, graph: Any) -> Iterator[Call]:
    """Create the tables of one graph, and yield the calls on it."""
    random, nodes = np.random.default_rng(1), graph.shape[0]
    dense, vector = random.random((nodes, WIDTH)), random.random((nodes, 1))
    q, k = random.random((nodes, DEPTH)), random.random((nodes, DEPTH))
    _put(connection, "a", _csr(graph).to_bytes())
    for name, matrix in {"h": dense, "x": vector, "q": q, "k": k}.items():
        _put(connection, name, matrix.tobytes())
    by_row = np.arange(graph.nnz)
    for name, order in {"ordered": by_row, "unordered": random.permutation(graph.nnz)}.items():
        _put_entries(connection, name, graph, order)
        row, col = (part[order] for part in graph.tocoo().coords)
        entries = sp.coo_array((graph.data[order], (row, col)), shape=graph.shape)
        stacked = f"SELECT stack_csr(val, row, col, {nodes}, {nodes}, 0) FROM {name}"
        yield Call(f"stack_csr, {name}", stacked, entries.tocsr, sparse=True)
    yield Call(
        "csr_mat, one column",
        "SELECT csr_mat('', a.v, x.v, 1) FROM a, x",
        lambda: graph @ vector,
        sparse=False,
    )
    yield Call(
        f"csr_mat, {WIDTH} columns",
        f"SELECT csr_mat('', a.v, h.v, {WIDTH}) FROM a, h",
        lambda: graph @ dense,
        sparse=False,
    )
    yield Call("csr_csr", "SELECT csr_csr('', v, v) FROM a", lambda: graph @ graph, sparse=True)
    yield Call(
        "csr_csr_masked, by itself",
        "SELECT csr_csr_masked('', v, v, v) FROM a",
        lambda: (graph @ graph).multiply(graph),
        sparse=True,
    )
    yield Call(
        f"csr_sddmm, {DEPTH} wide",
        f"SELECT csr_sddmm('', a.v, q.v, k.v, {DEPTH}) FROM a, q, k",
        lambda: _inner_products(graph, q, k),
        sparse=True,
    )


def _found(call: Call, blob: bytes, expected: Any) -> Any:
    """Return the answer of a kernel in the form of scipy or NumPy."""
    if not call.sparse:
        return np.frombuffer(blob).reshape(expected.shape)
    x = Csr.from_bytes(blob, np.dtype("f8"))
    return sp.csr_array((x.values, x.idx.astype("i4"), x.ptr.astype("i4")), shape=expected.shape)


def graphs() -> Iterator[tuple[str, Any]]:
    """Yield a random graph and a real one, with weights on the edges."""
    found = {"random, 50,000 nodes": sp.csr_array(power_law(50_000, 300_000, np.float64))}
    if GRAPHS.is_dir():
        found["amazon_photo"] = sp.csr_array(load("amazon_photo")[0])
    for name, graph in found.items():
        graph.sort_indices()
        graph.data = np.random.default_rng(0).random(graph.nnz) + 0.5
        yield name, graph


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for name, graph in graphs():
        config = {"allow_unsigned_extensions": "true", "threads": "1"}
        with duckdb.connect(config=config) as connection, threadpool_limits(limits=1):
            load_extension(connection)
            for call in calls(connection, graph):
                yield _measure(connection, call, f"{call.name}; {name}", rounds)


def _measure(
    connection: duckdb.DuckDBPyConnection, call: Call, name: str, rounds: int
) -> Sequence[str]:
    expected = call.reference()

    def check(side: str, result: Any) -> None:
        if side == "ucle":
            ((blob,),) = connection.execute(call.query).fetchall()
            expect_close(name, _found(call, blob, expected), expected, 1e-9)

    counted = f"SELECT octet_length(v) FROM ({call.query}) u(v)"
    sides = {"scipy": call.reference, "ucle": lambda: connection.execute(counted).fetchall()}
    times = race(sides, rounds, check)
    seconds = [f"{times[side]:.4f}" for side in ("scipy", "ucle")]
    return name, *seconds, ratio(times["ucle"] / times["scipy"])


TABLE = Table(
    "compressed",
    "Kernels of compressed tensors",
    "Compared with `scipy.sparse` on CSR matrices (for the inner products, with NumPy), on\n"
    "one thread. `stack_csr` is compared with scipy's conversion from COO to CSR. In the\n"
    "CSR matrices that scipy computes, the columns of a row are not sorted.",
    ("call", "scipy", "ucle", "ucle / scipy"),
    _rows,
)
