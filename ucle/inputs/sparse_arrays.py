"""Sparse arrays in memory, recognised by their methods: scipy's and others with the same interface.

Nothing here imports scipy. The result of a sparse array's ``tocoo()`` becomes a `SparseArray`,
which has the methods that inputs need and is itself recognised as a sparse array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.inputs.objects import ask_object

NEEDED = ("format", "shape", "nnz")
"""Attributes that a sparse array must have, besides a method that lists its entries."""

LISTS = ("tocoo", "to_coo", "asformat")
"""Methods that list entries, as in scipy, in pydata's DOK and in its other formats."""


def is_sparse(value: Any) -> bool:
    """True if an object is a sparse array, of scipy or another library.

    >>> is_sparse(np.eye(2)), is_sparse(SparseArray((2,), (np.array([1]),), np.array([0.5])))
    (False, True)
    """
    lists = any(hasattr(value, name) for name in LISTS)
    return lists and all(hasattr(value, name) for name in NEEDED)


@dataclass(frozen=True, eq=False)
class SparseArray:
    """Entries in COO form, with an array of coordinates per axis; duplicates are added up."""

    shape: tuple[int, ...]
    coords: tuple[NDArray[Any], ...]
    data: NDArray[Any]
    kind: str = "sparse array"
    """A description of its origin, for explanations."""
    fill: Scalar = 0
    """The value of entries that are not stored."""

    format = "coo"

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.data)

    def tocoo(self) -> SparseArray:
        """The array itself."""
        return self

    def astype(self, dtype: Any, copy: bool = True) -> SparseArray:
        """The array with another element type."""
        fill = np.asarray(self.fill).astype(dtype).item() if self.fill else self.fill
        return replace(self, data=self.data.astype(dtype, copy=copy), fill=fill)

    def sum_duplicates(self) -> SparseArray:
        """Add up duplicate entries and sort them in row-major order.

        >>> place = (np.array([1, 0, 1]),)
        >>> SparseArray((2,), place, np.array([1, 2, 3])).sum_duplicates().data
        array([2, 4])
        """
        if self._ascends():
            return self
        order = np.lexsort(self.coords[::-1])
        sorted_ = [keys[order] for keys in self.coords]
        begins = np.concatenate([[True], np.any([np.diff(keys) != 0 for keys in sorted_], axis=0)])
        (first,) = np.nonzero(begins)
        data = np.add.reduceat(self.data[order], first, dtype=self.dtype)
        return replace(self, coords=tuple(keys[first] for keys in sorted_), data=data)

    def _ascends(self) -> bool:
        """True if each entry is behind the one before it in row-major order."""
        behind = np.zeros(max(self.nnz - 1, 0), np.bool_)
        for keys in reversed(self.coords):
            behind = (keys[1:] > keys[:-1]) | ((keys[1:] == keys[:-1]) & behind)
        return bool(behind.all())


def to_coordinates(value: Any, where: str = "sparse array") -> SparseArray:
    """List the entries of a sparse array with their coordinates, and its fill.

    Args:
        value: an array for which `is_sparse` holds. The object that lists its entries has ``data``
            and either ``coords``, or ``row`` and ``col`` as in older libraries.
        where: the input, for messages.

    Raises:
        InputError: the array raised an exception.
    """
    if isinstance(value, SparseArray):
        return value
    return ask_object(where, value, lambda: _list_entries(value))


def _list_entries(value: Any) -> SparseArray:
    way = next(name for name in LISTS if hasattr(value, name))
    listed = value.asformat("coo") if way == "asformat" else getattr(value, way)()
    coords = listed.coords if hasattr(listed, "coords") else (listed.row, listed.col)
    keys = tuple(np.asarray(places) for places in coords)
    shape = tuple(int(size) for size in value.shape)
    library = type(value).__module__.partition(".")[0]
    kind = "scipy.sparse" if library == "scipy" else f"sparse array of {library}"
    fill: Scalar = np.asarray(getattr(value, "fill_value", 0)).item()
    return SparseArray(shape, keys, np.asarray(listed.data), kind, fill)


@dataclass(frozen=True, eq=False)
class SparseBlocks:
    """Dense blocks of a matrix with their positions, at most one block per position."""

    shape: tuple[int, ...]
    tiles: tuple[int, int]
    keys: tuple[NDArray[Any], NDArray[Any]]
    data: NDArray[Any]
    """The blocks, one after the other."""
    kind: str


def is_blocked(value: Any) -> bool:
    """True if a sparse array holds dense blocks with more than one entry, as scipy's BSR does.

    >>> is_blocked(np.eye(2))
    False
    """
    blocked = is_sparse(value) and value.format == "bsr" and hasattr(value, "blocksize")
    return blocked and int(np.prod(value.blocksize)) > 1


def to_blocks(value: Any) -> SparseBlocks:
    """Convert an array for which `is_blocked` holds to blocks; duplicate blocks are added up."""
    pointers = np.asarray(value.indptr)
    rows = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
    columns, data = np.asarray(value.indices), np.asarray(value.data)[: len(rows)]
    columns = columns[: len(rows)]
    if len(rows):
        order = np.lexsort((columns, rows))
        if not np.array_equal(order, np.arange(len(order))):
            rows, columns, data = rows[order], columns[order], data[order]
        begins = np.r_[True, (np.diff(rows) != 0) | (np.diff(columns) != 0)]
        if not begins.all():
            (first,) = np.nonzero(begins)
            data = np.add.reduceat(data, first, axis=0, dtype=data.dtype)
            rows, columns = rows[first], columns[first]
    shape = tuple(int(size) for size in value.shape)
    high, wide = (int(size) for size in value.blocksize)
    library = type(value).__module__.partition(".")[0]
    kind = "scipy.sparse" if library == "scipy" else f"sparse array of {library}"
    return SparseBlocks(shape, (high, wide), (rows, columns), data, f"{kind} in blocks")


def without_axes(array: Any, axes: Sequence[int]) -> Any:
    """Drop axes of size 1 from a dense or sparse array; the result is dense if no axis is left.

    >>> array = SparseArray((1, 3), (np.array([0]), np.array([2])), np.array([7]))
    >>> without_axes(array, [0]).coords, without_axes(np.ones((1, 3)), [0])
    ((array([2]),), array([1., 1., 1.]))
    """
    if not is_sparse(array):
        return np.squeeze(array, tuple(axes))
    entries = to_coordinates(array)
    left = [axis for axis in range(len(entries.shape)) if axis not in axes]
    if not left:
        if not entries.nnz:
            return np.asarray(entries.fill, entries.dtype)
        return np.asarray(entries.data.sum(dtype=entries.dtype))
    shape = tuple(entries.shape[axis] for axis in left)
    return replace(entries, shape=shape, coords=tuple(entries.coords[axis] for axis in left))
