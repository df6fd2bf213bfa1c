"""Runs tests in the form of sqllogictest, as DuckDB's extensions have them.

The part of the form that ours use: ``require``, ``statement ok``, ``statement error`` with a piece
of the message, and ``query`` with its types and the rows that are expected, their columns between
tabs. Values are compared as DuckDB writes them, and those of type R as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb


@dataclass(frozen=True)
class Record:
    """One directive with its SQL and what is expected of it.

    `line` is that of the directive, from 1 on.
    """

    line: int
    words: tuple[str, ...]
    sql: str
    expected: tuple[str, ...]


def records(text: str) -> Iterator[Record]:
    """The records of a file; blank lines part them."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    numbers = [i for i, line in enumerate(text.splitlines(), 1) if not line.startswith("#")]
    start = 0
    while start < len(lines):
        if not lines[start].strip():
            start += 1
            continue
        end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines))
        body = lines[start + 1 : end]
        cut = body.index("----") if "----" in body else len(body)
        yield Record(
            numbers[start],
            tuple(lines[start].split()),
            "\n".join(body[:cut]),
            tuple(body[cut + 1 :]),
        )
        start = end


def _equal(kind: str, got: str, expected: str) -> bool:
    if got == expected or kind != "R":
        return got == expected
    try:
        return math.isclose(float(got), float(expected), rel_tol=1e-9)
    except ValueError:
        return False


def check_rows(record: Record, rows: Sequence[Sequence[str | None]]) -> None:
    """Raises AssertionError, unless a query gave what its record expects."""
    kinds = record.words[1]
    wanted = [tuple(line.split("\t")) for line in record.expected]
    got = [tuple("NULL" if x is None else x for x in row) for row in rows]
    same = len(got) == len(wanted) and all(
        len(row) == len(kinds) == len(other) and all(map(_equal, kinds, row, other))
        for row, other in zip(got, wanted, strict=True)
    )
    assert same, f"line {record.line}: expected {wanted}, got {got}"


def check_error(record: Record, error: str) -> None:
    """Raises AssertionError, unless a statement failed as its record expects."""
    message = "\n".join(record.expected)
    assert message, f"line {record.line}: no message is expected"
    assert error, f"line {record.line}: no error"
    assert message in error, f"line {record.line}: {error}"


def _error(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The error of a statement; empty if it succeeds."""
    try:
        connection.execute(sql).fetchall()
    except duckdb.Error as error:
        return str(error)
    return ""


def as_texts(query: str) -> str:
    """A query whose values are as DuckDB writes them."""
    return f"SELECT COLUMNS(*)::VARCHAR FROM (\n{query}\n)"


def run(
    path: Path,
    connection: duckdb.DuckDBPyConnection,
    require: Callable[[duckdb.DuckDBPyConnection, str], None],
) -> int:
    """Runs a file on a connection; returns how many records it had.

    Args:
        path: of the file.
        connection: a fresh one.
        require: loads an extension by its name.

    Raises:
        AssertionError: a record gives something else; the message has its line.
    """
    count = 0
    for record in records(path.read_text(encoding="utf-8")):
        count += 1
        match record.words:
            case ["require", name]:
                require(connection, name)
            case ["statement", "ok"]:
                connection.execute(record.sql)
            case ["statement", "error"]:
                check_error(record, _error(connection, record.sql))
            case ["query", _]:
                texts = connection.sql(as_texts(record.sql))
                check_rows(record, texts.fetchall())
            case _:
                raise AssertionError(f"line {record.line}: {' '.join(record.words)}")
    return count
