"""Connections: opening databases, loading kernels, running statements, choosing the route.

A `Session` is a DuckDB connection together with what ucle may do on it. ucle closes what it opened;
on a connection of the user it leaves nothing behind but, where the kernels could be loaded, the
loaded extension.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ucle.errors import (
    ArgumentTypeError,
    DatabaseError,
    ExecutionError,
    ExtensionUnavailableError,
    InputError,
    MemoryLimitError,
    NumberRangeError,
    UcleError,
)
from ucle.forking import opening
from ucle.logs import EXECUTE, STATISTICS, timed
from ucle.progress import INTERVAL, share_done
from ucle.sqlgen import ARROW, NATIVE, Capabilities
from ucle.udf_kernels import load_extension

Database = str | os.PathLike[str] | duckdb.DuckDBPyConnection | None

OUT_OF_RANGE = (
    "overflow",
    "out of range",
    "Out of Range",
    "cannot hold",
    "negative integer powers",
)
"""What DuckDB and the kernels say of a number that does not fit."""

KEPT_BLOCKS = "25%"
"""Of the memory limit; the setting ``block_allocator_memory`` of DuckDB."""

_UNSIGNED: dict[str, Any] = {"allow_unsigned_extensions": "true"}


class Session:
    """A connection with a route; use it as a context manager, or `close` it."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        capabilities: Capabilities,
        reason: str,
        *,
        owned: bool,
    ) -> None:
        self.connection = connection
        self.capabilities = capabilities
        self.engine = capabilities
        """What the connection can do, also where a program needs less."""
        self.reason = reason
        self.owned = owned

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection if ucle opened it."""
        if self.owned:
            self.connection.close()

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query that takes no time and return all of its rows."""
        return self.connection.execute(sql).fetchall()

    def read(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query over data and return all of its rows.

        Raises:
            KeyboardInterrupt: it was interrupted from the keyboard, which ends the query.
        """
        with timed(STATISTICS, logging.DEBUG, "%s", sql):
            return _run_interruptibly(self.connection, sql)

    def batches(self, sql: str, rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query over data and hand out its rows in batches of so many."""
        relation: Any = self.connection.sql(sql)
        modern = hasattr(relation, "to_arrow_reader")  # DuckDB 2.0 renamed the method
        with timed(STATISTICS, logging.DEBUG, "%s", sql):
            yield from (relation.to_arrow_reader if modern else relation.fetch_arrow_reader)(rows)

    def run(
        self, sql: str, where: str, watch: Callable[[float], object] | None = None
    ) -> list[tuple[Any, ...]]:
        """Run a statement and return what it gives: of one that writes, how many rows.

        Args:
            sql: the statement.
            where: what it is, for messages.
            watch: is told, every so often, how much of it is done.

        Raises:
            ExecutionError: DuckDB refused it.
            MemoryLimitError: DuckDB ran out of the memory that it may use.
            KeyboardInterrupt: it was interrupted from the keyboard, which ends the statement.
        """
        try:
            with timed(EXECUTE, logging.DEBUG, "%s: %s", where, sql):
                return _run_interruptibly(self.connection, sql, watch)
        except duckdb.Error as error:
            raise execution_error(error, where) from error

    def setting(self, name: str) -> Any:
        """The value of a DuckDB setting."""
        return self.fetch(f"SELECT current_setting('{name}')")[0][0]

    @property
    def memory_limit(self) -> float:
        """DuckDB's memory limit in bytes."""
        return parse_size(str(self.setting("memory_limit")))

    @property
    def threads(self) -> int:
        """DuckDB's number of threads."""
        return int(self.setting("threads"))


def _run_interruptibly(
    connection: duckdb.DuckDBPyConnection, sql: str, watch: Callable[[float], object] | None = None
) -> list[tuple[Any, ...]]:
    """Run a statement, and return its rows, while the main thread does nothing but wait.

    Python hands signals to its main thread. Where that is at work for DuckDB, which looks for them
    between its tasks only, Ctrl-C would be heard when a large aggregation is all but done.
    """
    if watch is None and threading.current_thread() is not threading.main_thread():
        return connection.execute(sql).fetchall()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: connection.execute(sql).fetchall())
        try:
            while watch is not None and wait([running], timeout=INTERVAL).not_done:
                watch(share_done(connection))
            return running.result()
        except BaseException:  # the statement's own error, or whatever a signal raised
            while not running.done():  # more than once: one between two statements is lost
                connection.interrupt()
                wait([running], timeout=0.05)
            raise


def execution_error(error: duckdb.Error, where: str) -> UcleError:
    """What DuckDB says of a statement, as an error of ucle."""
    message = str(error).strip()
    kind, _, detail = message.partition(": ")
    if isinstance(error, duckdb.OutOfMemoryException):
        return MemoryLimitError(
            f"DuckDB ran out of memory: {(detail or message).splitlines()[0]}",
            where=where,
            expected="a plan within DuckDB's memory_limit, or what it can spill of it",
            found=kind,
            hint="fewer threads need less memory, or raise memory_limit",
        )
    if any(sign in message for sign in OUT_OF_RANGE):
        return NumberRangeError(
            "a number does not fit its element type",
            where=where,
            expected="integers within 64 bits",
            found=(detail or message).splitlines()[0],
            hint="float64(...) around an operand computes with floats",
        )
    return ExecutionError(
        f"DuckDB could not run a statement: {detail or message}",
        where=where,
        found=kind,
        hint="program.to_sql() shows the whole script",
    )


