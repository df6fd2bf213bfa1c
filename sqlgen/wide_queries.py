"""The SQL of GetStats and of the checks on wide tables: their columns are read one by one.

That takes a fraction of the time of building an array for each row and looking into it.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp, select

from ucle.foundation.dtypes import DType, Scalar
from ucle.plan.sources import Nulls, TableSource
from ucle.sqlgen.dialects import DUCKDB_SQL
from ucle.sqlgen.input_conditions import is_lost_by_narrowing
from ucle.sqlgen.input_queries import Distinct, key_facts
from ucle.sqlgen.input_tables import every_wide_value, is_null, whole_table
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import cast, column, function, number


def entries_query(source: TableSource, fill: Scalar, distinct: Distinct, prefix: str = "") -> str:
    """Count the entries of each column, and look for its ends; one row.

    The row has the number of rows, then for each key the four values of `arrays_query`. For all
    value columns follow their entries (T), then, unless they are booleans, their least numbers,
    then the largest ones; then the NULLs, unless they are missing values. DuckDB has an order of
    its own in each of these groups, in which columns are not repeated.
    """
    columns: list[exp.Expr] = [exp.Count(this=exp.Star())]
    columns += key_facts(source, distinct)
    is_missing, value = every_wide_value(source)
    columns.append(exp.CountIf(this=exp.NEQ(this=value, expression=number(fill, source.dtype))))
    columns += _ends(value.copy(), source.dtype)
    if source.nulls is Nulls.REFUSED:
        columns.append(exp.CountIf(this=is_missing))
    return sql_text(select(*columns).from_(whole_table(source, prefix)))


def keys_query(source: TableSource, distinct: Distinct, prefix: str = "") -> str:
    """The beginning of the row of `entries_query`: the number of rows and what keys are."""
    facts = key_facts(source, distinct)
    return sql_text(select(exp.Count(this=exp.Star()), *facts).from_(whole_table(source, prefix)))


def _ends(value: exp.Expr, dtype: DType) -> list[exp.Expr]:
    if dtype.kind == "b":
        return []
    if dtype.kind == "f":
        # As in `scalar_value`: DuckDB has no statistics of a sum, and so looks for NaN itself.
        value = exp.Add(this=value, expression=number(0, dtype))
    return [exp.Min(this=value.copy()), exp.Max(this=value.copy())]


def nulls_query(source: TableSource, prefix: str = "") -> str:
    """One row: for each value column its number of NULLs."""
    counts = [exp.CountIf(this=is_null(name)) for name in source.wide]
    return sql_text(select(*counts).from_(whole_table(source, prefix)))


def unfit_query(source: TableSource, prefix: str = "") -> str:
    """One row: for each column that may have numbers of another type, whether it has any."""
    found = [
        exp.func("coalesce", function("bool_or", is_lost(source, *unfit)), exp.false())
        for unfit in source.unfit
    ]
    return sql_text(select(*found).from_(whole_table(source, prefix)))


def is_lost(source: TableSource, name: str, type_: str, exact: bool) -> exp.Expr:
    """Condition: a number of a column is none of the element type, or is rounded if `exact`."""
    entries = replace(source.entries_of(name), narrowed=type_)
    lost = is_lost_by_narrowing(entries)
    if not exact:
        return lost
    # An integer that is not rounded is the same after the way there and back.
    back = exp.TryCast(
        this=cast(column(name), source.dtype),
        to=exp.DataType.build("HUGEINT", dialect=DUCKDB_SQL.sqlglot),
    )
    rounded = exp.NullSafeNEQ(this=back, expression=column(name))
    return exp.or_(lost, exp.and_(exp.not_(is_null(name)), rounded))


def row_query(source: TableSource, name: str, condition: exp.Expr, prefix: str = "") -> str:
    """The keys, as text, and one value of a row that meets a condition."""
    keys = [cast(column(key), "VARCHAR") for key in source.keys]
    rows = select(*keys, column(name)).from_(whole_table(source, prefix))
    return sql_text(rows.where(condition).limit(1))
