"""Connections: opening databases, loading kernels, running statements, choosing the route.

A `Session` is a DuckDB connection together with what ucle may do on it. ucle closes what it opened;
on a connection of the user it leaves nothing behind but, where the kernels could be loaded, the
loaded extension.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ucle.database.database_file import DatabaseFile
from ucle.errors import (
    ArgumentError,
    DatabaseError,
    ExecutionError,
    ExtensionForbiddenError,
    ExtensionUnavailableError,
    InputError,
    MemoryLimitError,
    NumberRangeError,
    ReadOnlyError,
    UcleError,
)
from ucle.foundation import arguments as args
from ucle.foundation.arguments import door
from ucle.foundation.fork_safety import opening
from ucle.foundation.logs import EXECUTE, STATISTICS, UCLE, timed
from ucle.progress import INTERVAL, share_done
from ucle.sqlgen import ARROW, NATIVE, Capabilities
from ucle.udf_kernels import load_extension

Database = str | os.PathLike[str] | duckdb.DuckDBPyConnection | None

OUT_OF_RANGE = re.compile(
    r"overflow|(number|value) is out of range|out of range for|outside the range|cannot hold"
    r"|negative integer powers|Out of Range Error: (?!.*buffer)",
    re.IGNORECASE,
)
"""What DuckDB and the kernels say of a number that does not fit."""

UNREADABLE = re.compile(
    r"parquet|thrift|TProtocol|snappy|zstd|gzip|brotli|lz4|decompress|checksum|corrupt"
    r"|out of buffer|magic bytes|metadata pointer|could not read|cannot open file|not a valid",
    re.IGNORECASE,
)
"""What it says of a file that is damaged, whatever kind of error that is to it."""

LOCKED = re.compile(r"could not set lock|conflicting lock|being used by another process", re.I)
"""What it says of a file that another process has open."""

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
        file: DatabaseFile | None = None,
    ) -> None:
        self.connection = connection
        self.capabilities = capabilities
        self.engine = capabilities
        """What the connection can do, also where a program needs less."""
        self.reason = reason
        self.owned = owned
        self.file = file
        """The database file, where ucle opened it and nobody else in this process has it open."""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection if ucle opened it."""
        if self.file is not None:
            self.file.close()
        elif self.owned:
            self.connection.close()

    def release(self) -> None:
        """Let go of the file of a database that ucle opened; temporary tables stay."""
        if self.file is not None:
            with errors_of_duckdb(self.file.path):
                self.file.detach()

    def hold(self) -> None:
        """Have the file open for reading again, for as long as the session is."""
        if self.file is not None:
            with errors_of_duckdb(self.file.path):
                self.file.attach()

    def may_write(self, database: str) -> bool:
        """Whether a database that is open for reading can be opened for writing."""
        return self.file is not None and self.file.may_write and self.file.name == database

    @contextlib.contextmanager
    def writing(self, where: str) -> Iterator[None]:
        """A block that writes to the database: its file, if ucle opened it, is then writable.

        Raises:
            ReadOnlyError: this user may not write the file.
            DatabaseError: others have it open.
        """
        if self.file is None:
            yield
            return
        if not self.file.may_write:
            raise ReadOnlyError(
                "the database can only be read",
                where=where,
                expected="a file that this user may write",
                found=self.file.path,
            )
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self.file.writing())
            except duckdb.Error as error:
                raise DatabaseError(
                    "the database cannot be opened for writing",
                    where=where,
                    expected="a file that nobody else has open at this moment",
                    found=error_text(error).splitlines()[0],
                    hint="close other connections to it, or wait until other processes end",
                ) from error
            yield

    def fetch(self, sql: str, where: str = "database") -> list[tuple[Any, ...]]:
        """Run a query that takes no time and return all of its rows.

        Raises:
            UcleError: DuckDB refused it, as of `read`.
            KeyboardInterrupt: it was interrupted from the keyboard.
        """
        with errors_of_duckdb(where):
            try:
                return self.connection.execute(sql).fetchall()
            except RuntimeError as error:  # what DuckDB makes of the signal
                if "interrupted" in str(error):
                    raise KeyboardInterrupt from error
                raise

    def read(self, sql: str, where: str = "database") -> list[tuple[Any, ...]]:
        """Run a query over data and return all of its rows.

        Args:
            sql: the query.
            where: what it reads, for messages.

        Raises:
            DatabaseError: the connection is closed, or its transaction is aborted.
            MemoryLimitError: DuckDB ran out of the memory that it may use.
            InputError: the data cannot be read: a view that fails, a file that is damaged.
            KeyboardInterrupt: it was interrupted from the keyboard, which ends the query.
        """
        with errors_of_duckdb(where), timed(STATISTICS, logging.DEBUG, "%s", sql):
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

    def stop(self) -> None:
        """End the transaction that was begun here, whatever is left of it."""
        with contextlib.suppress(duckdb.Error):  # DuckDB has ended it itself
            self.connection.execute("ROLLBACK").fetchall()

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


