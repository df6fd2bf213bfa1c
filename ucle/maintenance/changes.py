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
from ucle.maintenance.document import Parts, WatchedInput, input_of, quoted_name
from ucle.plan.sources import Nulls, TableName, TableSource
from ucle.sqlgen.maintained_tables import (
    DELTA,
    KEY,
    STATE,
    absent_keys,
    appended_rows,
    changed_rows,
    count_behind,
    count_changed,
    digest_of_rows,
    drop_table,
    rows_and_last,
    rows_at,
    state_columns,
    state_query,
)
from ucle.sqlgen.write_statements import all_rows, create_table, delete_rows, insert_rows


@dataclass(frozen=True)
class ChangedInput:
    """The changed keys of an input, in a temporary table with a column for each of its keys."""

    watched: WatchedInput
    """The input, with what tells its present state."""
    table: Parts
    keys: int
    """The number of changed keys."""
    moved: tuple[int, ...]
    """The axes with a coordinate that is new, or is no longer there."""
    added: bool
    """True if there was no row at these keys before."""
    differs_by: bool
    """True if the table says by how much each entry differs, in a column ``delta``."""

    def where(self, bounds: tuple[int | None, ...]) -> TableInput:
        """Return the input that is true at the changed keys; `bounds` are those of the axes."""
        return self._read(True, bounds)

    def difference(self, bounds: tuple[int | None, ...]) -> TableInput:
        """Return the input of the differences; `bounds` are those of the axes."""
        return self._read(DELTA, bounds)

    def _read(self, value: str | bool, bounds: tuple[int | None, ...]) -> TableInput:
        own = input_of(self.watched.spec)
        columns = tuple(KEY.format(n) for n in range(len(self.watched.keys)))
        return replace(
            own,
            relation=quoted_name(self.table),
            columns=columns,
            value=value,
            columns_as=None,
            values=None,
            one_hot=(),
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
    weight = _weight(source, bound)
    if watched.appended is not None:
        _, last = watched.appended
        now = replace(watched, appended=_rows_and_last_now(session, watched, source))
        query = appended_rows(source, last, weight)
        sides = [state_query(source.keys_alone, last)]
    else:
        assert watched.state is not None
        now = replace(watched, digest=_digest(session, source))
        if now == watched:
            return None
        sides = [state_query(source), all_rows(watched.state, state_columns(source))]
        value = None if source.value is None else STATE
        query = changed_rows(sides[0], sides[1], keys, value, weight)
    session.run(create_table(table, query, replace=True, temporary=True), where)
    ((count, added),) = session.fetch(count_changed(table))
    if not count:
        session.run(drop_table(table), where)
        return None
    moved = tuple(
        axis
        for place, (key, axis) in enumerate(zip(keys, watched.axes, strict=True))
        if source.is_encoded(place)
        and any(session.fetch(absent_keys(table, key, side)) for side in sides)
    )
    if watched.state is not None:
        session.run(delete_rows(watched.state, all_rows(table), keys), where)
        session.run(insert_rows(watched.state, rows_at(state_query(source), (table, keys))), where)
    return ChangedInput(now, table, count, moved, bool(added), weight is not None)


def _weight(source: TableSource, bound: BoundInput) -> int | float | None:
    """Return what a row without a value stands for; None if rows are not added up to entries.

    Its type is the one in which differences are computed.
    """
    kind, plain = source.dtype.kind, not (source.dense or source.wide or source.presence)
    if not plain or source.nulls is not Nulls.REFUSED or kind not in "if" or bound.fill != 0:
        return None
    assert not isinstance(source.constant, complex)
    return float(source.constant) if kind == "f" else int(source.constant)


def keep_state(session: Session, watched: WatchedInput, bound: BoundInput) -> WatchedInput:
    """Make the state of an input the present one, and return the input with it."""
    source = bound.source
    assert isinstance(source, TableSource)
    where = f"maintain, input {watched.name}"
    if watched.appended is not None:
        return replace(watched, appended=_rows_and_last(session, source))
    assert watched.state is not None
    session.run(create_table(watched.state, state_query(source), replace=True), where)
    return replace(watched, digest=_digest(session, source))


def _digest(session: Session, source: TableSource) -> tuple[int | None, ...]:
    (found,) = session.read(digest_of_rows(state_query(source), state_columns(source)))
    return tuple(None if x is None else int(x) for x in found)


def _rows_and_last(session: Session, source: TableSource) -> tuple[int, int]:
    """Return the number of rows of a table, and the last rowid."""
    ((rows, last),) = session.fetch(rows_and_last(_table_of(source)))
    return rows, last


def _rows_and_last_now(
    session: Session, watched: WatchedInput, source: TableSource
) -> tuple[int, int]:
    """Return the number of rows of a table, and the last rowid; check that no rows are gone."""
    assert watched.appended is not None
    rows, last = watched.appended
    now, last_now = _rows_and_last(session, source)
    ((new,),) = session.fetch(count_behind(_table_of(source), last))
    if now != rows + new:
        raise MaintenanceError(
            "rows were removed from a table to which they are only appended",
            where=f"refresh, input {watched.name}",
            expected=f"{rows:,} rows, and new ones behind them",
            found=f"{now:,} rows, {new:,} of them new",
            hint="maintain the program again without append_only",
        )
    return now, last_now


def _table_of(source: TableSource) -> Parts:
    assert isinstance(source.origin, TableName)
    return source.origin.parts
