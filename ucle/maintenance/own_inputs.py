"""Inputs that belong to a maintained program: the positions and coordinates that it selects.

Slices, lists of positions and `sel` make tables in memory, which are a part of the program as much
as its text is. They are kept as tables of the program, and never change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ucle.database.session import Session
from ucle.foundation.libraries import pa
from ucle.foundation.names import fresh_prefix
from ucle.inputs.inputs import quoted_name
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import TableInput
from ucle.maintenance.document import Parts, WatchedInput, spec_of
from ucle.plan.sources import TableSource
from ucle.sqlgen.maintained_tables import short_digests
from ucle.sqlgen.write_statements import all_rows, create_table


def is_selection(given: Any) -> bool:
    """True for an input in memory that lists what a lazy tensor selects."""
    in_memory = isinstance(given, TableInput) and isinstance(given.relation, pa.Table)
    return in_memory and (given.picks or bool(given.positions))


def keep_selection(
    session: Session, tensor: str, given: TableInput, bound: BoundInput, table: Parts
) -> WatchedInput:
    """Write an input that lists what is selected into a table of the program.

    Args:
        session: in a transaction.
        tensor: the name of the input.
        given: the input.
        bound: the same, bound to its data.
        table: the name of the table.
    """
    source, where = bound.source, f"maintain, input {tensor}"
    assert isinstance(source, TableSource)
    name = f"{fresh_prefix()}selected"
    session.register(name, given.relation)
    try:
        rows = all_rows((name,), source.keys)
        session.run(create_table(table, rows, replace=True), where)
    finally:
        session.unregister(name)
    spec = replace(given, relation=quoted_name(table), columns=source.keys, positions=())
    axes = source.key_axes if source.key_axes is not None else tuple(range(len(source.keys)))
    watched = WatchedInput(tensor, spec_of(tensor, spec), source.keys, tuple(axes), None, own=table)
    ((count, digest),) = session.fetch(short_digests([(table, source.keys)]))
    return replace(watched, digest=(int(count), None if digest is None else int(digest)))
