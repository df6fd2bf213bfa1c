"""Single steps against scipy and NumPy on the same work.

Inputs are tables: "stored" ones have the layout that the program wants, in the order of the label
that it groups by, and "as they come" ones have a random order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio, tolerance_of
from benchmarks.stored import coo_table, rows_table
from benchmarks.workloads import GRAPHS, load, power_law

Made = Callable[[duckdb.DuckDBPyConnection], tuple[str, Mapping[str, Any], dict[str, Any]]]


@dataclass(frozen=True)
class Step:
    """One line of the table: a program, its reference, and the target ratio.

    `inputs` makes tables on a connection and returns the inputs of the program.
    """

    name: str
    program: str
    inputs: Callable[[duckdb.DuckDBPyConnection], dict[str, Any]]
    reference: Callable[[], Any]
    reach: float
    dtype: Any = np.float64
    blas_threads: int = THREADS
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of `einsum_program`."""


def spmm(nodes: int, edges: int, width: int, dtype: Any, stored: bool, reach: float) -> Step:
    """A sparse matrix of a power-law graph times a dense one with one vector per node."""
    random = np.random.default_rng(1)
    graph = power_law(nodes, edges, dtype)
    features = random.random((nodes, width)).astype(dtype)

    def inputs(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
        order = None if stored else random
        return {
            "A": coo_table(connection, "A", graph, order),
            "H": rows_table(connection, "H", features, order),
        }

    kept = "stored" if stored else "as they come"
    name = f"SpMM, {edges:,} edges, width {width}, {np.dtype(dtype).name}, {kept}"
    program = "Z[i,k] += A[i,j] * H[j,k]"
    return Step(name, program, inputs, lambda: graph @ features, reach, dtype)


def dense_layer(rows: int, inner: int, columns: int) -> Step:
    """Many vectors, one per tuple, times one matrix."""
    random = np.random.default_rng(2)
    x, w = random.random((rows, inner)), random.random((inner, columns))
    return Step(
        f"dense layer {rows:,} x {inner} x {columns}, one vector per tuple",
        "Z[i,n] += X[i,m] * W[m,n]",
        lambda connection: {"X": rows_table(connection, "X", x), "W": w},
        lambda: x @ w,
        1.2,
        options={"decomposition": {"Z": ["i"]}},
    )


def matmul(size: int, blocks: int) -> Step:
    """Two square matrices: whole, or the first one in blocks of rows."""
    random = np.random.default_rng(3)
    a, b = random.random((size, size)), random.random((size, size))
    if blocks == 1:
        return Step(
            f"matmul {size}^3 as one tuple, NumPy on one thread",
            "Z[i,k] += A[i,j] * B[j,k]",
            lambda connection: {"A": a, "B": b},
            lambda: a @ b,
            1.2,
            blas_threads=1,
            options={"decomposition": {"Z": []}},
        )
    blocked = a.reshape(blocks, size // blocks, size)
    return Step(
        f"matmul {size}^3 in {blocks} blocks of rows",
        "Z[b,i,k] += A[b,i,j] * B[j,k]",
        lambda connection: {"A": blocked, "B": b},
        lambda: (a @ b).reshape(blocks, size // blocks, size),
        1.5,
        options={"decomposition": {"Z": ["b"]}},
    )


def scores(width: int) -> Step:
    """Attention scores along the edges of a real graph, from queries and keys."""
    adjacency, _ = load("amazon_photo")
    nodes = adjacency.shape[0]
    random = np.random.default_rng(4)
    queries, keys = random.random((nodes, width)), random.random((nodes, width))
    rows, columns = adjacency.tocoo().coords

    def reference() -> Any:
        made = np.empty(len(rows))
        for start in range(0, len(rows), 8192):  # all at once would copy gigabytes
            part = slice(start, start + 8192)
            made[part] = np.einsum("ek,ek->e", queries[rows[part]], keys[columns[part]])
        return sp.csr_array((made * adjacency.data, (rows, columns)), shape=adjacency.shape)

    return Step(
        f"attention scores, amazon_photo, dk {width}",
        "Z[i,j] += A[i,j] * Q[i,k] * K[j,k]",
        lambda connection: {
            "A": coo_table(connection, "A", adjacency),
            "Q": rows_table(connection, "Q", queries),
            "K": rows_table(connection, "K", keys),
        },
        reference,
        1.0,
    )


def repartition(rows: int, columns: int) -> Step:
    """A dense matrix from one tuple per row to one per column."""
    matrix = np.random.default_rng(5).random((rows, columns))
    return Step(
        f"repartition {rows:,} x {columns} from rows to columns",
        "Z[i,j] = X[i,j]",
        lambda connection: {"X": rows_table(connection, "X", matrix)},
        lambda: np.asfortranarray(matrix),
        10.0,
        options={"decomposition": {"Z": ["j"]}},
    )


def measure(step: Step, rounds: int) -> dict[str, float]:
    """Time both sides."""
    with ucle.connect(threads=THREADS) as connection:
        program = ucle.einsum_program(
            step.program, **step.inputs(connection), database=connection, **step.options
        )
        expected = step.reference()

        def check(side: str, result: Any) -> None:
            if side == "ucle":
                sparse = sp.issparse(expected)
                tensor = result["Z"]
                found = sp.csr_array(tensor.to_scipy()) if sparse else tensor.to_numpy()
                expect_close(step.name, found, expected, tolerance_of(step.dtype))

        sides = {"theirs": step.reference, "ucle": lambda: program.execute(connection)}
        with threadpool_limits(limits=step.blas_threads, user_api="blas"):
            return race(sides, rounds, check)


def steps() -> Iterator[Callable[[], Step]]:
    """Yield a maker for each line of the table; inputs are made when they are needed."""
    for dtype in (np.float64, np.float32):
        for width in (64, 128, 256):
            for stored in (True, False):
                reach = 2.0 if not stored else 1.4 if width == 64 else 1.0
                yield lambda w=width, d=dtype, s=stored, r=reach: spmm(
                    169_343, 1_166_243, w, d, s, r
                )
    yield lambda: dense_layer(169_343, 128, 256)
    yield lambda: matmul(2048, 1)
    yield lambda: matmul(2048, 16)
    yield lambda: matmul(2048, 256)
    if GRAPHS.is_dir():
        yield lambda: scores(1024)
    yield lambda: repartition(20_000, 512)


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    for make in steps():
        step = make()
        times = measure(step, rounds)
        found = times["ucle"] / times["theirs"]
        seconds = [f"{times[side]:.3f}" for side in ("theirs", "ucle")]
        yield step.name, *seconds, ratio(found), ratio(step.reach)


TABLE = Table(
    "kernels",
    "Single steps against scipy and NumPy",
    "SpMM is compared with `scipy.sparse` in CSR, all other steps with NumPy. NumPy has as\n"
    "many threads as DuckDB, unless the row says otherwise. ucle's results are tables.",
    ("work", "scipy or NumPy", "ucle", "ucle / theirs", "goal"),
    _rows,
)
