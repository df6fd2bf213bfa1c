"""Data of tests as DataFrames."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from ucle.inputs.table_input import TableInput
from ucle.testing.generate import Case


def entries(spark: Any, matrix: Any, *names: str) -> Any:
    """A sparse matrix, or an array, as a DataFrame of its entries."""
    coo = sp.coo_array(matrix)
    columns = [*(place.astype("i4") for place in coo.coords), coo.data]
    return spark.createDataFrame(pa.table(columns, names=[*names, "val"])).repartition(2)


def arrays(spark: Any, matrix: Any, name: str) -> Any:
    """The rows of a matrix as arrays."""
    rows = pa.table({name: np.arange(len(matrix), dtype="i4"), "val": pa.array(list(matrix))})
    return spark.createDataFrame(rows).repartition(2)


def on_spark(case: Case, spark: Any) -> dict[str, Any]:
    """The inputs of a case, tables and Arrow tables of which are on Spark."""
    given = {}
    for name, value in case.inputs.items():
        spec = value if isinstance(value, TableInput) else None
        relation = spec.relation if spec else value
        if isinstance(relation, str):
            relation = case.tables[relation]
        if not isinstance(relation, pa.Table):
            given[name] = value
            continue
        frame = _frame(spark, _of_spark(relation)).repartition(3)
        given[name] = replace(spec, relation=frame) if spec else frame
    return given


def _frame(spark: Any, rows: pa.Table) -> Any:
    """A DataFrame; the client of Spark 4.0 makes none of no rows without a schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(rows if len(rows) else [], from_arrow_schema(rows.schema))


def _of_spark(table: pa.Table) -> pa.Table:
    """Cast a table's columns to types that Spark has."""
    columns = []
    for name in table.column_names:
        column = table[name]
        kind = column.type
        if pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
            column = pa.chunked_array([column.combine_chunks().cast(pa.list_(kind.value_type))])
        columns.append(column)
    return pa.table(columns, names=table.column_names)
