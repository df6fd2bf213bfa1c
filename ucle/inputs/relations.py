"""The relation of an input: its columns as DuckDB reports them, and how they hold the tensor.

Takes the description of an input that is a table and inspects it through a session; returns a
`TableSource`. Rows are read only if the columns do not give enough information: for the types of a
CSV file, and the shape of arrays in lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from ucle.database.data_versions import file_state
from ucle.database.engine_errors import EngineError, error_text, gist
from ucle.database.session import Session
from ucle.database.table_names import find_relation
from ucle.errors import ExecutionError, InputError, UcleError, ValueTypeError, did_you_mean
from ucle.foundation.caches import BoundedCache
from ucle.foundation.dtypes import DType
from ucle.inputs.column_types import Column
from ucle.inputs.columns import table_source
from ucle.inputs.csv_types import typed_csv
from ucle.inputs.files import folder_columns
from ucle.inputs.formats import read_otherwise
from ucle.inputs.inputs import DescribedArray, DescribedTable, describe
from ucle.inputs.parquet_schemas import is_pattern, united_parquet
from ucle.inputs.states import BoundInput
from ucle.inputs.time_pairs import axes_of_relation, times_source
from ucle.plan.sources import (
    CsvFile,
    DataFile,
    InMemory,
    Origin,
    ParquetFile,
    TableName,
    TableSource,
)
from ucle.sqlgen import input_queries as sql
from ucle.sqlgen.database_queries import KEPT, SCHEMA, first_file_query, relations_query

_schemas = BoundedCache[list[tuple[Any, ...]]](1 << 22)
"""The columns of files, by description, state of the file and what is text in Parquet: 4 MB."""


def find_columns(
    session: Session,
    name: str,
    described: DescribedTable,
    labels: Sequence[str],
    prefix: str,
    foreign: Mapping[str, str],
) -> TableSource:
    """Find the columns of an existing relation; the shape of arrays may be left open."""
    origin, dtype = typed_origin(session, name, described, labels, foreign)
    spec = described.spec if dtype is None else replace(described.spec, dtype=dtype)
    described = replace(described, spec=spec, origin=origin)
    computed = False
    if described.columns is not None:
        columns, table = described.columns, False
    else:
        source = TableSource(described.origin, (), None)
        columns, table = table_columns(session, name, source, prefix)
        computed = isinstance(described.origin, TableName) and not table
    if spec.times is not None:
        return times_source(name, described, columns, foreign)
    source = table_source(name, described, columns, labels, foreign)
    as_stored = source.features is None and not source.ragged and source.ends is None
    return replace(source, table=table and as_stored, computed=computed)


def typed_origin(
    session: Session,
    name: str,
    described: DescribedTable,
    labels: Sequence[str],
    foreign: Mapping[str, str],
) -> tuple[Origin, DType | None]:
    """The origin of an input with typed columns, and the element type if its files imply one."""
    origin, spec = described.origin, described.spec
    if spec.times is not None:  # the columns are those of the whole relation
        labels = axes_of_relation(spec.times)
    if isinstance(origin, CsvFile):
        _check_exists(session, name, origin)
        return typed_csv(session, name, origin, spec, labels, foreign), None
    if isinstance(origin, ParquetFile) and is_pattern(origin.path):
        columns, _ = table_columns(session, name, TableSource(origin, (), None))
        origin, dtype = united_parquet(session, name, origin, spec, labels, columns, foreign)
        return origin, None if spec.dtype else dtype
    return origin, None


def foreign_columns(session: Session, described: DescribedTable) -> dict[str, str]:
    """The columns that the user did not put into the data; DuckDB makes some from folder names."""
    foreign, origin = dict(described.foreign), described.origin
    if not isinstance(origin, DataFile):
        return foreign
    path = origin.path
    if any(sign in path for sign in "*?["):
        files = session.fetch(first_file_query(path))
        path = str(files[0][0]) if files else path
    return foreign | folder_columns(path)


def table_columns(
    session: Session, name: str, source: TableSource, prefix: str = ""
) -> tuple[tuple[Column, ...], bool]:
    """The columns of an input's relation, and True if it is a DuckDB table.

    Raises:
        InputError: DuckDB cannot find or read it.
    """
    table = _check_exists(session, name, source.origin)
    origin, whole = source.origin, source.times is None and source.features is None
    if isinstance(origin, TableName) and whole:
        found = session.look_once(
            "columns", [origin], lambda _: {origin: _describe(session, name, source)}
        )
        rows = found[origin]
    else:
        # DuckDB takes as long to describe a file with thousands of columns as to read some of them,
        # and opens a text file for what its description states.
        files = ParquetFile | CsvFile
        state = file_state(origin.path) if isinstance(origin, files) and whole else None
        rows = _schemas.get_or_make(
            None if state is None else (origin, state, session.setting("binary_as_string")),
            lambda: _describe(session, name, source, prefix),
        )
    return tuple(Column(row[0], row[1]) for row in rows), table and whole


def _describe(
    session: Session, name: str, source: TableSource, prefix: str = ""
) -> list[tuple[Any, ...]]:
    try:
        return session.read(sql.describe_query(source, prefix), f"input {name}, {source.origin}")
    except UcleError as error:
        if not isinstance(error, InputError) or not isinstance(error.__cause__, EngineError):
            raise
        raise InputError(
            "DuckDB cannot read this table",
            where=f"input {name}, {source.origin}",
            expected="a table or view of the database, or the path of a Parquet or CSV file",
            found=gist(error_text(error.__cause__)),
        ) from error.__cause__


def _check_exists(session: Session, name: str, origin: Origin) -> bool:
    """Check that a relation exists; a failing query would abort the open transaction.

    Returns:
        True for a DuckDB table; False for a view, a file or data in memory.
    """
    if isinstance(origin, DataFile):
        plain = not any(sign in origin.path for sign in ("*", "?", "[", "://"))
        if plain and not Path(origin.path).exists():
            raise _unknown_relation(name, origin, "no such file", None)
    if not isinstance(origin, TableName):
        return False
    relation = find_relation(session, origin)
    own_tables = {(SCHEMA, table.name) for table in KEPT}
    if relation is not None and (relation.schema, relation.name) not in own_tables:
        return relation.rows is not None and relation.kind == "duckdb"
    rows = session.fetch(relations_query())
    hint = read_otherwise(str(origin)) or did_you_mean(origin.parts[-1], {row[2] for row in rows})
    raise _unknown_relation(name, origin, "no table or view of that name", hint)


def _unknown_relation(name: str, origin: Origin, reason: str, hint: str | None) -> InputError:
    return InputError(
        "DuckDB cannot find this table",
        where=f"input {name}, {origin}",
        expected="a table or view of the database, or the path of a Parquet or CSV file",
        found=reason,
        hint=hint,
    )


def shape_of_data(session: Session, name: str, source: TableSource, prefix: str) -> tuple[int, ...]:
    """The shape of the first array of a list column."""
    query = sql.first_value_query(source, prefix)
    rows = session.read(query, f"input {name}, {source.origin}")
    value = rows[0][0] if rows else None
    shape: list[int] = []
    while isinstance(value, list | tuple):
        shape.append(len(value))
        value = value[0] if value else None
    if len(shape) != source.nesting:
        raise ValueTypeError(
            "the first array does not determine a shape",
            where=f"input {name}, {source.origin}, column {source.value}",
            expected=f"lists {source.nesting} deep, none of them NULL or empty",
            found=repr(rows[0][0]) if rows else "an empty table",
            hint="pass ucle.table(..., shape=...)",
        )
    return tuple(shape)


def input_dtype(session: Session, name: str, value: Any, labels: Sequence[str]) -> DType:
    """The element type of an input; for a table, the database is queried.

    Raises:
        InputError: it cannot be read as a tensor.
    """
    described = describe(name, value, f"{name} in memory")
    if isinstance(described, DescribedArray):
        return described.dtype
    read = register_table(session, described.origin, described.data, "")
    with read if described.columns is None else nullcontext():  # else no query reads it
        return find_columns(session, name, described, labels, "", described.foreign).dtype


@contextmanager
def register_inputs(
    session: Session, inputs: Mapping[str, BoundInput], prefix: str
) -> Iterator[None]:
    """Register all tables in memory for the duration of a block, under prefixed names."""
    with ExitStack() as stack:
        for bound in inputs.values():
            if isinstance(bound.source, TableSource):
                stack.enter_context(
                    register_table(session, bound.source.origin, bound.data, prefix)
                )
        yield


@contextmanager
def register_table(session: Session, origin: Origin, data: Any, prefix: str) -> Iterator[None]:
    """Register a table in memory for the duration of a block, under a prefixed name."""
    if not isinstance(origin, InMemory):
        yield
        return
    name = prefix + origin.name
    try:
        session.register(name, data)
    except ExecutionError as error:
        if not isinstance(cause := error.__cause__, EngineError):
            raise
        raise InputError(
            "DuckDB cannot read this table",
            where=f"input {origin.name}, {origin}",
            expected="columns of numbers, text, dates, or lists of numbers",
            found=error_text(cause).splitlines()[0],
            hint="leave the column out, or cast it",
        ) from cause
    try:
        yield
    finally:
        session.unregister(name)
