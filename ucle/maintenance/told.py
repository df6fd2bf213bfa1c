"""Changes of inputs that a caller tells: rows that were inserted, and rows that were deleted.

They are compared with the state of the input, and not the input with its state, so that the cost is
that of the changed rows. What they do not say is not seen: the number of rows has to fit, and, if
the caller has changed the input already, its rows at the coordinates that were told. A later
comparison finds what is still missing, and then nothing is trusted that was computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from ucle.database.session import Session
from ucle.errors import (
    ArgumentError,
    DuplicateCoordinatesError,
    InputError,
    MaintenanceError,
    ValueTypeError,
)
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name
from ucle.inputs.column_types import INTEGER_TYPES, Column
from ucle.inputs.inputs import DescribedTable, describe
from ucle.inputs.relations import register_table, table_columns
from ucle.maintenance.document import Document, Parts, WatchedInput, known_inputs
from ucle.maintenance.states import check_state, has_types_of_input
from ucle.plan.sources import CsvFile, Nulls, TableName, TableSource
from ucle.sqlgen.cached_texts import Rows
from ucle.sqlgen.maintained_tables import (
    count_behind,
    rows_at_keys_of,
    rows_behind_last,
    rows_that_changed,
    state_columns,
    state_keys,
    state_rows,
)
from ucle.sqlgen.told_changes import (
    all_of_both,
    broken_numbers,
    changed_state,
    columns_as,
    count_rows,
    first_row,
    missing_rows,
    no_rows,
    rows_too_many,
    stored_keys,
)
from ucle.sqlgen.write_statements import (
    create_table,
    delete_rows,
    insert_rows,
    none_of_rows,
    table_rows,
)

KINDS = ("inserted", "deleted")
BROKEN = ("FLOAT", "DOUBLE", "DECIMAL")
"""Types of numbers that may be no integers."""


@dataclass(frozen=True)
class ToldRows:
    """Rows that were inserted into an input and deleted from it, in temporary tables.

    `inserted_rows` and `deleted_rows` have the columns of the input; `inserted`, `deleted` and
    `removed` those of its state.
    """

    watched: WatchedInput
    source: TableSource
    inserted_rows: TableSource
    deleted_rows: TableSource
    valued: bool
    """True if the deleted rows have values, which have to be those of the input."""
    inserted: Parts
    deleted: Parts
    removed: Parts | None
    """The rows of the state at the deleted coordinates; None for an input without a state."""
    deletes: bool
    """False if no deleted rows were told: then nothing has to be looked for."""

    @property
    def keys(self) -> list[str]:
        """The columns of the keys in states."""
        return state_keys(self.source)

    @property
    def now(self) -> Rows:
        """The state as it is after the change."""
        assert self.watched.state is not None
        before, inserted = (
            table_rows(x, state_columns(self.source)) for x in (self.watched.state, self.inserted)
        )
        if not self.deletes:
            return all_of_both(before, inserted)
        return changed_state(before, self.keys, table_rows(self.deleted, self.keys), inserted)

    @property
    def tables(self) -> list[Parts]:
        """All temporary tables."""
        rows = [_parts_of(x) for x in (self.inserted_rows, self.deleted_rows)]
        states = [self.inserted, self.deleted, self.removed]
        return [*rows, *(x for x in states if x is not None)]


def read_told(
    session: Session,
    document: Document,
    sources: Mapping[str, TableSource],
    told: Mapping[str, Mapping[str, Any]],
    *,
    applied: bool,
) -> dict[str, ToldRows]:
    """Read the rows that a caller tells, and check that they fit; nothing is changed.

    Args:
        session: in a transaction.
        document: the maintained program.
        sources: its inputs.
        told: for each of `KINDS` the rows by the names of inputs.
        applied: True if the inputs are changed already.

    Raises:
        NameResolutionError: there is no such input.
        InputError: a column is missing, or rows have values of other types.
        MaintenanceError: a deleted row is not there, or the input has changed otherwise, too.
        DuplicateCoordinatesError: there is a row at the coordinates of an inserted one.
    """
    names = list(dict.fromkeys(name for kind in KINDS for name in told[kind]))
    known = known_inputs(document, names, f"refresh {document.name!r}")
    if not applied:
        _check_tables({name: sources[name] for name in names})
    found = {}
    for number, name in enumerate(names):
        rows = [told[kind].get(name) for kind in KINDS]
        reader = _Reader(session, known[name], sources[name], f"ucle_told_{number}", applied)
        found[name] = reader.read(*rows)
    for each in found.values():
        _Check(session, each, applied).run()
    return found


def apply_told(session: Session, told: ToldRows) -> None:
    """Delete and insert the rows that were told."""
    table, where = _parts_of(told.source), f"refresh, input {told.watched.name}"
    if told.deletes:
        keys = stored_keys(told.deleted_rows)
        session.run(delete_rows(table, keys, told.source.keys), where)
    session.run(insert_rows(table, table_rows(_parts_of(told.inserted_rows))), where)


def told_difference(told: ToldRows, value: str | None, weight: int | float | None) -> Rows:
    """Return the keys at which rows were told to differ, as `changed_rows` does."""
    assert told.removed is not None
    columns = state_columns(told.source)
    sides = [table_rows(x, columns) for x in (told.inserted, told.removed)]
    return rows_that_changed(*sides, told.keys, value, weight)


def keep_told(session: Session, told: ToldRows) -> None:
    """Change the state of an input as the input has changed."""
    if told.watched.state is None:
        return
    where = f"refresh, input {told.watched.name}"
    if told.deletes:
        deleted = table_rows(told.deleted, told.keys)
        session.run(delete_rows(told.watched.state, deleted, told.keys), where)
    session.run(insert_rows(told.watched.state, table_rows(told.inserted)), where)


def _check_tables(sources: Mapping[str, TableSource]) -> None:
    """Check that inputs are tables that can be changed, each of them told once."""
    seen: dict[object, str] = {}
    for name, source in sources.items():
        if not source.table or not isinstance(source.origin, TableName):
            raise ArgumentError(
                "only a table can be changed by a refresh",
                where=f"refresh, input {name}",
                expected="a table of the database, or applied=True",
                found=str(source.origin),
                hint="change what it reads, and tell it with applied=True",
            )
        if (other := seen.setdefault(source.origin, name)) != name:
            raise ArgumentError(
                "the same table is changed twice",
                where=f"refresh, inputs {other} and {name}",
                expected="changes of one of them, or applied=True",
                found=str(source.origin),
                hint="a change of the other one is found by comparison",
            )


class _Reader:
    """Reads rows that a caller tells into temporary tables."""

    def __init__(
        self,
        session: Session,
        watched: WatchedInput,
        source: TableSource,
        prefix: str,
        applied: bool,
    ) -> None:
        self._session, self._watched, self._source = session, watched, source
        self._prefix, self._applied = prefix, applied
        self._columns, _ = table_columns(session, watched.name, source)
        own = [*source.keys, *(source.wide or ([] if source.value is None else [source.value]))]
        self._own = {fold_name(x) for x in own}

    def read(self, inserted: Any, deleted: Any) -> ToldRows:
        source, session = self._source, self._session
        new, _ = self._read(KINDS[0], inserted)
        old, columns = self._read(KINDS[1], deleted)
        valued = not source.keys or (self._own <= columns and len(self._own) > len(source.keys))
        there = replace(source, origin=TableName(new), table=True)
        gone = replace(source, origin=TableName(old), table=True)
        if not valued:
            gone = replace(
                gone,
                value=None,
                dense=(),
                nesting=0,
                wide=(),
                unfit=(),
                narrowed=None,
                nulls=Nulls.REFUSED,
            )
        where = f"refresh, input {self._watched.name}"
        tables = []
        for each, kind in ((there, "came"), (gone, "went")):
            tables.append(self._name(kind))
            rows = state_rows(each)
            session.run(create_table(tables[-1], rows, replace=True, temporary=True), where)
        removed, state = None, self._watched.state
        if state is not None:
            removed = self._name("removed")
            rows = table_rows(state, state_columns(source))
            if deleted is None:
                rows = none_of_rows(state, state_columns(source))
            else:
                rows = rows_at_keys_of(rows, tables[1], state_keys(source))
            session.run(create_table(removed, rows, replace=True, temporary=True), where)
        deletes, (came, went) = deleted is not None, tables
        return ToldRows(self._watched, source, there, gone, valued, came, went, removed, deletes)

    def _name(self, kind: str) -> Parts:
        return ("temp", "main", f"{self._prefix}_{kind}")

    def _read(self, kind: str, relation: Any) -> tuple[Parts, frozenset[str]]:
        """Read rows of one kind; return their table, and which columns they have."""
        session, table = self._session, self._name(kind)
        where = f"refresh, {kind} rows of input {self._watched.name}"
        source = self._source
        wanted = source.keys if kind == KINDS[1] else ()
        own = [x for x in self._columns if self._applies(x)]
        if relation is None:
            rows = no_rows(source, [x.name for x in own])
            session.run(create_table(table, rows, replace=True, temporary=True), where)
            return table, frozenset()
        described = describe(self._watched.name, relation, f"{self._prefix} in memory")
        if not isinstance(described, DescribedTable) or isinstance(described.origin, CsvFile):
            raise InputError(
                "these are no rows",
                where=where,
                expected="the name of a table, a relation of DuckDB, or a table of Arrow, pandas "
                "or polars, with the columns of the input",
                found=type(relation).__name__,
            )
        origin = described.origin
        with register_table(session, origin, described.data, ""):
            given = TableSource(origin, (), None)
            there, _ = table_columns(session, self._watched.name, given)
            names = {fold_name(x.name): x for x in there}
            needed = {*map(fold_name, wanted)} or self._own
            self._check_columns(where, needed, names)
            pairs = [(names[fold_name(x.name)], x) for x in own if fold_name(x.name) in names]
            for one, other in pairs:
                self._check_integers(where, given, one, other)
            rows = no_rows(source, [x.name for _, x in pairs])
            session.run(create_table(table, rows, replace=True, temporary=True), where)
            columns = columns_as(given, [(one.name, other.name) for one, other in pairs])
            session.run(insert_rows(table, columns), where)
        return table, frozenset(names)

    def _applies(self, column: Column) -> bool:
        """True if rows are told with a column: those of the input, and others to be inserted."""
        return not self._applied or fold_name(column.name) in self._own

    def _check_columns(self, where: str, needed: set[str], given: Mapping[str, Column]) -> None:
        missing = [x.name for x in self._columns if fold_name(x.name) in needed - given.keys()]
        known = {fold_name(x.name) for x in self._columns}
        foreign = [] if self._applied else [y.name for x, y in given.items() if x not in known]
        if missing or foreign:
            raise InputError(
                f"there is no column {missing[0]}"
                if missing
                else f"the input has no column {foreign[0]}",
                where=where,
                expected="columns "
                + ", ".join(x.name for x in self._columns if fold_name(x.name) in needed),
                found=", ".join(x.name for x in given.values()) or "no columns",
            )

    def _check_integers(
        self, where: str, given: TableSource, column: Column, target: Column
    ) -> None:
        """Check that no number is rounded where it becomes an integer of the input."""
        if target.type not in INTEGER_TYPES or not column.type.startswith(BROKEN):
            return
        if found := self._session.read(broken_numbers(given, column.name), where):
            raise ValueTypeError(
                "a number is no integer",
                where=f"{where}, column {column.name}",
                expected=f"numbers of the type {target.type}",
                found=str(found[0][0]),
            )


class _Check:
    """Checks that rows which a caller tells fit an input, and its state."""

    def __init__(self, session: Session, told: ToldRows, applied: bool) -> None:
        self._session, self._told, self._applied = session, told, applied
        self._columns = state_columns(told.source)
        self._inserted = table_rows(told.inserted, self._columns)

    def run(self) -> None:
        if self._told.watched.appended is not None:
            self._check_appended()
            return
        self._check_state()
        if self._told.deletes:
            self._check_deleted()
        self._check_inserted()
        self._check_present()

    def _check_state(self) -> None:
        told = self._told
        assert told.watched.state is not None
        check_state(self._session, told.watched, told.source)
        if not has_types_of_input(self._session, told.watched.state, told.source):
            self._refuse_others("columns of the same types as before", "others")

    def _check_deleted(self) -> None:
        told = self._told
        assert told.watched.state is not None
        assert told.removed is not None
        before = table_rows(told.watched.state, self._columns)
        if told.source.nulls is Nulls.REFUSED or told.valued:
            deleted = table_rows(told.deleted, told.keys)
            if row := self._first(missing_rows(deleted, told.keys, before)):
                self._refuse_deleted("a deleted row is not there", "a row", row)
        if told.valued:
            rows = [table_rows(x, self._columns) for x in (told.deleted, told.removed)]
            for one, other in (rows, rows[::-1]):
                if row := self._first(rows_too_many(one, other)):
                    self._refuse_deleted(
                        "a deleted row has another value", "the rows as they were", row
                    )

    def _check_inserted(self) -> None:
        told = self._told
        assert told.watched.state is not None
        if told.source.sum_duplicates:
            return
        before = table_rows(told.watched.state, told.keys)
        taken = rows_at_keys_of(before, told.inserted, told.keys)
        if told.deletes:
            taken = missing_rows(taken, told.keys, table_rows(told.deleted, told.keys))
        if row := self._first(taken):
            raise DuplicateCoordinatesError(
                "several rows claim the same coordinates",
                where=f"refresh, inserted rows of input {told.watched.name}",
                expected="rows at coordinates that have none",
                found=f"one at {self._position(row)}, where there is a row",
                hint="tell an update as a deleted row and an inserted one at its coordinates",
            )

    def _check_present(self) -> None:
        """Check the number of rows of the input, and, if it is changed already, those told."""
        told = self._told
        assert told.watched.state is not None
        assert told.removed is not None
        expected = told.watched.digest[0] or 0
        if self._applied:
            expected += self._count(self._inserted) - self._count(table_rows(told.removed))
        now = state_rows(told.source)
        if (found := self._count(now)) != expected:
            self._refuse_others(f"{expected:,} rows", f"{found:,}")
        if not self._applied:
            return
        own = [told.inserted, *([told.deleted] if told.deletes else [])]
        keys = all_of_both(*(table_rows(x, told.keys) for x in own)) if told.deletes else own[0]
        sides = [rows_at_keys_of(x, keys, told.keys) for x in (now, told.now)]
        for kind, (one, other) in (("no", sides), ("a", sides[::-1])):
            if row := self._first(rows_too_many(one, other)):
                there = "a row" if kind == "no" else "none"
                position = self._position(row)
                self._refuse_others(f"{kind} row with the told value at {position}", there)

    def _check_appended(self) -> None:
        """Check rows that are told of a table to which rows are only appended."""
        told = self._told
        assert told.watched.appended is not None
        if self._first(table_rows(told.deleted)):
            raise ArgumentError(
                "rows are deleted from a table to which they are only appended",
                where=f"refresh, deleted rows of input {told.watched.name}",
                expected="inserted rows alone",
                found="deleted ones",
                hint="maintain the program again without append_only",
            )
        _, last = told.watched.appended
        ((new,),) = self._session.fetch(count_behind(_parts_of(told.source), last))
        expected = self._count(self._inserted) if self._applied else 0
        if new != expected:
            self._refuse_others(f"{expected:,} new rows", f"{new:,}")
        if self._applied:
            now = rows_behind_last(told.source, last)
            come = table_rows(_parts_of(told.inserted_rows), told.source.columns)
            for one, other in ((now, come), (come, now)):
                if row := self._first(rows_too_many(one, other)):
                    self._refuse_others("the told rows", f"others, such as {row}")

    def _first(self, query: Any) -> tuple[Any, ...] | None:
        rows = self._session.read(first_row(query), f"input {self._told.watched.name}")
        return rows[0] if rows else None

    def _count(self, query: Any) -> int:
        ((count,),) = self._session.read(count_rows(query), f"input {self._told.watched.name}")
        return int(count)

    def _position(self, row: tuple[Any, ...]) -> str:
        names = self._told.source.keys
        return ", ".join(f"{x} = {y}" for x, y in zip(names, row, strict=False)) or "no coordinates"

    def _refuse_deleted(self, message: str, expected: str, row: tuple[Any, ...]) -> NoReturn:
        raise MaintenanceError(
            message,
            where=f"refresh, deleted rows of input {self._told.watched.name}",
            expected=f"{expected}, as of the last refresh",
            found=f"one told at {self._position(row)}",
            hint="refresh() without them finds what has changed",
        )

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


def _parts_of(source: TableSource) -> Parts:
    assert isinstance(source.origin, TableName)
    return source.origin.parts
