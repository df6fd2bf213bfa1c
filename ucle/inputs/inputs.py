"""Objects that a caller may pass as an input, turned into sources.

Tables and views by name, files by path, `table(...)` where columns have to be named, NumPy arrays,
scipy.sparse matrices, COO tables of Arrow, pandas or polars, and all objects that export Arrow
streams. This module inspects the objects and column types; `ucle.stats.measure` measures the data.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.errors import InputError, ValueTypeError
from ucle.foundation.arrow_numbers import arrow_array
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, nearest
from ucle.foundation.exact_numbers import typed_numbers
from ucle.foundation.libraries import pa
from ucle.foundation.names import fold_name
from ucle.inputs.column_types import Column
from ucle.inputs.files import (
    index_columns,
    read_file,
    read_parquet,
    read_word_table,
    without_half_floats,
)
from ucle.inputs.formats import is_parquet, is_text_table, read_otherwise, reader_of
from ucle.inputs.frame_index import check_index, index_as_keys, with_index
from ucle.inputs.labelled_arrays import labelled_table
from ucle.inputs.metadata import (
    RelationNote,
    in_order,
    parquet_description,
    parquet_schema,
    read_description,
)
from ucle.inputs.objects import (
    arrow_table,
    ask_object,
    dense_array,
    in_memory,
    is_instance,
    is_table,
    narrow_decimals,
)
from ucle.inputs.pandas_columns import frame_table
from ucle.inputs.random_tensors import RandomTensor
from ucle.inputs.sparse_arrays import is_blocked, is_sparse, to_blocks, to_coordinates
from ucle.inputs.sparse_entries import plain_columns
from ucle.inputs.table_input import TableInput
from ucle.inputs.wide_tables import check_distinct_names
from ucle.ir.layouts import Coordinates
from ucle.plan.sources import CsvFile, InMemory, Origin, ParquetFile, TableName


def element_type(dtype: Any, where: str) -> DType:
    """The element type that a caller names.

    Raises:
        ValueTypeError: there is no such type, or ucle has none that holds its values.
    """
    try:
        nearest_type = None if isinstance(dtype, bytes) else nearest(np.dtype(dtype))
    except (TypeError, ValueError):
        nearest_type = None
    if nearest_type is None:
        raise ValueTypeError(
            "this is not an element type",
            where=where,
            expected=", ".join(member.value for member in DType),
            found=repr(dtype),
        )
    return nearest_type


@dataclass(frozen=True)
class DescribedArray:
    """A dense array after inspection: its wrapper, and its numbers in their element type."""

    spec: TableInput
    data: NDArray[Any]
    dtype: DType

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes, from the array itself."""
        return self.data.shape


