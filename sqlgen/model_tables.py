"""Statements for the tables of stored models, one for each weight."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, select

from ucle.foundation.dtypes import DType
from ucle.sqlgen.database_queries import SCHEMA
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import (
    ascending,
    column,
    data_type,
    function,
    identifier,
    table,
    table_function,
    text,
)

UNCOMPRESSED = "USING COMPRESSION uncompressed"
"""DuckDB compresses random numbers by an eighth, and takes six times as long to read them."""


def create_weight_table(
    name: Sequence[str], keys: Sequence[str], value: str, dtype: DType, *, arrays: bool
) -> str:
    """Return CREATE TABLE for a weight: integer keys, and a number or an array of them."""
    kinds: list[tuple[str, DType | str, int]] = [(key, "INTEGER", 0) for key in keys]
    kinds.append((value, dtype, int(arrays)))
    return sql_text(_create(name, [_column(*kind) for kind in kinds]))


def create_names_table(name: Sequence[str], columns: Sequence[str]) -> str:
    """Return CREATE TABLE for names with their positions."""
    kinds = zip(columns, ("VARCHAR", "BIGINT"), strict=True)
    return sql_text(_create(name, [_column(column, kind, 0) for column, kind in kinds]))


def _create(name: Sequence[str], columns: list[exp.ColumnDef]) -> exp.Create:
    return exp.Create(this=exp.Schema(this=table(*name), expressions=columns), kind="TABLE")


def _column(name: str, type_: DType | str, nesting: int) -> exp.ColumnDef:
    uncompressed = [exp.ColumnConstraint(kind=exp.var(UNCOMPRESSED))] if nesting else []
    return exp.ColumnDef(
        this=identifier(name), kind=data_type(type_, nesting), constraints=uncompressed
    )


def columns_of_tables(names: Sequence[str]) -> str:
    """Return a query for the columns of tables of ucle: the table, the column and its type."""
    columns = table_function(function("duckdb_columns"), "columns")
    here = exp.EQ(this=column("schema_name"), expression=text(SCHEMA))
    current = exp.EQ(this=column("database_name"), expression=function("current_database"))
    named = exp.In(this=column("table_name"), expressions=[text(name) for name in names])
    query = select(column("table_name"), column("column_name"), column("data_type"))
    query = query.from_(columns).where(here, current, named)
    return sql_text(query.order_by(ascending(column("table_name"), column("column_index"))))
