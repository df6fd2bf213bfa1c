"""The tables of maintained programs in the database: their descriptions, states and tensors.

The descriptions are rows of the table ``ucle.maintained``. Everything that a program keeps beside
its outputs is in the schema ``ucle``, too.
"""

from __future__ import annotations

from ucle.database.session import Session
from ucle.errors import InputError, NameResolutionError, did_you_mean
from ucle.maintenance.document import Document, Parts
from ucle.maintenance.notes import forget_notes, with_notes, write_notes
from ucle.sqlgen.database_queries import SCHEMA
from ucle.sqlgen.maintained_tables import create_registry, delete_named, insert_texts
from ucle.sqlgen.write_statements import all_rows

REGISTRY: Parts = (SCHEMA, "maintained")
COLUMNS = ("name", "document")


def own_table(name: str, part: str) -> Parts:
    """Return the name of a table that a maintained program keeps for itself."""
    return (SCHEMA, f"{name}: {part}")


def read_document(session: Session, name: str) -> Document:
    """Return the description of a maintained program.

    Raises:
        NameResolutionError: no program has this name.
    """
    known = list_documents(session)
    if name not in known:
        raise NameResolutionError(
            "no program of this name is maintained here",
            where="maintained",
            expected="one of " + ", ".join(known) if known else "program.maintain(name) first",
            found=repr(name),
            hint=did_you_mean(name, list(known)),
        )
    return with_notes(session, Document.from_json(known[name]))


def list_documents(session: Session) -> dict[str, str]:
    """Return the texts of all descriptions, by the names of the programs."""
    try:
        return dict(sorted(session.read(all_rows(REGISTRY, COLUMNS).text)))
    except InputError:  # there is no such table
        return {}


def write_document(session: Session, document: Document) -> None:
    """Write the description of a program in place of the one that is there."""
    session.run(delete_named(REGISTRY, COLUMNS[0], document.name), "maintain")
    row = document.name, document.to_json()
    session.run(insert_texts(REGISTRY, len(row)), "maintain", values=row)
    write_notes(session, document)


def forget_document(session: Session, name: str) -> None:
    """Remove the description of a program, or make the table of descriptions."""
    for statement in create_registry(REGISTRY, COLUMNS):
        session.run(statement, "maintain")
    session.run(delete_named(REGISTRY, COLUMNS[0], name), "maintain")
    forget_notes(session, name)
