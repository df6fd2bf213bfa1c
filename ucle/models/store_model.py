"""Writing models into databases: a table for each weight, and a row that describes the model."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace as with_fields
from itertools import chain
from typing import Any

import numpy as np

from ucle.database.data_versions import digest
from ucle.database.macro_check import open_checked
from ucle.database.open_sessions import connect
from ucle.database.session import Database, Session
from ucle.database.statistics_cache import known_facts
from ucle.database.statistics_store import facts_text
from ucle.errors import DatabaseError, UnsupportedError
from ucle.foundation.libraries import pa
from ucle.foundation.names import fresh_prefix, unique_names
from ucle.inputs.binding import find_table
from ucle.inputs.inputs import element_type
from ucle.models.graph import Translation
from ucle.models.model_document import ModelDocument, StoredWeight
from ucle.models.model_tables import (
    NAMES,
    TEXT,
    VALUE,
    input_of,
    key_names,
    read_documents,
    table_columns,
)
from ucle.models.values import KnownNames
from ucle.models.weight_layouts import WeightLayout, choose_layouts
from ucle.models.weight_rows import weight_rows
from ucle.run.write_table import transaction
from ucle.sqlgen.database_queries import (
    MODELS,
    SCHEMA,
    create_kept,
    current_database_query,
    delete_kept,
    write_kept,
)
from ucle.sqlgen.maintained_tables import drop_table
from ucle.sqlgen.model_tables import create_names_table, create_weight_table
from ucle.sqlgen.write_statements import all_rows, insert_rows


def store_model(
    translation: Translation, database: Database, name: str, version: str, *, replace: bool
) -> ModelDocument:
    """Store a model, in one transaction.

    Args:
        translation: the model.
        database: the path of a file, which is made where it does not exist, or a connection.
        name: of the model.
        version: of the model.
        replace: True to overwrite the model of this name and version.

    Raises:
        DatabaseError: there is one already, or the database cannot be written.
        UnsupportedError: the weights are those of a stored model.
    """
    where = f"store model {name}"
    with _open(database) as session, session.writing(where), transaction(session):
        ((place,),) = session.fetch(current_database_query())
        _run(session, create_kept(place, MODELS), where)
        for old in read_documents(session, name):
            if old.version != version:
                continue
            if not replace:
                raise DatabaseError(
                    "a model of this name and version is stored already",
                    where=where,
                    expected="another name, or another version",
                    found=old.where,
                    hint="replace=True overwrites it",
                )
            drop_document(session, old, where)
        weights = _store_weights(session, translation, f"{name} {version}: ", where)
        document = ModelDocument(
            name,
            version,
            translation.statements,
            translation.sizes,
            translation.inputs,
            translation.outputs,
            weights,
            datetime.datetime.now(datetime.UTC).isoformat(),
        )
        _run(session, write_kept(place, MODELS, (name, version, document.to_json())), where)
    return document


@contextlib.contextmanager
def _open(database: Database) -> Iterator[Session]:
    """Open a session on a database; a file that does not exist is made."""
    if isinstance(database, str | os.PathLike):
        with connect(database) as connection, open_checked(connection) as session:
            yield session
    else:
        with open_checked(database) as session:
            yield session


def drop_document(session: Session, document: ModelDocument, where: str) -> None:
    """Remove a model with its tables; the session is in a transaction."""
    ((place,),) = session.fetch(current_database_query())
    about = {"name": document.name, "version": document.version}
    tables = [drop_table((SCHEMA, table)) for table in document.tables]
    _run(session, [*tables, delete_kept(place, MODELS, about)], where)


def _run(session: Session, statements: Sequence[str], where: str) -> None:
    for statement in statements:
        session.run(statement, where)


def _store_weights(
    session: Session, translation: Translation, prefix: str, where: str
) -> dict[str, StoredWeight]:
    weights = translation.weights
    arrays = {name: x for name, x in weights.items() if isinstance(x, np.ndarray)}
    for name, value in weights.items():
        if name not in arrays and not isinstance(value, KnownNames):
            raise UnsupportedError(
                "the weights of this model are tables of a database",
                where=f"{where}, weight {name}",
                expected="a model from a file or an object",
                found="a stored model",
                hint="read the file again, or copy the tables of its database",
            )
    shapes = {name: (x.shape, x.itemsize) for name, x in arrays.items()}
    layouts = choose_layouts(translation.statements, shapes)
    tables = unique_names(prefix + name for name in weights)
    written = {
        name: _write_names(session, table, weights[name], where)
        if name not in arrays
        else _write_array(session, table, arrays[name], layouts[name], where)
        for name, table in zip(weights, tables, strict=True)
    }
    columns = table_columns(session, [each.table for each in written.values()])
    return {
        name: _with_facts(session, name, with_fields(each, columns=columns[each.table]))
        for name, each in written.items()
    }


def _write_array(
    session: Session, table: str, array: Any, layout: WeightLayout, where: str
) -> StoredWeight:
    dtype = element_type(array.dtype, where)
    keys, target = key_names(len(layout.blocks)), (SCHEMA, table)
    session.run(create_weight_table(target, keys, VALUE, dtype, arrays=array.ndim > 0), where)
    chunks = weight_rows(array, layout, keys, VALUE)
    first = next(chunks)
    batches = (batch for chunk in chain([first], chunks) for batch in chunk.to_batches())
    _insert(session, target, pa.RecordBatchReader.from_batches(first.schema, batches), where)
    return StoredWeight(table, array.shape, dtype.value, layout.blocks)


def _write_names(session: Session, table: str, known: KnownNames, where: str) -> StoredWeight:
    target, count = (SCHEMA, table), len(known.names)
    session.run(create_names_table(target, NAMES), where)
    rows = pa.table([list(known.names), np.arange(count)], names=list(NAMES))
    _insert(session, target, rows, where)
    return StoredWeight(table, (count,), TEXT)


def _insert(session: Session, target: tuple[str, str], rows: Any, where: str) -> None:
    """Insert the rows of a table, or of a reader of batches.

    DuckDB keeps what is registered until the transaction ends. Of a reader nothing is left then.
    """
    name = f"{fresh_prefix()}weights"
    session.register(name, rows)
    try:
        session.run(insert_rows(target, all_rows((name,))), where)
    finally:
        session.unregister(name)


def _with_facts(session: Session, name: str, weight: StoredWeight) -> StoredWeight:
    """Measure a table that was just written."""
    labels = [f"axis{n}" for n in range(len(weight.shape) + (weight.dtype == TEXT))]
    source, fill = find_table(session, name, input_of(weight), labels)
    facts = known_facts(session, name, source.apart, fill, "transient")
    return with_fields(weight, digest=digest(session, source.apart), facts=facts_text(facts))
