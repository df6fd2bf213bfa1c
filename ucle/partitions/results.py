"""Results of distributed plans, as tables of a session."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from ucle.database.session import Session
from ucle.database.temporary_tables import TemporaryTable
from ucle.foundation.libraries import pa
from ucle.pipeline.artifacts import Compiled
from ucle.run.results import Result
from ucle.sqlgen.script import drop_statement, sql_text
from ucle.sqlgen.sql_trees import identifier


def result_of(
    compiled: Compiled,
    session: Session,
    tables: Mapping[str, pa.Table],
    dictionaries: Mapping[str, pa.Table],
) -> Result:
    """Return the results of a program, in a session that the result holds from then on.

    Args:
        compiled: the program.
        session: where the rows are put.
        tables: the rows of each output, as they are stored.
        dictionaries: those of the labels that have one.
    """
    kept: dict[str, TemporaryTable] = {}
    places: dict[str, TemporaryTable] = {}
    try:
        for name, rows in dictionaries.items():
            places[name] = _put(session, rows)
        for name, rows in tables.items():
            kept[name] = _put(session, rows)
    except BaseException:
        for table in (*kept.values(), *places.values()):
            table.drop()
        raise
    return Result.of(compiled, session, kept, places)


def _put(session: Session, rows: pa.Table) -> TemporaryTable:
    name = f"ucle_{secrets.token_hex(8)}_made"
    session.register(f"{name}_rows", rows)
    try:
        quoted, source = identifier(name), identifier(f"{name}_rows")
        text = f"CREATE TEMPORARY TABLE {sql_text(quoted)} AS SELECT * FROM {sql_text(source)}"
        session.run(text, "result")
    finally:
        session.unregister(f"{name}_rows")
    return TemporaryTable(session, name, sql_text(drop_statement(name, "TABLE")))