@contextlib.contextmanager
def errors_of_duckdb(where: str) -> Iterator[None]:
    """A block that reads: what DuckDB says of it as an error of ucle."""
    try:
        yield
    except duckdb.Error as error:
        found = execution_error(error, where)
        if type(found) is not ExecutionError:
            raise found from error
        raise InputError(
            "DuckDB cannot read this",
            where=where,
            expected="tables, views and files that a query can read",
            found=str(error).strip().splitlines()[0],
        ) from error


_LACKS_MEMORY = re.compile(r"(failed to|could not) (allocate|offload) (data |memory )?(of|block)")


def lacks_memory(error: BaseException | None) -> bool:
    """Whether an error of DuckDB says that memory is short; a COMMIT says so in its own words."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return True
    return isinstance(error, duckdb.Error) and _LACKS_MEMORY.search(str(error)) is not None


def execution_error(error: duckdb.Error, where: str) -> UcleError:
    """What DuckDB says of a statement, as an error of ucle."""
    message = error_text(error)
    kind, _, detail = message.partition(": ")
    if lacks_memory(error):
        return MemoryLimitError(
            f"DuckDB ran out of memory: {(detail or message).splitlines()[0]}",
            where=where,
            expected="a plan within DuckDB's memory_limit, or what it can spill of it",
            found=kind,
            hint="fewer threads need less memory, or raise memory_limit",
        )
    if isinstance(error, duckdb.ConnectionException | duckdb.TransactionException):
        return _unusable(error, where)
    if UNREADABLE.search(message):
        return InputError(
            "a file cannot be read",
            where=where,
            expected="a whole file, as it was written",
            found=message.splitlines()[0],
            hint="write it anew: it is damaged, or not of the kind that its name says",
        )
    if OUT_OF_RANGE.search(message):
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


def _unusable(error: duckdb.Error, where: str) -> DatabaseError:
    return DatabaseError(
        "the connection cannot run a query",
        where=where,
        expected="an open connection without an aborted transaction",
        found=error_text(error).splitlines()[0],
        hint="ROLLBACK ends an aborted transaction; a closed connection has to be opened anew",
    )


def error_text(error: duckdb.Error) -> str:
    """What DuckDB says, also where a session has it say so in JSON (``errors_as_json``)."""
    message = str(error).strip()
    with contextlib.suppress(ValueError, KeyError, TypeError):
        told = json.loads(message)
        return f"{told['exception_type']} Error: {told['exception_message']}".strip()
    return message


_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
_UNITS |= {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}


def parse_size(text: str) -> float:
    """Bytes of a size as DuckDB writes it.

    >>> parse_size("1.5 GiB")
    1610612736.0
    """
    number = text.rstrip("bytesBKMGTPi ")
    unit = _UNITS.get(text[len(number) :].strip() or "bytes", math.nan)
    with contextlib.suppress(ValueError):
        if (size := float(number) * unit) >= 0:
            return size
    raise InputError(
        "this is not a valid size",
        where="memory limit",
        expected="a number with a unit, such as 500MB or 2 GiB",
        found=repr(text),
        hint="write the unit as B, KB, MB, GB, TB, or as KiB, MiB, GiB, TiB",
    )


@door(database=args.path, read_only=args.flag, config=args.anything)
def connect(
    database: str | os.PathLike[str] = ":memory:", *, read_only: bool = False, **config: Any
) -> duckdb.DuckDBPyConnection:
    """Open DuckDB with the kernels loaded.

    Args:
        database: path of a file, which is created if it does not exist, or ``:memory:``.
        read_only: open an existing file for reading.
        config: settings of DuckDB, such as ``threads=2``. `allow_unsigned_extensions` is true in
            any case, as the kernels are one. Unless `block_allocator_memory` is among them, DuckDB
            keeps up to a quarter of its memory limit for reuse.

    Returns:
        An ordinary DuckDB connection on which scripts from `to_sql()` run.

    Raises:
        DatabaseError: the file cannot be opened, or is open in this process without extensions.
        ArgumentError: a setting says that no extensions are allowed.

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
            hint="duckdb.connect(path) opens it without: ucle then takes the Arrow route",
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
    except ExtensionUnavailableError:
        connection.close()
        raise
    _allow_no_others(connection)
    if "block_allocator_memory" not in settings:
        _keep_blocks(connection)
    return connection


