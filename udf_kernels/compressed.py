"""Compressed tensors and what their kernels mean, in NumPy: the definitions that the tests go by.

A compressed tensor is a matrix (or, with one row, a list) of which some places hold a value, row
by row; what the others hold, its fill, is not part of it. On its way it is a BLOB, which
``csrc/csr.h`` describes. Nothing here is fast, and nothing at run time calls it but `Csr`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.udf_kernels.element_types import ELEMENT_TYPES
from ucle.udf_kernels.reference import COMBINES, REDUCES, Array, Function

MAGIC = 0x01525343
"""``CSR`` and the version of the format."""


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
        magic, rows, cols, _ = np.frombuffer(blob, "<u4", 4).tolist()
        assert magic == MAGIC
        ptr = np.frombuffer(blob, "<u4", rows + 1, 16)
        entries = int(ptr[-1])
        idx = np.frombuffer(blob, "<u4", entries, 16 + 4 * (rows + 1))
        start = 16 + 4 * (rows + 1 + entries)
        return Csr(rows, cols, ptr, idx, np.frombuffer(blob, dtype, offset=start + -start % 8))

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
        order = np.lexsort((col, row))
        counts = np.bincount(np.asarray(row, np.int64), minlength=rows)
        ptr = np.concatenate([[0], np.cumsum(counts)]).astype("<u4")
        idx = np.asarray(col, "<u4")[order]
        return Csr(rows, cols, ptr, idx, np.asarray(values)[order])

    @property
    def row(self) -> NDArray[np.int64]:
        """The row of each entry."""
        ends = self.ptr.astype(np.int64)
        return np.repeat(np.arange(self.rows), ends[1:] - ends[:-1])

    @property
    def entries(self) -> Iterator[tuple[int, int, Any]]:
        """Row, column and value of each, in order."""
        return zip(self.row.tolist(), self.idx.tolist(), self.values, strict=True)

    def dense(self, fill: Any) -> Array:
        """The whole matrix."""
        out = np.full((self.rows, self.cols), fill, self.values.dtype)
        out[self.row, self.idx] = self.values
        return out

    def with_values(self, values: Array) -> Csr:
        """Others at the same places."""
        return Csr(self.rows, self.cols, self.ptr, self.idx, np.asarray(values))

    def kept(self, keep: Array) -> Csr:
        """Some of the entries."""
        return Csr.at_places(
            self.rows, self.cols, self.row[keep], self.idx[keep], self.values[keep]
        )


@dataclass(frozen=True)
class Semiring:
    """The operations of a spec for a type; `combine` knows whether its operands change places."""

    reduce: Callable[..., Any]
    combine: Function
    identity: Any

    @staticmethod
    def of(tag: str, spec: str) -> Semiring:
        """``reduce.combine``, of which '' is ``sum.mult``."""
        reduce, _, combine = (spec or "sum.mult").partition(".")
        return Semiring(reduction(tag, reduce), combination(tag, combine), identity(tag, reduce))


def combination(tag: str, word: str) -> Function:
    """The one that a word names; before it, ``r`` has its operands change places."""
    combines = COMBINES[tag]
    if (word or "mult") in combines:
        return combines[word or "mult"]
    swapped = combines[word[1:]]
    return lambda x, y: swapped(y, x)


def reduction(tag: str, word: str) -> np.ufunc:
    """The one that a word names, '' the sum."""
    return REDUCES[tag][word or "sum"]


def identity(tag: str, word: str) -> Any:
    """What a reduction of nothing is."""
    dtype = ELEMENT_TYPES[tag].dtype
    if dtype.kind == "b":
        return dtype.type(word == "min")
    smallest, largest = (-(2**63), 2**63 - 1) if dtype.kind == "i" else (-np.inf, np.inf)
    found = {"sum": 0, "prod": 1, "min": largest, "max": smallest}[word or "sum"]
    return dtype.type(found)


def csr_nnz(x: Csr) -> int:
    """How many entries there are."""
    return len(x.idx)


def csr_rows(x: Csr) -> list[int]:
    """The row of each entry."""
    return list(x.row.tolist())


def csr_cols(x: Csr) -> list[int]:
    """The column of each entry."""
    return list(x.idx.tolist())


def csr_values(x: Csr) -> Array:
    """The value of each entry."""
    return x.values


def csr_with(x: Csr, values: Array) -> Csr:
    """The same places with other values."""
    return x.with_values(values)


def differs(values: Array, fill: Any) -> Array:
    """Which values are not the fill; NaN is equal to NaN here."""
    return ~np.isnan(values) if np.isnan(fill) else values != values.dtype.type(fill)


def csr_prune(x: Csr, fill: Any) -> Csr:
    """Without entries that are equal to the fill."""
    return x.kept(differs(x.values, fill))


def csr_to_mat(x: Csr, fill: Any) -> Array:
    """The dense matrix."""
    return x.dense(fill).ravel()


def mat_to_csr(matrix: Array, cols: int, fill: Any) -> Csr:
    """What of a dense matrix is not the fill; without columns there are no rows."""
    return Csr.of(matrix.reshape(-1, cols) if cols else matrix.reshape(0, 0), fill)


def csr_mat(tag: str, spec: str, x: Csr, matrix: Array, n: int) -> Array:
    """A compressed matrix times a dense one of n columns."""
    by = Semiring.of(tag, spec)
    out = np.full((x.rows, n), by.identity)
    lines = matrix.reshape(x.cols, n)
    for i, j, value in x.entries:
        out[i] = by.reduce(out[i], by.combine(value, lines[j]))
    return out.ravel()


def stack_csr(
    dtype: np.dtype[Any],
    values: Sequence[Any],
    row: Sequence[int],
    col: Sequence[int],
    rows: int,
    cols: int,
    fill: Any,
) -> Csr:
    """Entries at their places, those that are equal to the fill left out."""
    return csr_prune(Csr.at_places(rows, cols, row, col, np.array(values, dtype)), fill)
