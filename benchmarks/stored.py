"""Inputs as tables: COO tables for the relational side, chosen layouts for ucle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import scipy.sparse as sp

import ucle
from ucle.inputs.table_input import TableInput
from ucle.program import EinsumProgram


def store_coo(connection: duckdb.DuckDBPyConnection, inputs: Mapping[str, Any]) -> None:
    """Store each matrix as a table (i, j, v) of its nonzeros, under its name."""
    for name, matrix in inputs.items():
        coo = sp.coo_array(matrix)
        keys = {key: pa.array(c.astype(np.int32)) for key, c in zip("ij", coo.coords, strict=True)}
        source = pa.table({**keys, "v": pa.array(coo.data)})
        connection.register("source", source)
        connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM source').fetchall()
        connection.unregister("source")


def coo_table(
    connection: duckdb.DuckDBPyConnection, name: str, matrix: Any, shuffle: Any = None
) -> TableInput:
    """Store a sparse matrix as a table (i, j, v), by rows or in an order that is drawn."""
    coo = sp.coo_array(sp.csr_array(matrix))
    keys = [pa.array(index.astype(np.int32)) for index in coo.coords]
    data = pa.table([*keys, pa.array(coo.data)], names=["i", "j", "v"])
    _create(connection, name, data, shuffle)
    return ucle.table(name, ["i", "j"], "v", bounds=matrix.shape)


def input_tables(
    connection: duckdb.DuckDBPyConnection, inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """Store sparse inputs as tables of their entries; dense ones stay in memory."""
    return {name: entries_table(connection, name, value) for name, value in inputs.items()}


def entries_table(connection: duckdb.DuckDBPyConnection, name: str, value: Any) -> Any:
    """Store a sparse matrix as a table of its entries; other inputs stay as they are."""
    is_matrix = sp.issparse(value) and value.ndim == 2
    return coo_table(connection, name, value) if is_matrix else value


def rows_table(
    connection: duckdb.DuckDBPyConnection, name: str, matrix: Any, shuffle: Any = None
) -> TableInput:
    """Store a dense matrix as a table (i, v) with a list for each row."""
    count, width = matrix.shape
    offsets = np.arange(count + 1, dtype=np.int64) * width
    rows = pa.LargeListArray.from_arrays(offsets, pa.array(matrix.ravel()))
    ids = pa.array(np.arange(count, dtype=np.int32))
    _create(connection, name, pa.table([ids, rows], names=["i", "v"]), shuffle)
    return ucle.table(name, ["i"], "v", shape=(width,), bounds=(count, width))


def _create(connection: duckdb.DuckDBPyConnection, name: str, data: pa.Table, shuffle: Any) -> None:
    if shuffle is not None:
        data = data.take(pa.array(shuffle.permutation(len(data))))
    connection.register("source", data)
    connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM source').fetchall()
    connection.unregister("source")


def array_table(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    value: Any,
    bounds: Sequence[int],
    promoted: Sequence[int],
) -> TableInput:
    """Store a tensor in a table `name` by some of its axes, the first ones."""
    assert tuple(promoted) == tuple(range(len(promoted)))
    labels = [f"l{axis}" for axis in range(len(bounds))]
    keys = [labels[axis] for axis in promoted]
    access = f"[{','.join(labels)}]"
    copy = ucle.einsum_program(
        f"S{access} = X{access}", X=value, decomposition={"S": keys}, database=connection
    )
    with copy.execute(connection) as result:
        result["S"].to_table(name, keys=keys, replace=True)
    shape = tuple(bound for axis, bound in enumerate(bounds) if axis not in promoted)
    return ucle.table(name, keys, "val", shape=shape or None, bounds=tuple(bounds))


def store_chosen(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    inputs: Mapping[str, Any],
    association: str = "free",
) -> EinsumProgram:
    """Compile a program, store its inputs in its layouts, and compile it on those tables.

    Tables hold Arrow lists, as tensors at rest do. An input whose two uses want different layouts,
    or layouts by other axes than its first ones (impossible in tables of arrays), is a table of its
    entries if it is sparse, and otherwise stays as it was given.
    """
    options: dict[str, Any] = {"database": connection, "association": association}
    program = ucle.einsum_program(text, inputs=inputs, **options)
    decomposed = program.compiled.decomposed
    stored: dict[str, Any] = {}
    for name, value in inputs.items():
        type_ = decomposed.program.types[name]
        layouts = {
            layout
            for vertex in decomposed.program.vertices
            for operand, layout in decomposed.needed(vertex)
            if operand.tensor == name
        }
        layout, *others = layouts
        if others or not layout.plain or layout.promoted != tuple(range(len(layout.promoted))):
            stored[name] = entries_table(connection, f"stored_{name}", value)
            continue
        stored[name] = array_table(
            connection, f"stored_{name}", value, type_.shape, layout.promoted
        )
    tables = [name for name, value in stored.items() if isinstance(value, TableInput)]
    return ucle.einsum_program(text, inputs=stored, store=tables, **options)
