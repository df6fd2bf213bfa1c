"""Entries in memory: their statistics, and matrices as compressed arrays.

A sparse array or a frame of coordinates is a table for the relational engine. Whoever holds it in
memory can count it without a query, and can hand a matrix over as kernels take it: as one
compressed array, in lists of rows or of columns. It is encoded once for each layout that plans
read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.errors import ValueTypeError
from ucle.foundation.arrow_numbers import arrow_array, blobs_array, numpy_array
from ucle.foundation.dtypes import Scalar, differs_from
from ucle.foundation.exact_numbers import typed_numbers
from ucle.foundation.libraries import pa
from ucle.foundation.names import fold_name
from ucle.inputs.column_types import Column
from ucle.ir.layouts import Coordinates, Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan.sources import Nulls, TableSource
from ucle.sqlgen.sql_trees import VALUE, key_columns
from ucle.stats.coordinates import measure_coordinates
from ucle.stats.measure import MeasuredInput
from ucle.udf_kernels import Csr

LARGEST = 1 << 31
"""The length of an axis from which on compressed arrays cannot have its positions."""

MOST_ROWS = 1 << 21
"""Rows of a table from which on DuckDB, with its threads, checks and counts them sooner."""

_ARROW_TYPES = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
}
"""DuckDB's types of columns of Arrow that are not nested, by Arrow's."""


class SparseEntries:
    """Real entries with their coordinates, of which no two are the same.

    >>> entries = SparseEntries("A", (np.array([0, 2]), np.array([1, 0])), np.ones(2))
    >>> entries.is_matrix, entries.measure(0.0).distinct
    (True, (2.0, 2.0))
    """

    def __init__(
        self, tensor: str, coordinates: Sequence[NDArray[Any]], values: NDArray[Any]
    ) -> None:
        """Take the entries.

        Args:
            tensor: the name of the array.
            coordinates: an array of positions for each axis.
            values: numbers of an element type.
        """
        self.tensor = tensor
        self._keys = tuple(coordinates)
        self._values = values
        self._lists: dict[tuple[Layout, tuple[int, ...], str], pa.Table] = {}
        self._lock = threading.Lock()

    @property
    def is_matrix(self) -> bool:
        """True if it has two axes, whose positions compressed arrays can have."""
        return len(self._keys) == 2 and all(key.max(initial=0) < LARGEST for key in self._keys)

    def measure(self, fill: Scalar) -> MeasuredInput:
        """Return the statistics of the entries that differ from a fill."""
        return measure_coordinates(self._keys, self._values, fill)

    def count_coordinates(self, axis: int) -> int:
        """Return how many coordinates of an axis have an entry, whatever its value."""
        return len(np.unique(self._keys[axis]))

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
        row, column, values = self._keys[layout.row], self._keys[axis], self._values
        stored = np.asarray(differs_from(values, type_.fill))
        if not stored.all():
            row, column, values = row[stored], column[stored], values[stored]
        rows, width = type_.shape[layout.row], type_.shape[axis]
        whole = Csr.at_places(rows, width, row, column, values)
        return compressed_table(whole.cut(layout.tile if layout.tiled else rows), type_, layout)

    def only_list(self, type_: TensorType, layout: Layout, most: int) -> bytes | None:
        """Return the compressed array of all entries; None without entries, or above `most` bytes.

        Arguments are those of `lists`, for a layout without tiles.
        """
        table = self.lists(type_, layout)
        return None if not len(table) or table.nbytes > most else bytes(table[VALUE][0].as_py())


def compressed_table(
    parts: Iterable[tuple[int, Csr]], type_: TensorType, layout: Layout
) -> pa.Table:
    """Return compressed arrays as a tensor relation.

    Args:
        parts: the arrays of tiles that have entries, with their numbers; that of all if the layout
            has no tiles.
        type_: the type of the matrix.
        layout: which axis is listed, and whether the other one is tiled.
    """
    numbers: list[int] = []
    blobs: list[bytes] = []
    for number, part in parts:
        numbers.append(number)
        blobs.append(part.to_bytes())
    arrays = blobs_array(blobs)
    if not layout.tiled:
        return pa.table({VALUE: arrays})
    coordinates = Coordinates.of(type_.shape[layout.row])
    keys = arrow_array(np.array(numbers, coordinates.numpy))
    return pa.table({key_columns(type_)[layout.row]: keys, VALUE: arrays})


def plain_columns(table: Any) -> tuple[Column, ...] | None:
    """Return the columns of a table of Arrow as DuckDB describes them; None if it has to be asked.

    >>> plain_columns(pa.table({"i": [1], "name": ["a"]}))
    (Column(name='i', type='BIGINT'), Column(name='name', type='VARCHAR'))
    >>> plain_columns(pa.table({"v": [[1, 2]]})) is None
    True
    """
    types = [_ARROW_TYPES.get(str(field.type)) for field in table.schema]
    names = table.column_names
    if None in types or len(set(map(fold_name, names))) < len(names):
        return None
    return tuple(Column(name, str(type_)) for name, type_ in zip(names, types, strict=True))


def entries_in_table(tensor: str, source: TableSource, table: Any) -> SparseEntries | None:
    """Return the entries that a source reads from a table of Arrow, if each is a row of its own.

    The result is None where a query has to tell what is wrong, or has to convert something.

    Args:
        tensor: the name of the tensor, for messages.
        source: the columns.
        table: the table.
    """
    plain = not (source.dense or source.wide or source.features or source.ragged or source.pairs)
    plain = plain and source.ends is None
    as_they_are = not (any(source.encoded) or source.symmetric or source.tiles or source.times)
    if not plain or not as_they_are or not source.keys or source.nulls is not Nulls.REFUSED:
        return None
    if source.presence or source.narrowed or source.dtype.kind == "c" or len(table) > MOST_ROWS:
        return None
    keys = [_numbers(table, name, "iu") for name in source.keys]
    values = (
        np.full(len(table), source.constant, source.dtype.numpy)
        if source.value is None
        else _numbers(table, source.value, "biuf")
    )
    if values is None or any(key is None for key in keys):
        return None
    # Numbers beyond 63 bits become negative, and are no positions either way.
    positions = [key.astype(np.int64, copy=False) for key in keys if key is not None]
    try:
        _, typed = typed_numbers(tensor, values, source.dtype)
    except ValueTypeError:
        return None
    return SparseEntries(tensor, positions, typed) if _are_positions(positions) else None


def _numbers(table: Any, name: str, kinds: str) -> NDArray[Any] | None:
    """A column of numbers of some kinds without NULL; None if it is something else."""
    column = table[name]
    try:
        kind = np.dtype(column.type.to_pandas_dtype()).kind
    except (NotImplementedError, TypeError):
        return None
    if kind not in kinds or column.null_count or not column.type.bit_width:
        return None
    return numpy_array(column.combine_chunks())


def _are_positions(keys: Sequence[NDArray[Any]]) -> bool:
    """True if all are non-negative, and no two rows have the same ones."""
    sizes = [int(key.max(initial=-1)) + 1 for key in keys]
    if any(key.min(initial=0) < 0 for key in keys) or np.prod(sizes, dtype=float) >= 2.0**62:
        return False
    places = np.zeros(len(keys[0]), np.int64)
    for key, size in zip(keys, sizes, strict=True):
        places *= size
        places += key
    if bool((places[1:] > places[:-1]).all()):
        return True
    places.sort()
    return bool((places[1:] != places[:-1]).all())
