"""The description of a tensor in the metadata of an Arrow schema.

A tensor relation is a table. The table does not say which columns are labels, how large these are,
what the fill is, or what shape the arrays have. `describing` records it as JSON in the schema,
under the key ``ucle``. Arrow streams, IPC files and Parquet files keep it, and `read_description`
reads it back.

Anybody can change a table and keep the description, or write a description. So it counts only if it
is well-formed and agrees with its table in the names, the order and the types of the columns;
otherwise the table is read as one without, with a `MetadataWarning`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ucle.database.data_versions import file_state
from ucle.errors import MetadataWarning, ValueTypeError
from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar, is_finite, nearest
from ucle.foundation.exact_numbers import exact_scalar
from ucle.foundation.libraries import pa, pc, pq
from ucle.foundation.logs import warn_caller
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan.resources import DUCKDB_LIMITS

KEY = b"ucle"
VERSION = 1

LONGEST = 2**63 - 1
"""The largest possible size of an axis."""

_schemas = BoundedCache[Any](1 << 22)
"""The schemas of Parquet files, by path and state of the file: 4 MB."""


@dataclass(frozen=True)
class RelationNote:
    """The description of a tensor relation, with its axes in the order of the columns.

    That is the order of the tensor unless an axis inside the arrays comes before one of a column:
    `order` has the place of each axis in the tensor. `bounds` holds None for a label whose
    coordinates are values of a dictionary: its size is that of the dictionary, which other tables
    may share. `dictionaries` holds the positions of such labels.
    """

    labels: tuple[str, ...]
    bounds: tuple[int | None, ...]
    promoted: int
    dtype: DType
    fill: Scalar
    dictionaries: tuple[int, ...] = ()
    order: tuple[int, ...] | None = None
    """None if it is the order of the columns."""

    @property
    def dense_shape(self) -> tuple[int, ...] | None:
        """The shape of the arrays; None if values are numbers."""
        sizes = self.bounds[self.promoted :]
        return tuple(size for size in sizes if size is not None) if sizes else None


def description(type_: TensorType, layout: Layout) -> RelationNote:
    """Describe a tensor in a layout."""
    order = (*layout.promoted, *layout.dense)
    axes = [type_.axes[axis] for axis in order]
    encoded = [n for n, axis in enumerate(axes) if axis.dictionary and n < len(layout.promoted)]
    return RelationNote(
        tuple(axis.name for axis in axes),
        tuple(None if n in encoded else axis.bound for n, axis in enumerate(axes)),
        len(layout.promoted),
        type_.dtype,
        type_.fill,
        tuple(encoded),
        order if order != tuple(range(type_.rank)) else None,
    )


def with_description(schema: pa.Schema, tensor: RelationNote) -> pa.Schema:
    """Add the description of a tensor to a schema.

    >>> tensor = RelationNote(("i", "m"), (3, 2), 1, DType.FLOAT64, 0.0)
    >>> columns = pa.schema([("i", pa.int32()), ("val", pa.list_(pa.float64()))])
    >>> schema = with_description(columns, tensor)
    >>> read_description(schema) == tensor
    True
    """
    key, noted = describing(tensor, schema.names)
    return schema.with_metadata({**(schema.metadata or {}), key: noted})


def describing(tensor: RelationNote, columns: list[str] | None = None) -> tuple[str, str]:
    """The key and the text of a description, with the names of the table's columns if known."""
    noted = {
        "version": VERSION,
        "labels": tensor.labels,
        "bounds": tensor.bounds,
        "promoted": tensor.promoted,
        "dtype": tensor.dtype.value,
        "fill": str(tensor.fill),
        "dictionaries": tensor.dictionaries,
        "order": tensor.order,
        "columns": columns,
    }
    return KEY.decode(), json.dumps(noted)


