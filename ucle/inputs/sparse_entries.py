"""The entries of sparse arrays in memory: their statistics, and matrices as compressed arrays.

A sparse array is a table of coordinates for the relational engine. Whoever holds it in memory can
count it without a query, and can hand a matrix over as kernels take it: as one compressed array, in
lists of rows or of columns. It is encoded once for each layout that plans read.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.arrow_numbers import arrow_array, numpy_array
from ucle.foundation.dtypes import Scalar, differs_from
from ucle.foundation.libraries import pa
from ucle.inputs.column_types import Column
from ucle.ir.layouts import Coordinates, Layout
from ucle.ir.tensor_types import TensorType
from ucle.sqlgen.sql_trees import key_columns
from ucle.stats.coordinates import measure_coordinates
from ucle.stats.measure import MeasuredInput
from ucle.udf_kernels import Csr

LARGEST = 1 << 31
"""The length of an axis from which on compressed arrays cannot have its positions."""

VALUE = "val"
_TYPES = {"bool": "BOOLEAN", "int64": "BIGINT", "float32": "FLOAT", "float64": "DOUBLE"}


class SparseEntries:
    """Real entries with their coordinates, of which no two are the same.

    >>> entries = SparseEntries("A", (3, 2), (np.array([0, 2]), np.array([1, 0])), np.ones(2))
    >>> entries.table.column_names, entries.measure(0.0).distinct
    (['k0', 'k1', 'val'], (2.0, 2.0))
    """

    def __init__(
        self,
        tensor: str,
        shape: Sequence[int],
        coordinates: Sequence[NDArray[Any]],
        values: NDArray[Any],
    ) -> None:
        """Take the entries.

        Args:
            tensor: the name of the array.
            shape: its shape.
            coordinates: an array for each axis.
            values: numbers of an element type.
        """
        positions = Coordinates.of(max(shape, default=0))
        self.tensor = tensor
        self.is_matrix = len(shape) == 2 and max(shape) < LARGEST
        keys = [np.asarray(key, dtype=positions.numpy) for key in coordinates]
        names = [f"k{axis}" for axis in range(len(shape))]
        arrays = [*map(arrow_array, keys), arrow_array(values)]
        self.table = pa.table(arrays, names=[*names, VALUE])
        """The entries as a table of Arrow."""
        types = [positions.value] * len(shape) + [_TYPES[values.dtype.name]]
        self.columns = tuple(map(Column, [*names, VALUE], types))
        """The columns of the table, as DuckDB describes them."""
        self._lists: dict[tuple[Layout, tuple[int, ...], str], pa.Table] = {}
        self._lock = threading.Lock()

    def measure(self, fill: Scalar) -> MeasuredInput:
        """Return the statistics of the entries that differ from a fill."""
        *keys, values = (numpy_array(column.combine_chunks()) for column in self.table.columns)
        return measure_coordinates(keys, values, fill)

    def lists(self, type_: TensorType, layout: Layout) -> pa.Table:
        """Return a matrix as a tensor relation of compressed arrays.

        It has a row for each tile that has entries, with its number, or one for all.

        Args:
            type_: the type of the tensor; the arrays have its shape.
            layout: which axis is listed, and whether the other one, that of the rows, is tiled.
        """
        key = layout, type_.shape, repr(type_.fill)
        with self._lock:
            if key not in self._lists:
                self._lists[key] = self._encode(type_, layout)
            return self._lists[key]

    def _encode(self, type_: TensorType, layout: Layout) -> pa.Table:
        axis = layout.compressed
        assert axis is not None
        columns = [numpy_array(column.combine_chunks()) for column in self.table.columns]
        row, column, values = columns[layout.row], columns[axis], columns[-1]
        stored = np.asarray(differs_from(values, type_.fill))
        if not stored.all():
            row, column, values = row[stored], column[stored], values[stored]
        rows, width = type_.shape[layout.row], type_.shape[axis]
        whole = Csr.at_places(rows, width, row, column, values)
        parts = dict(whole.cut(layout.tile if layout.tiled else rows))
        blobs = [part.to_bytes() for part in parts.values()]
        ends = np.cumsum([0, *map(len, blobs)], dtype=np.int64)
        joined = blobs[0] if len(blobs) == 1 else b"".join(blobs)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(joined)]
        arrays = pa.Array.from_buffers(pa.large_binary(), len(blobs), buffers)
        if not layout.tiled:
            return pa.table({VALUE: arrays})
        numbers = np.array(list(parts), Coordinates.of(rows).numpy)
        return pa.table({key_columns(type_)[layout.row]: arrow_array(numbers), VALUE: arrays})

    def only_list(self, type_: TensorType, layout: Layout, most: int) -> bytes | None:
        """Return the compressed array of all entries; None without entries, or above `most` bytes.

        Arguments are those of `lists`, for a layout without tiles.
        """
        table = self.lists(type_, layout)
        return None if not len(table) or table.nbytes > most else bytes(table[VALUE][0].as_py())
