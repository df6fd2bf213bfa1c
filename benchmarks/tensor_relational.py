"""Products of matrices and nearest neighbours over tables of tiles, against NumPy and torch.

These are the two examples of tensor relational algebra: tables whose rows are keys and an array. A
program has an axis for each key and each dimension of the arrays, as the algebra does, or reads the
table as the whole matrix (`tiles=`). References are in `benchmarks.references`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import ucle
from benchmarks.experiment import Experiment, Task, header, lines
from benchmarks.measure import Table
from benchmarks.references import tensor_relational

SIDES = ("NumPy", "torch")
TILE = 256
KEYS, MATRIX = FORMS = ("keys and arrays", "tiles of a matrix")
"""The forms in which programs read tiles: an axis for each key, or the whole matrix."""

WHOLE = "C[i,k] += A[i,j] * B[j,k]"
TILED = "C[a,r,c,s] += A[a,b,r,t] * B[b,c,t,s]"
NEAREST = """
    D[i,d] = X[i,d] - q[d]
    S[i] += D[i,d] * M[d,e] * D[i,e]
    least min= S[i]
    at min= where(S[i] == least, i, POINTS)
"""
NEAREST_TILED = """
    D[n,i,f,d] = X[n,f,i,d] - q[f,d]
    S[n,i] += D[n,i,f,d] * M[f,g,d,e] * D[n,i,g,e]
    least min= S[n,i]
    at min= where(S[n,i] == least, TILE*n + i, POINTS)
"""

REPORTS = {
    "product": "no figure: an aggregation of a join (section 2), and its cost in tuples (4.3)",
    "nearest": "no figure: a join, a transform and an aggregation",
}


def _experiments() -> Iterator[Experiment]:
    shapes = {
        "general": (1024, 1024, 1024),
        "a long dimension in common": (512, 8192, 512),
        "two long dimensions": (4096, 256, 4096),
    }
    for name, shape in shapes.items():
        size = " x ".join(f"{x:,}" for x in shape)
        for form in FORMS:
            prepare = partial(_product, shape, form)
            yield Experiment("2", f"product {size}, {name}, {form}", prepare, REPORTS["product"])
    for points, width in ((65_536, 256), (8_192, 1024)):
        for form in FORMS:
            name = f"nearest of {points:,} points in {width:,} dimensions, {form}"
            yield Experiment("2", name, partial(_nearest, points, width, form), REPORTS["nearest"])


def _product(shape: tuple[int, int, int], form: str) -> Task:
    rows, common, columns = shape
    rng = np.random.default_rng(0)
    a, b = rng.random((rows, common)), rng.random((common, columns))
    peers = tensor_relational.product(a, b)
    if form == MATRIX:
        tables = {
            "A": partial(_tiles, "A", a, whole=True),
            "B": partial(_tiles, "B", b, whole=True),
        }
        return Task(peers, WHOLE, tables, "C")
    tables = {"A": partial(_tiles, "A", a), "B": partial(_tiles, "B", b)}
    return Task(peers, TILED, tables, "C", arrange=_untiled)


def _nearest(points: int, width: int, form: str) -> Task:
    rng = np.random.default_rng(1)
    x, query = rng.random((points, width)), rng.random(width)
    root = rng.normal(size=(width, width)) / width
    metric = root @ root.T
    text = NEAREST_TILED if form == KEYS else NEAREST
    inputs = {
        "X": partial(_tiles, "X", x, whole=form == MATRIX),
        "q": query.reshape(-1, TILE) if form == KEYS else query,
        "M": partial(_tiles, "M", metric, whole=form == MATRIX),
    }
    text = text.replace("TILE", str(TILE)).replace("POINTS", str(points))
    return Task(tensor_relational.nearest(x, query, metric), text, inputs, "at")


def _tiles(
    name: str, matrix: Any, connection: duckdb.DuckDBPyConnection, whole: bool = False
) -> Any:
    """Create a table with a row for each tile, as a tensor of four axes or as the whole matrix."""
    counts = tuple(size // TILE for size in matrix.shape)
    tiles = matrix.reshape(counts[0], TILE, counts[1], TILE).swapaxes(1, 2)
    ends = np.arange(counts[0] * counts[1] + 1) * TILE**2
    values = pa.LargeListArray.from_arrays(ends, pa.array(tiles.reshape(-1)))
    a, b = (key.ravel() for key in np.indices(counts, dtype=np.int32))
    connection.register("source", pa.table({"a": a, "b": b, "val": values}))
    connection.execute(f"CREATE TABLE {name} AS FROM source").fetchall()
    connection.unregister("source")
    if whole:
        return ucle.table(name, tiles=[TILE, TILE], bounds=matrix.shape)
    return ucle.table(name, ["a", "b"], "val", shape=(TILE, TILE), bounds=(*counts, TILE, TILE))


def _untiled(tiles: Any) -> Any:
    a, rows, b, columns = tiles.shape
    return tiles.reshape(a * rows, b * columns)


TABLE = Table(
    "tensor_relational",
    "Products and nearest neighbours over tiles",
    "Seconds from `execute` until the result is in DuckDB. The tables have a row for each\n"
    f"tile of {TILE} x {TILE} numbers, and are kept by `store=`. The time of compilation has\n"
    "its own column. Programs use the keys of the tiles as axes (`keys and arrays`), or\n"
    "read the whole matrix (`tiles of a matrix`). Our copy of the paper ends before its\n"
    "experiments.",
    header(SIDES),
    lines(_experiments, SIDES),
)
