"""Opening databases, loading the kernels, and choosing the route by which they are called."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import re
import threading
import weakref
from pathlib import Path
from typing import Any

import duckdb

from ucle.database.database_file import DatabaseFile
from ucle.database.engine_errors import error_text, unusable
from ucle.database.idle_databases import Lease
from ucle.database.session import Database, Session
from ucle.database.whole_statements import fetch_all
from ucle.errors import (
    ArgumentError,
    DatabaseError,
    ExtensionForbiddenError,
    ExtensionStrippedError,
    ExtensionUnavailableError,
    KernelsMissingError,
    KernelsMissingWarning,
)
from ucle.foundation import arguments as args
from ucle.foundation.address_limit import limits_addresses
from ucle.foundation.arguments import validated
from ucle.foundation.free_memory import reserve_no_addresses
from ucle.foundation.logs import EXECUTE, UCLE, warn_caller
from ucle.foundation.threads import opening
from ucle.sqlgen import ARROW, NATIVE, PLAIN, Capabilities
from ucle.sqlgen.database_queries import transaction_query
from ucle.udf_kernels import limit_memory, load_extension

LOCKED = re.compile(r"could not set lock|conflicting lock|being used by another process", re.I)
"""DuckDB's message about a file that another process has open."""

KEPT_BLOCKS = "25%"
"""A share of the memory limit, for DuckDB's setting ``block_allocator_memory``."""

_UNSIGNED: dict[str, Any] = {"allow_unsigned_extensions": "true"}


@validated(database=args.path, read_only=args.flag, config=args.anything)
def connect(
    database: str | os.PathLike[str] = ":memory:", *, read_only: bool = False, **config: Any
) -> duckdb.DuckDBPyConnection:
    """Open DuckDB and load the kernels, if they are available.

    Args:
        database: path of a file, which is created if it does not exist, or ``:memory:``.
        read_only: open an existing file for reading.
        config: settings of DuckDB, such as ``threads=2``. `allow_unsigned_extensions` is always
            true, because the kernels are an unsigned extension. Unless `block_allocator_memory` is
            set, DuckDB keeps up to a quarter of its memory limit for reuse.

    Returns:
        An ordinary DuckDB connection on which scripts from `to_sql()` run.

    Raises:
        DatabaseError: the file cannot be opened, or is open in this process without extensions.
        ArgumentError: a setting forbids extensions.

    Warns:
        KernelsMissingWarning: there are no kernels; a process warns once.

    >>> connection = connect()
    >>> connection.sql("SELECT inner_prod(pack([1, 2]), pack([3, 4]))").fetchall()
    [(11.0,)]
    """
    path = os.fspath(database)
    allowed = config.get("allow_unsigned_extensions", True)
    if str(allowed).casefold() not in ("true", "1"):
        raise ArgumentError(
            "the kernels are an unsigned extension",
            where="connect(allow_unsigned_extensions=...)",
            expected="True, which is the default",
            found=repr(allowed),
            hint="open the database with duckdb.connect(path); ucle then takes the Arrow route",
        )
    settings = dict(config) | _UNSIGNED
    try:
        with opening:
            connection = duckdb.connect(path, read_only=read_only, config=settings)
    except duckdb.Error as error:
        if "different configuration" in str(error):
            raise DatabaseError(
                "the database is open in this process without extensions, or in another mode",
                where=path,
                expected="no other connection, or one from ucle.connect with the same settings",
                found=str(error).strip(),
                hint="close the other connection, or pass it as database= and use its route",
            ) from error
        raise _open_error(path, error) from error
    try:
        load_extension(connection)
    except ExtensionStrippedError:
        pass  # sessions on it take the Arrow route, and report the reason
    except ExtensionUnavailableError:
        connection.close()
        raise
    except KernelsMissingError as error:
        _tell_of_plain_sql(error)
    _allow_no_others(connection)
    if limits_addresses():
        reserve_no_addresses()  # nor any of DuckDB's, as many as its memory limit
    elif "block_allocator_memory" not in settings:
        _keep_blocks(connection)
    return connection


def _allow_no_others(connection: duckdb.DuckDBPyConnection) -> None:
    """Prevent SQL from loading other native code, now that the kernels are loaded.

    DuckDB allows an open database to become stricter. If its settings are locked, they stay.
    """
    with contextlib.suppress(duckdb.Error):
        connection.execute("SET allow_unsigned_extensions = false").fetchall()


