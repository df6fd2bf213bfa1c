"""Whether anything has run on a database since an execution ended: if not, its data is the same.

To look at how tables are stored takes as long as a small program (`ucle.database.data_versions`).
DuckDB 2 numbers the transactions of all databases of a process and all of their connections, one
after the other: each statement outside of a transaction has the next number, whatever it does. So
the statements of an execution are counted. Where the number has moved by as many, nobody else's ran
in between, and what was seen at its beginning holds at its end; where it has not moved until the
next execution, it still does. A transaction has its number from its first statement on, and might
change data when it is committed: so nothing is concluded inside of one (two questions have one
number there), nor where there were other connections, which may have had one open.

Before DuckDB 2 two questions in a row are more than one apart, and nothing is ever quiet.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import duckdb

from ucle.database.session import Session
from ucle.sqlgen.database_queries import connections_query, transaction_query


@dataclass(frozen=True)
class _Mark:
    """What is known when nothing has run since the transaction of this number."""

    number: int
    known: dict[Hashable, Any]


_marks: weakref.WeakKeyDictionary[Any, _Mark] = weakref.WeakKeyDictionary()


@dataclass
class Quiet:
    """The time from the beginning of an execution to its end, if nobody else runs anything.

    What is put into `known` is still there at the beginning of the next execution on the same
    connection, provided that nothing has run in the meantime.
    """

    session: Session
    known: dict[Hashable, Any] = field(default_factory=dict)
    _begun: tuple[int, int] | None = None

    @classmethod
    def begin(cls, session: Session) -> Quiet:
        """Begin an execution on a session that was just opened."""
        quiet = cls(session)
        if session.owned or session.file is not None:
            return quiet  # others may write to its file while it is closed
        mark = _marks.pop(session.connection, None)
        first = session.number
        if first is None:
            first, session.statements = _ask(session.connection), 0
        number = _ask(session.connection)
        if number != first + session.statements + 1:
            return quiet
        if mark is not None and first == mark.number + 1:
            quiet.known.update(mark.known)
        elif session.fetch(connections_query()) == [(1,)]:
            number += 1
        else:
            return quiet
        quiet._begun = number, session.statements
        return quiet

    def end(self) -> None:
        """End it: all results are there."""
        if self._begun is None or not self.known:
            return
        number, statements = self._begun
        ran = self.session.statements - statements
        last = _number(self.session)
        if last == number + ran + 2:
            _marks[self.session.connection] = _Mark(last, self.known)


def drop_quietly(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Run a statement that changes nothing but a temporary table of ucle's own.

    Raises:
        duckdb.Error: DuckDB refused it.
    """
    mark = _marks.pop(connection, None)
    connection.execute(statement).fetchall()
    if mark is not None:
        first, second = (_ask(connection) for _ in range(2))
        if (first, second) == (mark.number + 2, mark.number + 3):
            _marks[connection] = _Mark(second, mark.known)


def _number(session: Session) -> int | None:
    """The number of the last of two questions; None where they tell nothing."""
    first, second = (_ask(session.connection) for _ in range(2))
    return second if second == first + 1 else None


def _ask(connection: duckdb.DuckDBPyConnection) -> int:
    ((number,),) = connection.execute(transaction_query()).fetchall()
    return int(number)
