"""The rows of an output for users: columns of axes and values, and rows for entries of the fill.

Entries that hold the fill get rows where the next reader would take them for 0.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from ucle.database.session import Session
from ucle.database.temporary_tables import TemporaryTable
from ucle.foundation.dtypes import Scalar
from ucle.foundation.libraries import pa
from ucle.ir.layouts import Label, Layout
from ucle.ir.tensor_types import TensorType
from ucle.run.results import TensorRelation
from ucle.spark.kinds import KEY_KINDS, KINDS, arrow_type
from ucle.sqlgen.sql_trees import VALUE, key_columns

_PLACE, _THERE = "ucle_place", "ucle_there"


def with_every_entry(spark: Any, type_: TensorType, rows: Any) -> Any:
    """Return a DataFrame with a row for each position of a tensor, in the columns of `rows`.

    Args:
        spark: the session.
        type_: of the tensor.
        rows: its entries that are not the fill, with positions for coordinates.
    """
    place, keys = _place_and_keys(type_)
    held = rows.selectExpr(f"{place} AS {_THERE}", f"`{VALUE}`")
    places = spark.range(math.prod(type_.shape)).withColumnRenamed("id", _PLACE)
    joined = places.join(held, places[_PLACE] == held[_THERE], "left")
    value = f"coalesce(`{VALUE}`, {fill_text(type_)}) AS `{VALUE}`"
    return joined.selectExpr(*keys, value)


def _place_and_keys(type_: TensorType) -> tuple[str, list[str]]:
    """The row-major position of an entry as a function of its keys, and the inverse."""
    steps = list(itertools.accumulate(type_.shape[:0:-1], lambda x, y: x * y, initial=1))[::-1]
    names, terms, keys = key_columns(type_), ["0L"], []
    for name, axis, step in zip(names, type_.axes, steps, strict=False):
        terms.append(f"CAST(`{name}` AS bigint) * {step}L")
        whole = f"({_PLACE} DIV {step}L) % {axis.bound}L"
        keys.append(f"CAST({whole} AS {KEY_KINDS[axis.coordinates]}) AS `{name}`")
    return " + ".join(terms), keys


def fill_text(type_: TensorType) -> str:
    """The fill of a tensor as Spark's SQL writes it.

    >>> from ucle.foundation.dtypes import DType
    >>> fill_text(TensorType((), DType.FLOAT32, 1.5)), fill_text(TensorType((), DType.BOOL, True))
    ("CAST('1.5' AS float)", "CAST('true' AS boolean)")
    """
    fill, kind = type_.fill, KINDS[type_.dtype]
    if not kind.startswith("struct"):
        return f"CAST('{_number(type_.dtype.numpy.type(fill).item())}' AS {kind})"
    parts = [f"'{_number(x)}'" for x in (complex(fill).real, complex(fill).imag)]
    return f"CAST(named_struct('re', {parts[0]}, 'im', {parts[1]}) AS {kind})"


def _number(value: Scalar) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return str(value).lower()


def shown_schema(type_: TensorType) -> str:
    """Return names and types of the columns, in Spark's notation."""
    parts = [f"`{name}` {kind}" for name, kind in _columns(type_)]
    return ", ".join(parts)


def _columns(type_: TensorType) -> list[tuple[str, str]]:
    keys = [
        (name, KEY_KINDS[axis.coordinates])
        for name, axis in zip(key_columns(type_), type_.axes, strict=True)
    ]
    return [*keys, (VALUE, KINDS[type_.dtype])]


def show_rows(
    session: Session, table: str, *, name: str, type_: TensorType, layout: Layout
) -> pa.Table:
    """Return the entries that differ from the fill, of the tuples in a table.

    Coordinates are positions, including those of ids.
    """
    axes = tuple(Label(axis.name, axis.bound, axis.coordinates) for axis in type_.axes)
    positions = TensorType(axes, type_.dtype, type_.fill)
    temporary = TemporaryTable(session, table, f'DROP TABLE IF EXISTS "{table}"')
    tensor = TensorRelation(name, positions, layout, temporary, session, {})
    rows = tensor.to_arrow(keys=[axis.name for axis in axes], rows="nonfill")
    columns = [(key, arrow_type(kind)) for key, kind in _columns(type_)]
    arrays = [rows.column(n).cast(kind) for n, (_, kind) in enumerate(columns)]
    temporary.drop()
    return pa.table(arrays, names=[key for key, _ in columns])