def _keep_blocks(connection: duckdb.DuckDBPyConnection) -> None:
    """Let DuckDB reuse the blocks of earlier statements, up to a share of its memory limit.

    Otherwise it returns them to the system, and every page of the next statement's blocks is
    faulted in again, which is a fifth of the time of large programs. DuckDB 1.4 has no such
    setting. A database that is already open may have another value, which can only grow.
    """
    with contextlib.suppress(duckdb.Error):
        # Fetch all rows: DuckDB 2.0 counts a remaining one as an unfinished result.
        query = "SELECT current_setting('block_allocator_memory')"
        if connection.execute(query).fetchall() == [("0 bytes",)]:
            connection.execute(f"SET block_allocator_memory = '{KEPT_BLOCKS}'").fetchall()


def open_session(database: Database) -> Session:
    """Open a session on a path, on ``:memory:`` (also None), or on an open connection.

    A file is opened for reading, and temporarily for writing when something is written to it: a
    result as a table, views, an input that is stored, notes (`ucle.database.own_schema`). If this
    process already has it open, its existing mode applies.

    Raises:
        DatabaseError: there is no such file, or it cannot be opened.
        ArgumentTypeError: it is not one of these.
    """
    if isinstance(database, duckdb.DuckDBPyConnection):
        return _session(database, owned=False)
    args.database(database, "database")
    path = ":memory:" if database is None else os.fspath(database)
    if path != ":memory:" and not Path(path).exists():
        raise DatabaseError(
            "this database does not exist",
            where=path,
            expected="an existing DuckDB file, ':memory:' or an open connection",
            found="no file",
            hint="ucle.connect(path) makes one",
        )
    if path == ":memory:":
        return _open_leased(Lease(None, lambda: _open_file(path)))
    if (file := _own_file(path)) is not None:
        return _open_leased(file.lease, file)
    return _session(_open_file(path), owned=True)


def _open_leased(lease: Lease, file: DatabaseFile | None = None) -> Session:
    """Open a session that has exclusive use of a database in memory while it is open."""
    if (route := _routes.get(lease.database)) is not None:
        _routes[lease.connection] = route
    try:
        session = _session(lease.connection, owned=True, file=file, lease=lease)
    except BaseException:
        lease.shared = True
        lease.end()
        raise
    _routes.setdefault(lease.database, _routes[lease.connection])
    return session


def open_for_reading(path: str) -> duckdb.DuckDBPyConnection:
    """Open a read-only connection to a file, with permission to load the kernels.

    Raises:
        DatabaseError: there is no such file, or it cannot be opened for reading.
    """
    try:
        with opening:
            return duckdb.connect(path, read_only=True, config=_UNSIGNED)
    except duckdb.Error as error:
        raise _open_error(path, error) from error


def open_catalogue(path: str) -> Session:
    """Open a session for queries about the contents of a file, without kernels.

    Raises:
        DatabaseError: there is no such file, or it cannot be opened for reading.
    """
    return Session(open_for_reading(path), PLAIN, "nothing is computed", owned=True)


def _own_file(path: str) -> DatabaseFile | None:
    """Attach a file; None if this process has it open in a way that prevents this.

    Raises:
        DatabaseError: another process has locked it, or it is not a database.
    """
    try:
        return DatabaseFile(path, _UNSIGNED)
    except duckdb.IOException as error:
        raise _open_error(path, error) from error
    except duckdb.Error:  # it is open in this process, or its name is reserved by DuckDB
        return None


def _open_file(path: str) -> duckdb.DuckDBPyConnection:
    """Open a file in the first way that works: writable, then read-only; kernels, then none.

    A file that is open in this process can only be opened with the settings it already has.
    """
    errors = []
    for read_only in (False, True) if path != ":memory:" else (False,):
        for config in (_UNSIGNED, {}):
            try:
                with opening:
                    return duckdb.connect(path, read_only=read_only, config=config)
            except duckdb.Error as error:
                errors.append(error)
    raise _open_error(path, errors[0]) from errors[0]


def _open_error(path: str, error: duckdb.Error) -> DatabaseError:
    message = error_text(error)
    locked = isinstance(error, duckdb.IOException) and LOCKED.search(message) is not None
    if isinstance(error, duckdb.InvalidInputException) and "option" in message:
        return DatabaseError(
            "DuckDB does not take a setting when it opens a database",
            where=path,
            expected="settings of a whole database, such as threads or memory_limit",
            found=message,
            hint="open the connection without this setting, then SET it there",
        )
    if locked:
        return DatabaseError(
            "the database is locked by another process",
            where=path,
            expected="a DuckDB file that no other process has open for writing",
            found=message,
            hint="close the other process, or have both open it read-only",
        )
    return DatabaseError(
        "the database cannot be opened",
        where=path,
        expected="a whole DuckDB file that this user may read",
        found=message,
    )


