"""Changes of inputs that a caller tells: rows that were inserted, and rows that were deleted.

They are compared with the state of the input, and not the input with its state, so that the cost is
that of the changed rows. What they do not say is not seen: the number of rows has to fit, and, if
the caller has changed the input already, its rows at the coordinates that were told. A later
comparison finds what is still missing, and then nothing is trusted that was computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ucle.database.session import Session
from ucle.database.statistics_store import read_facts
from ucle.errors import ArgumentError, InputError, ValueTypeError
from ucle.foundation.names import fold_name
from ucle.inputs.column_types import INTEGER_TYPES, Column
from ucle.inputs.inputs import DescribedTable, describe
from ucle.inputs.relations import register_table, table_columns
from ucle.maintenance.document import Document, Parts, WatchedInput, known_inputs
from ucle.maintenance.facts import rare_keys
from ucle.maintenance.states import NO_ROWS, check_state_and_read, read_digests
from ucle.maintenance.told_checks import check_told
from ucle.maintenance.told_rows import ToldRows
from ucle.plan.sources import CsvFile, Nulls, TableName, TableSource
from ucle.sqlgen.maintained_tables import rows_at_few, state_columns, state_keys
from ucle.sqlgen.replaced_rows import rows_and_places
from ucle.sqlgen.told_changes import broken_numbers, columns_as
from ucle.sqlgen.write_statements import create_table, insert_rows, no_rows

KINDS = ("inserted", "deleted")
BROKEN = ("FLOAT", "DOUBLE", "DECIMAL")
"""Types of numbers that may be no integers."""


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
        check_told(session, each, applied=applied)
    return found


def told_tables(told: Mapping[str, Mapping[str, Any]]) -> list[TableName]:
    """Return the tables of a database among rows that a caller tells by the names of relations."""
    given = [(name, x) for rows in told.values() for name, x in rows.items() if isinstance(x, str)]
    described = [describe(name, x, name) for name, x in given]
    origins = [x.origin for x in described if isinstance(x, DescribedTable)]
    return [x for x in origins if isinstance(x, TableName)]


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
                hint="first change the data that it reads, then tell the rows with applied=True",
            )
        if (other := seen.setdefault(source.origin, name)) != name:
            raise ArgumentError(
                "the same table is changed twice",
                where=f"refresh, inputs {other} and {name}",
                expected="changes of one of them, or applied=True",
                found=str(source.origin),
                hint="tell the rows of only one; changes of the other are found by comparison",
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
        there, gone, most = None, None, 0
        if inserted is not None:
            new, _, most = self._read(KINDS[0], inserted)
            there = replace(source, origin=TableName(new), table=True)
        valued = False
        if deleted is not None:
            old, columns, count = self._read(KINDS[1], deleted)
            most += count
            gone = replace(source, origin=TableName(old), table=True)
            valued = self._own <= columns and len(self._own) > len(source.keys)
            valued = valued or not source.keys
            if not valued:
                gone = _keys_alone(gone)
        few = self._rare_keys(most)
        found = ToldRows(self._watched, source, there, gone, valued, None, NO_ROWS, NO_ROWS, few)
        if gone is not None and self._watched.state is not None:
            where = f"refresh, input {self._watched.name}"
            removed = self._name("removed")
            rows = rows_and_places(self._watched.state, state_columns(source))
            rows = rows_at_few(rows, found.deleted, found.keys, few)
            session.run(create_table(removed, rows, replace=True, temporary=True), where)
            found = replace(found, removed_rows=removed)
        return self._with_digests(found)

    def _with_digests(self, told: ToldRows) -> ToldRows:
        """Return told rows with their digests, after a check of the state that they change."""
        session, source, watched = self._session, self._source, self._watched
        comes, goes = told.inserted_rows is not None, told.removed_rows is not None
        rows = [told.inserted] * comes + [told.removed] * goes
        if watched.state is None:
            found = read_digests(session, [(x, False) for x in rows], source)
        else:
            found = check_state_and_read(session, watched, source, rows)
        return replace(
            told,
            come=found[0] if comes else told.come,
            went=found[-1] if goes else told.went,
        )

    def _rare_keys(self, rows: int) -> tuple[str, ...]:
        """Return the keys that few rows of the state have in common with so many told ones."""
        source = self._source
        before = read_facts(self._watched.facts, len(source.keys) + len(source.dense), source.dense)
        if before is None:
            return ()
        keys = state_keys(source)
        return rare_keys(keys, [float(rows)] * len(keys), before.distinct)

    def _name(self, kind: str) -> Parts:
        return ("temp", "main", f"{self._prefix}_{kind}")

    def _read(self, kind: str, relation: Any) -> tuple[Parts, frozenset[str], int]:
        """Read rows of one kind; return their table, which columns they have, and their number."""
        session, table = self._session, self._name(kind)
        where = f"refresh, {kind} rows of input {self._watched.name}"
        source = self._source
        wanted = source.keys if kind == KINDS[1] else ()
        own = [x for x in self._columns if self._applies(x)]
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
            rows = columns_as(given, [(one.name, other.name) for one, other in pairs])
            if any(one.type != other.type for one, other in pairs):  # INSERT converts them
                empty = no_rows(columns_as(source, [(x.name, x.name) for _, x in pairs]))
                session.run(create_table(table, empty, replace=True, temporary=True), where)
                ((count,),) = session.run(insert_rows(table, rows), where)
            else:
                made = create_table(table, rows, replace=True, temporary=True)
                ((count,),) = session.run(made, where)
        return table, frozenset(names), int(count)

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


def _keys_alone(source: TableSource) -> TableSource:
    """Return a source without its values."""
    return replace(
        source,
        value=None,
        dense=(),
        nesting=0,
        wide=(),
        unfit=(),
        narrowed=None,
        nulls=Nulls.REFUSED,
    )
