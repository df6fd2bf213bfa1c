"""Change detection: if nothing has run on a database since an execution, its data is unchanged.

Examining how tables are stored takes as long as a small program (`ucle.database.data_versions`).
DuckDB 2 numbers the transactions of all databases and connections of a process consecutively: each
statement outside of a transaction gets the next number, whatever it does. So the statements of an
execution are counted. If the transaction number has advanced by exactly that count, no other
statement ran in between, and observations from the beginning are still valid at the end. If the
number has not advanced until the next execution, they are still valid then. The same holds for
compilations: the first execution of a program does not look at the tables again. A transaction gets
its number with its first statement, and may change data when it is committed. So nothing is
concluded inside a transaction (two queries see the same number there), nor if there were other
connections, which may have had an open transaction.

Before DuckDB 2, the numbers of two consecutive queries differ by more than one, so that no
execution ever counts as quiet.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import duckdb

from ucle.database.session import Session
from ucle.database.whole_statements import fetch_all
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name
from ucle.plan.sources import TableName
from ucle.sqlgen.database_queries import connections_query, transaction_query

Facts = dict[str, dict[Any, Any]]
"""What was seen of tables, by kind, as in `Session.observed`."""

LASTING = ("relation", "state")
"""The kinds of facts that stay as long as nothing runs, by the names of tables."""


@dataclass(frozen=True)
class _Mark:
    """The facts that hold if nothing has run since the transaction with this number."""

    number: int
    seen: Facts


_marks: weakref.WeakKeyDictionary[Any, _Mark] = weakref.WeakKeyDictionary()


@dataclass
class Quiet:
    """A compilation or an execution, during which no other statement may run.

    Facts in `seen` are still there at the beginning of the next one on the same connection,
    provided that nothing has run in the meantime.
    """

    session: Session
    seen: Facts = field(default_factory=dict)
    """What was seen of tables, for `ucle.database.data_versions.observing`."""
    _begun: tuple[int, int] | None = None

    @classmethod
    def begin(cls, session: Session) -> Quiet:
        """Begin on a session that was just opened, and has changed nothing yet."""
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
            quiet.seen.update(mark.seen)
        elif session.fetch(connections_query()) == [(1,)]:
            number += 1
        else:
            return quiet
        quiet._begun = number, session.statements
        quiet.seen["transaction"] = {None: False}  # in one, both statements would have its number
        return quiet

    def end(self) -> None:
        """End it: what was to be compiled or computed is."""
        seen = _choose(self.seen, lambda _: True)
        if self._begun is None or not seen:
            return
        session = self.session
        number, statements = self._begun
        last = number + session.statements - statements
        after, counted = session.last or (number, statements)
        # In a transaction, which may yet change data, the number would be that of its beginning.
        # If another statement ran behind that one, the next execution begins with a larger number.
        if number < after == number + counted - statements:
            _marks[session.connection] = _Mark(last, seen)
        elif _number(session) == last + 2:
            _marks[session.connection] = _Mark(last + 2, seen)


@contextmanager
def changing_only(session: Session, name: str) -> Iterator[None]:
    """Run a block in which the session changes no table but one of a name.

    What is known of others stays so, unless another statement runs meanwhile. `name` is the last
    part of the name of the table: with the same one, another table might hide one that was read.
    """
    folded = fold_name(name)
    with _keeping(session, lambda table: fold_name(table.parts[-1]) != folded):
        yield


@contextmanager
def reading_only(session: Session) -> Iterator[None]:
    """Run a block in which the session only reads; what is known of all tables stays so.

    Facts of a block in which statements run that the session does not count are forgotten, and so
    are those of a block in a transaction, in which all have one number.
    """
    with _keeping(session, lambda _: True):
        yield


@contextmanager
def _keeping(session: Session, stays: Callable[[TableName], bool]) -> Iterator[None]:
    """Run a block; what is known of some tables stays so, unless another statement runs."""
    mark = _marks.pop(session.connection, None)
    if mark is None:
        yield
        return
    statements = session.statements
    yield
    if session.statements == statements:  # what others run is seen when the next execution begins
        _marks[session.connection] = mark
        return
    expected = mark.number + session.statements - statements + 2
    if _number(session) == expected:
        _marks[session.connection] = _Mark(expected, _choose(mark.seen, stays))


def _choose(seen: Facts, stays: Callable[[TableName], bool]) -> Facts:
    """The facts that last of some tables."""
    chosen = {
        kind: {table: fact for table, fact in seen[kind].items() if stays(table)}
        for kind in LASTING
        if kind in seen
    }
    return {kind: facts for kind, facts in chosen.items() if facts}


def drop_quietly(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Run a statement that changes only a temporary table of ucle's own.

    Raises:
        duckdb.Error: DuckDB refused it.
    """
    mark = _marks.pop(connection, None)
    fetch_all(connection, statement)
    if mark is not None:
        first, second = (_ask(connection) for _ in range(2))
        if (first, second) == (mark.number + 2, mark.number + 3):
            _marks[connection] = _Mark(second, mark.seen)


def _number(session: Session) -> int | None:
    """The number of the later of two queries; None if they are not consecutive."""
    first, second = (_ask(session.connection) for _ in range(2))
    return second if second == first + 1 else None


def _ask(connection: duckdb.DuckDBPyConnection) -> int:
    ((number,),) = fetch_all(connection, transaction_query())
    return int(number)