@dataclass(frozen=True)
class DescribedTable:
    """A table after inspection: its wrapper, its origin, and its data if that is in memory."""

    spec: TableInput
    origin: Origin
    data: Any = None
    shape: tuple[int, ...] | None = None
    """Sizes of the axes, if the object itself has them."""
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Columns that the user did not put into the data, and descriptions (see `column_roles`)."""
    columns: tuple[Column, ...] | None = None
    """The columns of the table as DuckDB describes them, if that is known."""


Described = DescribedArray | DescribedTable


def describe(name: str, value: Any, place: str) -> Described:
    """Classify an input object.

    Args:
        name: the tensor, for messages.
        value: what the caller passed for it.
        place: the name under which it is registered if it is a table in memory.

    Raises:
        InputError: ucle cannot read such an object.
        ValueTypeError: an array of something other than numbers.
    """
    given = value if isinstance(value, TableInput) else TableInput(value)
    spec, _ = open_input(name, given)
    relation = spec.relation
    if isinstance(relation, str | os.PathLike):
        origin = _parse_relation(name, relation, spec)
        schema = parquet_schema(origin.path) if isinstance(origin, ParquetFile) else None
        if spec.columns_as is not None and schema is not None:
            check_distinct_names(schema.names, f"input {name}, {origin}")
        return DescribedTable(spec, origin, foreign=index_columns(schema) if schema else {})
    if is_blocked(relation) and not spec.symmetric and not spec.tiles:
        return _describe_blocks(name, spec, place)
    if is_sparse(relation):
        return _describe_sparse(name, spec, place)
    if is_instance(relation, "pandas", "DataFrame"):
        if spec.columns_as is not None:
            check_distinct_names([str(x) for x in relation.columns], f"input {name}, pandas frame")
        check_index(name, spec)
        frame = frame_table(
            f"input {name}, pandas frame", with_index(spec), _find_needed_columns(spec)
        )
        columns = plain_columns(frame)
        return DescribedTable(spec, InMemory("pandas frame", place), frame, columns=columns)
    if is_instance(relation, "pyarrow", "Table"):
        if spec.columns_as is not None:
            check_distinct_names(relation.column_names, f"input {name}")
        foreign = index_columns(relation.schema)
        is_file = isinstance(given.relation, str | os.PathLike)
        kind = os.fspath(given.relation) if is_file else "Arrow table"
        columns = plain_columns(relation)
        return DescribedTable(
            spec, InMemory(kind, place), relation, foreign=foreign, columns=columns
        )
    return describe_array(name, spec)


def open_input(name: str, spec: TableInput) -> tuple[TableInput, RelationNote | None]:
    """Load an input into memory if it has to be, and apply its stored description, if any.

    Files that DuckDB cannot read are read here, objects that export Arrow streams become Arrow
    tables, and the description of a tensor supplies the options, unless the caller states any.

    Args:
        name: the tensor, for messages.
        spec: the input.
    """
    relation = spec.relation
    if isinstance(relation, RandomTensor):
        raise InputError(
            "the shape of a random tensor is not stated",
            where=f"input {name}",
            expected=f"ucle.random.{relation.distribution}(..., shape=..., axes=...)",
            found=str(relation),
            hint="without a shape, it can only replace an input of a compiled program: "
            f"program.execute(inputs={{{name!r}: ...}}); .array(shape) returns an array",
        )
    if isinstance(relation, str | os.PathLike):
        relation = _read_or_named(name, relation, spec)
    where = f"input {name}"
    relation = in_memory(where, relation)
    frame = is_instance(relation, "pandas", "DataFrame")
    if is_table(relation) and not frame:
        relation = narrow_decimals(where, _drop_unread_columns(spec, arrow_table(where, relation)))
    if relation is not spec.relation:
        spec = replace(spec, relation=relation)
    if is_instance(relation, "pyarrow", "Table"):
        widened = without_half_floats(relation)
        spec = spec if widened is None else replace(spec, relation=widened)
    if (labelled := labelled_table(name, spec)) is not None:
        return labelled, None
    spec = index_as_keys(name, spec)
    stated = (spec.columns, spec.value, spec.columns_as, spec.shape, spec.bounds, spec.ends)
    if any(part is not None for part in stated):
        return spec, None
    return _as_described(name, spec)


def _read_or_named(name: str, relation: str | os.PathLike[str], spec: TableInput) -> Any:
    """Read a file that ucle reads itself; return paths that DuckDB reads, and tables, unchanged.

    Raises:
        InputError: the file cannot be read, or is stated to be text but is not.
    """
    path = os.fspath(relation)
    if is_text(path, spec):
        return read_word_table(name, path, spec) if spec.delimiter == " " else relation
    return relation if reader_of(path) is None else read_file(name, path)


def _as_described(name: str, spec: TableInput) -> tuple[TableInput, RelationNote | None]:
    """Apply the stored description of an input, if it has one."""
    relation, description = spec.relation, None
    if is_instance(relation, "pyarrow", "Table"):
        description = read_description(relation.schema, f"input {name}")
    elif isinstance(relation, str | os.PathLike):
        origin = _parse_relation(name, relation, spec)
        description = parquet_description(origin.path) if isinstance(origin, ParquetFile) else None
    if description is None:
        return spec, None
    if description.order is not None:
        table = (
            relation
            if is_instance(relation, "pyarrow", "Table")
            else read_parquet(name, str(relation))
        )
        table, description = in_order(table, description)
        spec = replace(spec, relation=table)
    if is_instance(spec.relation, "pyarrow", "Table"):
        names = spec.relation.schema.names
    else:
        schema = parquet_schema(str(relation))
        names = [] if schema is None else schema.names
    return replace(
        spec,
        columns=tuple(names[: description.promoted]),
        value=names[description.promoted],
        shape=description.dense_shape,
        bounds=description.bounds,
        fill=description.fill if spec.fill is None else spec.fill,
        dtype=spec.dtype or description.dtype,
        encoded_keys=description.dictionaries,
    ), description


def is_text(path: str, spec: TableInput) -> bool:
    """True if a relation is a text file of rows, by its suffix or by the stated options.

    A table ``edges`` in a schema has such a name, too: for that suffix the file has to exist.
    """
    if any(stated is not None for stated in (spec.delimiter, spec.header, spec.comment)):
        return not is_parquet(path)
    if re.fullmatch(r"[\w ]+\.edges", path, re.IGNORECASE) and not os.path.exists(path):
        return False
    return is_text_table(path)


def _parse_relation(name: str, relation: str | os.PathLike[str], spec: TableInput) -> Origin:
    text = os.fspath(relation)
    if is_text(text, spec):
        return CsvFile(text)
    if is_parquet(text) or not isinstance(relation, str):
        return ParquetFile(text)
    return parse_table_name(text, f"input {name}")


_PART = r'(?:"(?:[^"]|"")+"|[^".\s](?:[^".]*[^".\s])?)'
_TABLE_NAME = re.compile(rf"\s*({_PART})\s*(?:\.\s*({_PART})\s*)?(?:\.\s*({_PART})\s*)?")


def quoted_name(parts: Sequence[str]) -> str:
    """Write the name of a table with quotation marks, as SQL and `ucle.table` read it.

    >>> quoted_name(("ucle", "scores: y"))
    '"ucle"."scores: y"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def parse_table_name(text: str, where: str) -> TableName:
    """Take apart a table name such as ``edges``, ``schema.edges`` or ``"my schema".edges``.

    Raises:
        InputError: a part is empty or has a quotation mark inside, or there are too many parts.

    >>> parse_table_name('"my schema".edges', "here").parts
    ('my schema', 'edges')
    """
    match = _TABLE_NAME.fullmatch(text)
    if match is None:
        quoted = quoted_name((text,))
        raise InputError(
            "this is not the name of a table",
            where=where,
            expected="table, schema.table, database.schema.table, or the path of a file",
            found=repr(text),
            hint=read_otherwise(text)
            or f"a name with dots or quotation marks in it is quoted: {quoted}"
            if text
            else None,
        )
    parts = [part for part in match.groups() if part is not None]
    return TableName(tuple(x[1:-1].replace('""', '"') if x.startswith('"') else x for x in parts))


