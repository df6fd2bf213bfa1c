"""The version of a table or file: equal as long as its data is the same, found without reading it.

Of a file it is its place, size and time of change. Of a table it is the place and time of change of
the database file, its number in the catalogue, counted from that of the database, the number of its
rows, and where DuckDB has stored each segment of its columns. What changes a table changes one of
these:

- INSERT adds to the rows that are stored, DELETE takes from those that are left;
- UPDATE marks segments as updated; a second one shows in the write-ahead log (WAL);
- CREATE OR REPLACE gives another number;
- a checkpoint, which moves segments to blocks that may have held them before, changes the file.

A version holds within a process. It is not known, and never taken for known, of views and of tables
of other systems; inside a transaction, whose changes can be taken back; of files by pattern or at
another machine; and in memory once a table was updated or the user has called CHECKPOINT. What is
not seen: an ALTER TABLE ... TYPE ... USING of a table in memory that keeps number, type and
extreme values of every segment; a file that is written again in the same nanosecond and size, as
the clock of its file system counts.

An execution after which nothing has run does not look again (`ucle.database.change_detection`).
"""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ucle.database.session import Session
from ucle.database.table_names import Relation, find_relations
from ucle.errors import InputError
from ucle.plan.sources import DataFile, InMemory, InputSource, OneRow, TableName, TableSource
from ucle.sqlgen.database_queries import storage_query, transaction_query

Version = tuple[object, ...]
"""Strings, numbers and tuples of them."""


@dataclass(frozen=True)
class Seen:
    """What is seen of a source without reading it; `known` says that equal ones hold equal data."""

    state: Version
    known: bool


UNSEEN = Seen((), known=False)


def source_version(session: Session, source: InputSource) -> Version | None:
    """The version of a source as `session` sees it; None where it cannot be known.

    Equal versions, taken in one process, are of equal data.
    """
    if not isinstance(source, TableSource):
        return None
    (seen,) = look(session, [source])
    return seen.state if seen.known and not in_transaction(session) else None


def look(session: Session, sources: Sequence[TableSource]) -> list[Seen]:
    """What is seen of sources; inside a transaction less than it says."""
    origins = [source.origin for source in sources]
    names = tuple(dict.fromkeys(x for x in origins if isinstance(x, TableName)))
    tables = _look_at_tables(session, names) if names else {}
    seen = []
    for origin in origins:
        match origin:
            case InMemory() | OneRow():
                seen.append(UNSEEN)
            case DataFile(path):
                state = file_state(path)
                seen.append(Seen(("file", path, *(state or ())), known=state is not None))
            case TableName():
                seen.append(tables[origin])
    return seen


def in_transaction(session: Session) -> bool:
    """Whether a transaction was begun on the session's connection."""
    first, second = (session.fetch(transaction_query()) for _ in range(2))
    return first == second


def file_state(path: str) -> Version | None:
    """Which file stands at a path, its size and its times of change; None where there is none.

    Whoever writes a file can set the time at which its data has changed, but not that at which the
    file system has noted a change of either.
    """
    try:
        state = os.stat(path)
    except (OSError, ValueError):  # a pattern, or a file elsewhere
        return None
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


def _look_at_tables(session: Session, names: Sequence[TableName]) -> dict[TableName, Seen]:
    """What is seen of tables, in two questions for all of them."""
    relations = find_relations(session, names)
    ours = dict.fromkeys(
        relation.full_name
        for relation in relations.values()
        if relation is not None and relation.rows is not None and relation.kind == "duckdb"
    )
    stored = _storage(session, tuple(ours))
    return {
        name: UNSEEN if x is None else _seen(session, x, stored.get(x.full_name))
        for name, x in relations.items()
    }


def _storage(session: Session, names: tuple[TableName, ...]) -> dict[TableName, tuple[Any, ...]]:
    """How tables are stored, as far as they are found."""
    if not names:
        return {}
    try:
        return {names[row[0]]: row[1:] for row in session.read(storage_query(names))}
    except InputError:  # of one that was dropped in between
        parts = [_storage(session, (name,)) for name in names] if len(names) > 1 else []
        return {name: row for part in parts for name, row in part.items()}


def _seen(session: Session, relation: Relation, stored: tuple[Any, ...] | None) -> Seen:
    path = relation.path
    place = path or _in_memory(session, relation)
    # Numbers go on where a file is attached again, from that of the database on.
    number = relation.number - relation.attached
    state: Version = (place, relation.schema, relation.name, number, relation.rows)
    if stored is None:
        return Seen(state, known=False)
    rows, digest, updated, persistent, transient = stored
    if path is None:
        # Nothing tells how often blocks in memory were written, or values changed.
        known, file = not updated and not persistent, None
    else:
        file = _database_state(path, updated)
        known = file is not None
    return Seen((*state, rows, digest, updated, transient, file), known)


def _database_state(path: str, updated: bool) -> Version | None:
    """When a database file was last written to; with its log where that alone shows a change."""
    state = file_state(path)
    if state is None or not updated:
        return state
    log = file_state(f"{path}.wal")
    return None if log is None else state + log


_numbers = itertools.count()
_connections: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def _in_memory(session: Session, relation: Relation) -> str:
    """Where a database in memory is: it belongs to its connection, and goes when it is detached."""
    number = _connections.setdefault(session.connection, next(_numbers))
    return f":memory: {number} {relation.database} {relation.attached}"
