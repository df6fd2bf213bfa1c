"""DuckDB's errors translated into errors of ucle.

Calls through a session raise translated errors. Code that needs details of an error uses this
module, so that no other code depends on DuckDB's exception classes.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator

import duckdb

from ucle.errors import (
    DatabaseError,
    ExecutionError,
    InputError,
    MemoryLimitError,
    NumberRangeError,
    PositionError,
    UcleError,
)

EngineError = duckdb.Error
"""The base class of the engine's exceptions."""

OPEN_RESULT = "has an open result"
"""The words of DuckDB 2.0 where a reader of an earlier query has not come to its end."""

ENDED = (duckdb.TransactionException, duckdb.ConnectionException)
"""Exceptions of aborted transactions and closed connections."""

INVALIDATED = re.compile(r"database (\S+ )?has been invalidated", re.IGNORECASE)
"""Messages about a database that answers nothing any more.

Without memory for a checkpoint, DuckDB 2 loses the database of a connection's temporary objects.
"""

INTERRUPTION = duckdb.InterruptException
"""The exception of a statement that another thread has interrupted."""

CONFLICTS = (duckdb.CatalogException, duckdb.ConstraintException)
"""Exceptions for names and rows that already exist, or do not exist."""

OUT_OF_RANGE = re.compile(
    r"overflow|(number|value) is out of range|out of range for|outside the range|cannot hold"
    r"|negative integer powers|Out of Range Error: (?!.*buffer)",
    re.IGNORECASE,
)
"""Messages of DuckDB and the kernels about a number that does not fit."""

OUTSIDE = re.compile(
    r"an index is outside of its axis: (?P<found>.*); it has coordinates below (?P<size>\d+)"
)
"""The message of `ucle.sqlgen.index_maps` about an entry that is not a valid coordinate."""

UNREADABLE = re.compile(
    r"parquet|thrift|TProtocol|snappy|zstd|gzip|brotli|lz4|decompress|checksum|corrupt"
    r"|out of buffer|magic bytes|metadata pointer|could not read|cannot open file|not a valid",
    re.IGNORECASE,
)
"""Messages about a damaged file, whatever the class of the exception."""


@contextlib.contextmanager
def errors_of_duckdb(where: str) -> Iterator[None]:
    """Translate DuckDB's errors in a block that reads."""
    try:
        yield
    except duckdb.Error as error:
        translated = execution_error(error, where)
        if type(translated) is not ExecutionError or isinstance(error, INTERRUPTION):
            raise translated from error
        raise InputError(
            "DuckDB cannot read this",
            where=where,
            expected="tables, views and files that a query can read",
            found=gist(error_text(error)),
        ) from error


@contextlib.contextmanager
def errors_of_reader() -> Iterator[None]:
    """Turn errors of a block that reads rows by Arrow into those of DuckDB that caused them.

    Arrow has its own class for them all, and the text of DuckDB's error.
    """
    try:
        yield
    except OSError as error:
        if _OF_DUCKDB.match(message := str(error)) is None:
            raise
        interrupted = message.startswith("INTERRUPT")
        raise (INTERRUPTION if interrupted else duckdb.Error)(message) from error


_OF_DUCKDB = re.compile(r"[A-Z][\w ]* Error: ")

_LACKS_MEMORY = re.compile(
    r"(failed to|could not) (allocate|offload) (data |memory )?(of|block)|what kernels may hold",
    re.IGNORECASE,
)


def lacks_memory(error: BaseException | None) -> bool:
    """True if an error of DuckDB or a kernel means that memory is short.

    A COMMIT and kernels have messages of their own, and no class.
    """
    if isinstance(error, duckdb.OutOfMemoryException):
        return True
    return isinstance(error, duckdb.Error) and _LACKS_MEMORY.search(str(error)) is not None


def is_lost(error: BaseException | None) -> bool:
    """True if an error, or the one that it translates, is about an invalidated database."""
    if isinstance(error, UcleError):
        error = error.__cause__
    return isinstance(error, duckdb.Error) and INVALIDATED.search(str(error)) is not None


def is_gone(error: BaseException | None) -> bool:
    """True if after an error, or the one that it translates, there is nothing left to undo.

    An aborted transaction has dropped its temporary objects, a closed connection and an invalidated
    database all of them.
    """
    if isinstance(error, UcleError):
        error = error.__cause__
    return isinstance(error, ENDED) or is_lost(error)


