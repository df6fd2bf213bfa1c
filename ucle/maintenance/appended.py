"""The last row of a table to which rows are only appended: what is behind it is new.

Rows that a transaction has inserted get their rowids when it ends. Those of a refresh in the same
transaction are remembered by their number and a digest, and found again by the next refresh.
"""

from __future__ import annotations

from dataclasses import replace

from ucle.database.session import Session
from ucle.errors import MaintenanceError
from ucle.maintenance.document import Parts, WatchedInput
from ucle.maintenance.states import read_digest
from ucle.plan.sources import TableName, TableSource
from ucle.sqlgen.maintained_tables import (
    FIRST_LOCAL,
    rowid_behind,
    rows_and_last,
    state_rows_behind,
)


def last_rows(session: Session, watched: WatchedInput, source: TableSource) -> WatchedInput:
    """Return a table to which rows are appended with what tells the present ones."""
    ((rows, last, _, pending),) = session.fetch(rows_and_last(_table_of(source)))
    return _with_pending(session, replace(watched, appended=(rows, last)), source, pending)


def rows_now(session: Session, watched: WatchedInput, source: TableSource) -> WatchedInput:
    """Return a table with what tells its present rows, of which none may be gone.

    Raises:
        MaintenanceError: rows were removed.
    """
    assert watched.appended is not None
    before, last = watched.appended
    ((rows, most, new, pending),) = session.fetch(rows_and_last(_table_of(source), last))
    if rows != before + new:
        raise MaintenanceError(
            "rows were removed from a table to which they are only appended",
            where=f"refresh, input {watched.name}",
            expected=f"{before:,} rows, and new ones behind them",
            found=f"{rows:,} rows, {new:,} of them new",
            hint="maintain the program again without append_only",
        )
    if last >= FIRST_LOCAL:  # rows up to this one may be pending, too
        pending = rows
    return _with_pending(session, replace(watched, appended=(rows, most)), source, pending)


def _with_pending(
    session: Session, watched: WatchedInput, source: TableSource, rows: int
) -> WatchedInput:
    """Return a table with a digest of the rows that have no rowid yet that lasts, if it has any."""
    assert watched.appended is not None
    if not rows:
        return replace(watched, pending=())
    pending = read_digest(session, state_rows_behind(source, watched.appended[1]), source)
    return replace(watched, pending=pending if pending[0] else ())


def settle(session: Session, watched: WatchedInput, source: TableSource) -> WatchedInput:
    """Return a table with the last row that a refresh has seen, now that it has a rowid.

    If others have appended rows at the same time, nothing tells which ones were seen: then all of
    them are new, and what was computed from them is not trusted.
    """
    if watched.appended is None or not watched.pending:
        return watched
    (rows, last), place = watched.appended, watched.pending[0] or 0
    ((found, most),) = session.fetch(rowid_behind(_table_of(source), last, place))
    seen = found == place and read_digest(session, state_rows_behind(source, last, most), source)
    if seen == watched.pending:
        return replace(watched, appended=(rows, most), pending=())
    return replace(watched, appended=(rows - place, last), pending=(), facts="", trusts=True)


def _table_of(source: TableSource) -> Parts:
    assert isinstance(source.origin, TableName)
    return source.origin.parts
