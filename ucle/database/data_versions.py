"""The version of a table or file: equal as long as its data is the same, found without reading it.

The version of a file consists of its path, size and modification times. The version of a table
consists of the path and modification times of the database file, its number in the catalogue
(relative to that of the database), the number of its rows, and the locations where DuckDB has
stored the segments of its columns. Any change to a table changes one of these:

- INSERT adds to the stored rows, DELETE reduces the remaining ones;
- UPDATE marks segments as updated; a second one shows in the write-ahead log (WAL);
- CREATE OR REPLACE assigns a new number;
- a checkpoint, which may move segments to blocks that held them before, changes the file.

A version is valid within a process. The version is unknown for views and tables of other systems;
inside a transaction, whose changes can be rolled back; for glob patterns and remote files; and in
memory after a table was updated or the user has called CHECKPOINT. A table in memory has a version
if ucle made it and nobody else has seen it (`settle`). Not detected are: an ALTER TABLE
... TYPE ... USING of a table in memory that keeps number, type and extreme values of every segment;
and a file that is rewritten with the same size within the resolution of its file system's clock.

An execution after which nothing has run does not check again (`ucle.database.change_detection`).

Digests identify data across processes: they are equal for equal rows, in any order. A digest takes
one scan of a table; within a process it is cached for each version.
"""

from __future__ import annotations

import itertools
import json
import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ucle.database.session import Session
from ucle.database.table_names import Relation, find_relations
from ucle.errors import InputError
from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa
from ucle.plan.sources import (
    DataFile,
    InMemory,
    InputSource,
    Names,
    OneRow,
    Origin,
    TableName,
    TableSource,
)
from ucle.sqlgen.database_queries import storage_query, transaction_query
from ucle.sqlgen.input_queries import digest_query

Version = tuple[object, ...]
"""A tuple of strings, numbers and nested tuples."""


@dataclass(frozen=True)
class Seen:
    """The state of a source, found without reading it; if `known`, equal states mean equal data."""

    state: Version
    known: bool


UNSEEN = Seen((), known=False)


@contextmanager
def observing(session: Session, seen: dict[str, dict[Any, Any]] | None = None) -> Iterator[None]:
    """Look at each table once within a block, so that one version of its data counts for all of it.

    A table that others change meanwhile has another version at its next use, where all checks are
    repeated. In the block ucle creates nothing that a program could name. A block within another
    one is part of it.

    Args:
        session: sees the tables.
        seen: what is known already (`ucle.database.change_detection`); what is seen is added.
    """
    if session.observed is not None:
        yield
        return
    session.observed = {} if seen is None else seen
    try:
        yield
    finally:
        session.observed = None


def observe(session: Session, origins: Iterable[Origin], named: Iterable[Origin] = ()) -> None:
    """Look at all tables among some origins together, if the session is observing.

    Args:
        session: sees them.
        origins: tables whose states are asked for, unless a transaction is open: it has none.
        named: tables that are looked up alone, which does not ask how they are stored.
    """
    if session.observed is None:
        return
    names, others = (
        tuple(dict.fromkeys(x for x in y if isinstance(x, TableName))) for y in (origins, named)
    )
    if names and not in_transaction(session):
        _look_at_tables(session, names)
    find_relations(session, (*names, *others))


def source_version(session: Session, source: InputSource) -> Version | None:
    """The version of a source as `session` sees it; None if it cannot be known.

    Equal versions taken in one process mean equal data.
    """
    if not isinstance(source, TableSource) or in_transaction(session):
        return None
    (seen,) = look(session, [source])
    return seen.state if seen.known else None


def settle(table: pa.Table) -> pa.Table:
    """Give a table in memory a version, as nobody changes it from now on.

    An Arrow table is immutable, but the memory behind it may be an array of the caller's.
    """
    place, number = id(table), next(_numbers)
    _settled[place] = weakref.ref(table, lambda _: _settled.pop(place, None)), number
    return table


def memory_version(data: object) -> Version | None:
    """The version of a table in memory that is settled, and of no other data."""
    held = _settled.get(id(data))
    return ("settled", held[1]) if held is not None and held[0]() is data else None


def look(session: Session, sources: Sequence[TableSource]) -> list[Seen]:
    """The states of sources; inside a transaction, `known` states may still be rolled back."""
    origins = [source.origin for source in sources]
    names = tuple(dict.fromkeys(x for x in origins if isinstance(x, TableName)))
    tables = _look_at_tables(session, names) if names else {}
    seen = []
    for origin in origins:
        match origin:
            case InMemory() | OneRow():
                seen.append(UNSEEN)
            case Names(columns):
                seen.append(Seen(("names", *columns), known=True))
            case DataFile(path):
                state = file_state(path)
                seen.append(Seen(("file", path, *(state or ())), known=state is not None))
            case TableName():
                seen.append(tables[origin])
    return seen