def read_description(schema: pa.Schema, where: str = "metadata") -> RelationNote | None:
    """Read the description in a schema.

    Args:
        schema: of the table as it is now.
        where: the table, for messages.

    Returns:
        None if there is no description, one of a later version, or, with a `MetadataWarning`, one
        that is malformed or does not match this table.
    """
    text = (schema.metadata or {}).get(KEY)
    if text is None:
        return None
    try:
        noted = json.loads(text)
        if not isinstance(noted, dict):
            raise ValueError("it is no JSON object")
        if noted.get("version") != VERSION:
            return None
        described = _from_json(noted)
        _check_agreement(described, noted.get("columns"), schema)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        warn_caller(
            f"{where}: the description of a tensor is not of this table, which is read without: "
            f"{reason}. ucle.table(...) states bounds, fill and shape",
            MetadataWarning,
        )
        return None
    return described


def _from_json(noted: Mapping[str, Any]) -> RelationNote:
    """Build a description whose parts are consistent with each other.

    Raises:
        ValueError, KeyError, TypeError: they are not.
    """
    labels, bounds = noted["labels"], noted["bounds"]
    promoted, encoded, order = noted["promoted"], noted["dictionaries"], noted.get("order")
    if not _is_list(labels, str) or not _is_list(bounds, int | None):
        raise ValueError("labels are not names, or bounds no integers")
    rank = len(labels)
    if len(set(labels)) < rank or len(bounds) != rank:
        raise ValueError("labels are repeated, or are not as many as the bounds")
    if type(promoted) is not int or not 0 <= promoted <= rank:
        raise ValueError(f"promoted is {promoted!r} of {rank} labels")
    if not _is_list(encoded, int) or any(not 0 <= axis < promoted for axis in encoded):
        raise ValueError("dictionaries are not of key columns")
    if any(size is not None and not 0 <= size <= LONGEST for size in bounds):
        raise ValueError("a bound is not a valid size")
    if any((bounds[axis] is None) != (axis in encoded) for axis in range(rank)):
        raise ValueError("a bound is missing, or one is given beside a dictionary")
    if math.prod(bounds[promoted:]) > DUCKDB_LIMITS.array_elements:
        raise ValueError("arrays of that size do not fit a row")
    if order is not None and (not _is_list(order, int) or sorted(order) != list(range(rank))):
        raise ValueError("the order is none of the axes")
    if order is not None and promoted == rank:
        raise ValueError("there is an order, but no arrays")
    dtype = DType(noted["dtype"])
    if not isinstance(noted["fill"], str):
        raise ValueError("the fill is not text")
    return RelationNote(
        tuple(labels),
        tuple(bounds),
        promoted,
        dtype,
        _number(noted["fill"], dtype),
        tuple(encoded),
        None if order is None or order == list(range(rank)) else tuple(order),
    )


def _is_list(noted: Any, kind: Any) -> bool:
    items = noted if isinstance(noted, list) else [True]  # bool, which is rejected below
    return all(isinstance(item, kind) and not isinstance(item, bool) for item in items)


def _check_agreement(tensor: RelationNote, columns: Any, schema: pa.Schema) -> None:
    """Check that a description matches its table: the columns, their order and their types.

    Raises:
        ValueError: it does not.
    """
    names = schema.names
    if len(names) != tensor.promoted + 1:
        raise ValueError(f"it has {tensor.promoted} keys and a value, the table {len(names)}")
    if columns is not None and columns != names:
        raise ValueError(f"it is of the columns {columns}, the table has {names}")
    keys = tensor.labels[: tensor.promoted]
    pairs = zip(names, keys, strict=False)  # earlier versions only named the columns after labels
    if columns is None and not all(x.casefold().startswith(y.casefold()) for x, y in pairs):
        raise ValueError(f"its keys are {list(keys)}, those of the table {names[:-1]}")
    for axis, name in enumerate(names[:-1]):
        if axis not in tensor.dictionaries and not pa.types.is_integer(schema.field(name).type):
            raise ValueError(f"{name} does not hold positions")
    value = schema.field(len(names) - 1).type
    if _is_list_type(value) != (tensor.promoted < len(tensor.labels)):
        raise ValueError(f"the values are {value}, of arrays or of numbers otherwise")
    element = _element(value)
    if element is not tensor.dtype:
        raise ValueError(f"the values are {value}, and should be {tensor.dtype.value}")


def _is_list_type(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_kind(type_) for is_kind in kinds)


