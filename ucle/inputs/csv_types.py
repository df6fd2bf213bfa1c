"""The types as which columns of CSV files are read where DuckDB's guess is not what they are.

DuckDB takes a column of infinities for dates, one of infinities and NaN for text, and every column
of a file without rows for text. Numbers are what a value column is for, and positions what keys
are, so that these are looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ucle.database.session import Session
from ucle.foundation.dtypes import DType
from ucle.inputs.column_roles import assign_columns
from ucle.inputs.column_types import Column, value_type
from ucle.inputs.inputs import TableInput
from ucle.plan.sources import CsvFile
from ucle.sqlgen.input_queries import any_row_query, no_number_query


def csv_types(
    session: Session,
    name: str,
    origin: CsvFile,
    spec: TableInput,
    columns: Sequence[Column],
    labels: Sequence[str],
    foreign: Mapping[str, str],
) -> tuple[tuple[str, str], ...]:
    """The columns whose types are to be stated, and these types.

    A column of floats is among them: it is one, too, when the file has changed and they are all
    infinite.

    Args:
        session: where the file is read.
        name: the tensor, for messages.
        origin: the file.
        spec: what the caller says of it.
        columns: what DuckDB takes its columns for.
        labels: labels of the tensor's axes.
        foreign: columns that came with the data unasked, and what they are.

    Raises:
        InputError: which columns are meant is not clear.
    """
    keys, value = assign_columns(spec, columns, labels, f"input {name}, {origin}", foreign)
    as_text = all(column.type == "VARCHAR" for column in (*keys, *([value] if value else [])))
    if as_text and not session.fetch(any_row_query(origin)):
        named = dict(spec.dictionaries)
        positions = [
            (key.name, "BIGINT")
            for axis, (label, key) in enumerate(zip(labels, keys, strict=False))
            if not (spec.encode or axis in spec.encoded_keys or label in named)
        ]
        return (*positions, *([(value.name, "DOUBLE")] if value else []))
    if value is None:
        return ()
    dtype = value_type(value.type)
    if dtype is DType.FLOAT64 or (
        dtype is None and not session.fetch(no_number_query(origin, value.name))
    ):
        return ((value.name, "DOUBLE"),)
    return ()
