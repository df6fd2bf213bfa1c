"""Checks that rows which a caller tells fit an input, and its state as of the last refresh."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

from ucle.database.session import Session
from ucle.errors import ArgumentError, DuplicateCoordinatesError, MaintenanceError
from ucle.foundation.dataclasses import dataclass
from ucle.maintenance.states import has_types_of_input
from ucle.maintenance.told_rows import ToldRows, table_of
from ucle.plan.sources import Nulls
from ucle.sqlgen.cached_texts import Rows
from ucle.sqlgen.maintained_tables import (
    count_behind,
    named_rows,
    rows_at_few,
    rows_behind,
    rows_that_differ,
    state_columns,
    state_rows,
)
from ucle.sqlgen.told_changes import first_row, look_for, rows_not_at, rows_of_both
from ucle.sqlgen.write_statements import all_rows

NOT_THERE, OTHER_VALUE = "a deleted row is not there", "a deleted row has another value"

Row = tuple[Any, ...]
"""A row that was read."""


def check_told(session: Session, told: ToldRows, *, applied: bool) -> None:
    """Check that told rows fit an input, which is changed already if `applied`.

    Raises:
        MaintenanceError: a deleted row is not there, or the input has changed otherwise, too.
        DuplicateCoordinatesError: there is a row at the coordinates of an inserted one.
        ArgumentError: rows are deleted where they are only appended.
    """
    _Check(session, told, applied).run()


@dataclass(frozen=True)
class _Wrong:
    """Rows that no change may have, and the error if there is one."""

    rows: Rows
    refuse: Callable[[Row], NoReturn]


class _Check:
    """Checks that rows which a caller tells fit an input, and its state.

    One statement looks for all rows that do not fit; they are read only where there are some.
    """

    def __init__(self, session: Session, told: ToldRows, applied: bool) -> None:
        self._session, self._told, self._applied = session, told, applied
        self._where = f"input {told.watched.name}"

    def run(self) -> None:
        told = self._told
        if told.watched.appended is not None:
            self._check_appended()
            return
        self._check_types()
        now, expected = state_rows(told.source), told.watched.digest[0] or 0
        if self._applied:
            expected += (told.come[0] or 0) - (told.went[0] or 0)
        wrong = [*self._wrong_deleted(), *self._wrong_inserted(), *self._wrong_present(now)]
        looked = look_for(now, [each.rows for each in wrong])
        ((count, *found),) = self._session.read(looked, self._where)
        for each, is_there in zip(wrong, found, strict=True):
            if is_there:
                self._refuse(each)
        if count != expected:
            self._refuse_others(f"{expected:,} rows", f"{count:,}")

    def _check_types(self) -> None:
        told = self._told
        assert told.watched.state is not None
        if not has_types_of_input(self._session, told.watched.state, told.source):
            self._refuse_others("columns of the same types as before", "others")

    def _wrong_deleted(self) -> Iterator[_Wrong]:
        told = self._told
        if told.deleted_rows is None:
            return
        if told.source.nulls is Nulls.REFUSED or told.valued:
            missing = rows_not_at(told.deleted, told.keys, told.removed)
            yield _Wrong(missing, partial(self._refuse_deleted, NOT_THERE, "a row"))
        if told.valued:
            others = rows_that_differ(told.deleted, told.removed, state_columns(told.source))
            yield _Wrong(
                others, partial(self._refuse_deleted, OTHER_VALUE, "the rows as they were")
            )

    def _wrong_inserted(self) -> Iterator[_Wrong]:
        """Inserted rows at the coordinates of others that stay."""
        told = self._told
        if told.source.sum_duplicates or told.inserted_rows is None:
            return
        assert told.watched.state is not None
        new = told.inserted
        if told.deleted_rows is not None:  # where others are deleted, there are none to be found
            new = rows_not_at(new, told.keys, told.deleted)
        before = all_rows(told.watched.state, told.keys)
        taken = rows_at_few(before, new, told.keys, told.few)
        yield _Wrong(taken, self._refuse_taken)

    def _wrong_present(self, now: Rows) -> Iterator[_Wrong]:
        """Rows at the coordinates that were told of an input that is changed already."""
        told = self._told
        if not self._applied:
            return
        sides = (told.inserted_rows, told.inserted), (told.deleted_rows, told.deleted)
        own = [self._coordinates(rows) for given, rows in sides if given is not None]
        if not own:
            return
        at = own[0] if len(own) == 1 else rows_of_both(*own)
        # Where rows are not added up, none of the state stays at the coordinates of inserted ones.
        expected = told.inserted
        if told.source.sum_duplicates:
            expected = rows_at_few(told.now, at, told.keys, told.few)
        found = rows_at_few(now, at, told.keys, told.few)
        others = rows_that_differ(found, expected, state_columns(told.source))
        yield _Wrong(others, self._refuse_present)

    def _coordinates(self, rows: Rows) -> Rows:
        keys = self._told.keys
        return named_rows(rows, keys, keys) if keys else rows

    def _check_appended(self) -> None:
        """Check rows that are told of a table to which rows are only appended."""
        told, source = self._told, self._told.source
        assert told.watched.appended is not None
        if told.deleted_rows is not None and self._session.read(first_row(told.deleted)):
            raise ArgumentError(
                "rows are deleted from a table to which they are only appended",
                where=f"refresh, deleted rows of input {told.watched.name}",
                expected="inserted rows alone",
                found="deleted ones",
                hint="maintain the program again without append_only",
            )
        _, last = told.watched.appended
        if not self._applied or told.inserted_rows is None:
            ((new,),) = self._session.fetch(count_behind(table_of(source), last))
            if new:
                self._refuse_others("no new rows", f"{new:,}")
            return
        come = all_rows(table_of(told.inserted_rows), source.columns)
        others = rows_that_differ(rows_behind(source, last), come, source.columns)
        if rows := self._session.read(first_row(others), self._where):
            self._refuse_others("the told rows", f"others, such as {rows[0][:-1]}")

    def _refuse(self, wrong: _Wrong) -> NoReturn:
        (row,) = self._session.read(first_row(wrong.rows), self._where)
        wrong.refuse(row)

    def _position(self, row: Row) -> str:
        names = self._told.source.keys
        return ", ".join(f"{x} = {y}" for x, y in zip(names, row, strict=False)) or "no coordinates"

    def _refuse_deleted(self, message: str, expected: str, row: Row) -> NoReturn:
        raise MaintenanceError(
            message,
            where=f"refresh, deleted rows of input {self._told.watched.name}",
            expected=f"{expected}, as of the last refresh",
            found=f"one told at {self._position(row)}",
            hint="refresh() without them finds what has changed",
        )

    def _refuse_taken(self, row: Row) -> NoReturn:
        raise DuplicateCoordinatesError(
            "several rows claim the same coordinates",
            where=f"refresh, inserted rows of input {self._told.watched.name}",
            expected="rows at coordinates that have none",
            found=f"one at {self._position(row)}, where there is a row",
            hint="tell an update as a deleted row and an inserted one at its coordinates",
        )

    def _refuse_present(self, row: Row) -> NoReturn:
        kind, there = ("no", "a row") if row[-1] > 0 else ("a", "none")
        self._refuse_others(f"{kind} row with the told value at {self._position(row)}", there)

    def _refuse_others(self, expected: str, found: str) -> NoReturn:
        raise MaintenanceError(
            "the input has other changes than those that are told",
            where=f"refresh, input {self._told.watched.name}",
            expected=expected,
            found=found,
            hint="refresh() without inserted= and deleted= finds what has changed"
            if self._applied
            else "refresh() first, or applied=True if these rows are in the input already",
        )
