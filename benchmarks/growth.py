"""The cost of one SpMM as the graph grows, as a ratio to scipy's at each size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.kernels import measure, spmm
from benchmarks.measure import Table, ratio

WIDTH = 64
EDGES_PER_NODE = 7


def _rows(rounds: int) -> Iterator[Sequence[str]]:
    first = None
    for edges in (100_000, 1_000_000, 10_000_000):
        times = measure(spmm(edges // EDGES_PER_NODE, edges, WIDTH, np.float64, True, 1), rounds)
        found = times["ucle"] / times["theirs"]
        first = first or found
        seconds = [f"{times[side]:.4f}" for side in ("theirs", "ucle")]
        yield f"{edges:,}", *seconds, ratio(found), ratio(found / first)


TABLE = Table(
    "growth",
    "SpMM on growing graphs",
    f"Width {WIDTH}, float64, {EDGES_PER_NODE} edges per node, stored inputs. `against the\n"
    "first` divides each ratio by the ratio of the smallest graph. Goal: the ratio rises by\n"
    "at most half.",
    ("edges", "scipy", "ucle", "ucle / scipy", "against the first"),
    _rows,
)
