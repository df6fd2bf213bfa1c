"""The description of a tensor in the metadata of an Arrow schema.

A tensor relation is a table: which columns are labels, how large these are, what an entry that is
not stored is worth, and what shape the arrays have, the table does not say. `describe_tensor` notes
it in the schema, under the key ``ucle``, as JSON; Arrow streams, IPC files and Parquet files keep
it, and `described` reads it back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ucle.dtypes import DType, Scalar
from ucle.ir import Layout, TensorType

KEY = b"ucle"
VERSION = 1


@dataclass(frozen=True)
class Description:
    """What is noted of a tensor relation, its axes in the order of the columns.

    That is the order of the tensor unless an axis inside the arrays stands before one of a column:
    `order` has the place of each axis in the tensor. `bounds` holds None for a label whose
    coordinates are values of a dictionary: its size is that of the dictionary, which other tables
    may share. `dictionaries` are the positions of these.
    """

    labels: tuple[str, ...]
    bounds: tuple[int | None, ...]
    promoted: int
    dtype: DType
    fill: Scalar
    dictionaries: tuple[int, ...] = ()
    order: tuple[int, ...] | None = None
    """None where it is that of the columns."""

    @property
    def dense_shape(self) -> tuple[int, ...] | None:
        """The shape of the arrays; None where values are numbers."""
        sizes = self.bounds[self.promoted :]
        return tuple(size for size in sizes if size is not None) if sizes else None


def description(type_: TensorType, layout: Layout) -> Description:
    """The description of a tensor in a layout."""
    order = (*layout.promoted, *layout.dense)
    axes = [type_.axes[axis] for axis in order]
    encoded = [n for n, axis in enumerate(axes) if axis.dictionary and n < len(layout.promoted)]
    return Description(
        tuple(axis.name for axis in axes),
        tuple(None if n in encoded else axis.bound for n, axis in enumerate(axes)),
        len(layout.promoted),
        type_.dtype,
        type_.fill,
        tuple(encoded),
        order if order != tuple(range(type_.rank)) else None,
    )


def with_description(schema: pa.Schema, tensor: Description) -> pa.Schema:
    """A schema with the description of a tensor.

    >>> tensor = Description(("i", "m"), (3, 2), 1, DType.FLOAT64, 0.0)
    >>> schema = with_description(pa.schema([("i", pa.int32())]), tensor)
    >>> read_description(schema) == tensor
    True
    """
    key, noted = describing(tensor)
    return schema.with_metadata({**(schema.metadata or {}), key: noted})


def describing(tensor: Description) -> tuple[str, str]:
    """The key and the text of a description."""
    noted = {
        "version": VERSION,
        "labels": tensor.labels,
        "bounds": tensor.bounds,
        "promoted": tensor.promoted,
        "dtype": tensor.dtype.value,
        "fill": str(tensor.fill),
        "dictionaries": tensor.dictionaries,
        "order": tensor.order,
    }
    return KEY.decode(), json.dumps(noted)


def read_description(schema: pa.Schema) -> Description | None:
    """The description in a schema; None where there is none, or one of a later version."""
    text = (schema.metadata or {}).get(KEY)
    noted: Mapping[str, Any] = json.loads(text) if text is not None else {}
    if noted.get("version") != VERSION:
        return None
    dtype = DType(noted["dtype"])
    return Description(
        tuple(noted["labels"]),
        tuple(noted["bounds"]),
        noted["promoted"],
        dtype,
        _number(noted["fill"], dtype),
        tuple(noted["dictionaries"]),
        tuple(order) if (order := noted.get("order")) else None,
    )


def in_order(table: pa.Table, tensor: Description) -> tuple[pa.Table, Description]:
    """A described table whose axes are in another order than the tensor's, as entries in order."""
    assert tensor.order is not None
    assert tensor.dense_shape is not None
    size = math.prod(tensor.dense_shape)
    rows = np.repeat(np.arange(len(table)), size)
    within = np.unravel_index(np.arange(size), tensor.dense_shape)
    columns = [column.take(pa.array(rows)) for column in table.columns[: tensor.promoted]]
    columns += [pa.array(np.tile(positions, len(table))) for positions in within]
    placed = sorted(range(len(columns)), key=tensor.order.__getitem__)
    values = table.column(tensor.promoted).combine_chunks().flatten()
    names = [*(tensor.labels[axis] for axis in placed), table.column_names[tensor.promoted]]
    made = pa.table([*(columns[axis] for axis in placed), values], names)
    found = replace(
        tensor,
        labels=tuple(names[:-1]),
        bounds=tuple(tensor.bounds[axis] for axis in placed),
        promoted=len(placed),
        dictionaries=tuple(n for n, axis in enumerate(placed) if axis in tensor.dictionaries),
        order=None,
    )
    return made.replace_schema_metadata(with_description(made.schema, found).metadata), found


def parquet_description(path: str) -> Description | None:
    """The description in a Parquet file; None for globs, files elsewhere and files without."""
    if not Path(path).is_file():
        return None
    try:
        return read_description(pq.read_schema(path))
    except (pa.ArrowInvalid, OSError):  # DuckDB will say what is wrong with it
        return None


def _number(text: str, dtype: DType) -> Scalar:
    if dtype is DType.BOOL:
        return text == "True"
    number: Scalar = {"i": int, "c": complex}.get(dtype.kind, float)(text)
    return number
