"""Spark's names of types, and the same types in Arrow."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ucle.errors import ExecutionError
from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Coordinates
from ucle.sqlgen.dialects import SPARK_SQL

_NUMBERS = {dtype: name.lower() for dtype, name in SPARK_SQL.types.items()}

KINDS: Mapping[DType, str] = {
    dtype: _NUMBERS.get(dtype) or "struct<re:{0},im:{0}>".format(_NUMBERS[dtype.real])
    for dtype in DType
}

KEY_KINDS: Mapping[Coordinates, str] = {Coordinates.INT32: "int", Coordinates.INT64: "bigint"}

_ARROW: Mapping[str, pa.DataType] = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "string": pa.string(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "date": pa.date32(),
}


def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type for a type of Spark.

    Raises:
        ExecutionError: ucle does not read columns of it.

    >>> arrow_type("array<double>")
    ListType(list<element: double>)
    """
    if kind in _ARROW:
        return _ARROW[kind]
    if kind.startswith("array<"):
        return pa.list_(pa.field("element", arrow_type(kind[6:-1])))
    if kind.startswith("struct<"):
        parts = [part.split(":") for part in kind[7:-1].split(",")]
        return pa.struct([(name, arrow_type(inner)) for name, inner in parts])
    if kind.startswith("decimal("):
        precision, scale = map(int, kind[8:-1].split(","))
        return pa.decimal128(precision, scale)
    raise ExecutionError(
        "ucle does not read columns of this type",
        where="spark",
        expected=", ".join(_ARROW) + ", or arrays of these",
        found=kind,
        hint="cast it in a view",
    )
