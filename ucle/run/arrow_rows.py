"""Arrow batches of a tensor in a form: arrays become lists, and positions the names at them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.libraries import pa
from ucle.inputs.inputs import value_array
from ucle.inputs.metadata import description, with_description
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan.forms import WrittenForm
from ucle.run.read_tuples import number_values, payload_matrix, plain_values


def value_blocks(values: pa.Array, type_: TensorType, layout: Layout) -> NDArray[Any]:
    """View the payloads of a batch as the rows of a matrix; arrays are not copied."""
    values = plain_values(values, type_.dtype if layout.scalar else None)
    if layout.scalar:
        return number_values(values, type_.dtype).reshape(-1, 1)
    return payload_matrix(values, type_.dense_size(layout), type_.dtype)


def list_batch(
    batch: pa.RecordBatch,
    schema: pa.Schema,
    type_: TensorType,
    layout: Layout,
    named: pa.Array | None,
) -> pa.RecordBatch:
    """Return a batch with arrays as lists.

    Args:
        batch: key columns, and numbers or BLOBs.
        schema: of the result: `list_schema`.
        type_: of the tensor.
        layout: of the rows.
        named: the coordinates of which arrays hold the positions, if they do.
    """
    *keys, values = batch.columns
    if not layout.scalar:
        blocks = value_blocks(values, type_, layout)
        places = blocks.reshape(-1)
        entries = value_array(places) if named is None else coordinates_at(named, places)
        if pa.types.is_fixed_size_list(schema.field(-1).type):
            values = pa.FixedSizeListArray.from_arrays(entries, blocks.shape[1])
        else:
            offsets = np.arange(len(blocks) + 1, dtype=np.int64) * blocks.shape[1]
            values = pa.LargeListArray.from_arrays(offsets, entries)
    return pa.RecordBatch.from_arrays([*keys, values], schema=schema)


def list_schema(
    batch_schema: pa.Schema, type_: TensorType, form: WrittenForm, named: pa.Array | None
) -> pa.Schema:
    """Return the schema of batches with lists, including the description of the tensor.

    There is none of values that are coordinates: nothing reads them as a tensor.
    """
    *keys, value = batch_schema
    layout = form.layout
    if not layout.scalar:
        entries = value_array(np.empty(0, type_.dtype.numpy)) if named is None else named
        length = type_.dense_size(layout)
        kind = pa.list_(entries.type, length) if form.fixed_length else pa.large_list(entries.type)
        value = pa.field(value.name, kind)
    schema = pa.schema([*keys, value])
    if type_.positions_in is not None:
        return schema
    return with_description(schema, description(type_, layout))


def coordinates_at(coordinates: pa.Array, positions: NDArray[Any]) -> pa.Array:
    """The coordinates at positions; NULL for those that only a larger bound allows.

    >>> coordinates_at(pa.array(["ann", "bob"]), np.array([1, 2])).to_pylist()
    ['bob', None]
    """
    return coordinates.take(pa.array(positions, mask=positions >= len(coordinates)))
