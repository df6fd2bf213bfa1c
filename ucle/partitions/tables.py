"""Rows of a program's tables and dictionaries, read where it was compiled."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from ucle.database.session import Session
from ucle.errors import CoordinateError
from ucle.foundation.libraries import pa
from ucle.inputs.states import BoundInput
from ucle.plan.sources import Dictionary, InMemory, TableSource
from ucle.run.execute import memory_tables
from ucle.sqlgen.input_tables import dictionary_query, table_rows
from ucle.sqlgen.script import sql_text


def rows_of(session: Session, source: TableSource, inputs: Mapping[str, BoundInput]) -> pa.Table:
    """Return the rows of a table; `inputs` have those in memory."""
    with _registered(session, [source], inputs):
        return session.table(sql_text(table_rows(source)))


def dictionary_rows(
    session: Session, dictionary: Dictionary, inputs: Mapping[str, BoundInput]
) -> pa.Table:
    """Return the ids of a dictionary, with their positions.

    Args:
        session: sees the tables that have them.
        dictionary: which ids.
        inputs: those in memory among these tables.

    Raises:
        CoordinateError: there are more ids, or fewer, than the program was compiled for.
    """
    with _registered(session, [source for source, _ in dictionary.columns], inputs):
        rows = session.table(sql_text(dictionary_query(dictionary, "")))
    if len(rows) != dictionary.size:
        raise CoordinateError(
            "the number of ids differs from that for which the program was compiled",
            where=f"dictionary {dictionary.name}",
            expected=f"{dictionary.size} different ids",
            found=str(len(rows)),
            hint="a table has changed: compile the program again",
        )
    return rows


@contextlib.contextmanager
def _registered(
    session: Session, sources: Sequence[TableSource], inputs: Mapping[str, BoundInput]
) -> Iterator[None]:
    """A context in which a session sees the tables in memory among some sources."""
    wanted = {x.origin.name for x in sources if isinstance(x.origin, InMemory)}
    tables = {name: data for name, data in memory_tables(inputs).items() if name in wanted}
    try:
        for name, data in tables.items():
            session.register(name, data)
        yield
    finally:
        for name in tables:
            session.unregister(name)
