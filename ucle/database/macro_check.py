"""A check for macros that shadow functions: a database that has them is refused.

DuckDB looks up macros of temporary objects and of the search path before its own functions,
operators included: ``CREATE MACRO sum(x) AS 42`` in a database silently changes every answer that
is computed there. The check lists all functions, which takes as long as a small program. So it is
done once for each connection of the user, which detects macros made before ucle first saw it, and
for a file whenever that has changed.
"""

from __future__ import annotations

import weakref
from typing import Any

from ucle.database.data_versions import file_state
from ucle.database.engine import DUCKDB
from ucle.database.session import Database, Session
from ucle.database.table_names import search_places
from ucle.errors import DatabaseError
from ucle.foundation.caches import BoundedCache
from ucle.sqlgen.database_queries import databases_query, engine_functions_query, macros_query

MOST_BYTES = 1 << 22
"""Bytes of all states of files that a process keeps."""

ASKED = frozenset({"current_setting", "current_database"})
"""Functions that return the search path: if they are shadowed, it cannot be queried."""

_connections: weakref.WeakSet[Any] = weakref.WeakSet()
_files = BoundedCache[bool](MOST_BYTES)
"""States of files without a macro that shadows a function."""


def open_checked(database: Database) -> Session:
    """Open a session of `ucle.database.session` on which no macro shadows a function.

    Raises:
        DatabaseError: it cannot be opened, or a macro shadows a function.
    """
    session = DUCKDB.open(database)
    try:
        check_shadows(session)
    except BaseException:
        session.close()
        raise
    return session


def open_own() -> Session:
    """Open a session on a database in memory in which only ucle has created objects.

    It need not be checked, which would take longer than most of its computations.
    """
    return DUCKDB.scratch()


def open_passing(database: Database) -> Session:
    """Open a session for work that leaves nothing in the database; None is `open_own`'s database.

    Raises:
        DatabaseError: as for `open_checked`.
    """
    return open_own() if database is None else open_checked(database)


def check_shadows(session: Session) -> None:
    """Check that no macro on a connection shadows a function.

    Raises:
        DatabaseError: there is such a macro.
    """
    if session.owned:
        rows = session.fetch(databases_query())
        paths = sorted(path for _, path, *_ in rows if path is not None)
        files = tuple((path, file_state(path), file_state(f"{path}.wal")) for path in paths)
        if files and not _files.get(files):  # without one, it was created by ucle, without macros
            _refuse_shadows(session)
            _files.put(files, True)
        _connections.add(session.connection)  # on which a loop compiles its step
    elif not session.private and session.connection not in _connections:
        _refuse_shadows(session)
        _connections.add(session.connection)


def _refuse_shadows(session: Session) -> None:
    macros = session.fetch(macros_query())
    if not macros:
        return
    if ASKED.isdisjoint(name.casefold() for _, _, name in macros):
        places = set(search_places(session))
        macros = [x for x in macros if (x[0].casefold(), x[1].casefold()) in places]
    full_names = {
        name.casefold(): f"{database}.{schema}.{name}" for database, schema, name in macros
    }
    names = session.fetch(engine_functions_query(tuple(sorted(full_names)))) if full_names else []
    if shadows := sorted(full_names[name] for (name,) in names):
        raise DatabaseError(
            "macros take the place of functions, so results would not be those of the program",
            where="database",
            expected="macros whose names no function of DuckDB or of the kernels has",
            found=", ".join(shadows),
            hint=f"DROP MACRO {shadows[0]}, or create it in a schema off the search path",
        )
