"""Matrices of dense blocks in a table of blocks, against scipy's CSR and BSR.

The same matrix is also read from a table of entries; from a table of blocks that the plan reads as
arrays of all rows, as it had to before blocks were a layout; and from a table that `store=` keeps.
The last lines are products with a symmetric matrix, of which a table holds one triangle or both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

import ucle
from benchmarks.measure import THREADS, Table, expect_close, race, ratio, tolerance_of

SIZE, BLOCK, DENSITY = 2048, 128, 0.2
WIDTHS = (1, 64, 256)
NODES, EDGES = 170_000, 600_000


def _blocks() -> Any:
    """A matrix of which some blocks exist, each of them dense."""
    rng, count = np.random.default_rng(0), SIZE // BLOCK
    there = rng.random((count, count)) < DENSITY
    data = rng.random((int(there.sum()), BLOCK, BLOCK))
    pointers = np.r_[0, np.cumsum(there.sum(1))]
    return sp.bsr_array((data, np.nonzero(there)[1], pointers), shape=(SIZE, SIZE))


def _create(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    connection.register("source", table)
    connection.execute(f"CREATE TABLE {name} AS FROM source").fetchall()
    connection.unregister("source")


def _tables(connection: duckdb.DuckDBPyConnection, matrix: Any) -> None:
    """Create the table of blocks, in lists, and that of entries."""
    rows = np.repeat(np.arange(SIZE // BLOCK), np.diff(matrix.indptr))
    ends = np.arange(len(rows) + 1) * BLOCK**2
    values = pa.LargeListArray.from_arrays(ends, pa.array(matrix.data.reshape(-1)))
    _create(connection, "blocks", pa.table({"bi": rows, "bj": matrix.indices, "val": values}))
    listed = matrix.tocoo()
    columns = {"i": listed.coords[0], "j": listed.coords[1], "val": listed.data}
    _create(connection, "entries", pa.table(columns))


def _products(width: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the ways to multiply the blocks with a matrix of some width."""
    matrix = _blocks()
    csr = matrix.tocsr()
    rng = np.random.default_rng(1)
    x = rng.random(SIZE) if width == 1 else rng.random((SIZE, width))
    text = "Y[i] += A[i,j] * X[j]" if width == 1 else "Y[i,k] += A[i,j] * X[j,k]"
    connection = ucle.connect(threads=THREADS)
    _tables(connection, matrix)
    blocks = ucle.table("blocks", tiles=[BLOCK, BLOCK])

    def program(data: Any, **options: Any) -> Callable[[], Any]:
        made = ucle.einsum_program(text, A=data, X=x, database=connection, **options)
        return made.execute

    yield "blocks", program(blocks)
    yield "rows of blocks", program(blocks, decomposition={"Y": []})
    yield "entries", program("entries")
    yield "BSR", program(matrix)
    yield "stored", program(blocks, store=["A"], decomposition={"Y": ["i/128", "j/128"]})
    yield "scipy CSR", lambda: csr @ x
    yield "scipy BSR", lambda: matrix @ x


def _array(result: Any) -> NDArray[Any]:
    return result if isinstance(result, np.ndarray) else result["Y"].to_numpy()


def _triangles(rounds: int) -> tuple[str, ...]:
    """Measure a matrix times a vector where a table holds both triangles, or one."""
    rng = np.random.default_rng(2)
    ends = np.unique(np.sort(rng.integers(0, NODES, (EDGES, 2)), axis=1), axis=0)
    values, x = rng.random(len(ends)), rng.random(NODES)
    half = pa.table({"i": ends[:, 0], "j": ends[:, 1], "val": values})
    connection = ucle.connect(threads=THREADS)
    _create(connection, "half", half)
    mirrored = "SELECT * FROM half UNION ALL SELECT j, i, val FROM half WHERE i <> j"
    connection.execute(f"CREATE TABLE whole AS {mirrored}").fetchall()
    bounds = [NODES, NODES]
    ways = {
        "whole": ucle.table("whole", bounds=bounds),
        "half": ucle.table("half", bounds=bounds, symmetric=True),
    }
    text = "Y[i] += A[i,j] * X[j]"
    programs = {
        name: ucle.einsum_program(text, A=data, X=x, database=connection)
        for name, data in ways.items()
    }
    times = race({name: made.execute for name, made in programs.items()}, rounds)
    return tuple(f"{times[name]:.4f}" for name in ("whole", "half"))


def _rows(rounds: int) -> Iterator[tuple[str, ...]]:
    for width in WIDTHS:
        sides = dict(_products(width))
        expected = sides["scipy CSR"]()

        def check(side: str, result: Any, expected: NDArray[Any] = expected) -> None:
            expect_close(side, _array(result), expected, tolerance_of(np.float64))

        times = race(sides, rounds, check)
        least = min(times["scipy CSR"], times["scipy BSR"])
        yield (
            f"times {width}",
            *(f"{times[side]:.4f}" for side in sides),
            ratio(times["blocks"] / times["rows of blocks"]),
            ratio(times["stored"] / least),
        )
    whole, half = _triangles(rounds)
    dashes = ("",) * 5
    yield ("symmetric, both triangles", "", "", whole, *dashes, "")
    yield ("symmetric, one triangle", "", "", half, *dashes, "")


TABLE = Table(
    "tiled",
    "Tables of blocks",
    f"Seconds to multiply a matrix of {SIZE} x {SIZE} by a matrix with 1, 64 or 256 columns.\n"
    f"Of its blocks of {BLOCK} x {BLOCK}, a share of {DENSITY} exists. ucle reads the matrix\n"
    "from a table of blocks (`blocks`), from the same table as arrays of all rows (`by\n"
    "rows`), from a table of entries, from scipy's BSR matrix in memory, and from the table\n"
    "of blocks that `store=` keeps (`stored`). The last two rows multiply a symmetric\n"
    f"matrix of {NODES:,} nodes by a vector, where a table of entries holds both triangles\n"
    "or only one.",
    (
        "product",
        "blocks",
        "by rows",
        "entries",
        "BSR",
        "stored",
        "SciPy CSR",
        "SciPy BSR",
        "blocks, to by rows",
        "stored, to the better of SciPy",
    ),
    _rows,
)
