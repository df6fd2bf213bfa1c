"""The two routes to the kernels, behind one call, and values on their way to SQL and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from kernel_table import KERNELS, has_growing_state

from ucle.udf_kernels import (
    ELEMENT_TYPES,
    ROW_FIELDS,
    Csr,
    ElementType,
    capacity_suffix,
    load_extension,
    register_arrow,
)


def _arrow_type(element: ElementType) -> pa.DataType:
    if element.dtype.kind != "c":
        return pa.from_numpy_dtype(element.dtype)
    part = pa.from_numpy_dtype(element.dtype.type(0).real.dtype)
    return pa.struct({"re": part, "im": part})


ARROW_TYPES = {"BLOB": pa.binary(), "VARCHAR": pa.string()}
for _element in ELEMENT_TYPES.values():
    ARROW_TYPES[_element.sql] = _arrow_type(_element)
    ARROW_TYPES[_element.sql_list] = pa.list_(_arrow_type(_element))

EXTENSION_CONFIG = {"allow_unsigned_extensions": "true", "threads": "2"}


class Route:
    """Evaluates kernels on rows of Python values, through SQL."""

    def __init__(self, name: str) -> None:
        self.name = name
        if name == "extension":
            self.connection = duckdb.connect(config=EXTENSION_CONFIG)
            load_extension(self.connection)
        else:
            self.connection = duckdb.connect(config={"threads": "2"})
            register_arrow(self.connection)

    @contextmanager
    def limited(self, size: int) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to a database of its own whose kernels may have so many bytes."""
        with duckdb.connect(config=EXTENSION_CONFIG) as connection:
            if self.name == "extension":
                load_extension(connection)
                told = connection.execute(f"SELECT kernel_memory_limit('{size} bytes')")
                assert told.fetchall() == [(size,)]
            else:
                register_arrow(connection, memory_limit=size)
            yield connection

    def scalar(self, name: str, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """The kernel on every row, in order."""
        self._table(name, rows)
        arguments = self._arguments(name)
        return [
            result
            for (result,) in self.connection.execute(
                f"SELECT {name}({', '.join(arguments)}) FROM arguments ORDER BY i"
            ).fetchall()
        ]

    def call(self, name: str, length: int | None, arguments: Sequence[str]) -> str:
        """The SQL call of an aggregate whose state has `length` elements (None: any)."""
        if self.name == "extension" and has_growing_state(name):
            return f"{name}({', '.join(arguments)})"
        if self.name == "extension":
            suffix = "wide" if length is None else capacity_suffix(length, KERNELS[name].tag)
            return f"{name}_{suffix}({', '.join(arguments)})"
        marks = KERNELS[name].gathered
        rows = [argument for argument, mark in zip(arguments, marks, strict=True) if mark]
        row = rows[0]
        if len(rows) > 1:
            fields = zip(ROW_FIELDS, rows, strict=False)
            row = "{" + ", ".join(f"'{field}': {value}" for field, value in fields) + "}"
        constants = [f"first({argument})" for argument in arguments]
        start = marks.index(True)
        lists = [
            *constants[:start],
            f"list({row} ORDER BY i)",
            *constants[start + len(rows) :],
        ]
        return f"{name}({', '.join(lists)})"

    def aggregate(self, name: str, rows: Sequence[Sequence[Any]], length: int | None) -> Any:
        """The aggregate over all rows."""
        self._table(name, rows)
        call = self.call(name, length, self._arguments(name))
        ((result,),) = self.connection.execute(f"SELECT {call} FROM arguments").fetchall()
        return result

    def _arguments(self, name: str) -> list[str]:
        return [f"a{j}" for j in range(len(KERNELS[name].parameters))]

    def _table(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        columns = {"i": pa.array(range(len(rows)), pa.int32())}
        for j, kind in enumerate(KERNELS[name].parameters):
            columns[f"a{j}"] = pa.array([to_sql(row[j]) for row in rows], ARROW_TYPES[kind])
        self.connection.register("given", pa.table(columns))
        self.connection.execute("CREATE OR REPLACE TEMP TABLE arguments AS FROM given")
        self.connection.unregister("given")


def to_sql(value: Any) -> Any:
    """Tensors go as BLOBs, complex numbers as structs, the rest as it is."""
    if isinstance(value, np.ndarray | Csr):
        return value.tobytes() if isinstance(value, np.ndarray) else value.to_bytes()
    if isinstance(value, list):
        return [to_sql(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return {"re": value.real, "im": value.imag} if isinstance(value, complex) else value


def from_sql(value: Any, tag: str) -> Any:
    """A BLOB as a tensor of a type, and what was a struct as a complex number."""
    if isinstance(value, bytes):
        return np.frombuffer(value, ELEMENT_TYPES[tag].dtype)
    if isinstance(value, list):
        return [from_sql(item, tag) for item in value]
    return complex(value["re"], value["im"]) if isinstance(value, dict) else value
