"""Temporary tables of results, which are dropped when no object refers to them any more.

Few and small rows may be in memory instead. Their table is made when something asks for its name:
to write and read a table takes longer than most kernels take for such rows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb

from ucle.database.change_detection import drop_quietly
from ucle.database.data_versions import in_transaction
from ucle.database.engine_errors import is_gone
from ucle.database.session import Session
from ucle.database.whole_statements import is_running
from ucle.foundation.libraries import pa
from ucle.sqlgen.script import (
    create_rows,
    drop_statement,
    sql_text,
    tuples_query,
    with_transaction,
)
from ucle.sqlgen.sql_trees import VALUE

_pending: weakref.WeakKeyDictionary[Any, list[str]] = weakref.WeakKeyDictionary()


def sweep(session: Session) -> None:
    """Drop tables of results that were garbage-collected while the connection was busy."""
    for statement in _pending.pop(session.connection, []):
        _drop(session.connection, statement)


def _drop(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    if is_running(connection):
        _pending.setdefault(connection, []).append(statement)
        return
    try:
        drop_quietly(connection, statement)
    except duckdb.Error as error:
        if not is_gone(error):
            _pending.setdefault(connection, []).append(statement)


class TemporaryTable:
    """A temporary table that is dropped when this object is collected, or by `drop`."""

    def __init__(self, session: Session, name: str, drop: str) -> None:
        self._name = name
        self._session = session
        self._values: dict[str, Any] = {}
        self._finalizer = weakref.finalize(self, _drop, session.connection, drop)

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._name

    @property
    def title(self) -> str:
        """The name of the table, for messages."""
        return self._name

    @property
    def place(self) -> tuple[str, str]:
        """The table and the column of values."""
        return self._name, VALUE

    @property
    def row(self) -> Row:
        """The table that it is."""
        return self

    @property
    def exists(self) -> bool:
        """True unless it was dropped; a rollback may have removed it unnoticed."""
        return self._finalizer.alive

    @property
    def fetched(self) -> Sequence[tuple[Any, ...]] | None:
        """The rows if they are in memory, as DuckDB's fetchall returns them; else None."""
        return None

    def value(self, column: str) -> Any:
        """Read a column of the only row, and keep it; None if there is no row.

        None, too, in a transaction, as its end may take back what the table holds.

        Raises:
            ExecutionError: the table is gone.
        """
        if column not in self._values:
            query = sql_text(with_transaction(tuples_query((self._name, column))))
            rows = self._session.run(query, f"table {self._name}")
            if rows and self._session.is_in_transaction(rows[0][1]):
                return None
            self._values[column] = rows[0][0] if rows else None
        return self._values[column]

    def drop(self) -> None:
        """Drop the table now."""
        self._finalizer()


class DeferredTable:
    """A temporary table that is made from another one when its name is asked for.

    The other table, `stored`, exists as long as this object.
    """

    def __init__(
        self, session: Session, name: str, create: Callable[[], str], stored: TemporaryTable
    ) -> None:
        """Keep how a table is made.

        Args:
            session: where it is made.
            name: the name of the table.
            create: returns the statement that makes it, unless it is there.
            stored: the table that it is made from.
        """
        self.stored = stored
        self._session = session
        self._name = name
        self._create = create
        self._table: TemporaryTable | None = None

    @property
    def name(self) -> str:
        """The name of the table, which exists from then on.

        A rollback may have taken it away since it was last asked for.
        """
        if self.exists:
            self._session.connection.execute(self._create()).fetchall()
            if self._table is None:
                drop = sql_text(drop_statement(self._name, "TABLE"))
                self._table = TemporaryTable(self._session, self._name, drop)
        return self._name

    @property
    def title(self) -> str:
        """The name of the table that it is made from, for messages."""
        return self.stored.title

    @property
    def place(self) -> tuple[str, str]:
        """The table and the column of values."""
        return self.name, VALUE

    @property
    def row(self) -> Row:
        """The table that it is."""
        _ = self.name  # which makes it
        assert self._table is not None, "the table was dropped"
        return self._table

    @property
    def exists(self) -> bool:
        """True unless it was dropped."""
        return self.stored.exists

    @property
    def fetched(self) -> Sequence[tuple[Any, ...]] | None:
        """None: it is not in memory."""
        return None

    def value(self, column: str) -> Any:
        """Read a column of the only row, as `TemporaryTable.value`."""
        return self.row.value(column)

    def drop(self) -> None:
        """Drop the table now, and the one that it is made from."""
        if self._table is not None:
            self._table.drop()
        self.stored.drop()


