"""The ways in which a person may hand over a tensor, each for a dense array and its fill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse
from numpy.typing import NDArray

import ucle

Array = NDArray[Any]


def hand_over(
    rng: np.random.Generator, name: str, array: Array, fill: Any, folder: Path
) -> tuple[Any, dict[str, pa.Table]]:
    """An input that holds an array, and the tables that it reads from the database."""
    way = WAYS[int(rng.integers(len(WAYS)))] if array.ndim else dense
    return way(rng, name, array, fill, folder)


def dense(rng: Any, name: str, array: Array, fill: Any, folder: Path) -> Any:
    strided = array.copy(order="F") if rng.random() < 0.5 else array
    return (ucle.table(strided, fill=fill) if fill else strided), {}


def nested_lists(rng: Any, name: str, array: Array, fill: Any, folder: Path) -> Any:
    if array.size == 0 or fill or array.dtype == np.float32:
        return dense(rng, name, array, fill, folder)
    return array.tolist(), {}


def sparse_matrix(rng: Any, name: str, array: Array, fill: Any, folder: Path) -> Any:
    if array.ndim != 2 or fill:
        return dense(rng, name, array, fill, folder)
    matrix = scipy.sparse.coo_array(array)
    form = ("coo", "csr", "csc")[int(rng.integers(3))]
    return matrix.asformat(form), {}


def _entries(rng: Any, array: Array, fill: Any) -> pa.Table:
    """One row for each entry that differs from the fill, in no order; keys are of many widths."""
    places = np.nonzero(~((array == fill) | (np.isnan(array) & np.isnan(fill))))
    order = rng.permutation(len(places[0]))
    kinds = (np.int8, np.int32, np.int64, np.uint16)
    keys = [pa.array(p[order].astype(kinds[int(rng.integers(4))])) for p in places]
    values = array[places][order]
    if values.dtype.kind == "c":
        two = [pa.array(np.ascontiguousarray(x)) for x in (values.real, values.imag)]
        column: Any = pa.StructArray.from_arrays(two, ["re", "im"])
    else:
        column = pa.array(values)
    names = [f"key {axis}" for axis in range(array.ndim)]
    return pa.table([*keys, column], [*names, "Value"])


def _place(what: str, name: str) -> str:
    """The name of a table; DuckDB does not tell `a` from `A`."""
    return f"{what} of {name}, {'small' if name.islower() else 'large'}"


def _spec(relation: Any, array: Array, fill: Any, **more: Any) -> Any:
    names = [f"key {axis}" for axis in range(array.ndim)]
    return ucle.table(relation, names, "Value", bounds=array.shape, fill=fill, **more)


def arrow_entries(rng: Any, name: str, array: Array, fill: Any, folder: Path) -> Any:
    table = _entries(rng, array, fill)
    if len(table) and rng.random() < 0.5:  # in chunks, one of them empty
        table = pa.concat_tables([table.slice(0, 1), table.slice(0, 0), table.slice(1)])
    return _spec(table, array, fill), {}


def pandas_entries(rng: Any, name: str, array: Array, fill: Any, folder: Path) -> Any:
    if array.dtype.kind == "c" or np.isnan(array).any():  # to pandas NaN is what is missing
        return arrow_entries(rng, name, array, fill, folder)
    frame = _entries(rng, array, fill).to_pandas()
    frame.index = pd.Index(range(7, 7 + len(frame)))
    return _spec(frame, array, fill), {}


def polars_entries(rng: Any, name: str, array: Array, fill: Any, folder: Path) -> Any:
    return _spec(pl.from_arrow(_entries(rng, array, fill)), array, fill), {}


def parquet_entries(rng: Any, name: str, array: Array, fill: Any, folder: Path) -> Any:
    path = folder / f"{name}-{rng.integers(2**40)}.parquet"
    pq.write_table(_entries(rng, array, fill), path)
    return _spec(str(path), array, fill), {}


def table_entries(rng: Any, name: str, array: Array, fill: Any, folder: Path) -> Any:
    place = _place("entries", name)
    return _spec(f'"{place}"', array, fill), {place: _entries(rng, array, fill)}


def split_entries(rng: Any, name: str, array: Array, fill: Any, folder: Path) -> Any:
    """Entries in two rows that add up to them."""
    if fill or array.dtype.kind != "i":
        return table_entries(rng, name, array, fill, folder)
    part = rng.integers(-3, 4, array.shape)
    both = [_entries(rng, part, 0), _entries(rng, array - part, 0)]
    place = _place("parts", name)
    keys = [pa.field(f"key {axis}", pa.int64()) for axis in range(array.ndim)]
    schema = pa.schema([*keys, pa.field("Value", pa.int64())])
    table = pa.concat_tables([x.cast(schema) for x in both])
    return _spec(f'"{place}"', array, fill, duplicates="sum"), {place: table}


def only_keys(rng: Any, name: str, array: Array, fill: Any, folder: Path) -> Any:
    """A row for each 1, and no column of values."""
    if fill or not np.isin(array, (0, 1)).all() or array.dtype.kind == "c":
        return table_entries(rng, name, array, fill, folder)
    table = _entries(rng, array, fill).drop_columns(["Value"])
    place = _place("places", name)
    names = list(table.column_names)
    spec = ucle.table(f'"{place}"', names, bounds=array.shape, dtype=array.dtype)
    return spec, {place: table}


def arrays_in_rows(rng: Any, name: str, array: Array, fill: Any, folder: Path) -> Any:
    """Keys for the leading axes, and flat lists over the others; rows of fill may be missing."""
    if array.dtype.kind == "c" or 0 in array.shape:
        return table_entries(rng, name, array, fill, folder)
    keys = int(rng.integers(0, array.ndim))
    lead, inside = array.shape[:keys], array.shape[keys:]
    blocks = array.reshape(*lead, -1) if keys else array.reshape(1, -1)
    rows = blocks.reshape(-1, blocks.shape[-1])
    places = np.indices(lead).reshape(keys, -1) if keys else np.zeros((0, 1), np.int64)
    kept = (rows != fill).any(axis=1) | (rng.random(len(rows)) < 0.3)
    if not kept.any():
        return table_entries(rng, name, array, fill, folder)
    columns = [pa.array(p[kept].astype(np.int32)) for p in places]
    flat = pa.array(rows[kept].reshape(-1))
    offsets = np.arange(kept.sum() + 1, dtype=np.int32) * rows.shape[1]
    columns.append(pa.ListArray.from_arrays(offsets, flat))
    names = [f"key {axis}" for axis in range(keys)]
    place = _place("rows", name)
    table = pa.table(columns, [*names, "Value"])
    bounds = (*lead, *inside)
    spec = ucle.table(f'"{place}"', names, "Value", shape=inside, bounds=bounds, fill=fill)
    return spec, {place: table}


WAYS: tuple[Callable[..., Any], ...] = (
    dense,
    nested_lists,
    sparse_matrix,
    arrow_entries,
    pandas_entries,
    polars_entries,
    parquet_entries,
    table_entries,
    split_entries,
    only_keys,
    arrays_in_rows,
)


def create(connection: duckdb.DuckDBPyConnection, tables: dict[str, pa.Table]) -> None:
    """Create the tables that inputs read."""
    for name, data in tables.items():
        connection.register("rows_of_input", data)
        connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM rows_of_input')
        connection.unregister("rows_of_input")


def drop(connection: duckdb.DuckDBPyConnection, tables: dict[str, pa.Table]) -> None:
    """Drop them again."""
    for name in tables:
        connection.execute(f'DROP TABLE "{name}"')
