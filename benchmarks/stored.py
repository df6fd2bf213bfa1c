"""Inputs as tables: COO tables for the relational side, chosen layouts for ucle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import scipy.sparse as sp

import ucle
from ucle.program import EinsumProgram


def store_coo(connection: duckdb.DuckDBPyConnection, inputs: Mapping[str, Any]) -> None:
    """Each matrix as a table (i, j, v) of its nonzeros, under its name."""
    for name, matrix in inputs.items():
        coo = sp.coo_array(matrix)
        keys = {key: pa.array(c.astype(np.int32)) for key, c in zip("ij", coo.coords, strict=True)}
        source = pa.table({**keys, "v": pa.array(coo.data)})
        connection.register("source", source)
        connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM source').fetchall()
        connection.unregister("source")


def store_chosen(
    connection: duckdb.DuckDBPyConnection, text: str, inputs: Mapping[str, Any]
) -> EinsumProgram:
    """Compile a program, store its inputs as it wants them, and compile it on those tables.

    Tables hold Arrow lists, as tensors at rest do. An input that two uses want differently stays
    as it was given.
    """
    program = ucle.einsum_program(text, database=connection, **inputs)
    decomposed = program.compiled.decomposed
    stored: dict[str, Any] = {}
    for name, value in inputs.items():
        type_ = decomposed.program.types[name]
        layouts = {
            decomposed.needed_layout(vertex, operand)
            for vertex in decomposed.program.vertices
            for operand in vertex.inputs
            if operand.tensor == name
        }
        if len(layouts) > 1:
            stored[name] = value
            continue
        (layout,) = layouts
        labels = [axis.name for axis in type_.axes]
        promoted = [labels[axis] for axis in layout.promoted]
        access = f"[{','.join(labels)}]"
        copy = ucle.einsum_program(
            f"S{access} = X{access}",
            X=value,
            decomposition={"S": promoted},
            database=connection,
        )
        with copy.execute(connection) as result:
            result["S"].to_table(f"stored_{name}", replace=True)
        stored[name] = ucle.table(
            f"stored_{name}",
            promoted,
            "val",
            shape=type_.dense_shape(layout) or None,
            bounds=type_.shape,
        )
    return ucle.einsum_program(text, database=connection, **stored)
