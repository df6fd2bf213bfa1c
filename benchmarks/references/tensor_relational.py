"""Products and nearest neighbours in NumPy and torch, on whole arrays in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.references.peers import Peers, Side, peers, to_torch


def product(a: Any, b: Any) -> Peers:
    """A matrix times another."""

    def torch() -> Side:
        left, right = to_torch(a), to_torch(b)
        return lambda: left @ right

    return peers(NumPy=lambda: lambda: a @ b, torch=torch)


def nearest(points: Any, query: Any, metric: Any) -> Peers:
    """The index of the point nearest to the query, by a metric given as a matrix."""

    def numpy() -> Any:
        difference = points - query
        return np.einsum("id,id->i", difference @ metric, difference).argmin()

    def torch() -> Side:
        rows, one, matrix = (to_torch(x) for x in (points, query, metric))

        def first() -> Any:
            difference = rows - one
            return ((difference @ matrix) * difference).sum(1).argmin()

        return first

    return peers(NumPy=lambda: numpy, torch=torch)
