"""Compressed tensors as NumPy arrays.

A compressed tensor is a matrix (or, with one row, a list) of which some places hold a value, row
by row; what the others hold, its fill, is not part of it. On its way it is a BLOB, which
``csrc/csr.h`` describes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dataclasses import dataclass

Array = NDArray[Any]

MAGIC = 0x01525343
"""``CSR`` and the version of the format."""

INDEX_BYTES = 4
"""Bytes of a column, and of where the entries of a row begin."""

HEAD_BYTES = 16
"""Bytes before those."""

RUNS = 1
"""What stands in the header where the places are runs of one value, and not entries."""


@dataclass(frozen=True, eq=False)
class Csr:
    """The parts of a compressed tensor.

    Attributes:
        ptr: where the entries of each row begin, and where the last ones end.
        idx: the column of each entry; they ascend within a row.

    >>> x = Csr.of([[0.0, 2.0], [3.0, 0.0]], 0.0)
    >>> x.idx.tolist(), x.ptr.tolist(), x.values.tolist()
    ([1, 0], [0, 1, 2], [2.0, 3.0])
    >>> Csr.from_bytes(x.to_bytes(), np.dtype("f8")).dense(-1.0).tolist()
    [[-1.0, 2.0], [3.0, -1.0]]
    """

    rows: int
    cols: int
    ptr: NDArray[np.uint32]
    idx: NDArray[np.uint32]
    values: Array

    def to_bytes(self) -> bytes:
        """The BLOB."""
        head = np.array([MAGIC, self.rows, self.cols, 0], "<u4")
        places = (
            head.tobytes() + self.ptr.astype("<u4").tobytes() + self.idx.astype("<u4").tobytes()
        )
        return places + bytes(-len(places) % 8) + self.values.tobytes()

    @staticmethod
    def from_bytes(blob: bytes, dtype: np.dtype[Any]) -> Csr:
        """The parts of a BLOB that a kernel has made."""
        magic, rows, cols, kind = np.frombuffer(blob, "<u4", 4).tolist()
        assert magic == MAGIC
        ptr = np.frombuffer(blob, "<u4", rows + 1, HEAD_BYTES)
        stored = int(ptr[-1])
        places = stored * (2 if kind == RUNS else 1)
        first = HEAD_BYTES + INDEX_BYTES * (rows + 1)
        idx = np.frombuffer(blob, "<u4", places, first)
        start = first + INDEX_BYTES * places
        values = np.frombuffer(blob, dtype, offset=start + -start % 8)
        if kind == RUNS:
            return Csr._of_runs(rows, cols, ptr, idx[:stored], idx[stored:], values)
        return Csr(rows, cols, ptr, idx, values)

    @staticmethod
    def _of_runs(
        rows: int, cols: int, ptr: Array, begins: Array, ends: Array, values: Array
    ) -> Csr:
        """The entries that runs of one value stand for: each from one column to before another."""
        lengths = (ends - begins).astype(np.int64)
        before = np.concatenate([[0], np.cumsum(lengths)])
        within = np.arange(before[-1]) - np.repeat(before[:-1], lengths)
        idx = (np.repeat(begins, lengths) + within).astype("<u4")
        return Csr(rows, cols, before[ptr].astype("<u4"), idx, np.repeat(values, lengths))

    @staticmethod
    def of(matrix: Any, fill: Any) -> Csr:
        """What differs from the fill in a matrix; NaN is equal to NaN here."""
        dense = np.asarray(matrix)
        stored = differs(dense, fill)
        row, col = np.nonzero(stored)
        rows, cols = dense.shape
        return Csr.at_places(rows, cols, row, col, dense[stored])

    @staticmethod
    def at_places(rows: int, cols: int, row: Any, col: Any, values: Array) -> Csr:
        """Entries in any order."""
        row, col, values = np.asarray(row), np.asarray(col), np.asarray(values)
        later = (row[1:] > row[:-1]) | ((row[1:] == row[:-1]) & (col[1:] > col[:-1]))
        if not later.all():
            order = np.lexsort((col, row))
            row, col, values = row[order], col[order], values[order]
        counts = np.bincount(np.asarray(row, np.int64), minlength=rows)
        ptr = np.concatenate([[0], np.cumsum(counts)]).astype("<u4")
        return Csr(rows, cols, ptr, col.astype("<u4"), values)

    def cut(self, tile: int) -> Iterator[tuple[int, Csr]]:
        """Yield the parts of so many rows that have entries, with their numbers.

        >>> [(n, part.rows, part.idx.tolist()) for n, part in Csr.of(np.eye(3), 0.0).cut(2)]
        [(0, 2, [0, 1]), (1, 1, [2])]
        """
        for first in range(0, self.rows, max(tile, 1)):
            ptr = self.ptr[first : first + tile + 1]
            begin, end = int(ptr[0]), int(ptr[-1])
            if end > begin:
                parts = self.idx[begin:end], self.values[begin:end]
                yield first // tile, Csr(len(ptr) - 1, self.cols, ptr - ptr[0], *parts)

    @property
    def row(self) -> NDArray[np.int64]:
        """The row of each entry."""
        ends = self.ptr.astype(np.int64)
        return np.repeat(np.arange(self.rows), ends[1:] - ends[:-1])

    def dense(self, fill: Any) -> Array:
        """The whole matrix."""
        out = np.full((self.rows, self.cols), fill, self.values.dtype)
        out[self.row, self.idx] = self.values
        return out


def differs(values: Array, fill: Any) -> Array:
    """Which values are not the fill; NaN is equal to NaN here."""
    return ~np.isnan(values) if np.isnan(fill) else values != values.dtype.type(fill)


def estimate_entries(arrays: int, rows: int, size: int, itemsize: int) -> float:
    """The entries of so many compressed tensors, from what they take together.

    Args:
        arrays: how many there are.
        rows: those of all of them.
        size: their bytes.
        itemsize: the bytes of a value.

    >>> estimate_entries(1, 2, len(Csr.of([[0.0, 2.0], [0.0, 0.0]], 0.0).to_bytes()), 8)
    1.0
    """
    places = arrays * (HEAD_BYTES + INDEX_BYTES) + rows * INDEX_BYTES
    return (size - places) / (INDEX_BYTES + itemsize)
