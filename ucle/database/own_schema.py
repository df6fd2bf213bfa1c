"""The tables that ucle stores in a user's database, in a schema ``ucle`` that is made on demand.

Nothing here may make a compilation fail. Notes are not stored in databases that are read-only, in
memory (where they would last no longer than the process, which has its own cache), temporary or of
another system; and inside a transaction, which is the user's. Notes are written by a separate
connection in one transaction, so that they are stored completely or not at all.

If the disk is full in the middle of a checkpoint, DuckDB invalidates the whole database for all of
its users. So nothing is written without a request unless there is ample space.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from collections.abc import Mapping, Sequence

from ucle.database.data_versions import in_transaction
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

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

AMPLE = 64 * 2**20
"""Bytes; a checkpoint of a few notes writes some blocks of 256 KiB."""


def has_space(path: str) -> bool:
    """True if a database file and its log can grow by far more than notes need.

    A checkpoint writes the log into the file and rewrites the description of all tables, for which
    a twentieth of the file is plenty. Disk quotas are not considered.

    >>> has_space("/nowhere/data.db")
    False
    """
    try:
        size, log = os.path.getsize(path), 0
        with contextlib.suppress(FileNotFoundError):
            log = os.path.getsize(f"{path}.wal")
        needed = AMPLE + 2 * log + size // 20
        return _free(path) >= needed and _limit() >= max(size, log) + needed
    except (OSError, ValueError):
        return False


def _free(path: str) -> float:
    """The free bytes on the disk of a file."""
    return shutil.disk_usage(path).free


def _limit() -> float:
    """The number of bytes to which a file of this process may grow."""
    if resource is None:
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return math.inf if limit == resource.RLIM_INFINITY else limit


def home(session: Session, source: TableSource) -> str | None:
    """The database that may store notes about a source: that of its table; None if there is none.

    Notes about a Parquet file are stored in the current database, but never in memory.
    """
    return storage(session, source, in_memory=False)


def storage(session: Session, source: TableSource, *, in_memory: bool = True) -> str | None:
    """The database that may store tables about a source; None if there is none."""
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
    """Read the rows of a table of notes that have the given values; none if there is no table.

    Args:
        session: not inside a transaction (see `home`).
        database: the name of the database.
        table: one of ucle's own tables.
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
    """Write a row, replacing the one with the same keys; return False if that was not possible.

    The schema and the table are created if they do not exist yet. On a database that ucle opened, a
    checkpoint follows: otherwise closing would make one, and change the versions of all tables.

    Args:
        session: not inside a transaction (see `home`).
        database: the name of the database.
        table: one of ucle's own tables.
        row: a value for each of its columns.
    """
    if not _may_grow(session, database):
        return False
    try:
        with session.writing(f"notes in {database}"):
            session.alone([*create_kept(database, table), *write_kept(database, table, row)])
    except (EngineError, UcleError):  # any error: everything is rolled back
        return False
    if session.owned and session.file is None:
        with contextlib.suppress(UcleError):  # other transactions are active
            session.fetch("CHECKPOINT")
    return True


def _may_grow(session: Session, database: str) -> bool:
    """True if a database is in memory, or has ample space on disk."""
    paths = [row[1] for row in session.fetch(databases_query()) if row[0] == database]
    if all(path is None or has_space(path) for path in paths):
        return True
    STATISTICS.info("nothing is noted in %s: there is not enough space on its disk", database)
    return False
