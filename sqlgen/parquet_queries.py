"""Queries on the schemas of several Parquet files, and on values that a type rounds."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp, select

from ucle.sqlgen.input_tables import parquet_table
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import column, function, table_function, text


def schemas_query(pattern: str) -> str:
    """One row for each node of the schema of each file, depth first: names, types and children."""
    wanted = ("file_name", "name", "num_children", "duckdb_type")
    schemas = table_function(function("parquet_schema", text(pattern)), "schemas")
    return sql_text(select(*map(column, wanted)).from_(schemas))


def union_query(pattern: str) -> str:
    """Names and types of the columns when all files are read as one table."""
    query = select(exp.Star()).from_(parquet_table(pattern, nan=False, united=True))
    return sql_text(exp.Describe(this=query))


def rounded_query(file: str, name: str, types: Sequence[str]) -> str:
    """The first value of a column that a round trip through types changes, with its row from 0 on.

    Args:
        file: one file.
        name: of the column.
        types: in which a value is read, one after the other; the last is its own.
    """
    value: exp.Expr = column(name)
    for type_ in types:
        value = exp.TryCast(this=value, to=exp.DataType.build(type_, dialect="duckdb"))
    numbered = exp.EQ(this=exp.to_identifier("file_row_number"), expression=exp.true())
    read = table_function(function("read_parquet", text(file), numbered), "file")
    lost = exp.NullSafeNEQ(this=value, expression=column(name))
    row = column("file_row_number")
    return sql_text(select(row, column(name)).from_(read).where(lost).limit(1))
