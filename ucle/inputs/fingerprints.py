"""Fingerprints of arrays, to detect that they were changed in place.

A program relies on the numbers of its arrays: small ones are written into its statements, and plans
omit zeros. So each mutable object has a fingerprint, a checksum of all of its bytes. It is taken
when the object is first read and compared before the program relies on it again. That reads the
memory once, as fast as it can be read. An array that is made read-only
(``array.setflags(write=False)``) is assumed to stay unchanged, and so are Arrow's tables, which are
immutable.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.inputs.labelled_arrays import coordinates_of
from ucle.inputs.objects import is_instance, is_table
from ucle.inputs.random_tensors import RandomTensor
from ucle.inputs.sparse_arrays import is_sparse, to_coordinates
from ucle.inputs.table_input import TableInput
from ucle.udf_kernels.checksums import checksum

PIECE = 1 << 22
"""Bytes of an array that are copied at a time if they are not contiguous."""

LISTED = frozenset({"dok", "lil"})
"""Formats of sparse arrays that keep their entries in Python dicts or lists."""

_PARTS = ("data", "coords", "row", "col", "indices", "indptr", "offsets")
"""Names of the arrays that make up a sparse array, for all formats."""


def fingerprints(inputs: Mapping[str, Any]) -> dict[str, int]:
    """Compute the fingerprints of the inputs that can be changed in place."""
    found = {name: fingerprint(value) for name, value in inputs.items()}
    return {name: mark for name, mark in found.items() if mark is not None}


def fingerprint(value: Any) -> int | None:
    """Compute a number that changes if an input is changed in place; None for immutable inputs.

    >>> x = np.array([1.0, 2.0])
    >>> before = fingerprint(x)
    >>> x[0] = 3
    >>> fingerprint(x) == before
    False
    """
    if isinstance(value, TableInput):
        value = value.relation
    if isinstance(value, str | os.PathLike | RandomTensor | bool | int | float | complex):
        return None
    if is_instance(value, "pandas", "DataFrame"):
        return _of_frame(value)
    if is_instance(value, "polars", "DataFrame"):
        return _chain_checksums(repr(value.schema), [value.hash_rows().to_numpy()])
    if is_table(value) or is_instance(value, "pyarrow", "Array", "ChunkedArray"):
        return None
    try:
        if is_sparse(value):
            return _of_sparse(value)
        if isinstance(value, np.ndarray) and _stays(value):
            return None
        if is_instance(value, "pandas", "Series"):
            return _of_frame(value.to_frame())
        coordinates = coordinates_of("input", value)
        mark = _of_array(np.asarray(value))
    except (MemoryError, RecursionError):
        raise
    except Exception:  # not an array: its reader raises the error
        return None
    return (
        mark
        if coordinates is None
        else _chain_checksums(str(mark), [x for x in coordinates if x is not None])
    )


def _stays(array: NDArray[Any]) -> bool:
    """True if nobody can write to the memory of an array through NumPy."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return True


def _of_sparse(value: Any) -> int:
    parts = [getattr(value, name, None) for name in _PARTS]
    if value.format in LISTED or not isinstance(parts[0], np.ndarray):
        entries = to_coordinates(value)
        parts = [entries.data, entries.coords]
    arrays: list[Any] = []
    for part in parts:
        arrays += part if isinstance(part, tuple) else () if part is None else (part,)
    head = repr((value.format, value.shape, getattr(value, "fill_value", 0)))
    return _chain_checksums(head, [np.asarray(x) for x in arrays])


def _of_frame(frame: Any) -> int:
    """Fingerprint a frame; pandas hashes the columns that are not NumPy arrays, row by row."""
    hash_pandas_object = sys.modules["pandas"].util.hash_pandas_object
    columns = [frame.index, *(column for _, column in frame.items())]
    held = [isinstance(x.dtype, np.dtype) for x in columns]
    arrays = [
        column.to_numpy() if whole else np.asarray(hash_pandas_object(column, index=False))
        for column, whole in zip(columns, held, strict=True)
    ]
    return _chain_checksums(repr((list(frame.columns), frame.index.names)), arrays)


def _chain_checksums(head: str, arrays: list[NDArray[Any]]) -> int:
    mark = checksum(head.encode())
    for array in arrays:
        mark = _of_array(array, mark)
    return mark


def _of_objects(values: Any, mark: int) -> int:
    try:
        return checksum(pickle.dumps(values), mark)
    except Exception:  # any class may raise its own error when pickled
        return checksum(repr(values).encode(), mark)


def _of_array(array: NDArray[Any], mark: int = 0) -> int:
    mark = checksum(repr((array.shape, array.dtype.str)).encode(), mark)
    if array.dtype.hasobject:
        return _of_objects(array.tolist(), mark)
    if array.flags.f_contiguous:
        array = array.T
    if array.flags.c_contiguous:
        whole = array.reshape(-1).view(np.uint8).data
        return checksum(whole, mark) if array.size else mark
    rows = max(1, PIECE * len(array) // max(array.nbytes, 1))
    for first in range(0, len(array), rows):
        piece = np.ascontiguousarray(array[first : first + rows])
        mark = checksum(piece.reshape(-1).view(np.uint8).data, mark)
    return mark


__all__ = ["fingerprint", "fingerprints"]
