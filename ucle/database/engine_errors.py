"""What DuckDB says when it refuses something, as errors of ucle.

Who calls the engine through a session gets these; whoever has to know more of a refusal asks here,
so that nobody else looks at classes of DuckDB.
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
"""What the engine raises."""

GONE = (duckdb.TransactionException, duckdb.ConnectionException)
"""What it raises where there is nothing left to undo: an aborted transaction takes its temporary
objects along, a closed connection all of them."""

CONFLICTS = (duckdb.CatalogException, duckdb.ConstraintException)
"""What it raises of names and rows that are there already, or are not there."""

INTERRUPTED = duckdb.InterruptException
"""What it raises of a statement that somebody has stopped."""

OUT_OF_RANGE = re.compile(
    r"overflow|(number|value) is out of range|out of range for|outside the range|cannot hold"
    r"|negative integer powers|Out of Range Error: (?!.*buffer)",
    re.IGNORECASE,
)
"""What DuckDB and the kernels say of a number that does not fit."""

OUTSIDE = re.compile(
    r"an index is outside of its axis: (?P<found>.*); it has coordinates below (?P<size>\d+)"
)
"""What `ucle.sqlgen.index_maps` says of an entry that is no coordinate."""

UNREADABLE = re.compile(
    r"parquet|thrift|TProtocol|snappy|zstd|gzip|brotli|lz4|decompress|checksum|corrupt"
    r"|out of buffer|magic bytes|metadata pointer|could not read|cannot open file|not a valid",
    re.IGNORECASE,
)
"""What it says of a file that is damaged, whatever kind of error that is to it."""


@contextlib.contextmanager
def errors_of_duckdb(where: str) -> Iterator[None]:
    """A block that reads: what DuckDB says of it as an error of ucle."""
    try:
        yield
    except duckdb.Error as error:
        translated = execution_error(error, where)
        if type(translated) is not ExecutionError:
            raise translated from error
        raise InputError(
            "DuckDB cannot read this",
            where=where,
            expected="tables, views and files that a query can read",
            found=gist(error_text(error)),
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
    if isinstance(error, GONE):
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
            expected="a whole file, as it was written",
            found=gist(message),
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


def unusable(error: duckdb.Error, where: str) -> DatabaseError:
    """The error for a connection on which nothing can be run."""
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
        document = json.loads(message)
        return f"{document['exception_type']} Error: {document['exception_message']}".strip()
    return message


_ADVICE = re.compile(r"\n\s*\n|\nPossible (fixes|solutions?)|\nThis can happen|\n  file = ", re.I)
"""Where DuckDB begins to say what options of its own it has, or shows its statement."""


def gist(message: str) -> str:
    r"""What matters of a message of DuckDB's, on one line: what is wrong, and where.

    >>> gist("CSV Error on Line: 3\nOriginal Line: 1\nExpected Number of Columns: 2 Found: 1\n")
    'CSV Error on Line: 3; Original Line: 1; Expected Number of Columns: 2 Found: 1'
    """
    begin = _ADVICE.split(message.strip(), maxsplit=1)[0]
    if "CSV" not in begin:
        return message.strip().splitlines()[0]
    return "; ".join(line.strip() for line in begin.splitlines() if line.strip())


def why_gone(error: BaseException | None, table: str) -> str | None:
    """Why a temporary table is not there any more, if an error of the engine is about that."""
    match error:
        case _ if lacks_memory(error):
            return None
        case duckdb.ConnectionException():
            return "its connection was closed"
        case duckdb.TransactionException():
            return "its transaction was aborted"
        case duckdb.CatalogException() if table in str(error):
            return "its transaction was rolled back"
    return None
