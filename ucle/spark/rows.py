"""Rows in transit: Arrow tables, packed into one value for each destination partition.

Spark moves rows one by one, and most of the cost is per row. Here a row that it moves holds some
thousands of ours, as an Arrow stream, with the numbers of their relation and their destination
partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

SOURCE, PART, ROWS = "ucle_source", "ucle_part", "ucle_rows"

PLACED = f"{SOURCE} int, {PART} int, {ROWS} binary"
"""The columns of rows in transit, in Spark's notation of a schema."""

MADE = f"{SOURCE} int, {ROWS} binary"
"""The columns of results of fragments."""

SEED = -1
"""The source number of a row that exists for each partition, so that each of them runs."""

MOST_BYTES = 1 << 26
"""The most bytes of rows that are packed into one value."""

_MADE = pa.schema([(SOURCE, pa.int32()), (ROWS, pa.binary())])
_PLACED = pa.schema([(SOURCE, pa.int32()), (PART, pa.int32()), (ROWS, pa.binary())])


def pack(rows: pa.Table) -> list[bytes]:
    """Pack a table into some values.

    >>> [table] = map(unpack, pack(pa.table({"i": [1, 2]})))
    >>> table["i"].to_pylist()
    [1, 2]
    """
    length = len(rows)
    pieces = max(1, -(-rows.nbytes // MOST_BYTES))
    each = max(1, -(-length // pieces))
    packed = []
    for start in range(0, max(length, 1), each):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows.slice(start, each))
        packed.append(sink.getvalue().to_pybytes())
    return packed


def unpack(value: Any) -> pa.Table:
    """Return the rows that `pack` has put into a value."""
    with pa.ipc.open_stream(value) as stream:
        return stream.read_all()


def made_batch(number: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the results of a fragment, as batches of one value each."""
    for value in pack(rows):
        yield pa.record_batch([[number], [value]], schema=_MADE)


def placed_batch(number: int, part: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows for a partition, as batches of one value each."""
    for value in pack(rows):
        yield pa.record_batch([[number], [part], [value]], schema=_PLACED)