def _allow_no_others(connection: duckdb.DuckDBPyConnection) -> None:
    """Let no SQL load other native code, now that the kernels are there.

    DuckDB lets an open database become stricter. One whose settings are locked stays as it is.
    """
    with contextlib.suppress(duckdb.Error):
        connection.execute("SET allow_unsigned_extensions = false").fetchall()


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

    A file is opened for reading, and for writing while something is written to it: a result that
    becomes a table of it, views, an input that is stored, notes (`ucle.database.own_schema`). Where
    this process has it open already, that decides.

    Raises:
        DatabaseError: there is no such file, or it cannot be opened.
        ArgumentTypeError: it is none of these.
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
    if path != ":memory:" and (file := _own_file(path)) is not None:
        return _session(file.connection, owned=True, file=file)
    return _session(_open_file(path), owned=True)


def open_for_reading(path: str) -> duckdb.DuckDBPyConnection:
    """A connection to a file to which nothing can be written, with the kernels if it allows them.

    Raises:
        DatabaseError: there is no such file, or it cannot be opened for reading.
    """
    try:
        with opening:
            return duckdb.connect(path, read_only=True, config=_UNSIGNED)
    except duckdb.Error as error:
        raise _open_error(path, error) from error


def _own_file(path: str) -> DatabaseFile | None:
    """A file that nobody in this process has open for writing, or that can be read beside it.

    Raises:
        DatabaseError: another process has it locked, or it is no database.
    """
    try:
        return DatabaseFile(path, _UNSIGNED)
    except duckdb.IOException as error:
        raise _open_error(path, error) from error
    except duckdb.Error:  # it is open here, or its name is one that DuckDB keeps
        return None


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
    message = error_text(error)
    locked = isinstance(error, duckdb.IOException) and LOCKED.search(message) is not None
    if isinstance(error, duckdb.InvalidInputException) and "option" in message:
        return DatabaseError(
            "DuckDB does not take a setting when it opens a database",
            where=path,
            expected="settings of a whole database, such as threads or memory_limit",
            found=message,
            hint="SET what belongs to one connection after it is open",
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
        whole = _scratch[os.getpid()]
        cursor = whole.cursor()
    if (known := _routes.get(whole)) is not None and known[0] is ARROW:
        _routes[cursor] = known  # what it was refused, its cursors are refused, too
    session = _session(cursor, owned=True)
    _routes.setdefault(whole, _routes[cursor])
    return session


_routes: weakref.WeakKeyDictionary[Any, tuple[Capabilities, str]] = weakref.WeakKeyDictionary()
"""What is known of connections that were asked before; neither setting can change."""


def _session(
    connection: duckdb.DuckDBPyConnection, *, owned: bool, file: DatabaseFile | None = None
) -> Session:
    try:
        if connection in _routes:
            connection.execute("SELECT 1").fetchall()
        else:
            load_extension(connection)
            _routes[connection] = NATIVE, "the extension is loaded"
    except ExtensionUnavailableError as error:
        _routes[connection] = ARROW, error.message
        if isinstance(error, ExtensionForbiddenError):
            EXECUTE.info("kernels take the Arrow route: %s (%s)", error.message, error.found)
        else:
            UCLE.warning("kernels take the slower Arrow route: %s (%s)", error.message, error.found)
    except duckdb.Error as error:
        raise _unusable(error, "database") from error
    capabilities, reason = _routes[connection]
    return Session(connection, capabilities, reason, owned=owned, file=file)
