"""The part of a script that changes inputs: checks of rows that are told, and their keys.

Rows that were inserted and deleted are in tables that the script names. They are compared with the
state of the input, as `ucle.maintenance.told` does, and an error ends the script where they do not
fit. In tables to which rows are only appended, the rows behind the last noted one are new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from ucle.database.session import Session
from ucle.database.table_names import find_relations
from ucle.errors import ArgumentError, UnsupportedError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.inputs.inputs import parse_table_name
from ucle.maintenance.changes import weight_of
from ucle.maintenance.document import Document, Parts, WatchedInput, known_inputs
from ucle.maintenance.notes import TABLE, part_of
from ucle.plan.sources import Nulls, TableName, TableSource
from ucle.sqlgen import refresh_scripts as sql
from ucle.sqlgen.cached_texts import Rows
from ucle.sqlgen.maintained_tables import (
    appended_rows,
    changed_rows,
    rows_at,
    rows_that_differ,
    state_columns,
    state_keys,
    state_rows,
    state_rows_behind,
    state_value,
)
from ucle.sqlgen.told_changes import rows_not_at
from ucle.sqlgen.write_statements import all_rows, create_table, delete_rows, insert_rows, no_rows

Line = tuple[str, str]
"""A statement, with what it does."""

TOLD = "to_sql"


@dataclass(frozen=True)
class ChangedByScript:
    """An input that a script changes, or to which rows were appended."""

    watched: WatchedInput
    added: bool
    """True if rows are only added."""
    differs_by: bool
    """True if the table says by how much each entry differs."""
    table: Parts
    """The temporary table of changed keys."""
    query: Rows
    """Finds them."""
    before: tuple[Line, ...]
    """Statements before that table is made, and the checks among them."""
    after: tuple[Line, ...]
    """Statements that make the state the present one, and note it."""
    temporary: tuple[tuple[Parts, Rows], ...] = ()
    """Other temporary tables, with queries for their columns."""


@dataclass(frozen=True)
class Told:
    """What a script is written for."""

    inserted: Mapping[str, str] = field(default_factory=dict)
    """The names of tables, by inputs."""
    deleted: Mapping[str, str] = field(default_factory=dict)
    applied: bool = False
    """True if the inputs are changed already when the script runs."""

    def table(self, kind: str, name: str) -> Parts | None:
        """Return the table of changed rows of an input; None if there are none of this kind."""
        given = {"inserted": self.inserted, "deleted": self.deleted}[kind].get(name)
        return None if given is None else parse_table_name(given, TOLD).parts


def temporary(name: str) -> Parts:
    """Return the name of a temporary table of a script."""
    return ("temp", "main", f"delta_{name}")


def check_tables(session: Session, sources: Mapping[str, TableSource], told: Told) -> None:
    """Check that no input is a table that a script changes for another one.

    Raises:
        ArgumentError: two inputs are the same table.
    """
    if told.applied:
        return
    origins = {x: y.origin for x, y in sources.items() if isinstance(y.origin, TableName)}
    found = find_relations(session, set(origins.values()))
    for name in (*told.inserted, *told.deleted):
        place = found.get(origins[name]) if name in origins else None
        others = [x for x, y in origins.items() if x != name and found[y] == place]
        if place is not None and others:
            raise ArgumentError(
                "a script would change a table for one input, and another one reads it, too",
                where=f"{TOLD}, inputs {name} and {others[0]}",
                expected="a table of its own for each input whose rows change",
                found=str(origins[name]),
                hint="change the table first, then tell the rows of both inputs, with applied=True",
            )


def changed_inputs(
    document: Document,
    sources: Mapping[str, tuple[TableSource, Scalar]],
    told: Told,
    made: str,
) -> Iterator[ChangedByScript]:
    """Yield the inputs that a script changes.

    Args:
        document: the maintained program.
        sources: its inputs and their fills.
        told: what the script is written for.
        made: what tells the program.

    Raises:
        NameResolutionError: there is no such input.
        UnsupportedError: rows of an input are not single entries, or it is no table.
        ArgumentError: nothing can change.
    """
    names = (*told.inserted, *told.deleted)
    known, changed = known_inputs(document, names, f"{TOLD}, {document.name!r}"), 0
    for name, watched in known.items():
        source, fill = sources[name]
        named = name in names
        if not named and watched.appended is None:
            continue
        changed += 1
        _check_rows(name, source)
        finite = name in document.finite and source.dtype.kind == "f"
        given = _Input(document.name, made, watched, source, fill, finite)
        if watched.appended is None:
            yield _told(given, told)
        elif named:
            raise ArgumentError(
                "a script finds the rows that are appended to a table by itself",
                where=f"{TOLD}, input {name}",
                expected="rows that are in the table when the script runs",
                found="rows that are told",
                hint="append them first, and leave out the input",
            )
        else:
            yield _appended(given)
    if not changed:
        raise ArgumentError(
            "nothing says which inputs change",
            where=f"{TOLD}, {document.name!r}",
            expected="tables of rows in inserted= and deleted=, or inputs that are append_only",
            found="neither",
        )


def _check_rows(name: str, source: TableSource) -> None:
    several = source.dense or source.wide or source.symmetric or source.presence or source.tiles
    unlike = source.features or source.ragged or source.times or source.nulls is not Nulls.REFUSED
    if several or unlike or source.ends is not None:
        raise UnsupportedError(
            "a row of this input is no single entry",
            where=f"{TOLD}, input {name}",
            expected="a column for each key, and one for the value",
            found=str(source.origin),
            hint="refresh() follows this input",
        )


@dataclass(frozen=True)
class _Input:
    program: str
    made: str
    watched: WatchedInput
    source: TableSource
    fill: Scalar
    finite: bool

    @property
    def name(self) -> str:
        return self.watched.name

    @property
    def keys(self) -> list[str]:
        return state_keys(self.source)

    @property
    def columns(self) -> list[str]:
        return state_columns(self.source)

    @property
    def value(self) -> str | None:
        return state_value(self.source)

    def wrong(self, rows: Rows) -> Line:
        """The check that new rows have keys and values that an input may have."""
        positions = [x for n, x in enumerate(self.keys) if not self.source.is_encoded(n)]
        found = sql.wrong_rows(rows, self.keys, self.value, positions=positions, finite=self.finite)
        message = f"input {self.name}: a new row has NULL, a negative key, or a number not finite"
        return sql.check_no_rows(found, message), ""


def _told(given: _Input, told: Told) -> ChangedByScript:
    """An input whose changed rows are in tables."""
    source, name, keys, columns = given.source, given.name, given.keys, given.columns
    state = given.watched.state
    assert state is not None
    own = [*source.keys, *([] if source.value is None else [source.value])]
    new, old = (told.table(x, name) for x in ("inserted", "deleted"))
    came, went, removed = (temporary(f"{name}_{x}") for x in ("came", "went", "removed"))
    inserted, deleted, before = all_rows(came, columns), all_rows(went), all_rows(state, columns)
    lines, kinds = list[Line](), [(came, columns)]
    lines.append((_create(came, no_rows(before)), f"{name}: inserted rows"))
    if new is not None:
        read = sql.columns_of(new, list(zip(own, columns, strict=True)))
        lines.append((sql.insert_from(came, read), ""))
        message = f"input {name}: a value of an inserted row is not of its type"
        lines.append((sql.check_no_rows(rows_that_differ(read, inserted, columns), message), ""))
        lines.append(given.wrong(inserted))
    remaining, gone = before, no_rows(before)
    if old is not None:
        kinds += [(went, keys), (removed, columns)]
        pairs = list(zip(source.keys, keys, strict=True))
        lines.append((_create(went, no_rows(all_rows(state, keys))), f"{name}: deleted keys"))
        lines.append((sql.insert_from(went, sql.columns_of(old, pairs)), ""))
        message = f"input {name}: a deleted row is not there"
        lines.append((sql.check_no_rows(rows_not_at(deleted, keys, before), message), ""))
        rows = rows_at(before, [(went, keys)])
        lines.append((_create(removed, rows), f"{name}: the rows that are deleted"))
        remaining, gone = rows_not_at(before, keys, deleted), all_rows(removed, columns)
    if not source.sum_duplicates:
        message = f"input {name}: there is a row at the coordinates of an inserted one"
        taken = rows_at(remaining, [(came, keys)])
        lines.append((sql.check_no_rows(taken, message), ""))
        message = f"input {name}: two inserted rows have the same coordinates"
        lines.append((sql.check_no_rows(sql.repeated_rows(inserted, keys), message), ""))
    parts = [(1, before)]
    if told.applied:
        parts += [(1, inserted), (-1, gone)]
    message = f"input {name}: it has other changes, refresh() first"
    lines.append((sql.check_count(state_rows(source), parts, message), ""))
    if not told.applied:
        lines += _apply(given, new, None if old is None else went)
    weight = weight_of(source, given.fill)
    query = changed_rows(inserted, gone, keys, given.value, weight)
    noted = sql.note_rows(TABLE, given.program, part_of(given.watched), given.made, before, columns)
    after = [] if old is None else [delete_rows(state, deleted, keys)]
    after += [insert_rows(state, inserted), *noted]
    comments = [f"{name}: as the next refresh() has to find it", *("" for _ in after[1:])]
    return ChangedByScript(
        given.watched,
        added=old is None,
        differs_by=weight is not None,
        table=temporary(f"{name}_changed"),
        query=query,
        before=tuple(lines),
        after=tuple(zip(after, comments, strict=True)),
        temporary=tuple((x, all_rows(state, y)) for x, y in kinds),
    )


def _apply(given: _Input, new: Parts | None, went: Parts | None) -> list[Line]:
    """The statements that delete rows of a table, at the keys of another, and insert rows."""
    source, name, lines = given.source, given.name, list[Line]()
    target = _table_of(name, source)
    if went is not None:
        rows = sql.columns_of(went, list(zip(given.keys, source.keys, strict=True)))
        lines.append((delete_rows(target, rows, source.keys), f"{name}: rows are deleted"))
    if new is not None:
        lines.append((insert_rows(target, all_rows(new)), f"{name}: rows are inserted"))
    return lines


def _table_of(name: str, source: TableSource) -> Parts:
    """The table of an input, which a script changes."""
    if not source.table or not isinstance(source.origin, TableName):
        raise ArgumentError(
            "only a table can be changed by a script",
            where=f"{TOLD}, input {name}",
            expected="a table of the database, or applied=True",
            found=str(source.origin),
            hint="first change the data that it reads, then pass applied=True",
        )
    return source.origin.parts


def _appended(given: _Input) -> ChangedByScript:
    """An input to which rows are only appended."""
    source, name, keys = given.source, given.name, given.keys
    part = part_of(given.watched)
    noted = TABLE, given.program, part
    last, weight = sql.last_noted(*noted), weight_of(source, given.fill)
    query, rows = appended_rows(source, last, weight), state_rows_behind(source, last)
    assert isinstance(source.origin, TableName)
    place = source.origin.parts
    lines = [
        (sql.check_none_pending(*noted, f"input {name}: refresh() first"), ""),
        (sql.check_none_removed(*noted, place, f"input {name}: rows were removed"), ""),
        given.wrong(rows),
    ]
    table, check = temporary(f"{name}_changed"), list[Line]()
    if not source.sum_duplicates:
        message = f"input {name}: two rows have the same coordinates"
        several = sql.repeated_rows(rows_at(state_rows(source), [(table, keys)]), keys)
        check.append((sql.check_no_rows(several, message), ""))
    after = sql.note_last_row(TABLE, given.program, part, given.made, place)
    return ChangedByScript(
        given.watched,
        added=True,
        differs_by=weight is not None,
        table=table,
        query=query,
        before=tuple(lines),
        after=(*check, *((x, "") for x in after)),
    )


def _create(table: Parts, rows: Rows) -> str:
    return create_table(table, rows, replace=True, temporary=True)
