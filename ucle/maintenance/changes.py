"""Find what has changed in the inputs of a maintained program since its last refresh.

An input is compared with its state, a table of its keys and values: one scan of both. A table to
which rows are only appended needs no state: what is behind its last row is new. The changed keys
are a temporary table.
"""

from __future__ import annotations

from dataclasses import replace

from ucle.database.session import Session
from ucle.errors import MaintenanceError
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import TableInput
from ucle.maintenance.document import Parts, WatchedInput, input_of
from ucle.plan.sources import TableName, TableSource
from ucle.sqlgen.maintained_tables import (
    KEY,
    absent_keys,
    appended_keys,
    count_behind,
    count_rows,
    create_as,
    delete_matching,
    differing_keys,
    digest_of_rows,
    drop_table,
    insert_matching,
    rows_and_last,
    rows_of,
    state_columns,
    state_query,
)
from ucle.sqlgen.write_statements import Query


@dataclass(frozen=True)
class ChangedInput:
    """The changed keys of an input, in a temporary table with a column for each of its keys."""

    watched: WatchedInput
    table: Parts
    keys: int
    """The number of changed keys."""
    moved: tuple[int, ...] = ()
    """The axes with a coordinate that is new, or is no longer there."""

    def spec(self, bounds: tuple[int | None, ...]) -> TableInput:
        """Return the input that is true at the changed keys; `bounds` are those of the axes."""
        own = input_of(self.watched.spec)
        columns = tuple(KEY.format(n) for n in range(len(self.watched.keys)))
        return replace(
            own,
            relation=".".join(f'"{part}"' for part in self.table),
            columns=columns,
            value=True,
            columns_as=None,
            values=None,
            shape=None,
            bounds=bounds,
            fill=None,
            sum_duplicates=False,
            dtype=None,
            presence=False,
            symmetric=False,
            tiles=None,
            delimiter=None,
            header=None,
            comment=None,
        )


def find_change(
    session: Session, watched: WatchedInput, bound: BoundInput, name: str
) -> ChangedInput | None:
    """Find the changed keys of an input, and make its state the present one.

    Args:
        session: in a transaction.
        watched: the input.
        bound: the same, as it is now.
        name: the name of the temporary table of changed keys.

    Returns:
        The changes; None if there are none.

    Raises:
        MaintenanceError: rows were removed from a table to which they are only appended.
    """
    source = bound.source
    assert isinstance(source, TableSource)
    where = f"refresh, input {watched.name}"
    table = ("temp", "main", name)
    keys = [KEY.format(n) for n in range(len(source.keys))]
    moved = list[int]()
    if watched.appended is not None:
        query, before = _appended(session, watched, source)
        sides = [before]
    else:
        assert watched.state is not None
        if _digest(session, source) == watched.digest:
            return None
        columns = state_columns(source)
        sides = [state_query(source), rows_of(watched.state, columns)]
        query = differing_keys(sides[0], sides[1], columns, keys)
    session.run(create_as(table, query, temporary=True), where)
    ((count,),) = session.fetch(count_rows(table))
    if not count:
        session.run(drop_table(table), where)
        return None
    for key, axis in zip(keys, watched.axes, strict=True):
        if any(session.fetch(absent_keys(table, key, side)) for side in sides):
            moved.append(axis)
    if watched.state is not None:
        session.run(delete_matching(watched.state, table, keys), where)
        session.run(insert_matching(watched.state, state_query(source), table, keys), where)
    return ChangedInput(watched, table, count, tuple(moved))


def keep_state(session: Session, watched: WatchedInput, bound: BoundInput) -> WatchedInput:
    """Make the state of an input the present one, and return the input with it."""
    source = bound.source
    assert isinstance(source, TableSource)
    where = f"maintain, input {watched.name}"
    if watched.appended is not None:
        ((rows, last),) = session.fetch(rows_and_last(_table_of(source)))
        return replace(watched, appended=(rows, last))
    assert watched.state is not None
    session.run(create_as(watched.state, state_query(source)), where)
    return with_digest(session, watched, bound)


def with_digest(session: Session, watched: WatchedInput, bound: BoundInput) -> WatchedInput:
    """Return an input with the digest of its present rows."""
    assert isinstance(bound.source, TableSource)
    return replace(watched, digest=_digest(session, bound.source))


def _digest(session: Session, source: TableSource) -> tuple[int | None, ...]:
    (found,) = session.read(digest_of_rows(state_query(source), state_columns(source)))
    return tuple(None if x is None else int(x) for x in found)


def _appended(session: Session, watched: WatchedInput, source: TableSource) -> tuple[Query, Query]:
    """Return queries for the keys of the rows that were appended, and of those before."""
    assert watched.appended is not None
    rows, last = watched.appended
    ((now, _),) = session.fetch(rows_and_last(_table_of(source)))
    ((new,),) = session.fetch(count_behind(_table_of(source), last))
    if now != rows + new:
        raise MaintenanceError(
            "rows were removed from a table to which they are only appended",
            where=f"refresh, input {watched.name}",
            expected=f"{rows:,} rows, and new ones behind them",
            found=f"{now:,} rows, {new:,} of them new",
            hint="maintain the program again without append_only",
        )
    return appended_keys(source, last), state_query(source.keys_alone, last)


def _table_of(source: TableSource) -> Parts:
    assert isinstance(source.origin, TableName)
    return source.origin.parts
