"""Shortest paths from one corner of a grid of roads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

import ucle

JOB = "shortest paths on a grid of 100 x 100"
OTHER = "SciPy"


def ucle_side(folder: Path) -> Any:
    far = {"fill": ucle.inf, "dtype": float}
    program = ucle.einsum_program(
        """
        around[i] min= D[j] + L[j,i]
        next[i] = min(D[i], around[i])
        moved[] = sum[i](next[i] < D[i])
        """,
        L=ucle.table(str(folder / "roads.parquet"), symmetric=True, **far),
        D=ucle.table(str(folder / "start.parquet"), **far),
        outputs=["next"],
    )
    return program.iterate({"D": "next"}, until="moved[] == 0")["next"].to_numpy()


def other_side(folder: Path) -> Any:
    roads = pd.read_parquet(folder / "roads.parquet")
    matrix = sp.csr_array((roads.metres, (roads.a, roads.b)), shape=(10_000, 10_000))
    return dijkstra(matrix, directed=False, indices=0)