def _describe_sparse(name: str, spec: TableInput, place: str) -> DescribedTable:
    matrix = to_coordinates(spec.relation, f"input {name}").sum_duplicates()
    if spec.fill is None and matrix.fill:
        spec = replace(spec, fill=matrix.fill)
    spec, numbers = _stored_numbers(spec, matrix.data)
    _, values = typed_numbers(name, numbers, spec.dtype)
    positions = Coordinates.of(max(matrix.shape, default=0)).numpy
    keys = [np.asarray(key, dtype=positions) for key in matrix.coords]
    columns = {f"k{axis}": arrow_array(key) for axis, key in enumerate(keys)}
    data = pa.table({**columns, "val": value_array(values)})
    kind = f"{matrix.kind} {' x '.join(map(str, matrix.shape))}"
    origin = InMemory(kind, place)
    return DescribedTable(spec, origin, data, matrix.shape, columns=plain_columns(data))


def _describe_blocks(name: str, spec: TableInput, place: str) -> DescribedTable:
    """Describe a sparse array of blocks as a table of blocks; entries are not copied."""
    blocks = ask_object(f"input {name}", spec.relation, lambda: to_blocks(spec.relation))
    spec, numbers = _stored_numbers(spec, blocks.data)
    dtype, values = typed_numbers(name, numbers, spec.dtype)
    size = math.prod(blocks.tiles)
    entries = value_array(np.ascontiguousarray(values).reshape(-1))
    offsets = np.arange(len(values) + 1, dtype=np.int64) * size
    columns = {f"k{axis}": arrow_array(key) for axis, key in enumerate(blocks.keys)}
    data = pa.table(
        {**columns, "val": pa.LargeListArray.from_arrays(arrow_array(offsets), entries)}
    )
    kind = f"{blocks.kind} {' x '.join(map(str, blocks.shape))}"
    spec = replace(
        spec, columns=("k0", "k1"), value="val", shape=blocks.tiles, tiles=blocks.tiles, dtype=dtype
    )
    return DescribedTable(spec, InMemory(kind, place), data, blocks.shape)