def in_transaction(session: Session) -> bool:
    """True if a transaction is open on the session's connection."""
    if session.transaction:
        return True
    return session.look_once("transaction", (None,), lambda _: {None: _is_open(session)})[None]


def _is_open(session: Session) -> bool:
    first, second = (session.fetch(transaction_query()) for _ in range(2))
    return first == second


def opened_in_transaction(session: Session) -> bool:
    """Return what `in_transaction` does; on a session that was just opened, by one query.

    The statement that opened it is the first of the two that have the same number in a transaction.
    """
    if session.transaction or session.statements or session.number is None:
        return in_transaction(session)
    return session.fetch(transaction_query()) == [(session.number,)]


def file_state(path: str) -> Version | None:
    """The identity, size and modification times of the file at a path; None if there is no file.

    A program can set a file's modification time (mtime), but not the time of the last change of its
    metadata (ctime).
    """
    try:
        state = os.stat(path)
    except (OSError, ValueError):  # a pattern, or a remote file
        return None
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


def _look_at_tables(session: Session, names: Sequence[TableName]) -> dict[TableName, Seen]:
    """Find the states of tables, with two queries for all that were not observed yet."""
    return session.look_once("state", names, lambda unseen: _look_now(session, unseen))


def _look_now(session: Session, names: Sequence[TableName]) -> dict[TableName, Seen]:
    relations = find_relations(session, names)
    ours = dict.fromkeys(
        relation.full_name
        for relation in relations.values()
        if relation is not None and relation.rows is not None and relation.kind == "duckdb"
    )
    stored = _storage(session, tuple(ours))
    return {
        name: UNSEEN if x is None else _read_state(session, x, stored.get(x.full_name))
        for name, x in relations.items()
    }


def _storage(session: Session, names: tuple[TableName, ...]) -> dict[TableName, tuple[Any, ...]]:
    """Find how tables are stored; tables that no longer exist are left out."""
    if not names:
        return {}
    try:
        return {names[row[0]]: row[1:] for row in session.read(storage_query(names))}
    except InputError:  # a table was dropped in the meantime
        parts = [_storage(session, (name,)) for name in names] if len(names) > 1 else []
        return {name: row for part in parts for name, row in part.items()}


def _read_state(session: Session, relation: Relation, stored: tuple[Any, ...] | None) -> Seen:
    path = relation.path
    place = path or _in_memory(session, relation)
    # Numbers continue when a file is attached again, starting from that of the database.
    number = relation.number - relation.attached
    state: Version = (place, relation.schema, relation.name, number, relation.rows)
    if stored is None:
        return Seen(state, known=False)
    rows, digest, updated, persistent, transient = stored
    if path is None:
        # Nothing shows how often blocks in memory were written, or values changed.
        known, file = not updated and not persistent, None
    else:
        file = _database_state(path, updated)
        known = file is not None
    return Seen((*state, rows, digest, updated, transient, file), known)


def _database_state(path: str, updated: bool) -> Version | None:
    """The last change of a database file, with its log if only the log shows an update."""
    state = file_state(path)
    if state is None or not updated:
        return state
    log = file_state(f"{path}.wal")
    return None if log is None else state + log


_numbers = itertools.count()
_connections: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_settled: dict[int, tuple[weakref.ref[Any], int]] = {}
"""Tables in memory by their identity, with a number that never recurs."""


def _in_memory(session: Session, relation: Relation) -> str:
    """Identify a database in memory: by its connection, and the number it was attached under."""
    number = _connections.setdefault(session.connection, next(_numbers))
    return f":memory: {number} {relation.database} {relation.attached}"


MOST_BYTES = 1 << 22
"""Bytes of all digests that a process keeps."""

_digests = BoundedCache[str](MOST_BYTES)


def digest(session: Session, source: TableSource) -> str:
    """Compute a digest of the columns that a source reads; it depends on DuckDB's version."""
    version = source_version(session, source)
    read = (
        *(source.keys, source.value, source.wide, source.nulls),
        *(source.missing, source.times, source.features, source.ragged, source.ends),
    )
    key = None if version is None else (version, read)
    return _digests.get_or_make(key, lambda: _digest(session, source))


def _digest(session: Session, source: TableSource) -> str:
    rows = replace(source, symmetric=False)  # the stored rows, not the mirrored ones
    return json.dumps(session.read(digest_query(rows)), default=str)
