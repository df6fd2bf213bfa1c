"""What ucle keeps in a user's database: tables in a schema named ``ucle``, made on demand.

Nothing here may fail a compilation. What cannot be kept is not kept: in databases that are open for
reading only, in memory (where it would last no longer than the process, which remembers by itself),
temporary or of another system, on a disk that is nearly full (`ucle.database.disk_space`), and
inside a transaction, which is the user's. Notes are written by a connection of their own and in one
transaction, so that they are there whole or not at all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from ucle.database.data_versions import in_transaction
from ucle.database.disk_space import has_room
from ucle.database.engine_errors import EngineError
from ucle.database.session import Session
from ucle.database.table_names import TEMPORARY, find_relation
from ucle.errors import UcleError
from ucle.foundation.logs import STATISTICS
from ucle.plan.sources import TableName, TableSource
from ucle.sqlgen.database_queries import (
    KeptTable,
    create_kept,
    current_database_query,
    databases_query,
    kept_columns_query,
    read_kept,
    write_kept,
)


def home(session: Session, source: TableSource) -> str | None:
    """The database that may keep notes of a source: that of its table; None where there is none.

    Notes of a Parquet file are kept in the current database, and none in memory.
    """
    return storage(session, source, in_memory=False)


def storage(session: Session, source: TableSource, *, in_memory: bool = True) -> str | None:
    """The database that may keep tables about a source; None where there is none."""
    if in_transaction(session) or not source.from_database:
        return None
    if isinstance(source.origin, TableName):
        relation = find_relation(session, source.origin)
        name = None if relation is None else relation.database
    else:
        ((name,),) = session.fetch(current_database_query())
    writable = {
        database
        for database, path, kind, read_only in session.fetch(databases_query())
        if kind == "duckdb" and database != TEMPORARY
        if not read_only or session.may_write(database)
        if in_memory or path is not None
    }
    return name if name in writable else None


def read_notes(
    session: Session, database: str, table: KeptTable, about: Mapping[str, str]
) -> list[tuple[str, ...]]:
    """The rows of a kept table with the given values; none where there is no such table.

    Args:
        session: not inside a transaction (see `home`).
        database: the name of the database.
        table: the one of ucle's own tables.
        about: values by column.
    """
    try:
        columns = session.fetch(kept_columns_query(database, table))
        if tuple(name for (name,) in columns) != table.columns:
            return []
        return session.fetch(read_kept(database, table, about))
    except UcleError:
        return []


def write_note(session: Session, database: str, table: KeptTable, row: Sequence[str]) -> bool:
    """Write a row in the place of the one with its keys, and say whether that was possible.

    The schema and the table are made if they are not there yet. On a database that ucle opened, a
    checkpoint follows: closing would make one as well, and change the versions of all tables.

    Args:
        session: not inside a transaction (see `home`).
        database: the name of the database.
        table: the one of ucle's own tables.
        row: a value for each of its columns.
    """
    if not _may_grow(session, database):
        return False
    try:
        with session.writing(f"notes in {database}"):
            session.alone([*create_kept(database, table), *write_kept(database, table, row)])
    except (EngineError, UcleError):  # of whatever kind: everything is taken back
        return False
    if session.owned and session.file is None:
        with contextlib.suppress(UcleError):  # others are at work in it
            session.fetch("CHECKPOINT")
    return True


def _may_grow(session: Session, database: str) -> bool:
    """Whether a database is in memory, or has ample room on disk."""
    paths = [row[1] for row in session.fetch(databases_query()) if row[0] == database]
    if room := all(path is None or has_room(path) for path in paths):
        return room
    STATISTICS.info("nothing is noted in %s: there is not enough room on its disk", database)
    return room