_scratch: list[duckdb.DuckDBPyConnection] = []
"""The database in memory that the process keeps, at most one."""

_turns: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""The lock for changing a setting of the whole database, by the database and its cursors."""


_private: weakref.WeakSet[Any] = weakref.WeakSet()
"""Cursors that only ucle has: nobody else begins a transaction or sets a limit there."""


def open_scratch() -> Session:
    """Open a session for one evaluation, on the database in memory that the process keeps.

    Opening a database and loading the kernels takes longer than a small program; a cursor on an
    open database takes no time. Temporary tables and registered objects belong to the cursor and
    disappear with it. If the database has become unusable, as after a fatal error, it is replaced.
    """
    whole = _whole_scratch()
    try:
        return _scratch_session(whole)
    except DatabaseError:
        with opening, contextlib.suppress(ValueError):  # another thread may have been first
            _scratch.remove(whole)
        return _scratch_session(_whole_scratch())


def _whole_scratch() -> duckdb.DuckDBPyConnection:
    with opening:
        if not _scratch:
            _scratch.append(_open_file(":memory:"))
            _turns[_scratch[0]] = threading.RLock()
        return _scratch[0]


def _scratch_session(whole: duckdb.DuckDBPyConnection) -> Session:
    try:
        cursor = whole.cursor()
    except duckdb.Error as error:
        raise unusable(error, "database") from error
    # Cursors share the database's extensions, and its refusals to load them.
    if (route := _routes.get(whole)) is not None:
        _routes[cursor] = route
    _turns[cursor] = _turns[whole]
    _private.add(cursor)
    session = _session(cursor, owned=True)
    _routes.setdefault(whole, _routes[cursor])
    return session


@atexit.register
def _close_scratch() -> None:
    while _scratch:
        _scratch.pop().close()


def _leave_scratch() -> None:
    """Make a forked process open its own database and never close that of its parent.

    The child lacks the threads that closing would wait for, and would be aborted.
    """
    while _scratch:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_scratch.pop()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_scratch)


_routes: weakref.WeakKeyDictionary[Any, tuple[Capabilities, str]] = weakref.WeakKeyDictionary()
"""The known routes of connections; neither setting can change."""


def _session(
    connection: duckdb.DuckDBPyConnection,
    *,
    owned: bool,
    file: DatabaseFile | None = None,
    lease: Lease | None = None,
) -> Session:
    asked, private, number = connection in _routes, connection in _private, None
    try:
        if not asked:
            load_extension(connection)
            _routes[connection] = NATIVE, "the extension is loaded"
        elif not private:
            native = _routes[connection][0].native_aggregates
            if owned and native:
                limit_memory(connection)  # the limit may have been set since
            else:
                query = transaction_query(tells_memory_limit=native)  # one statement is counted
                number = fetch_all(connection, query)[0][0]
    except ExtensionUnavailableError as error:
        _routes[connection] = ARROW, error.message
        if isinstance(error, ExtensionForbiddenError):
            EXECUTE.info("kernels take the Arrow route: %s (%s)", error.message, error.found)
        else:
            UCLE.warning("kernels take the slower Arrow route: %s (%s)", error.message, error.found)
    except KernelsMissingError as error:
        _routes[connection] = PLAIN, error.message
        _tell_of_plain_sql(error)
    except duckdb.Error as error:
        raise unusable(error, "database") from error
    capabilities, reason = _routes[connection]
    turn = _turns.get(connection)
    session = Session(
        connection,
        capabilities,
        reason,
        owned=owned,
        private=private,
        file=file,
        lease=lease,
        turn=turn,
    )
    session.number = number
    return session


_told: set[str] = set()
"""Messages that were already shown in this process."""


def _tell_of_plain_sql(error: KernelsMissingError) -> None:
    """Warn once per process that everything runs as plain SQL."""
    if error.message not in _told:
        _told.add(error.message)
        why = f"{error.message}: programs run as plain SQL, which is slower\n  found: {error.found}"
        warn_caller(f"{why}\n  hint: {error.hint}", KernelsMissingWarning)
