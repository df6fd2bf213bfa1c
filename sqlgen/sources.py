"""Input tables in SQL: where they stand in a FROM clause, and their values."""

from __future__ import annotations

from sqlglot import exp, select

from ucle.dtypes import DType
from ucle.sources import CsvFile, DataFile, Dictionary, InMemory, TableName, TableSource
from ucle.sqlgen.operators import reduce_sql
from ucle.sqlgen.tree import cast, column, function, number, pair_of, table, table_function


def source_table(source: TableSource, prefix: str = "", alias: str | None = None) -> exp.Expr:
    """The relation of a source in a FROM clause."""
    match source.origin:
        case TableName(parts):
            return table(*parts, alias=alias)
        case DataFile(path):
            reader = "csv" if isinstance(source.origin, CsvFile) else "parquet"
            call = function(f"read_{reader}", exp.Literal.string(path))
            return table_function(call, alias or reader)
        case InMemory(_, name):
            return table(prefix + name, alias=alias)


def scalar_value(source: TableSource, alias: str | None = None) -> exp.Expr:
    """The value of a row of a COO table in its element type; 1 where there is no value column."""
    if source.value is None:
        return number(1, source.dtype)
    return in_type(column(source.value, alias), source)


def in_type(value: exp.Expr, source: TableSource) -> exp.Expr:
    """A value of a column in the element type of the tensor."""
    if source.pairs or source.dtype.kind != "c":
        return cast(value, source.dtype.sql)
    return pair_of(cast(value, source.dtype.real.sql), number(0, source.dtype.real))


def summed_duplicates(source: TableSource, value: exp.Expr) -> exp.Expr:
    """The sum of the entries that share coordinates; of yes and no, whether one is yes."""
    operation = "any" if source.dtype is DType.BOOL else "sum"
    return reduce_sql(operation, value, source.dtype)


def list_value(value: exp.Expr, source: TableSource) -> exp.Expr:
    """An array column as a flat list of the element type."""
    value = cast(value, source.dtype.sql + "[]" * source.nesting)
    for _ in range(source.nesting - 1):
        value = function("flatten", value)
    return value


def dictionary_values(dictionary: Dictionary, prefix: str = "") -> exp.Query:
    """The different values of a dictionary, without numbers and in no order."""
    parts = [
        select(exp.alias_(column(name), "value", quoted=True)).from_(source_table(source, prefix))
        for source, name in dictionary.columns
    ]
    if len(parts) == 1:
        return parts[0].distinct()
    return exp.union(*parts, distinct=True)


def dictionary_query(dictionary: Dictionary, prefix: str = "") -> exp.Select:
    """The table of a dictionary: its values, and the numbers that stand for them."""
    order = exp.Order(expressions=[column("value")])
    number_ = exp.Window(this=exp.RowNumber(), order=order)
    position = exp.Sub(this=number_, expression=exp.Literal.number(1))
    values = dictionary_values(dictionary, prefix).subquery("values")
    id_ = exp.alias_(cast(position, "BIGINT"), "id", quoted=True)
    return select(id_, column("value")).from_(values)
