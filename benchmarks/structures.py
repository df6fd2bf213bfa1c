"""Seeded matrices and images with a structure, and real matrices, for `benchmarks.finch`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.workloads import GRAPHS

REAL = GRAPHS.parent / "sparse"
SHAPES = {"bcsstk13": 2003, "cryg2500": 2500, "jagmesh7": 1138}
"""Numbers of rows, and columns, of the real matrices."""


def real(name: str) -> Any:
    """Return a real matrix by name; raise `FileNotFoundError` where it is missing."""
    entries = pq.read_table(REAL / f"{name}.parquet")
    i, j, values = (entries[column].to_numpy() for column in ("i", "j", "value"))
    return sp.csr_array((values, (i, j)), shape=(SHAPES[name],) * 2)


def banded(size: int, width: int) -> Any:
    """Entries up to `width` places beside the diagonal, on both of its sides."""
    rng = np.random.default_rng(0)
    offsets = range(-width, width + 1)
    diagonals = [rng.random(size - abs(offset)) for offset in offsets]
    return sp.csr_array(sp.diags_array(diagonals, offsets=offsets, shape=(size, size)))


def triangular(size: int) -> Any:
    """All entries on and above the diagonal."""
    return sp.csr_array(np.triu(np.random.default_rng(1).random((size, size))))


def blocks(size: int, block: int, density: float) -> Any:
    """A matrix of which some blocks exist, each of them dense."""
    rng, count = np.random.default_rng(2), size // block
    there = rng.random((count, count)) < density
    data = rng.random((int(there.sum()), block, block))
    pointers = np.r_[0, np.cumsum(there.sum(1))]
    return sp.bsr_array((data, np.nonzero(there)[1], pointers), shape=(size, size)).tocsr()


def reversal(size: int) -> Any:
    """The permutation that reverses a vector."""
    rows = np.arange(size)
    return sp.csr_array((np.ones(size), (rows, rows[::-1])), shape=(size, size))


def symmetric(size: int, edges: int) -> Any:
    """A random matrix that is its own transpose."""
    rng = np.random.default_rng(3)
    ends = np.unique(np.sort(rng.integers(0, size, (edges, 2)), axis=1), axis=0)
    half = sp.coo_array((rng.random(len(ends)), ends.T), shape=(size, size)).tocsr()
    return sp.csr_array(half + sp.triu(half, 1).T)


def runs(size: int, count: int, length: int) -> Any:
    """Rows that hold `count` runs of one value each."""
    rng = np.random.default_rng(4)
    dense = np.zeros((size, size))
    starts = rng.integers(0, size - length, (size, count))
    values = rng.integers(1, 10, (size, count))
    for row, run in np.ndindex(size, count):
        dense[row, starts[row, run] :][:length] = values[row, run]
    return sp.csr_array(dense)


def uniform(size: int, degree: int) -> Any:
    """An Erdős-Rényi matrix with some entries a row."""
    rng = np.random.default_rng(5)
    ends = np.unique(rng.integers(0, size, (size * degree, 2)), axis=0)
    return sp.csr_array((rng.random(len(ends)), ends.T), shape=(size, size))


def grid(side: int) -> Any:
    """Neighbours on a grid, as in a road map."""
    line = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(side, side))
    one = sp.eye_array(side)
    return sp.csr_array(sp.kron(line, one) + sp.kron(one, line))


def blobs(side: int, size: float) -> NDArray[np.bool_]:
    """An image of black and white areas of about a given size."""
    noise = np.random.default_rng(6).normal(size=(side, side))
    return np.asarray(ndimage.gaussian_filter(noise, size) > 0)


def digits(count: int, side: int) -> NDArray[np.float64]:
    """Images of a few strokes, an image a row; most of each is 0."""
    rng = np.random.default_rng(7)
    images = np.zeros((count, side, side))
    for image in images:
        for _ in range(3):
            start, length = rng.integers(2, side // 2), rng.integers(4, side // 2)
            line = rng.integers(2, side - 2)
            stroke = image if rng.random() < 0.5 else image.T
            stroke[line : line + 2, start : start + length] = rng.integers(1, 256)
    return images.reshape(count, -1)
