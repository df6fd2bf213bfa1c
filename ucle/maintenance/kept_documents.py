"""The tables of maintained programs in the database: their descriptions, states and tensors.

The descriptions are rows of the table ``ucle.maintained``. Everything that a program keeps beside
its outputs is in the schema ``ucle``, too.
"""

from __future__ import annotations

from ucle.database.session import Session
from ucle.database.table_names import find_relation
from ucle.errors import NameResolutionError, did_you_mean
from ucle.maintenance.document import Document, Parts
from ucle.maintenance.notes import (
    TABLE,
    forget_notes,
    has_notes,
    with_notes,
    write_notes,
)
from ucle.plan.sources import TableName
from ucle.sqlgen.database_queries import SCHEMA
from ucle.sqlgen.maintained_tables import (
    create_registry,
    delete_named,
    insert_texts,
    replace_text,
)
from ucle.sqlgen.refresh_scripts import description_and_notes
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
    noted = has_notes(session)
    rows = session.read(description_and_notes(REGISTRY, COLUMNS, TABLE, name)) if noted else ()
    texts = [text for text, *_ in rows if text is not None]
    if not texts:
        known = list_documents(session)
        if name not in known:
            raise NameResolutionError(
                "no program of this name is maintained here",
                where="maintained",
                expected="one of " + ", ".join(known) if known else "program.maintain(name) first",
                found=repr(name),
                hint=did_you_mean(name, list(known)),
            )
        texts = [known[name]]
    notes = [tuple(note) for text, *note in rows if text is None]
    return with_notes(Document.from_json(texts[0]), notes)


def list_documents(session: Session) -> dict[str, str]:
    """Return the texts of all descriptions, by the names of the programs."""
    if find_relation(session, TableName(REGISTRY)) is None:
        return {}
    return dict(sorted(session.read(all_rows(REGISTRY, COLUMNS).text)))


def write_document(session: Session, document: Document) -> None:
    """Write the description of a program in place of the one that is there."""
    row = document.name, document.to_json()
    replaced = replace_text(REGISTRY, COLUMNS[0], document.name, COLUMNS[1])
    if session.run(replaced, "maintain", values=row[1:]) != [(1,)]:
        session.run(insert_texts(REGISTRY, len(row)), "maintain", values=row)
    write_notes(session, document)


def forget_document(session: Session, name: str) -> None:
    """Remove the description of a program, or make the table of descriptions."""
    for statement in create_registry(REGISTRY, COLUMNS):
        session.run(statement, "maintain")
    session.run(delete_named(REGISTRY, COLUMNS[0], name), "maintain")
    forget_notes(session, name)