def _element(type_: pa.DataType) -> DType | None:
    """The element type of the values of a column; None if they are not numbers."""
    while _is_list_type(type_):
        type_ = type_.value_type
    if pa.types.is_struct(type_):
        parts = [type_.field(n) for n in range(type_.num_fields)]
        if [part.name for part in parts] != ["re", "im"]:
            return None
        kinds = {_element(part.type) for part in parts}
        complex_ = {DType.FLOAT64: DType.COMPLEX128, DType.FLOAT32: DType.COMPLEX64}
        return complex_.get(kinds.pop()) if len(kinds) == 1 else None  # type: ignore[arg-type]
    try:
        return nearest(np.dtype(type_.to_pandas_dtype()))
    except (NotImplementedError, TypeError):
        return None


def in_order(table: pa.Table, tensor: RelationNote) -> tuple[pa.Table, RelationNote]:
    """Reorder a described table to the order of the tensor's axes, as a table of entries.

    Raises:
        ValueTypeError: an array does not have the described shape, or is NULL.
    """
    assert tensor.order is not None
    assert tensor.dense_shape is not None
    size = math.prod(tensor.dense_shape)
    _check_lengths(table.column(tensor.promoted), size, table.column_names[tensor.promoted])
    rows = np.repeat(np.arange(len(table)), size)
    within = np.unravel_index(np.arange(size), tensor.dense_shape)
    columns = [column.take(pa.array(rows)) for column in table.columns[: tensor.promoted]]
    columns += [pa.array(np.tile(positions, len(table))) for positions in within]
    placed = sorted(range(len(columns)), key=tensor.order.__getitem__)
    values = table.column(tensor.promoted).combine_chunks().flatten()
    names = [*(tensor.labels[axis] for axis in placed), table.column_names[tensor.promoted]]
    entries = pa.table([*(columns[axis] for axis in placed), values], names)
    described = replace(
        tensor,
        labels=tuple(names[:-1]),
        bounds=tuple(tensor.bounds[axis] for axis in placed),
        promoted=len(placed),
        dictionaries=tuple(n for n, axis in enumerate(placed) if axis in tensor.dictionaries),
        order=None,
    )
    schema = with_description(entries.schema, described)
    return entries.replace_schema_metadata(schema.metadata), described


def _check_lengths(arrays: pa.ChunkedArray, size: int, name: str) -> None:
    """Check that every array has this size, before anything of that size is allocated."""
    lengths = pc.list_value_length(arrays)
    wrong = pc.fill_null(pc.not_equal(lengths, size), True)
    if (row := pc.index(wrong, True).as_py()) >= 0:
        raise ValueTypeError(
            "an array does not have the shape that the table is described with",
            where=f"column {name}, row {row}",
            expected=f"{size} elements in every row",
            found=f"{lengths[row].as_py()} elements",
        )


def parquet_description(path: str) -> RelationNote | None:
    """The description in a Parquet file; None for globs, remote files and files without one."""
    schema = parquet_schema(path)
    return None if schema is None else read_description(schema, path)


def parquet_schema(path: str) -> pa.Schema | None:
    """The schema of a Parquet file; None for globs, remote files and other files."""
    if not Path(path).is_file():
        return None
    state = file_state(path)
    try:
        return _schemas.get_or_make(state and (path, state), lambda: pq.read_schema(path))
    except (pa.ArrowException, OSError, ValueError):  # DuckDB reports the error later
        return None


def _number(text: str, dtype: DType) -> Scalar:
    """Parse the text of a fill.

    Raises:
        ValueError: the type cannot represent the number.
    """
    if dtype is DType.BOOL:
        if text not in ("True", "False"):
            raise ValueError(f"the fill is {text}, and should be True or False")
        return text == "True"
    number: Scalar = {"i": int, "c": complex}.get(dtype.kind, float)(text)
    beyond = not is_finite(number) and not re.search("inf|nan", text, re.IGNORECASE)
    if beyond or (exact_number := exact_scalar(number, dtype)) is None:
        raise ValueError(f"the fill is {text}, which is none of {dtype.value}")
    return exact_number
