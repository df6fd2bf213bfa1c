"""The experiments of Finch's evaluation in SciPy, GraphBLAS and torch.

Functions get data in memory and return the call of each side. A side without the operation is left
out, as are several calls where one side has one: SciPy's searches are one call in C.
"""

# ruff: noqa: PLC0415  # packages that are not installed are not compared

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage
from scipy.sparse import csgraph
from scipy.spatial import distance

from benchmarks.references.peers import Peers, Side, peers, to_graphblas, to_torch


def spmv(a: Any, x: Any) -> Peers:
    """A matrix times a vector."""

    def graphblas() -> Side:
        from graphblas import semiring

        matrix, vector = to_graphblas(a), to_graphblas(x)
        return lambda: semiring.plus_times(matrix @ vector).new()

    def torch() -> Side:
        matrix, vector = to_torch(a), to_torch(x)
        return lambda: matrix @ vector

    return peers(SciPy=lambda: lambda: a @ x, GraphBLAS=graphblas, torch=torch)


def spgemm(a: Any) -> Peers:
    """A sparse matrix times itself."""

    def graphblas() -> Side:
        from graphblas import semiring

        matrix = to_graphblas(a)
        return lambda: semiring.plus_times(matrix @ matrix).new()

    def torch() -> Side:
        matrix = to_torch(a)
        return lambda: matrix @ matrix

    return peers(SciPy=lambda: lambda: a @ a, GraphBLAS=graphblas, torch=torch)


def triangles(a: Any) -> Peers:
    """Closed paths of three edges; torch has no masks."""

    def graphblas() -> Side:
        from graphblas import monoid, semiring

        matrix = to_graphblas(a)

        def count() -> Any:
            closed = semiring.plus_times(matrix @ matrix.T).new(mask=matrix.S)
            return closed.reduce_scalar(monoid.plus).new()

        return count

    return peers(SciPy=lambda: lambda: (a @ a).multiply(a).sum(), GraphBLAS=graphblas)


def breadth_first(a: Any, start: int) -> Peers:
    """The level of each vertex, -1 where there is none."""

    def scipy() -> Side:
        def levels() -> Any:
            order, before = csgraph.breadth_first_order(a, start)
            found = np.full(a.shape[0], -1)
            found[start] = 0
            for vertex in order[1:]:
                found[vertex] = found[before[vertex]] + 1
            return found

        return levels

    def graphblas() -> Side:
        from graphblas import Vector, semiring

        matrix = to_graphblas(a.astype(bool))

        def levels() -> Any:
            found = Vector(np.int64, a.shape[0])
            frontier = Vector(bool, a.shape[0])
            frontier[start] = True
            level = 0
            while frontier.nvals:
                found(frontier.S)[:] = level
                frontier(~found.S, replace=True) << semiring.any_pair(frontier @ matrix)
                level += 1
            return found

        return levels

    return peers(SciPy=scipy, GraphBLAS=graphblas)


def bellman_ford(a: Any, start: int) -> Peers:
    """The length of the shortest path to each vertex; SciPy's Dijkstra, as its own is slow."""

    def scipy() -> Side:
        return lambda: csgraph.dijkstra(a, indices=start)

    def graphblas() -> Side:
        from graphblas import Vector, binary, semiring

        matrix = to_graphblas(a)

        def lengths() -> Any:
            found = Vector(float, a.shape[0])
            found[start] = 0.0
            for _ in range(a.shape[0]):
                before = found.dup()
                found(binary.min) << semiring.min_plus(found @ matrix)
                if found.isequal(before):
                    break
            return found

        return lengths

    return peers(SciPy=scipy, GraphBLAS=graphblas)


def erosion(image: Any, times: int) -> Peers:
    """Pixels that are white with all their neighbours, repeatedly; beyond the rim it is black."""
    around = np.ones((3, 3), dtype=bool)

    def torch() -> Side:
        import torch

        black = to_torch((~image).astype(np.float32))[None, None]

        def eroded() -> Any:
            found = black
            for _ in range(times):
                rim = torch.nn.functional.pad(found, (1, 1, 1, 1), value=1.0)
                found = torch.nn.functional.max_pool2d(rim, 3, stride=1)
            return found[0, 0] == 0

        return eroded

    return peers(
        SciPy=lambda: lambda: ndimage.binary_erosion(image, around, iterations=times),
        torch=torch,
    )


def histogram(image: Any, mask: Any, bins: int) -> Peers:
    """The number of pixels of each brightness under a mask."""

    def torch() -> Side:
        import torch

        pixels, there = to_torch(image), to_torch(mask)
        return lambda: torch.bincount(pixels[there], minlength=bins)

    return peers(
        NumPy=lambda: lambda: np.bincount(image[mask], minlength=bins),
        torch=torch,
    )


def similarity(images: Any) -> Peers:
    """The squared distances of all images from each other."""

    def torch() -> Side:
        rows = to_torch(images)

        def distances() -> Any:
            squares = (rows * rows).sum(1)
            return squares[:, None] + squares - 2 * (rows @ rows.T)

        return distances

    return peers(
        SciPy=lambda: lambda: distance.cdist(images, images, "sqeuclidean"),
        torch=torch,
    )