def _stored_numbers(spec: TableInput, stored: NDArray[Any]) -> tuple[TableInput, NDArray[Any]]:
    """The entries that an array in memory stores, or True for each, and how they are to be read."""
    if not spec.presence:
        return spec, stored
    return replace(spec, presence=False), np.ones(stored.shape, dtype=bool)


def value_array(values: NDArray[Any]) -> pa.Array:
    """Convert numbers to an Arrow array; complex ones become pairs (re, im)."""
    if values.dtype.kind != "c":
        return arrow_array(values)
    parts = [np.ascontiguousarray(part) for part in (values.real, values.imag)]
    return pa.StructArray.from_arrays([arrow_array(part) for part in parts], ["re", "im"])


def _find_needed_columns(spec: TableInput) -> frozenset[str] | None:
    """The columns of a frame that are read, if the caller names them all; else None."""
    if spec.columns is None or (spec.value is None and spec.values is None):
        return None
    keys = [column if isinstance(column, str) else column[1] for column in spec.columns]
    keys += [] if spec.ends is None else [spec.ends]
    return frozenset(
        map(
            fold_name,
            [*keys, *([spec.value] if isinstance(spec.value, str) else spec.values or ())],
        )
    )


def _drop_unread_columns(spec: TableInput, table: pa.Table) -> pa.Table:
    """Drop columns that are not read, whose types may be unknown to DuckDB."""
    needed = _find_needed_columns(spec)
    if needed is None:
        return table
    names = [fold_name(name) for name in table.column_names]
    if not needed <= set(names) or len(needed) == len(names):
        return table  # one is missing; a later error lists the existing ones
    return table.select([n for n, name in enumerate(names) if name in needed])


def describe_array(name: str, spec: TableInput) -> DescribedArray:
    """Read a dense array.

    Raises:
        InputError: NumPy cannot make an array of it.
        ValueTypeError: an array of something other than numbers, or with masked entries.
    """
    array = dense_array(f"input {name}", spec.relation)
    if spec.symmetric or spec.tiles:
        raise InputError(
            "this array holds every entry of a tensor",
            where=f"input {name}",
            expected="a table or a sparse array, for symmetric=True and tiles=[...]",
            found="an array of shape " + " x ".join(map(str, array.shape)),
        )
    dtype, numbers = typed_numbers(name, array, spec.dtype)
    values = np.ascontiguousarray(numbers)
    return DescribedArray(spec, values.reshape(array.shape), dtype)


def known_sizes(described: Described) -> tuple[int | None, ...] | None:
    """Sizes of the axes that the input itself or its caller states."""
    return described.spec.bounds if described.shape is None else described.shape
