"""Random programs on a cluster of two workers, against NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from ucle import einsum_program
from ucle.inputs.table_input import TableInput
from ucle.testing.generate import Case, random_case
from ucle.testing.oracle import assert_equal

PROGRAMS = 60


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


@pytest.mark.sample(None)
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed: int, spark: Any) -> None:
    case = random_case(seed)
    expected = case.expected()
    program = einsum_program(
        case.text,
        inputs=on_spark(case, spark),
        bounds=case.stated,
        outputs=case.outputs,
        database=spark,
        engine="duckdb" if seed % 6 == 5 else "spark",
    )
    with program.execute() as result:
        assert tuple(result) == program.outputs
        for name in result:
            assert_equal(result[name].to_numpy(), expected[name], f"{name}\n{case}")
