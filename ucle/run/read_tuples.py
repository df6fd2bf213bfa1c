"""Stored tuples out of DuckDB, as Arrow batches that are the same whatever the session has set.

Settings such as ``arrow_output_version`` and ``arrow_lossless_conversion`` decide in which Arrow
types DuckDB hands over BLOBs, strings and booleans. None of them is changed here, and none matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.errors import ExecutionError
from ucle.foundation.dtypes import DType
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
"""Bytes of BLOBs in one batch."""


def batch_rows(row_bytes: int) -> int:
    """Rows of a batch, of so many bytes each; DuckDB hands over no fewer than a vector of them."""
    return min(max(BATCH_BYTES // row_bytes, DUCKDB.limits.vector_rows), 10**6)


def stored_batches(
    session: Session, place: tuple[str, str], type_: TensorType, layout: Layout
) -> Iterator[pa.RecordBatch]:
    """The rows of a stored tensor relation, with ``val`` as numbers or BLOBs.

    Args:
        session: on the connection that has the table.
        place: its name, and that of the column of values.
        type_: of the tensor.
        layout: of the relation.
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
    elif DUCKDB.limits.vector_rows * tuple_bytes > LARGEST_BATCH:
        batches = _slices(session, place[0], LARGEST_BATCH // tuple_bytes)
    else:
        batches = session.reader(sql_text(tuples_query(place)), rows)
    for batch in batches:
        *keys, values = batch.columns
        values = plain_values(values, type_.dtype if layout.scalar else None)
        yield pa.RecordBatch.from_arrays([*keys, values], names=batch.schema.names)


def _slices(session: Session, table: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Few rows at a time of a table that nobody deletes from, as their arrays are large."""
    (count,) = session.one_row(sql_text(count_query(table))).values()
    for start in range(0, count, rows):
        yield from session.reader(sql_text(rows_query(table, start, rows)), rows)


def _row_by_row(
    session: Session, place: tuple[str, str], *, numbered: bool
) -> Iterator[pa.RecordBatch]:
    """Rows with arrays that are too large for the offsets of an Arrow array of any length.

    Of a tensor without keys there is one.
    """
    table = place[0]
    (count,) = session.one_row(sql_text(count_query(table))).values()
    for start in range(count):
        query = rows_query(table, start, 1) if numbered else tuples_query(place)
        row = session.one_row(sql_text(query))
        *keys, value = row.values()
        offsets = pa.py_buffer(np.array([0, len(value)], np.int64))
        buffers = [None, offsets, pa.py_buffer(value)]
        blob = pa.Array.from_buffers(pa.large_binary(), 1, buffers)
        yield pa.RecordBatch.from_arrays(
            [*(pa.array([key]) for key in keys), blob], names=list(row)
        )


def plain_values(values: pa.Array, dtype: DType | None) -> pa.Array:
    """A column of numbers, or of BLOBs, in the Arrow type that it has where nothing was set."""
    if dtype is None:
        return as_parameter(values, "BLOB")
    sql = DUCKDB.dialect.types[dtype]
    if dtype is DType.BOOL:
        return values if values.type == pa.bool_() else as_parameter(values, sql).cast(pa.bool_())
    return as_parameter(values, sql)


def plain_strings(values: pa.Array) -> pa.Array:
    """A column of strings without views; any other column as it is."""
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return values.cast(views[values.type]) if values.type in views else values


def payload_matrix(values: pa.Array, width: int, dtype: DType) -> NDArray[Any]:
    """BLOBs of `width` elements each as the rows of a matrix, without a copy.

    Raises:
        ExecutionError: one of them has another length.
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
            "a stored array has not the length that its tensor says",
            expected=f"{expected} bytes in each row",
            found="NULL" if values.null_count else f"between {lengths.min()} and {lengths.max()}",
        )
    first = int(starts[0])
    count = len(values) * width
    return np.frombuffer(data, dtype=dtype.numpy, count=count, offset=first).reshape(-1, width)


def tile_starts(keys: pa.Array, layout: Layout) -> NDArray[np.int64]:
    """The first positions of tiles along an axis."""
    numbers: NDArray[np.int64] = keys.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers * layout.tile


def payloads(values: pa.Array) -> Iterator[memoryview]:
    """The BLOBs of a column one by one, without a copy."""
    _, offsets, data = values.buffers()
    wide = pa.types.is_large_binary(values.type)
    ends = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)
    view = memoryview(data) if data is not None else memoryview(b"")
    for place in range(values.offset, values.offset + len(values)):
        yield view[ends[place] : ends[place + 1]]


def number_values(values: pa.Array, dtype: DType) -> NDArray[Any]:
    """A column of numbers as an array; pairs (re, im) as complex numbers."""
    if dtype.kind != "c":
        numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return numbers.astype(dtype.numpy, copy=False)
    complex_numbers = np.empty(len(values), dtype.numpy)
    complex_numbers.real = values.field("re").to_numpy(zero_copy_only=False)
    complex_numbers.imag = values.field("im").to_numpy(zero_copy_only=False)
    return complex_numbers