@contextlib.contextmanager
def unless_gone() -> Iterator[None]:
    """Undo something in a block, where there is something left to undo."""
    try:
        yield
    except (duckdb.Error, UcleError) as error:
        if not is_gone(error):
            raise


def execution_error(error: duckdb.Error, where: str) -> UcleError:
    """Translate an error of a statement into an error of ucle."""
    message = error_text(error)
    kind, _, detail = message.partition(": ")
    if lacks_memory(error):
        hint = "fewer threads need less memory, or raise memory_limit"
        if is_lost(error):
            hint += "; DuckDB has lost the temporary tables of the connection: open it again"
        return MemoryLimitError(
            f"DuckDB ran out of memory: {(detail or message).splitlines()[0]}",
            where=where,
            expected="a plan within DuckDB's memory_limit, or what it can spill of it",
            found=kind,
            hint=hint,
        )
    if is_gone(error) or OPEN_RESULT in message:
        return unusable(error, where)
    if (outside := OUTSIDE.search(message)) is not None:
        return PositionError(
            "an index is outside of its axis",
            where=where,
            expected=f"coordinates from 0 to {int(outside['size']) - 1}"
            if outside["size"] != "0"
            else "no coordinate, as the axis is empty",
            found=outside["found"],
            hint="negative indices do not count from the end; ~idx[i] reads the fill outside, and "
            "bounds={...} states sizes",
        )
    if UNREADABLE.search(message) and not isinstance(error, duckdb.ConversionException):
        return InputError(
            "a file cannot be read",
            where=where,
            expected="a complete file",
            found=gist(message),
            hint="the file is damaged, or its format does not match its suffix; write it again",
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


def unusable(error: duckdb.Error, where: str) -> DatabaseError:
    """The error for a connection that cannot run anything."""
    if OPEN_RESULT in str(error):
        return DatabaseError(
            "the connection cannot run a query before an earlier one has ended",
            where=where,
            expected="a connection without an open reader",
            found=error_text(error).splitlines()[0],
            hint="relation.arrow() is a reader of a running query, and .to_arrow_table() a table; "
            "read_all() and close() of a reader end its query",
        )
    return DatabaseError(
        "the connection cannot run a query",
        where=where,
        expected="an open connection without an aborted transaction",
        found=error_text(error).splitlines()[0],
        hint="ROLLBACK ends an aborted transaction; a connection that is closed, or whose database "
        "was invalidated, has to be opened again",
    )


def error_text(error: duckdb.Error) -> str:
    """The message of an error, also in sessions that return JSON (``errors_as_json``)."""
    message = str(error).strip()
    with contextlib.suppress(ValueError, KeyError, TypeError):
        document = json.loads(message)
        return f"{document['exception_type']} Error: {document['exception_message']}".strip()
    return message


_ADVICE = re.compile(r"\n\s*\n|\nPossible (fixes|solutions?)|\nThis can happen|\n  file = ", re.I)
"""Separators where DuckDB begins to list its own options, or shows its statement."""


def gist(message: str) -> str:
    r"""The essential part of a DuckDB message, on one line: the problem and its place.

    >>> gist("CSV Error on Line: 3\nOriginal Line: 1\nExpected Number of Columns: 2 Found: 1\n")
    'CSV Error on Line: 3; Original Line: 1; Expected Number of Columns: 2 Found: 1'
    """
    begin = _ADVICE.split(message.strip(), maxsplit=1)[0]
    if "CSV" not in begin:
        return message.strip().splitlines()[0]
    return "; ".join(line.strip() for line in begin.splitlines() if line.strip())


def why_gone(error: BaseException | None, table: str) -> str | None:
    """The reason why a temporary table no longer exists, if an engine error is about that."""
    match error:
        case _ if is_lost(error):
            return "its database was invalidated"
        case _ if lacks_memory(error):
            return None
        case duckdb.ConnectionException():
            return "its connection was closed"
        case duckdb.TransactionException():
            return "its transaction was aborted"
        case duckdb.CatalogException() if table in str(error):
            return "its transaction was rolled back"
    return None
