"""Rows that a caller tells, as an input and its state have them, and the changes that they make."""

from __future__ import annotations

from ucle.database.session import Session
from ucle.foundation.dataclasses import dataclass
from ucle.maintenance.document import Parts, WatchedInput
from ucle.maintenance.states import Digest
from ucle.plan.sources import TableName, TableSource
from ucle.sqlgen.cached_texts import Rows
from ucle.sqlgen.maintained_tables import (
    added_rows,
    changed_rows,
    state_columns,
    state_keys,
    state_rows,
)
from ucle.sqlgen.replaced_rows import delete_differing
from ucle.sqlgen.told_changes import rows_after, rows_of_both, stored_keys
from ucle.sqlgen.write_statements import all_rows, delete_rows, insert_rows, no_rows


@dataclass(frozen=True)
class ToldRows:
    """Rows that were inserted into an input and deleted from it.

    Those that are told are in temporary tables with the columns of the input; `inserted`, `deleted`
    and `removed` are rows with those of its state.
    """

    watched: WatchedInput
    source: TableSource
    inserted_rows: TableSource | None
    """None if none were told."""
    deleted_rows: TableSource | None
    valued: bool
    """True if the deleted rows have values, which have to be those of the input."""
    removed_rows: Parts | None
    """The rows of the state at the deleted coordinates, with their rowids, in a temporary table;
    None if no deleted rows were told, or the input has no state."""
    come: Digest
    """That of the inserted rows."""
    went: Digest
    """That of the removed ones."""
    few: tuple[str, ...] = ()
    """The keys of the state that few of its rows have in common with the told ones."""

    @property
    def keys(self) -> list[str]:
        """The columns of the keys in states."""
        return state_keys(self.source)

    @property
    def inserted(self) -> Rows:
        """The inserted rows."""
        return _rows_or_none(self.source, self.inserted_rows)

    @property
    def deleted(self) -> Rows:
        """The deleted rows as they were told, without values if they have none."""
        return _rows_or_none(self.source, self.deleted_rows)

    @property
    def removed(self) -> Rows:
        """The rows of the state at the deleted coordinates."""
        if self.removed_rows is None:
            return _rows_or_none(self.source, None)
        return all_rows(self.removed_rows, state_columns(self.source))

    @property
    def now(self) -> Rows:
        """The state as it is after the change."""
        assert self.watched.state is not None
        before = all_rows(self.watched.state, state_columns(self.source))
        if self.deleted_rows is None:
            return rows_of_both(before, self.inserted)
        return rows_after(before, self.keys, self.deleted, self.inserted)

    @property
    def tables(self) -> list[Parts]:
        """All temporary tables."""
        told = [x for x in (self.inserted_rows, self.deleted_rows) if x is not None]
        return [*map(table_of, told), *([] if self.removed_rows is None else [self.removed_rows])]


def _rows_or_none(source: TableSource, told: TableSource | None) -> Rows:
    return no_rows(state_rows(source)) if told is None else state_rows(told)


def apply_told(session: Session, told: ToldRows) -> None:
    """Delete and insert the rows that were told."""
    table, where = table_of(told.source), f"refresh, input {told.watched.name}"
    if told.deleted_rows is not None:
        keys = stored_keys(told.deleted_rows)
        session.run(delete_rows(table, keys, told.source.keys), where)
    if told.inserted_rows is not None:
        session.run(insert_rows(table, all_rows(table_of(told.inserted_rows))), where)


def told_difference(told: ToldRows, value: str | None, weight: int | float | None) -> Rows:
    """Return the keys at which rows were told to differ, as `changed_rows` does."""
    if told.removed_rows is None:
        return added_rows(told.inserted, told.keys, value, weight)
    return changed_rows(told.inserted, told.removed, told.keys, value, weight)


def keep_told(session: Session, told: ToldRows) -> None:
    """Change the state of an input as the input has changed."""
    if told.watched.state is None:
        return
    where = f"refresh, input {told.watched.name}"
    if told.removed_rows is not None:
        session.run(delete_differing(told.watched.state, told.removed_rows, told.keys), where)
    if told.inserted_rows is not None:
        session.run(insert_rows(told.watched.state, told.inserted), where)


def table_of(source: TableSource) -> Parts:
    """Return the table that a source is."""
    assert isinstance(source.origin, TableName)
    return source.origin.parts
