"""Inputs on Spark: DataFrames, and empty tables that represent them during compilation.

The compiler reads names and types of columns in a DuckDB. There, a table without rows has those of
a DataFrame. Two properties need rows: the lengths of arrays, for which the table has one row, and
the ids in columns that are not numbers, which are all fetched.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ucle.database.engine import DUCKDB
from ucle.database.session import Session
from ucle.errors import InputError, UnsupportedError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.foundation.libraries import pa
from ucle.inputs.objects import is_on_spark
from ucle.inputs.relations import input_dtype
from ucle.inputs.table_input import TableInput
from ucle.partitions.placed_files import PlacedFiles
from ucle.plan.sources import Nulls
from ucle.spark.actions import action
from ucle.spark.kinds import arrow_type
from ucle.spark.lake_tables import files_of_path, files_of_table
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import identifier

MOST_IDS = 50_000_000
"""The most distinct ids of a column that the driver accepts."""


@dataclass(frozen=True)
class SparkInput:
    """An input on Spark: its DataFrame, the way it is read, and the table that represents it.

    `files` are those of a table in folders that are named by keys.
    """

    frame: Any
    spec: TableInput
    table: str
    files: PlacedFiles | None = None

    @property
    def standing(self) -> TableInput:
        """The input as the compiler receives it."""
        return replace(self.spec, relation=self.table)


def spark_inputs(spark: Any, inputs: Mapping[str, Any]) -> dict[str, SparkInput]:
    """Return those of a program's inputs that are on Spark.

    Raises:
        InputError: there is no such table or file.
    """
    found = {}
    for name, value in inputs.items():
        spec = value if isinstance(value, TableInput) else TableInput(value)
        _refuse_wide(name, spec)
        frame = _frame(spark, name, spec.relation)
        if frame is not None:
            found[name] = SparkInput(frame, spec, f"spark {name}", _files(frame, spec.relation))
    return found


def _files(frame: Any, value: Any) -> PlacedFiles | None:
    """The files of a named table in folders; a DataFrame may have other rows than its files."""
    if is_on_spark(value):
        return None
    text = os.fspath(value)
    return files_of_path(frame, text) if _is_path(text) else files_of_table(frame, text)


def _is_path(text: str) -> bool:
    return "/" in text or text.endswith(".parquet")


def _refuse_wide(name: str, spec: TableInput) -> None:
    if spec.ragged is not None:
        raise UnsupportedError(
            "lists of different lengths are read by DuckDB alone",
            where=f"input {name}",
            expected="a table with one value in a row, or arrays",
            found=f"ragged={spec.ragged!r}",
            hint="posexplode() of the DataFrame makes rows of positions and values",
        )
    if spec.ends is not None:
        raise UnsupportedError(
            "runs of one value are read by DuckDB alone",
            where=f"input {name}",
            expected="a table with one entry in a row, or arrays",
            found=f"ends={spec.ends!r}",
            hint="explode(sequence(start, stop - 1)) makes a row for each position",
        )
    if spec.columns_as is not None or spec.nulls is not Nulls.REFUSED:
        raise UnsupportedError(
            "wide tables and missing values are read by DuckDB alone",
            where=f"input {name}",
            expected="a table with one value in a row, or arrays, and no NULL",
            found="columns_as=" if spec.columns_as is not None else "nulls='missing'",
            hint="turn the columns into rows with unpivot() of the DataFrame",
        )


def _frame(spark: Any, name: str, value: Any) -> Any:
    if is_on_spark(value):
        return value
    if not isinstance(value, str | os.PathLike):
        return None
    text = os.fspath(value)
    path = _is_path(text)
    try:
        frame = spark.read.parquet(text) if path else spark.table(text)
        frame.schema  # noqa: B018  # with Spark Connect, this asks the server
    except Exception as error:
        raise InputError(
            "Spark has no such table" if not path else "Spark cannot read this file",
            where=f"input {name}",
            expected="a table or view of the session, the path of Parquet files, or a DataFrame",
            found=text,
            hint=str(error).splitlines()[0][:300],
        ) from error
    return frame


def stand_in(
    session: Session,
    each: SparkInput,
    ids: Mapping[str, pa.Array] | None = None,
) -> None:
    """Create the table that represents an input, with the ids of its columns, if any."""
    fields = [(f.name, f.dataType.simpleString()) for f in each.frame.schema.fields]
    known = dict(ids or {})
    rows = max((len(values) for values in known.values()), default=0)
    sample = None
    if any(kind.startswith("array<") for _, kind in fields):
        with action(each.frame.sparkSession, f"read a row of {each.table}"):
            sample = each.frame.limit(1).toArrow()
        rows = max(rows, len(sample))
    columns = []
    for name, kind in fields:
        type_ = arrow_type(kind)
        if name in known and len(known[name]):
            own = known[name]
            last = own.slice(len(own) - 1)
            columns.append(pa.concat_arrays([own, *[last] * (rows - len(own))]).cast(type_))
        elif sample is not None and len(sample):
            values = sample[name].combine_chunks().cast(type_)
            columns.append(pa.concat_arrays([values] * rows))
        else:
            columns.append(pa.nulls(rows, type_))
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in fields])
    table = pa.Table.from_arrays(columns, schema=schema)
    session.register("ucle stand-in", table)
    try:
        quoted = sql_text(identifier(each.table))
        text = f'CREATE OR REPLACE TABLE {quoted} AS SELECT * FROM "ucle stand-in"'
        session.run(text, each.table)
    finally:
        session.unregister("ucle stand-in")


def ids_of(each: SparkInput, column: str) -> pa.Array:
    """Return all distinct values of a column.

    Raises:
        InputError: there are more than the driver takes.
    """
    with action(each.frame.sparkSession, f"read ids of {each.table}"):
        rows = each.frame.select(f"`{column}`").distinct().limit(MOST_IDS + 1).toArrow()
    if len(rows) > MOST_IDS:
        raise InputError(
            "a column has too many different ids",
            where=f"{each.table}, column {column}",
            expected=f"at most {MOST_IDS:,}",
            found="more",
            hint="number them in Spark, and pass the numbers as keys",
        )
    values = rows[column].combine_chunks()
    return values.filter(values.is_valid())


def type_on_spark(spark: Any, name: str, value: Any, labels: Sequence[str]) -> DType:
    """Return the element type of an input, from the types of its columns.

    Raises:
        UcleError: it cannot be read.
    """
    there = spark_inputs(spark, {name: value})
    with DUCKDB.open(":memory:") as session:
        for each in there.values():
            stand_in(session, each)
            value = each.standing
        return input_dtype(session, name, value, labels)
