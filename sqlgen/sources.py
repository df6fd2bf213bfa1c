"""Input tables in SQL: where they stand in a FROM clause, and their values as DOUBLEs."""

from __future__ import annotations

from sqlglot import exp

from ucle.sources import InMemory, ParquetFile, TableName, TableSource
from ucle.sqlgen.tree import column, function, number, table, table_function


def source_table(source: TableSource, prefix: str = "", alias: str | None = None) -> exp.Expr:
    """The relation of a source in a FROM clause."""
    match source.origin:
        case TableName(parts):
            return table(*parts, alias=alias)
        case ParquetFile(path):
            call = function("read_parquet", exp.Literal.string(path))
            return table_function(call, alias or "parquet")
        case InMemory(_, name):
            return table(prefix + name, alias=alias)


def scalar_value(source: TableSource) -> exp.Expr:
    """The value of a row of a COO table as a DOUBLE; 1 where the table has no value column."""
    return number(1.0) if source.value is None else exp.cast(column(source.value), "DOUBLE")


def list_value(value: exp.Expr, nesting: int) -> exp.Expr:
    """An array column as a flat DOUBLE[]."""
    suffix = "[]" * nesting
    value = exp.cast(value, f"DOUBLE{suffix}")
    for _ in range(nesting - 1):
        value = function("flatten", value)
    return value
