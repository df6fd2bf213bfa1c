"""Notes about the tables of maintained programs, which scripts can read and write.

The description of a program is a text that only ucle writes. What tells the rows of each table is
in a table, too: a script (`ucle.maintenance.script`) reads there which row of an input was the last
one, and writes there what it has left, so that the next refresh goes on from that.
"""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ucle.database.session import Session
from ucle.database.table_names import find_relation
from ucle.maintenance.document import Document, KeptTensor, Parts, WatchedInput
from ucle.plan.sources import TableName
from ucle.sqlgen.database_queries import SCHEMA
from ucle.sqlgen.maintained_tables import delete_named
from ucle.sqlgen.refresh_scripts import (
    NOTES,
    Note,
    create_notes,
    insert_notes,
    replace_notes,
)

TABLE: Parts = (SCHEMA, "maintained_parts")
"""The table of notes."""

NO_DIGEST = (None, None, None)

_noted: weakref.WeakSet[Any] = weakref.WeakSet()
"""Connections on which the table was seen."""


def has_notes(session: Session) -> bool:
    """True if there is the table of notes: programs that early versions maintained have none.

    A statement about a table that is not there would end a transaction.
    """
    if session.connection not in _noted and find_relation(session, TableName(TABLE)) is not None:
        _noted.add(session.connection)
    return session.connection in _noted


def part_of(part: WatchedInput | KeptTensor) -> str:
    """Return the name of an input or a kept tensor in the notes."""
    return f"input {part.name}" if isinstance(part, WatchedInput) else f"tensor {part.tensor}"


def made_of(document: Document) -> str:
    """Return what tells a program: another one of its name does not have the same."""
    inputs = [(x.name, x.spec, x.state) for x in document.inputs]
    kept = [(x.tensor, x.table, x.keys, x.encoded, x.kinds) for x in document.kept]
    facts = json.dumps(
        [document.text, document.stated, document.options, inputs, kept], default=str
    )
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


def write_notes(session: Session, document: Document) -> None:
    """Write the notes about a program as its description has them."""
    made, notes = made_of(document), list[Note]()
    parts: list[WatchedInput | KeptTensor] = [*document.inputs, *document.kept]
    for each in parts:
        rows, digest, total = (*each.digest, *NO_DIGEST)[:3]
        last = None
        if isinstance(each, WatchedInput) and each.appended is not None:
            rows, last = each.appended
            digest = each.pending[0] if each.pending else None
        notes.append((document.name, part_of(each), made, False, last, rows, digest, total))
    values = [x for note in notes for x in note]
    if session.connection not in _noted:
        _make(session)
    if session.run(replace_notes(TABLE, len(notes)), "maintain", values=values) != [(len(notes),)]:
        session.run(delete_named(TABLE, NOTES[0], document.name), "maintain")
        session.run(insert_notes(TABLE, len(notes)), "maintain", values=values)


def forget_notes(session: Session, name: str) -> None:
    """Remove the notes about a program."""
    _make(session)
    session.run(delete_named(TABLE, NOTES[0], name), "maintain")


def _make(session: Session) -> None:
    """Make the table of notes, if there is none."""
    session.run(create_notes(TABLE), "maintain")


def with_notes(document: Document, notes: Sequence[tuple[Any, ...]]) -> Document:
    """Return a description with what scripts have left, if some have run since it was written."""
    found = {row[1]: row[3:] for row in notes}
    if not any(row[0] for row in found.values()):
        return document
    inputs = tuple(_input_with(x, found.get(part_of(x))) for x in document.inputs)
    kept = tuple(
        x if (row := found.get(part_of(x))) is None else replace(x, digest=_digest(row))
        for x in document.kept
    )
    return replace(document, inputs=inputs, kept=kept)


def _input_with(watched: WatchedInput, row: tuple[object, ...] | None) -> WatchedInput:
    """An input after a script: its statistics are not known, and only told changes were seen."""
    if row is None:
        return watched
    if watched.appended is not None:
        rows, last = row[2], row[1]
        assert isinstance(rows, int)
        assert isinstance(last, int)
        return replace(watched, appended=(rows, last), facts="")
    return replace(watched, digest=_digest(row), facts="", trusts=True)


def _digest(row: tuple[object, ...]) -> tuple[int | None, ...]:
    return tuple(int(x) if isinstance(x, int) else None for x in row[2:])