class FetchedRows:
    """Few rows in memory, which become a temporary table when the name of that is asked for."""

    def __init__(
        self,
        session: Session,
        name: str,
        drop: str,
        rows: Sequence[tuple[Any, ...]],
        types: Mapping[str, str],
    ) -> None:
        """Keep rows.

        Args:
            session: where their table is made.
            name: the name of the table.
            drop: the statement that drops the table.
            rows: the values of each row, as DuckDB's fetchall returns them, in their order.
            types: the SQL type of each column.
        """
        self._rows = rows
        self._session = session
        self._name = name
        self._drop = drop
        self._types = types
        self._table: TemporaryTable | None = None
        self._committed = False
        self._dropped = False

    @property
    def name(self) -> str:
        """The name of the table, which exists from then on.

        A rollback may have taken it away since it was last asked for.
        """
        if not self._dropped:
            self.table()
        return self._name

    def table(self) -> TemporaryTable:
        """Make the table, unless it exists."""
        if self._table is not None and self._committed:
            return self._table
        source = f"{self._name} rows"
        # Not by parameters: DuckDB 1.4 loses a NaN in a list of them.
        columns = [pa.array([row[n] for row in self._rows]) for n in range(len(self._types))]
        self._session.register(source, pa.table(columns, names=list(self._types)))
        try:
            create = create_rows(self._name, self._types, source)
            self._session.fetch(create, f"table {self._name}")
        finally:
            self._session.unregister(source)
        self._committed = not in_transaction(self._session)
        if self._table is None:
            self._table = TemporaryTable(self._session, self._name, self._drop)
        return self._table

    @property
    def title(self) -> str:
        """The name of the table, for messages."""
        return self._name

    @property
    def place(self) -> tuple[str, str]:
        """The table and the column of values."""
        return self.name, VALUE

    @property
    def row(self) -> Row:
        """The table that they may become."""
        return self

    @property
    def exists(self) -> bool:
        """True unless it was dropped."""
        return not self._dropped and (self._table is None or self._table.exists)

    @property
    def fetched(self) -> Sequence[tuple[Any, ...]] | None:
        """The rows."""
        return self._rows

    def value(self, column: str) -> Any:
        """The value of a column of the only row; None if there is no row."""
        return self._rows[0][list(self._types).index(column)] if self._rows else None

    def drop(self) -> None:
        """Forget the rows now."""
        self._dropped = True
        if self._table is not None:
            self._table.drop()


Row = TemporaryTable | FetchedRows
"""A table, or what can become one."""


class TemporaryColumn:
    """A column of a temporary one-row table, which readers treat as a relation of its own.

    The table exists as long as one of its columns does.
    """

    def __init__(self, row: Row, column: str) -> None:
        self._row: Row | None = row
        self._column = column
        self._title = row.title

    @property
    def title(self) -> str:
        """The name of the table, for messages."""
        return self._title

    @property
    def place(self) -> tuple[str, str]:
        """The table and the column of values."""
        return self._title if self._row is None else self._row.name, self._column

    @property
    def row(self) -> Row:
        """The row that it is a column of."""
        assert self._row is not None, "the column was dropped"
        return self._row

    @property
    def column(self) -> str:
        """The name of the column."""
        return self._column

    @property
    def exists(self) -> bool:
        """True unless it was dropped."""
        return self._row is not None and self._row.exists

    @property
    def fetched(self) -> Sequence[tuple[Any, ...]] | None:
        """The value of the column as a row, if it is in memory; else None."""
        return [(self._row.value(self._column),)] if isinstance(self._row, FetchedRows) else None

    def drop(self) -> None:
        """Drop the column now; the table is dropped with its last column."""
        self._row = None


Temporary = TemporaryTable | DeferredTable | FetchedRows | TemporaryColumn
"""The place of a stored result."""
