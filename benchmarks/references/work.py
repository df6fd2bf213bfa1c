"""One line of the table of `benchmarks.levels`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp

from benchmarks.workloads import GRAPHS


@dataclass(frozen=True)
class Work:
    """A program and the same work in memory.

    Attributes:
        name: of the line.
        text: the program.
        inputs: by name, SciPy's sparse or NumPy's arrays.
        output: the tensor that is compared.
        reference: computes it in memory.
        reach: the multiple of the reference's time that is to be reached.
        stored: whether inputs are in the database in the layouts that the program chooses; else
            they are tables of entries, and arrays come from memory.
        options: of `einsum_program`.
    """

    name: str
    text: str
    inputs: Mapping[str, Any]
    output: str
    reference: Callable[[], Any]
    reach: float
    stored: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


Works = Callable[[], Sequence[Work]]


@cache
def human() -> Any:
    """Return the adjacency matrix of the protein graph `human`, symmetric, in both directions."""
    folder = GRAPHS.parent / "subgraph" / "human"
    vertices = pq.read_table(folder / "vertices.parquet").num_rows
    edges = pq.read_table(folder / "edges.parquet")
    source, target = (edges[name].to_numpy() for name in ("src", "dst"))
    return sp.csr_array((np.ones(len(source)), (source, target)), shape=(vertices, vertices))
