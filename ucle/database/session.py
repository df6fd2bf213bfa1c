"""Sessions: the entry point to the engine for every statement, query and table in memory.

A `Session` is a DuckDB connection with a description of what it supports. ucle closes what it
opened. On a connection of the user it leaves nothing behind except the loaded extension, where the
kernels could be loaded. No other code calls a connection (`ucle.database.engine` opens sessions).
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import shutil
import threading
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from ucle.database.database_file import DatabaseFile
from ucle.database.engine_errors import (
    error_text,
    errors_of_duckdb,
    errors_of_reader,
    execution_error,
    unless_gone,
)
from ucle.database.idle_databases import ONE, Lease
from ucle.database.whole_statements import fetch_all, unfetched
from ucle.errors import DatabaseError, InputError, MemoryLimitError, ReadOnlyError
from ucle.foundation.libraries import pa
from ucle.foundation.logs import EXECUTE, STATISTICS, log_duration
from ucle.foundation.progress import INTERVAL
from ucle.foundation.threads import borrowed_thread
from ucle.sqlgen import Capabilities
from ucle.sqlgen.database_queries import transaction_query
from ucle.sqlgen.script import sql_text, table_query
from ucle.udf_kernels import interrupt_kernels, limit_memory, register_arrow, remove_arrow

Database = str | os.PathLike[str] | duckdb.DuckDBPyConnection | None

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

COUNTING = {"enable_progress_bar": "true", "enable_progress_bar_print": "false"}
"""Settings that make DuckDB count the rows that scans have read, without printing progress."""


class Session:
    """A connection with a route; use it as a context manager, or call `close`."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        capabilities: Capabilities,
        reason: str,
        *,
        owned: bool,
        private: bool = False,
        file: DatabaseFile | None = None,
        lease: Lease | None = None,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        self.connection = connection
        self.capabilities = capabilities
        self.offered = capabilities
        """The capabilities of the connection, even if a program needs fewer."""
        self.reason = reason
        self.owned = owned
        self.statements = 0
        """The number of counted statements run here (`ucle.database.change_detection`)."""
        self.observed: dict[str, dict[Hashable, Any]] | None = None
        """Facts that hold for a while, by kind (`ucle.database.data_versions.observing`)."""
        self.transaction = False
        """True in a block that is known to be in one transaction (`ucle.run.write_table`)."""
        self.private = private
        """True for the database in memory in which only ucle creates objects and sets limits."""
        self.interruptible = True
        """False where no keyboard is, and processes are ended from outside: there is no thread."""
        self.number: int | None = None
        """The number of the transaction that checked that the connection is open."""
        self.began: int | None = None
        """That number, during the execution that the session was opened for."""
        self.last: tuple[int, int] | None = None
        """The number of a counted statement outside of a transaction, and its count."""
        self.file = file
        """The database file, if ucle opened it and nothing else in this process has it open."""
        self._lease = lease if file is None else file.lease
        if self._lease is not None:
            collected = self._lease.close_collected if file is None else file.close_collected
            weakref.finalize(self, collected).atexit = False
        self._turn = turn or contextlib.nullcontext()
        """A lock, if other threads use the same database independently of this session."""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection if ucle opened it."""
        if self.file is not None:
            self.file.close()
        elif self._lease is not None:
            self._lease.end()
        elif self.owned:
            self.connection.close()

    def beside(self) -> Session:
        """Return another session on the connection, for a program with a route of its own.

        It closes nothing, and knows nothing but that the connection is open and was checked.
        """
        other = Session(self.connection, self.offered, self.reason, owned=False, turn=self._turn)
        other.transaction = self.transaction
        return other

    def release(self) -> None:
        """Detach the file of a database that ucle opened; temporary tables stay."""
        if self.file is not None:
            with errors_of_duckdb(self.file.path):
                self.file.detach()

    def look_once(
        self, kind: str, of: Iterable[K], look: Callable[[list[K]], Mapping[K, V]]
    ) -> dict[K, V]:
        """Look up facts; while the session observes, each is looked up once.

        Args:
            kind: the kind of facts.
            of: what they are facts of.
            look: finds those that are not known.
        """
        asked = list(of)
        known: dict[Any, Any] = {} if self.observed is None else self.observed.setdefault(kind, {})
        if unseen := [each for each in asked if each not in known]:
            known.update(look(unseen))
        return {each: known[each] for each in asked}

    def hold(self) -> None:
        """Attach the file for reading again, until the session ends."""
        if self.file is not None:
            with errors_of_duckdb(self.file.path):
                self.file.attach()

    def may_write(self, database: str) -> bool:
        """True if a database that is open for reading can be opened for writing."""
        return self.file is not None and self.file.may_write and self.file.name == database

    @contextlib.contextmanager
    def writing(self, where: str) -> Iterator[None]:
        """Make the database writable within a block, reopening its file if ucle opened it.

        Raises:
            ReadOnlyError: this user may not write the file.
            DatabaseError: others have it open.
        """
        self._share()
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
        """Run a fast query and return all of its rows.

        Raises:
            UcleError: DuckDB refused it, as for `read`.
            KeyboardInterrupt: it was interrupted from the keyboard.
        """
        with errors_of_duckdb(where):
            self.statements += 1
            try:
                return fetch_all(self.connection, sql)
            except RuntimeError as error:  # DuckDB's translation of the signal
                if "interrupted" in str(error):
                    raise KeyboardInterrupt from error
                raise

    def read(self, sql: str, where: str = "database") -> list[tuple[Any, ...]]:
        """Run a query over data and return all of its rows.

        Args:
            sql: the query.
            where: the object that it reads, for messages.

        Raises:
            DatabaseError: the connection is closed, or its transaction is aborted.
            MemoryLimitError: DuckDB ran out of the memory that it may use.
            InputError: the data cannot be read: a view that fails, a file that is damaged.
            KeyboardInterrupt: it was interrupted from the keyboard, which ends the query.
        """
        with errors_of_duckdb(where), log_duration(STATISTICS, logging.DEBUG, "%s", sql):
            self.statements += 1
            return self._rows(sql)

    def _rows(
        self,
        sql: str,
        watch: Callable[[float], object] | None = None,
        values: Sequence[Any] | None = None,
    ) -> list[tuple[Any, ...]]:
        if self.interruptible:
            return _run_interruptibly(self.connection, sql, watch, values)
        return fetch_all(self.connection, sql, values)

    def batches(self, sql: str, rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query over data and yield its rows in batches of this size.

        Errors are as for `read`.
        """
        logged = log_duration(STATISTICS, logging.DEBUG, "%s", sql)
        with errors_of_duckdb("database"), errors_of_reader(), logged:
            yield from self.reader(sql, rows)

    def reader(self, sql: str, rows: int) -> pa.RecordBatchReader:
        """Run a query and return a reader of its rows in batches of about this size.

        Raises:
            EngineError: DuckDB refused it, possibly only while rows are read.
        """
        self.statements += 2  # DuckDB binds a relation in a transaction, and runs it in another
        relation: Any = self.connection.sql(sql)
        modern = hasattr(relation, "to_arrow_reader")  # DuckDB 2.0 renamed the method
        return (relation.to_arrow_reader if modern else relation.fetch_arrow_reader)(rows)

    def table(self, sql: str) -> pa.Table:
        """Return all rows of a query as an Arrow table; errors are as for `reader`."""
        self.statements += 3  # one more than a reader takes, by measurement
        relation: Any = self.connection.sql(sql)
        modern = hasattr(relation, "to_arrow_table")  # DuckDB 2.0 renamed the method
        return (relation.to_arrow_table if modern else relation.fetch_arrow_table)()

    def one_row(self, sql: str) -> dict[str, Any]:
        """Return the only row of a query, by column name; errors are as for `reader`."""
        self.statements += 1
        with unfetched(self.connection):
            cursor = self.connection.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            (row,) = cursor.fetchall()
        return dict(zip(names, row, strict=True))

    def relation(self, sql: str, *held: object) -> duckdb.DuckDBPyRelation:
        """Return a query as a relation for the user, which keeps the `held` objects alive."""
        self._share()
        relation = self.connection.sql(sql)
        if type(relation).__module__ == "_duckdb":
            # Up to DuckDB 1.5, a derived relation keeps alive its data but not its parent.
            holder = pa.table({"held": [True]})
            weakref.finalize(holder, _let_go, *held)
            source = sql_text(table_query("holder")).replace("*", "held", 1)
            text = f"FROM ({relation.sql_query()}) WHERE ({source})"
            with contextlib.suppress(duckdb.Error):  # replacement scans may be off
                return self.connection.sql(text)
        weakref.finalize(relation, _let_go, *held)
        return relation

    def relation_of(self, table: pa.Table) -> duckdb.DuckDBPyRelation:
        """Return a table in memory as a relation for the user."""
        self._share()
        return self.connection.from_arrow(table)

    def _share(self) -> None:
        """Record that others may create objects in the database from now on."""
        if self._lease is not None:
            self._lease.shared = True

    def register(self, name: str, data: Any) -> None:
        """Make a table in memory visible to queries under a name.

        Raises:
            ExecutionError: DuckDB cannot read it.
            DatabaseError: the connection cannot be used any more.
        """
        self.statements += 2  # DuckDB binds the table, and creates a view of it
        try:
            register(self.connection, name, data)
        except duckdb.Error as error:
            raise execution_error(error, f"table {name}") from error

    def unregister(self, name: str) -> None:
        """Undo `register`, unless the connection is gone, and the view with it."""
        self.statements += 2  # it looks whether there is a view, and drops it
        with unless_gone():
            self.connection.unregister(name)

    def register_kernels(self, prefix: str, names: Collection[str]) -> tuple[str, ...]:
        """Register kernels under prefixed names, if no extension provides them."""
        return register_arrow(self.connection, prefix, names)

    def remove_kernels(self, names: Iterable[str]) -> None:
        """Undo `register_kernels`, given the names that it returned, unless they are gone."""
        with unless_gone():
            remove_arrow(self.connection, names)

    def alone(self, statements: Iterable[str]) -> None:
        """Run statements in one transaction on a separate connection.

        Raises:
            EngineError: DuckDB refused one, and none of them has any effect.
        """
        with self.connection.cursor() as cursor:  # closing it rolls back what is not committed
            for statement in ("BEGIN", *statements, "COMMIT"):
                cursor.execute(statement).fetchall()

    @contextlib.contextmanager
    def enable_counting(self) -> Iterator[None]:
        """Enable DuckDB's progress counts within a block, then restore the previous settings."""
        before = {}
        try:
            with contextlib.suppress(duckdb.Error):
                for name, value in COUNTING.items():
                    ((before[name],),) = fetch_all(
                        self.connection, "SELECT current_setting(?)", [name]
                    )
                    self.connection.execute(f"SET {name} = {value}").fetchall()
            yield
        finally:
            with contextlib.suppress(duckdb.Error):  # an aborted transaction, a closed connection
                for name, value in before.items():
                    self.connection.execute(f"SET {name} = {str(value).lower()}").fetchall()

    @contextlib.contextmanager
    def wide_columns(self) -> Iterator[None]:
        """Let columns of BLOBs in Arrow results exceed the sizes that 32-bit offsets allow.

        The setting is for the whole database: sessions of ucle that share one take turns.
        """
        with self._turn, self._setting_turned("arrow_large_buffer_size", True):
            yield

    @contextlib.contextmanager
    def strict_casts(self) -> Iterator[None]:
        """Let no list become text by itself within a block.

        DuckDB 1 has a setting of the whole database, off by default, under which the first element
        of a list is the first character of its text.
        """
        if not ONE:
            yield
            return
        with self._turn, self._setting_turned("old_implicit_casting", False):
            yield

    @contextlib.contextmanager
    def _setting_turned(self, name: str, on: bool) -> Iterator[None]:
        """Turn a setting on or off within a block, if it is not so already."""
        changes = bool(self.setting(name)) is not on
        if changes:
            self.connection.execute(f"SET {name} = {str(on).lower()}").fetchall()
        try:
            yield
        finally:
            if changes:  # not in a transaction that was aborted, where nothing can be set
                with unless_gone(), self.connection.cursor() as cursor:
                    cursor.execute(f"SET {name} = {str(not on).lower()}").fetchall()

    @contextlib.contextmanager
    def limited_memory(self, more: float, kernels: float) -> Iterator[None]:
        """Limit the memory that DuckDB takes within a block, beyond what it holds before.

        The settings are for the whole database: sessions of ucle that share one take turns.

        Args:
            more: bytes.
            kernels: the bytes that kernels may hold beside them.

        Raises:
            MemoryLimitError: DuckDB cannot free what it holds beyond that.
        """
        with self._turn:
            query = "SELECT current_setting('memory_limit'), sum(memory_usage_bytes)"
            ((before, held),) = self.fetch(f"{query} FROM duckdb_memory()")
            size = int(held or 0) + int(more)
            if size >= parse_size(str(before)):
                yield
                return
            try:
                self.connection.execute(f"SET memory_limit = '{size}B'").fetchall()
            except duckdb.Error as error:
                raise MemoryLimitError(
                    "the memory of DuckDB cannot be limited to what is free",
                    where="memory_limit",
                    expected=f"at most {size:.3g} bytes",
                    found=error_text(error).splitlines()[0],
                    hint="set memory_limit on the connection, or free memory",
                ) from error
            try:
                if self.offered.native_aggregates:
                    limit_memory(self.connection, int(kernels))
                yield
            finally:
                # On a cursor, also after an aborted transaction.
                with unless_gone(), self.connection.cursor() as cursor:
                    # DuckDB cuts off what it prints, and would come out lower each time.
                    number, unit = str(before).split()
                    cursor.execute(f"SET memory_limit = '{number}5 {unit}'").fetchall()
                    if self.offered.native_aggregates:
                        limit_memory(cursor)

    def run(
        self,
        sql: str,
        where: str,
        watch: Callable[[float], object] | None = None,
        values: Sequence[Any] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows; a statement that writes returns the number of rows.

        Args:
            sql: the statement.
            where: its description, for messages.
            watch: receives the completed share of the statement at intervals.
            values: those of its parameters.

        Raises:
            ExecutionError: DuckDB refused it.
            MemoryLimitError: DuckDB ran out of the memory that it may use.
            KeyboardInterrupt: it was interrupted from the keyboard, which ends the statement.
        """
        try:
            self.statements += 1
            with log_duration(EXECUTE, logging.DEBUG, "%s: %s", where, sql):
                return self._rows(sql, watch, values)
        except duckdb.Error as error:
            raise execution_error(error, where) from error

    def check_open(self) -> None:
        """Raise DuckDB's error if the connection is closed, in a microsecond."""
        self.connection.query_progress()

    def is_in_transaction(self, number: int) -> bool:
        """True if the last statement, which had this number, is in a transaction still open."""
        if self.transaction:
            return True
        if self.owned or self.private:
            return False
        if self.began is not None and self.began != number:  # all of a transaction have one
            self.last = number, self.statements
            return False
        return bool(self.fetch(transaction_query()) == [(number,)])

    def stop(self) -> None:
        """Roll back the transaction that was begun here, if it is still open."""
        with contextlib.suppress(duckdb.Error):  # DuckDB has already ended it
            self.connection.execute("ROLLBACK").fetchall()

    def setting(self, name: str) -> Any:
        """The value of a DuckDB setting."""
        return self.fetch(f"SELECT current_setting('{name}')")[0][0]

    @property
    def resources(self) -> tuple[float, int]:
        """DuckDB's memory limit in bytes, and its number of threads."""
        settings = "SELECT current_setting('memory_limit'), current_setting('threads')"
        ((memory, threads),) = self.fetch(settings)
        return parse_size(str(memory)), int(threads)

    @property
    def memory_limit(self) -> float:
        """DuckDB's memory limit in bytes."""
        return self.resources[0]

    @property
    def spill_limit(self) -> float:
        """The bytes that DuckDB may write to disk where memory is short; 0 without a folder."""
        settings = "current_setting('temp_directory'), current_setting('max_temp_directory_size')"
        ((folder, most),) = self.fetch(f"SELECT {settings}")
        if not folder:
            return 0.0
        places = (Path(folder).absolute(), *Path(folder).absolute().parents)
        free = float(shutil.disk_usage(next(x for x in places if x.exists())).free)
        # A share of the disk by default, as text that says so.
        return free if "%" in str(most) else min(free, parse_size(str(most)))

    @property
    def threads(self) -> int:
        """DuckDB's number of threads."""
        return self.resources[1]


def _run_interruptibly(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    watch: Callable[[float], object] | None = None,
    values: Sequence[Any] | None = None,
) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows while the main thread only waits.

    Python delivers signals to its main thread. If that runs DuckDB, which checks for signals only
    between its tasks, Ctrl-C would take effect only when a large aggregation is almost finished.
    """
    if watch is None and threading.current_thread() is not threading.main_thread():
        return fetch_all(connection, sql, values)
    begun, stopped, ended = threading.Event(), threading.Event(), threading.Event()

    def statement() -> list[tuple[Any, ...]]:
        begun.set()
        try:
            return [] if stopped.is_set() else fetch_all(connection, sql, values)
        finally:
            ended.set()

    with borrowed_thread() as pool:
        try:
            running, done = pool.submit(statement), 0.0
            while watch is not None and wait([running], timeout=INTERVAL).not_done:
                done = max(done, _share_done(connection))  # DuckDB resets it at a statement's end
                watch(done)
            return running.result()
        except BaseException:  # the statement's own error, or whatever a signal raised
            stopped.set()  # a signal may arrive while the statement is being submitted
            while begun.is_set() and not ended.is_set():
                connection.interrupt()  # repeatedly: one between two statements is lost,
                interrupt_kernels()  # and one before a kernel listens
                ended.wait(0.05)
            raise


def _share_done(connection: duckdb.DuckDBPyConnection) -> float:
    """The completed share of the running statement; 0 if DuckDB does not know it."""
    return min(max(_percent_done(connection) / 100, 0.0), 1.0)


def _percent_done(connection: duckdb.DuckDBPyConnection) -> float:
    """DuckDB's progress of the running statement in per cent; negative if unknown."""
    try:
        return float(connection.query_progress())
    except (AttributeError, duckdb.Error):  # an old DuckDB; nothing is running
        return -1.0


def register(connection: duckdb.DuckDBPyConnection, name: str, data: Any) -> None:
    """Make a table in memory visible to queries on a connection under a name."""
    connection.register(name, data)


def _let_go(*_: object) -> None:
    """Do nothing; called with the objects that a relation has held when it is gone."""


_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
_UNITS |= {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}


def parse_size(text: str) -> float:
    """Parse a size as DuckDB writes it, into bytes.

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
