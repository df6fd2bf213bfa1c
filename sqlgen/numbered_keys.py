"""Positions for keys of results that are coordinates: their dictionary, and the numbered tuples."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp, select

from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.plan.steps import Role
from ucle.sqlgen.plan_to_sql import SqlStep
from ucle.sqlgen.script import create_statement, sql_text
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    ascending,
    cast,
    column,
    join,
    key_columns,
    key_type,
    select_from,
    table,
)

ALIAS = "T"


def create_dictionary(name: str, stored: str, key: str) -> str:
    """Return the text that makes the dictionary of a key column, unless it is there.

    Args:
        name: the name of the dictionary.
        stored: the table that has each coordinate once.
        key: its key column.
    """
    number = exp.Window(this=exp.RowNumber(), order=ascending(column("value")))
    position = cast(exp.Sub(this=number, expression=exp.Literal.number(1)), "BIGINT")
    values = select(exp.alias_(column(key), "value", quoted=True)).from_(table(stored))
    query = select(exp.alias_(position, "id", quoted=True), column("value"))
    return _create(name, query.from_(values.subquery("values")))


def create_numbered(
    name: str, stored: str, type_: TensorType, layout: Layout, dictionaries: Mapping[int, str]
) -> str:
    """Return the text that makes the tuples of a table with positions as keys, unless it is there.

    Args:
        name: the name of the new table.
        stored: the table whose keys are coordinates.
        type_: of the tensor.
        layout: of both relations.
        dictionaries: the tables that number the coordinates, by axis.
    """
    names, query, keys = key_columns(type_), select_from(table(stored, alias=ALIAS)), []
    for axis in layout.promoted:
        key: exp.Expr = column(names[axis], ALIAS)
        if axis in dictionaries:
            ids = f"{names[axis]}_ids"
            match = exp.EQ(this=column("value", ids), expression=key)
            query = join(query, table(dictionaries[axis], alias=ids), on=match)
            key = cast(column("id", ids), key_type(type_, axis))
        keys.append(add_alias(key, names[axis]))
    return _create(name, query.select(*keys, column(VALUE, ALIAS), copy=False))


def _create(name: str, query: exp.Select) -> str:
    created = create_statement(SqlStep(name, Role.TABLE, query, ""))
    created.set("exists", True)
    return sql_text(created)
