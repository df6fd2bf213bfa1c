"""Reading stored tuples from DuckDB as Arrow batches whose types do not depend on settings.

Settings such as ``arrow_output_version`` and ``arrow_lossless_conversion`` determine in which Arrow
types DuckDB returns BLOBs, strings and booleans. This module neither changes nor depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.errors import ExecutionError
from ucle.foundation.arrow_numbers import blobs_array, numpy_array
from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.libraries import pa
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.sqlgen.script import (
    count_query,
    longest_query,
    rows_query,
    sql_text,
    tuples_query,
)
from ucle.udf_kernels import as_parameter

BATCH_BYTES = 2**28
LARGEST_BATCH = DUCKDB.limits.column_bytes
"""The largest number of bytes of BLOBs in one batch."""

SLICE_BYTES = 2**24
"""The size of large rows that are read at a time, whose memory is used again by those after them.

A batch has a vector of rows at least, which are a gigabyte of tiles: they took half as long again.
"""


def batch_rows(row_bytes: int) -> int:
    """The number of rows of a batch for this row size; at least a vector, DuckDB's minimum."""
    return min(max(BATCH_BYTES // row_bytes, DUCKDB.limits.vector_rows), 10**6)


def filled_array(shape: tuple[int, ...], fill: Scalar, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of fills, whose memory is not written where they are zeros.

    >>> filled_array((2,), -0.0, np.dtype("f8"))
    array([-0., -0.])
    """
    if any(np.array(fill, dtype).tobytes()):
        return np.full(shape, fill, dtype)
    return np.zeros(shape, dtype)


def stored_batches(
    session: Session, place: tuple[str, str], type_: TensorType, layout: Layout
) -> Iterator[pa.RecordBatch]:
    """Read the rows of a stored tensor relation, with ``val`` as numbers or BLOBs.

    Args:
        session: on the connection that has the table.
        place: the name of the table, and of its value column.
        type_: the type of the tensor.
        layout: the layout of the relation.
    """
    tuple_bytes = max(1, type_.tuple_bytes(layout))
    if layout.compressed is not None:
        (longest,) = session.one_row(sql_text(longest_query(place))).values()
        tuple_bytes = max(1, longest or 0)
    rows = batch_rows(tuple_bytes)
    if tuple_bytes > LARGEST_BATCH:
        batches = _row_by_row(session, place, numbered=bool(layout.promoted))
    elif not layout.promoted:
        batches = session.reader(sql_text(tuples_query(place)), 1)
    elif min(DUCKDB.limits.vector_rows, _most_rows(type_, layout)) * tuple_bytes > SLICE_BYTES:
        batches = _slices(session, place[0], max(SLICE_BYTES // tuple_bytes, 1))
    else:
        batches = session.reader(sql_text(tuples_query(place)), rows)
    for batch in batches:
        *keys, values = batch.columns
        values = plain_values(values, type_.dtype if layout.scalar else None)
        yield pa.RecordBatch.from_arrays([*keys, values], names=batch.schema.names)


def _most_rows(type_: TensorType, layout: Layout) -> int:
    """The number of tuples of a tensor none of which is missing."""
    return math.prod(type_.key_range(layout, axis) for axis in layout.promoted)


def _slices(session: Session, table: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Read a few rows at a time of a table without deletions, because its arrays are large."""
    (count,) = session.one_row(sql_text(count_query(table))).values()
    for start in range(0, count, rows):
        yield from session.reader(sql_text(rows_query(table, start, rows)), rows)


def _row_by_row(
    session: Session, place: tuple[str, str], *, numbered: bool
) -> Iterator[pa.RecordBatch]:
    """Read rows one by one if their arrays are too large for the offsets of any Arrow array.

    A tensor without keys has one row.
    """
    table = place[0]
    (count,) = session.one_row(sql_text(count_query(table))).values()
    for start in range(count):
        query = rows_query(table, start, 1) if numbered else tuples_query(place)
        row = session.one_row(sql_text(query))
        *keys, value = row.values()
        columns = [*(pa.array([key]) for key in keys), blobs_array([value])]
        yield pa.RecordBatch.from_arrays(columns, names=list(row))


def plain_values(values: pa.Array, dtype: DType | None) -> pa.Array:
    """Convert a column of numbers or BLOBs to the Arrow type that it has with default settings."""
    if dtype is None:
        return as_parameter(values, "BLOB")
    sql = DUCKDB.dialect.types[dtype]
    if dtype is DType.BOOL:
        return values if values.type == pa.bool_() else as_parameter(values, sql).cast(pa.bool_())
    return as_parameter(values, sql)


def plain_strings(values: pa.Array) -> pa.Array:
    """Convert string views of a column to plain strings; return other columns unchanged."""
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return values.cast(views[values.type]) if values.type in views else values


def payload_matrix(values: pa.Array, width: int, dtype: DType) -> NDArray[Any]:
    """View BLOBs of `width` elements each as the rows of a matrix, without a copy.

    Raises:
        ExecutionError: one of them has a different length.
    """
    _, offsets, data = values.buffers()
    wide = pa.types.is_large_binary(values.type)
    if not len(values) * width:
        return np.empty((len(values), width), dtype.numpy)
    starts = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)
    starts = starts[values.offset : values.offset + len(values) + 1]
    lengths = np.diff(starts)
    expected = width * dtype.numpy.itemsize
    if values.null_count or (lengths != expected).any():
        raise ExecutionError(
            "a stored array does not have the length that its tensor requires",
            expected=f"{expected} bytes in each row",
            found="NULL" if values.null_count else f"between {lengths.min()} and {lengths.max()}",
        )
    first = int(starts[0])
    count = len(values) * width
    return np.frombuffer(data, dtype=dtype.numpy, count=count, offset=first).reshape(-1, width)


def tile_starts(keys: pa.Array, layout: Layout) -> NDArray[np.int64]:
    """The first positions of tiles along an axis."""
    numbers: NDArray[np.int64] = numpy_array(keys).astype(np.int64)
    return numbers * layout.tile


def copy_tiles(
    batch: pa.RecordBatch, type_: TensorType, layout: Layout, result: NDArray[Any]
) -> None:
    """Copy a batch of tiles into the whole tensor; tiles along the first axis all at once."""
    whole, inner = type_.shape[layout.tiled[0]] // layout.tile, math.prod(type_.shape[1:])
    numbers, values = numpy_array(batch.column(0)), batch.column(batch.num_columns - 1)
    # The last tile along the axis may be shorter; it comes last where rows are in order.
    count = len(numbers) - int(len(numbers) > 0 and numbers[-1] >= whole)
    if layout.tiled == (0,) and inner and (numbers[:count] < whole).all():
        width = layout.tile * inner
        places = result[: whole * layout.tile].reshape(whole, width)
        places[numbers[:count]] = payload_matrix(values.slice(0, count), width, type_.dtype)
        batch = batch.slice(count)
    for place, block in tiles(batch, type_, layout):
        result[place] = block


def tiles(
    batch: pa.RecordBatch, type_: TensorType, layout: Layout
) -> Iterator[tuple[tuple[slice, ...], NDArray[Any]]]:
    """Yield the arrays of a batch of tiles with their positions in the whole tensor."""
    assert layout.promoted == layout.tiled
    *keys, values = batch.columns
    starts = [tile_starts(key, layout) for key in keys]
    for *first, blob in zip(*starts, payloads(values), strict=True):
        place = [slice(0, size) for size in type_.shape]
        for axis, start in zip(layout.tiled, first, strict=True):
            place[axis] = slice(int(start), min(int(start) + layout.tile, type_.shape[axis]))
        sizes = [each.stop - each.start for each in place]
        yield tuple(place), np.frombuffer(blob, type_.dtype.numpy).reshape(sizes)


def payloads(values: pa.Array) -> Iterator[memoryview]:
    """Yield the BLOBs of a column one by one, without a copy."""
    _, offsets, data = values.buffers()
    wide = pa.types.is_large_binary(values.type)
    ends = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)
    view = memoryview(data) if data is not None else memoryview(b"")
    for place in range(values.offset, values.offset + len(values)):
        yield view[ends[place] : ends[place + 1]]


def number_values(values: pa.Array, dtype: DType) -> NDArray[Any]:
    """Convert a column of numbers to an array; pairs (re, im) become complex numbers."""
    if dtype.kind != "c":
        return numpy_array(values).astype(dtype.numpy, copy=False)
    complex_numbers = np.empty(len(values), dtype.numpy)
    complex_numbers.real = numpy_array(values.field("re"))
    complex_numbers.imag = numpy_array(values.field("im"))
    return complex_numbers
