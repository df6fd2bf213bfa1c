"""Whether the tables that a program was compiled on are still what they were.

Statistics, bounds and checks belong to a version of the data. A version is what can be known of a
table without reading it: where it lies, its number in the catalogue and DuckDB's count of its rows;
of a Parquet file its size and time of change. An UPDATE that keeps the number of rows is not seen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from ucle.binding import BoundInput, table_columns
from ucle.columns import check_columns
from ucle.dictionaries import Dictionaries, check_sizes
from ucle.errors import CoordinateError, ValueTypeError
from ucle.session import Session
from ucle.sources import DataFile, InMemory, TableSource
from ucle.sqlgen.statistics import catalogue_query, databases_query
from ucle.stats.measure import measure

Versions = tuple[tuple[object, ...], ...]


def table_versions(session: Session, inputs: Mapping[str, BoundInput]) -> Versions:
    """The versions of all tables and files that inputs read, as `session` sees them."""
    found: list[tuple[object, ...]] = []
    names: list[str] = []
    for bound in inputs.values():
        source = bound.source
        if not isinstance(source, TableSource) or isinstance(source.origin, InMemory):
            continue
        if isinstance(source.origin, DataFile):
            found.append((source.origin.path, *_file_version(source.origin.path)))
        else:
            names.append(source.origin.parts[-1])
    if names:
        # A database in memory belongs to its connection, one in a file to the file.
        files = dict(session.fetch(databases_query()))
        for database, *rest in session.fetch(catalogue_query(tuple(names))):
            found.append((files[database] or id(session.connection), *rest))
    return tuple(found)


def _file_version(path: str) -> tuple[object, ...]:
    try:
        state = os.stat(path)
    except OSError:  # a glob, or a remote file
        return ()
    return (state.st_size, state.st_mtime_ns)


def verify_inputs(
    session: Session, inputs: Mapping[str, BoundInput], dictionaries: Dictionaries
) -> None:
    """Check data that the program was not compiled on against what was compiled.

    Raises:
        CoordinateError: a coordinate lies outside the bound that the program was compiled for.
        InputError: a table or a column is gone.
        ValueTypeError: a column has another type, or values are not finite where the program
            relies on it.
        UcleError: whatever `ucle.stats.measure` finds wrong.
    """
    check_sizes(session, dictionaries)
    for name, bound in inputs.items():
        source = bound.source
        if not isinstance(source, TableSource) or isinstance(source.origin, InMemory):
            continue
        check_columns(name, source, table_columns(session, name, source))
        measured = measure(session.fetch, name, source, bound.fill)
        for axis, size in enumerate(measured.sizes):
            if size > bound.shape[axis]:
                column = source.keys[axis] if axis < len(source.keys) else source.value
                raise CoordinateError(
                    "a coordinate is outside the bound that the program was compiled for",
                    where=f"input {name}, {source.origin}, column {column}",
                    expected=f"coordinates below {bound.shape[axis]}",
                    found=f"coordinate {size - 1}",
                    hint="compile the program again on this data",
                )
        if bound.finite and not measured.finite:
            raise ValueTypeError(
                "a value is not finite, and all were when the program was compiled",
                where=f"input {name}, {source.origin}, column {source.value}",
                expected="finite numbers",
                found="NaN or infinity",
                hint="compile the program again on this data",
            )