_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_UNITS |= {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_size(text: str) -> float:
    """Bytes of a size as DuckDB writes it.

    >>> parse_size("1.5 GiB")
    1610612736.0
    """
    number = text.rstrip("bytesBKMGTi ")
    unit = _UNITS.get(text[len(number) :].strip() or "bytes", math.nan)
    with contextlib.suppress(ValueError):
        if (size := float(number) * unit) >= 0:
            return size
    raise InputError(
        "this is no size",
        where="memory limit",
        expected="a number with a unit, such as 500MB or 2 GiB",
        found=repr(text),
        hint="write the unit as B, KB, MB, GB, TB, or as KiB, MiB, GiB, TiB",
    )


def connect(
    database: str | os.PathLike[str] = ":memory:", *, read_only: bool = False, **config: Any
) -> duckdb.DuckDBPyConnection:
    """Open DuckDB with the kernels loaded.

    Args:
        database: path of a file, which is created if it does not exist, or ``:memory:``.
        read_only: open an existing file for reading.
        config: settings of DuckDB, such as ``threads=2``. Unless `block_allocator_memory` is among
            them, DuckDB keeps up to a quarter of its memory limit for reuse.

    Returns:
        An ordinary DuckDB connection on which scripts from `to_sql()` run.

    Raises:
        DatabaseError: the file cannot be opened, or is open in this process without extensions.

    >>> connection = connect()
    >>> connection.sql("SELECT inner_prod(pack([1, 2]), pack([3, 4]))").fetchall()
    [(11.0,)]
    """
    path = os.fspath(database)
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
    except ExtensionUnavailableError:
        connection.close()
        raise
    if "block_allocator_memory" not in settings:
        _keep_blocks(connection)
    return connection


def _keep_blocks(connection: duckdb.DuckDBPyConnection) -> None:
    """Let DuckDB reuse the blocks of earlier statements, up to a part of its memory limit.

    It would give them back to the system and have every page of the next statement's faulted in
    anew, which is a fifth of the time of large programs. DuckDB 1.4 has no such setting, and a
    database that is open already may have another value, which can only grow.
    """
    with contextlib.suppress(duckdb.Error):
        kept = connection.execute("SELECT current_setting('block_allocator_memory')").fetchone()
        if kept == ("0 bytes",):
            connection.execute(f"SET block_allocator_memory = '{KEPT_BLOCKS}'").fetchall()


def open_session(database: Database) -> Session:
    """A session on a path, on ``:memory:`` (also None), or on an open connection.

    A file is opened for writing if that can be had, so that results may become tables of it, and
    for reading otherwise; ucle writes to it only when asked, but for notes (`ucle.catalogue`).

    Raises:
        DatabaseError: there is no such file, or it cannot be opened.
        ArgumentTypeError: it is none of these.
    """
    if isinstance(database, duckdb.DuckDBPyConnection):
        return _session(database, owned=False)
    if not isinstance(database, str | os.PathLike | None):
        raise ArgumentTypeError(
            "this is no database",
            where="database",
            expected="the path of a DuckDB file, ':memory:' or an open DuckDB connection",
            found=f"{type(database).__module__}.{type(database).__qualname__}",
            hint="of an Ibis connection pass .con, in a dbt model session.cursor()",
        )
    path = ":memory:" if database is None else os.fspath(database)
    if path != ":memory:" and not Path(path).exists():
        raise DatabaseError(
            "there is no such database",
            where=path,
            expected="an existing DuckDB file, ':memory:' or an open connection",
            found="no file",
            hint="ucle.connect(path) makes one",
        )
    return _session(_open_file(path), owned=True)


def _open_file(path: str) -> duckdb.DuckDBPyConnection:
    """The first way to open a file that works: writable before read-only, kernels before none.

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
    message = str(error).strip()
    locked = "lock" in message.casefold()
    if isinstance(error, duckdb.InvalidInputException) and "option" in message:
        return DatabaseError(
            "DuckDB does not take a setting when it opens a database",
            where=path,
            expected="settings of a whole database, such as threads or memory_limit",
            found=message,
            hint="SET what belongs to one connection after it is open",
        )
    return DatabaseError(
        "the database is locked by another process" if locked else "the database cannot be opened",
        where=path,
        expected="a DuckDB file that no other process has open for writing",
        found=message,
        hint="close the other process, or have both open it read-only" if locked else None,
    )


_scratch: dict[int, duckdb.DuckDBPyConnection] = {}


def open_scratch() -> Session:
    """A session on a database in memory that the process keeps, for one evaluation and no more.

    Opening a database and loading the kernels takes longer than a small program; a cursor on one
    that is open takes no time. Temporary tables are the cursor's own. A forked process gets a
    database of its own, as it has none of the threads of the other.
    """
    with opening:
        if os.getpid() not in _scratch:
            _scratch[os.getpid()] = _open_file(":memory:")
        return _session(_scratch[os.getpid()].cursor(), owned=True)


_routes: weakref.WeakKeyDictionary[Any, tuple[Capabilities, str]] = weakref.WeakKeyDictionary()
"""What is known of connections that were asked before; neither setting can change."""


def _session(connection: duckdb.DuckDBPyConnection, *, owned: bool) -> Session:
    try:
        if connection in _routes:
            connection.execute("SELECT 1").fetchall()
        else:
            load_extension(connection)
            _routes[connection] = NATIVE, "the extension is loaded"
    except ExtensionUnavailableError as error:
        _routes[connection] = ARROW, error.message
        EXECUTE.info("kernels take the Arrow route: %s (%s)", error.message, error.found)
    except duckdb.Error as error:
        raise DatabaseError(
            "the connection cannot run a query",
            where="database",
            expected="an open connection without an aborted transaction",
            found=str(error).strip(),
            hint="ROLLBACK ends an aborted transaction; a closed connection has to be opened anew",
        ) from error
    capabilities, reason = _routes[connection]
    return Session(connection, capabilities, reason, owned=owned)
