"""The rows of an output for users: a column for each axis, and one for the value."""

from __future__ import annotations

from ucle.database.session import Session
from ucle.database.temporary_tables import TemporaryTable
from ucle.foundation.libraries import pa
from ucle.ir.layouts import Label, Layout
from ucle.ir.tensor_types import TensorType
from ucle.run.results import TensorRelation
from ucle.spark.kinds import KEY_KINDS, KINDS, arrow_type
from ucle.sqlgen.sql_trees import VALUE, key_columns


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
