"""Divides rows among partitions: that of a row follows from its keys, whatever type they have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.libraries import pa


def partition_of(rows: pa.Table, columns: Sequence[str], partitions: int) -> NDArray[np.int64]:
    """Compute the partition number of each row.

    Args:
        rows: with integers in these columns.
        columns: by which rows are placed; those of another relation, in the same order, have its
            rows placed alike.
        partitions: the number of partitions.

    >>> import pyarrow as pa
    >>> one, other, again = partition_of(pa.table({"i": [3, 4, 3]}), ["i"], 64)
    >>> bool(one == again), bool(one == other)
    (True, False)
    """
    mixed = np.zeros(len(rows), np.uint64)
    for name in columns:
        key = integers_of(rows[name]).astype(np.uint64)
        mixed = (mixed ^ key) * np.uint64(0x9E3779B97F4A7C15)  # derived from the golden ratio
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(partitions)).astype(np.int64)


def integers_of(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """The integers of a column; a NULL is any of them.

    Arrow's own conversions between NumPy's arrays and its own import pandas, if it is there.
    """
    integers = column.cast(pa.int64()).combine_chunks()
    if integers.null_count:
        buffers = [None, integers.buffers()[1]]
        integers = pa.Array.from_buffers(pa.int64(), len(integers), buffers, 0, integers.offset)
    return np.asarray(np.from_dlpack(integers), np.int64)


def divide_rows(rows: pa.Table, parts: NDArray[np.int64], partitions: int) -> list[pa.Table]:
    """Return the rows of each partition."""
    order = np.argsort(parts, kind="stable").astype(np.int64, copy=False)
    ends = np.searchsorted(parts[order], np.arange(partitions + 1))
    ordered = rows.take(pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order)]))
    return [ordered.slice(a, b - a) for a, b in pairwise(ends)]
