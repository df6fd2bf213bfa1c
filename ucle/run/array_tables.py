"""Arrays in memory as tensor relations: Arrow tables with key columns and payloads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.arrow_numbers import arrow_array
from ucle.foundation.dtypes import differs_from
from ucle.foundation.libraries import pa
from ucle.inputs.inputs import value_array
from ucle.inputs.sparse_entries import SparseEntries, compressed_table
from ucle.ir.layouts import Coordinates, Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan.relation_nodes import LISTED
from ucle.sqlgen.sql_trees import key_columns
from ucle.udf_kernels import Csr


def array_table(
    array: NDArray[Any] | SparseEntries, type_: TensorType, layout: Layout, *, listed: bool = False
) -> pa.Table:
    """Convert an array in memory to a tensor relation: keys, and `val` as a number or a BLOB.

    Tuples that hold only the fill are omitted, unless the type states that there is an entry
    everywhere, which may happen to equal the fill. The payload is not copied if the array already
    has the order of the layout; nor is it for the column that has it in a list, too (`listed`).
    """
    if listed:
        table = array_table(array, type_, layout)
        (values,) = table["val"].chunks
        return table.append_column(LISTED, in_lists(values))
    if isinstance(array, SparseEntries):
        return array.lists(type_, layout)
    names = key_columns(type_)
    if layout.compressed is not None:
        return _compressed_table(array, type_, layout)
    if layout.tiled:
        return _tile_table(array, type_, layout)
    blocks = array.transpose(layout.promoted + layout.dense)
    shape = tuple(array.shape[axis] for axis in layout.promoted)
    rows = blocks.reshape(*shape, type_.dense_size(layout))
    if type_.entries.full:
        differs = np.ones(rows.shape[:-1], np.bool_)
    else:
        differs = _differing_rows(rows, type_.fill)
    whole = bool(rows.size > 0 and differs.all())  # in that case nothing is copied
    stored_rows = rows.reshape(-1, rows.shape[-1]) if whole else rows[differs]
    stored_rows = np.ascontiguousarray(stored_rows)
    dtypes = [Coordinates.of(type_.shape[axis]).numpy for axis in layout.promoted]
    keys = map(arrow_array, _all_keys(shape, dtypes) if whole else _keys(differs, dtypes))
    value = value_array(stored_rows[:, 0]) if layout.scalar else blob_array(stored_rows)
    columns = [names[axis] for axis in layout.promoted]
    return pa.table([*keys, value], names=[*columns, "val"])


def _all_keys(shape: tuple[int, ...], dtypes: list[Any]) -> list[NDArray[Any]]:
    """The coordinates of all positions: those of `np.nonzero`, without its 8 bytes for each."""
    ranges = (np.arange(size, dtype=dtype) for size, dtype in zip(shape, dtypes, strict=True))
    return [each.reshape(-1) for each in np.broadcast_arrays(*np.ix_(*ranges))]


def _keys(differs: NDArray[np.bool_], dtypes: list[Any]) -> list[NDArray[Any]]:
    indices = np.nonzero(differs) if dtypes else ()
    return [index.astype(dtype) for index, dtype in zip(indices, dtypes, strict=True)]


def _compressed_table(array: NDArray[Any], type_: TensorType, layout: Layout) -> pa.Table:
    """Convert a matrix to CSR lists of entries other than the fill, for each tile or as a whole."""
    axis = layout.compressed
    assert axis is not None
    matrix = array.transpose(layout.row, axis)
    tile = layout.tile if layout.tiled else max(len(matrix), 1)
    tiles = (matrix[start : start + tile] for start in range(0, len(matrix), tile))
    lists = enumerate(Csr.of(each, type_.fill) for each in tiles)
    return compressed_table(((n, x) for n, x in lists if len(x.values)), type_, layout)


def _tile_table(array: NDArray[Any], type_: TensorType, layout: Layout) -> pa.Table:
    """Convert an array to one tuple per tile; tiles along the first axis are not copied."""
    tiled, tile, shape = layout.tiled, layout.tile, array.shape
    assert layout.promoted == tiled
    counts = [type_.key_range(layout, axis) for axis in tiled]
    tiles = []
    for numbers in np.ndindex(*counts):
        place = [slice(None)] * len(shape)
        for axis, number in zip(tiled, numbers, strict=True):
            place[axis] = slice(number * tile, number * tile + tile)
        tiles.append(array[tuple(place)])
    whole = type_.entries.full
    stored = [n for n, x in enumerate(tiles) if whole or differs_from(x, type_.fill).any()]
    if tiled == (0,) and len(stored) == len(tiles):
        flat = np.ascontiguousarray(array).reshape(-1)
    else:
        parts = [tiles[n].reshape(-1) for n in stored]
        flat = np.concatenate(parts) if parts else np.empty(0, array.dtype)
    ends = np.cumsum([0, *(tiles[n].size for n in stored)], dtype=np.int64) * array.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(flat)]
    blobs = pa.Array.from_buffers(pa.large_binary(), len(stored), buffers)
    places = np.unravel_index(np.array(stored, np.int64), counts)
    keys = [
        arrow_array(numbers.astype(Coordinates.of(shape[axis]).numpy))
        for axis, numbers in zip(tiled, places, strict=True)
    ]
    return pa.table([*keys, blobs], names=[*(key_columns(type_)[axis] for axis in tiled), "val"])


LEAST_SHARED = 1 << 20
"""Bytes below which a table in memory is not worth dividing among threads."""

ROWS_A_BATCH = 16384
"""The most rows of a batch: eight of DuckDB's vectors of 2,048; smaller batches gain nothing."""


def is_shared(table: pa.Table) -> bool:
    """True if it is worthwhile to divide a table among threads."""
    return len(table) > 1 and table.nbytes >= LEAST_SHARED


def in_batches(table: pa.Table, threads: int) -> pa.Table:
    """Divide a table into enough batches to keep all threads busy: DuckDB gives each to one thread.

    If rows are few and arrays long, there is one batch per thread: a large array that is joined
    with the table is copied once for each batch.

    >>> table = pa.table({"val": np.zeros(2**18)})
    >>> [len(batch) for batch in in_batches(table, 2).to_batches()][:3]
    [16384, 16384, 16384]
    """
    rows = len(table)
    if threads == 1 or rows < threads or not is_shared(table):
        return table
    each = min(-(-rows // threads), ROWS_A_BATCH)
    slices = [table.slice(start, each) for start in range(0, rows, each)]
    return pa.concat_tables(slices)


def _differing_rows(rows: NDArray[Any], fill: complex) -> NDArray[np.bool_]:
    """A mask of the rows that hold an entry other than the fill."""
    if not rows.shape[-1]:
        return np.zeros(rows.shape[:-1], np.bool_)
    differs = np.asarray(differs_from(rows[..., 0], fill))  # decides most rows quickly
    if rows.shape[-1] == 1:
        return differs
    alike = ~differs
    differs[alike] = differs_from(rows[alike], fill).any(axis=-1)
    return differs


def in_lists(values: pa.Array) -> pa.Array:
    """Make each value the only element of a list, without a copy."""
    offsets = arrow_array(np.arange(len(values) + 1, dtype=np.int64))
    return pa.LargeListArray.from_arrays(offsets, values)


def blob_array(rows: NDArray[Any]) -> pa.Array:
    """Convert the rows of a matrix to one BLOB each, without a copy."""
    count, width = rows.shape
    offsets = np.arange(count + 1, dtype=np.int64) * (width * rows.itemsize)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(rows)]
    return pa.Array.from_buffers(pa.large_binary(), count, buffers)
