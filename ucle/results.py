"""Results: tensor relations by name, and the ways to take them out of DuckDB."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray

from ucle.dtypes import DType, Scalar, differs_from
from ucle.errors import DatabaseError, LabelError, ReadOnlyError, UnsupportedError, did_you_mean
from ucle.execute import TemporaryTable
from ucle.inputs import parse_table_name, value_array
from ucle.ir import Encoding, Layout, TensorType
from ucle.metadata import description, with_description
from ucle.saving import save
from ucle.session import Session
from ucle.sqlgen.emit import result_query
from ucle.sqlgen.script import sql_text, table_query, values_query
from ucle.sqlgen.tree import VALUE, column, key_columns, table

BATCH_BYTES = 2**28


class TensorRelation:
    """One output: a tensor that lies in a temporary table of the connection.

    It lives as long as its `Result` does; take it out with `to_numpy`, `to_arrow`, `to_scipy`,
    `to_pandas`, `to_polars`, write it to a file with `save`, or keep it in the database with
    `to_table`.
    """

    def __init__(
        self,
        name: str,
        type_: TensorType,
        layout: Layout,
        source: TemporaryTable,
        session: Session,
        dictionaries: Mapping[str, TemporaryTable],
    ) -> None:
        self.name = name
        self.type = type_
        self.layout = layout
        self._table = source
        self._session = session
        self._dictionaries = dictionaries

    @property
    def shape(self) -> tuple[int, ...]:
        """Bounds of the axes."""
        return self.type.shape

    @property
    def fill(self) -> Scalar:
        """What an entry that is not stored is worth."""
        return self.type.fill

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.type.dtype.numpy

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, which are the promoted labels, then ``val``."""
        names = key_columns(self.type)
        return (*(names[axis] for axis in self.layout.promoted), VALUE)

    def to_arrow(self) -> pa.Table:
        """The tensor relation: promoted labels, then ``val`` as a number or a list of numbers.

        Lists are flat, row-major over the demoted labels. Coordinates are those of the data, also
        where they went through a dictionary.
        """
        schema = self._schema()
        made = pa.Table.from_batches([self._listed(b, schema) for b in self._batches()], schema)
        for position, axis in enumerate(self.layout.promoted):
            label = self.type.axes[axis]
            if label.dictionary is not None:
                values = self.coordinates(label.name).take(made.column(position))
                made = made.set_column(position, schema.field(position).name, values)
        noted = with_description(made.schema, description(self.type, self.layout))
        return made.replace_schema_metadata(noted.metadata)

    def entries(self) -> pa.Table:
        """The entries that differ from the fill: a column for each axis, then ``val``.

        Coordinates are those of the data. A scalar has one entry, whatever it is.
        """
        names = [*key_columns(self.type), VALUE]
        layout = Layout.of([True] * len(self.shape), Encoding.LIST)
        if not self.shape:
            columns = [value_array(self.to_numpy().reshape(1))]
        else:
            coordinates, values = self._entries()
            columns = [
                self.coordinates(label.name).take(pa.array(keys))
                if label.dictionary
                else pa.array(keys)
                for label, keys in zip(self.type.axes, coordinates, strict=True)
            ]
            columns.append(value_array(values))
        made = pa.table(columns, names)
        noted = with_description(made.schema, description(self.type, layout))
        return made.replace_schema_metadata(noted.metadata)

    def _entries(self) -> tuple[list[NDArray[Any]], NDArray[Any]]:
        """Positions along each axis, and values, of what differs from the fill."""
        dense_shape = self.type.dense_shape(self.layout)
        kinds = [np.int64 if size > 2**31 else np.int32 for size in self.shape]
        coordinates: list[list[NDArray[Any]]] = [[np.empty(0, kind)] for kind in kinds]
        data: list[NDArray[Any]] = [np.empty(0, self.dtype)]
        for batch in self._batches():
            *keys, values = batch.columns
            blocks = self._blocks(values)
            rows, places = np.nonzero(differs_from(blocks, self.fill))
            data.append(blocks[rows, places])
            for axis, key in zip(self.layout.promoted, keys, strict=True):
                coordinates[axis].append(key.to_numpy(zero_copy_only=False)[rows])
            within = np.unravel_index(places, dense_shape) if dense_shape else ()
            for axis, index in zip(self.layout.dense, within, strict=True):
                coordinates[axis].append(index.astype(kinds[axis]))
        return [np.concatenate(parts) for parts in coordinates], np.concatenate(data)

    def to_pandas(self) -> Any:
        """The `entries` as a pandas frame.

        Raises:
            UnsupportedError: pandas is not installed.
        """
        _module("pandas")
        return self.entries().to_pandas()

    def to_polars(self) -> Any:
        """The `entries` as a polars frame.

        Raises:
            UnsupportedError: polars is not installed.
        """
        return _module("polars").from_arrow(self.entries())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The tensor relation for whoever reads Arrow streams."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tensor to a file; the suffix tells the format.

        Args:
            path: ``.parquet`` and ``.arrow`` (``.feather``, ``.ipc``) keep the tensor relation with
                its arrays, bounds, fill and type, and can be read back as the same tensor; ``.csv``
                and ``.tns`` hold its entries, ``.mtx`` a matrix, ``.npy`` the dense array, ``.npz``
                a sparse matrix or a dense array. Text may be packed: ``.csv.gz``.

        Raises:
            UnsupportedError: there is no such format, or it cannot hold the tensor.
            OutputError: the file cannot be written.
        """
        save(self, path)

    def coordinates(self, label: str) -> pa.Array:
        """What the positions along a label stand for, in order.

        Args:
            label: of an axis; its positions are the values of a dictionary, or just integers.

        Raises:
            LabelError: the tensor has no such label.
        """
        axis = next((axis for axis in self.type.axes if axis.name == label), None)
        if axis is None:
            raise LabelError(
                f"the tensor has no label {label!r}",
                where=f"result {self.name}",
                expected=", ".join(x.name for x in self.type.axes) or "none",
                found=label,
                hint=did_you_mean(label, [x.name for x in self.type.axes]),
            )
        if axis.dictionary is None:
            return pa.array(np.arange(axis.bound))
        query = values_query(self._dictionaries[axis.dictionary].name)
        table = self._session.connection.sql(sql_text(query))
        modern = hasattr(table, "to_arrow_table")  # DuckDB 2.0 renamed the method
        made: pa.Table = (table.to_arrow_table if modern else table.fetch_arrow_table)()
        return made.column(0).combine_chunks()

    def to_numpy(self) -> NDArray[Any]:
        """The dense tensor; entries that are not stored hold the fill.

        Along a label with a dictionary the positions are those of `coordinates`.

        Raises:
            MemoryError: the dense tensor does not fit into memory.
        """
        promoted, dense = self.layout.promoted, self.layout.dense
        result = np.full(self.shape, self.fill, dtype=self.dtype)
        target = result.transpose(promoted + dense)
        for batch in self._batches():
            *keys, values = batch.columns
            shape = (len(values), *self.type.dense_shape(self.layout))
            blocks = self._blocks(values).reshape(shape)
            if keys:
                target[tuple(key.to_numpy(zero_copy_only=False) for key in keys)] = blocks
            elif len(blocks):
                target[...] = blocks[0]
        return result

    def to_scipy(self) -> scipy.sparse.coo_array:
        """A sparse array of the entries that differ from 0.

        Raises:
            UnsupportedError: the fill is not 0, or the tensor is a scalar.
        """
        if self.fill != 0 or not self.shape:
            raise UnsupportedError(
                "this tensor has no scipy.sparse form",
                where=f"result {self.name}",
                expected="fill 0 and at least one axis",
                found=f"fill {self.fill}, rank {len(self.shape)}",
                hint="to_numpy() gives the dense tensor",
            )
        coordinates, values = self._entries()
        joined: Any = tuple(coordinates)
        return scipy.sparse.coo_array((values, joined), shape=self.shape)

    def to_table(self, name: str, *, replace: bool = False) -> None:
        """Store the tensor relation as a table of the database, its arrays as lists.

        Args:
            name: of the table; ``schema.name`` works too.
            replace: whether an existing table may be replaced.

        Raises:
            ReadOnlyError: the database is open for reading only.
            DatabaseError: the table exists, or cannot be made.
        """
        parts = parse_table_name(name, "to_table").parts
        self.write_table(parts, replace=replace, where=f"to_table({name!r})")

    def write_table(
        self, parts: Sequence[str], *, replace: bool, where: str, order: Sequence[str] = ()
    ) -> None:
        """Store the tensor relation as `to_table` does, under the parts of a name.

        Args:
            parts: of the name.
            replace: whether an existing table may be replaced.
            where: what an error says about the place.
            order: columns by which the rows are ordered.
        """
        target = sql_text(table(*parts))
        create = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
        ordered = ", ".join(sql_text(column(name)) for name in order)
        connection = self._session.connection
        try:
            with self._list_query() as query:
                rows = f"FROM ({query}) ORDER BY {ordered}" if order else query
                connection.execute(f"{create} {target} AS {rows}").fetchall()
        except duckdb.Error as error:
            message = str(error).strip()
            kind = ReadOnlyError if "read-only" in message else DatabaseError
            raise kind(
                "the result cannot be stored as a table",
                where=where,
                expected="a name that is free, in a database that is open for writing",
                found=message,
                hint="pass replace=True to replace a table"
                if "already exists" in message
                else None,
            ) from error

    @property
    def relation(self) -> duckdb.DuckDBPyRelation:
        """The tensor relation as a DuckDB relation, its arrays as lists."""
        if self._unpacks_in_sql:
            with self._list_query() as query:
                return self._session.connection.sql(query)
        return self._session.connection.from_arrow(self.to_arrow())

    @property
    def _unpacks_in_sql(self) -> bool:
        """Whether DuckDB itself can show the arrays as lists."""
        return self.layout.scalar or self._session.capabilities.native_aggregates

    @contextmanager
    def _list_query(self) -> Iterator[str]:
        """A SELECT of the relation with its arrays as lists, valid within the block."""
        connection = self._session.connection
        if self._unpacks_in_sql:
            names = {key: table.name for key, table in self._dictionaries.items()}
            capabilities = self._session.capabilities
            query = result_query(self._table.name, self.type, self.layout, capabilities, names)
            yield sql_text(query)
            return
        name = f"{self._table.name}_lists"
        connection.register(name, self.to_arrow())
        try:
            yield sql_text(table_query(name))
        finally:
            connection.unregister(name)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The stored tuples, some at a time, with ``val`` as numbers or BLOBs."""
        each = max(1, self.type.tuple_bytes(self.layout))
        rows = min(max(BATCH_BYTES // each, 2048), 10**6)
        connection = self._session.connection
        wide = 2048 * each > 2**31 - 1
        if wide:
            connection.execute("SET arrow_large_buffer_size = true")
        try:
            relation = connection.sql(sql_text(table_query(self._table.name)))
            # DuckDB 2.0 renamed the method.
            modern = hasattr(relation, "to_arrow_reader")
            yield from (relation.to_arrow_reader if modern else relation.fetch_arrow_reader)(rows)
        finally:
            if wide:
                connection.execute("RESET arrow_large_buffer_size").fetchall()

    def _blocks(self, values: pa.Array) -> NDArray[Any]:
        """The payloads of a batch as the rows of a matrix; arrays without a copy."""
        if self.layout.scalar:
            return number_values(values, self.type.dtype).reshape(-1, 1)
        width = self.type.dense_size(self.layout)
        _, offsets, data = values.buffers()
        wide = pa.types.is_large_binary(values.type)
        starts = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)
        first = int(starts[values.offset]) if len(starts) else 0
        count = len(values) * width
        if not count:
            return np.empty((len(values), width), self.dtype)
        numbers = np.frombuffer(data, dtype=self.dtype, count=count, offset=first)
        return numbers.reshape(-1, width)

    def _listed(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        *keys, values = batch.columns
        if not self.layout.scalar:
            blocks = self._blocks(values)
            width = blocks.shape[1]
            offsets = np.arange(len(blocks) + 1, dtype=np.int64) * width
            entries = value_array(blocks.reshape(-1))
            values = pa.LargeListArray.from_arrays(offsets, entries)
        return pa.RecordBatch.from_arrays([*keys, values], schema=schema)

    def _schema(self) -> pa.Schema:
        *keys, value = self.columns
        fields = []
        for name, axis in zip(keys, self.layout.promoted, strict=True):
            wide = self.type.shape[axis] > 2**31
            fields.append(pa.field(name, pa.int64() if wide else pa.int32()))
        number = value_array(np.empty(0, self.dtype)).type
        payload = number if self.layout.scalar else pa.large_list(number)
        return pa.schema([*fields, pa.field(value, payload)])

    def __repr__(self) -> str:
        axes = ", ".join(str(axis) for axis in self.type.axes)
        return f"<TensorRelation {self.name}[{axes}], columns {', '.join(self.columns)}>"


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnsupportedError(
            f"{name} is not installed",
            where=f"to_{name}",
            expected=f"the package {name}",
            found=str(error),
            hint="entries() gives the same as an Arrow table",
        ) from error


def number_values(values: pa.Array, dtype: DType) -> NDArray[Any]:
    """A column of numbers as an array; pairs (re, im) as complex numbers."""
    if dtype.kind != "c":
        numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return numbers.astype(dtype.numpy, copy=False)
    made = np.empty(len(values), dtype.numpy)
    made.real = values.field("re").to_numpy(zero_copy_only=False)
    made.imag = values.field("im").to_numpy(zero_copy_only=False)
    return made


class Result(Mapping[str, TensorRelation]):
    """The outputs of one execution, by name.

    Its temporary tables go when it is closed, or collected. Use it as a context manager where that
    should happen at a certain point.
    """

    def __init__(
        self, session: Session, tensors: dict[str, TensorRelation], tables: list[TemporaryTable]
    ) -> None:
        self._session = session
        self._tensors = tensors
        self._tables = tables

    def __getitem__(self, name: str) -> TensorRelation:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __enter__(self) -> Result:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the temporary tables; the tensors cannot be read any more."""
        for temporary in self._tables:
            temporary.drop()
        self._session.close()

    def __repr__(self) -> str:
        return f"<Result of {', '.join(self)}>"
