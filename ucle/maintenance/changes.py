"""Find what has changed in the inputs of a maintained program since its last refresh.

An input is compared with its state, a table of its keys and values: one scan of both. A table to
which rows are only appended needs no state: what is behind its last row is new. Where a caller
tells the changed rows (`ucle.maintenance.told`), they are compared with the state. The changed keys
are a temporary table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ucle.database.session import Session
from ucle.database.table_names import note_temporary
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.inputs.inputs import quoted_name
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import TableInput
from ucle.maintenance.appended import last_rows, rows_now
from ucle.maintenance.changed_keys import ChangedKeys
from ucle.maintenance.document import Parts, WatchedInput, input_of
from ucle.maintenance.states import (
    Digest,
    check_state,
    combine_digests,
    has_types_of_input,
    read_digest,
)
from ucle.maintenance.told_rows import ToldRows, keep_told, told_difference
from ucle.plan.sources import Nulls, TableSource
from ucle.sqlgen.cached_texts import Rows
from ucle.sqlgen.maintained_tables import (
    DELTA,
    KEY,
    absent_keys,
    appended_rows,
    changed_rows,
    count_changed,
    drop_table,
    rows_at,
    state_columns,
    state_keys,
    state_rows,
    state_value,
)
from ucle.sqlgen.write_statements import all_rows, create_table, delete_rows, insert_rows


@dataclass(frozen=True)
class ChangedInput:
    """The changed keys of an input, in a temporary table with a column for each of its keys."""

    watched: WatchedInput
    """The input, with what tells its present state."""
    table: Parts
    facts: ChangedKeys
    moved: tuple[int, ...]
    """The axes with a coordinate that is new, or is no longer there."""
    added: bool
    """True if there was no row at these keys before."""
    differs_by: bool
    """True if the table says by how much each entry differs, in a column ``delta``."""
    told: ToldRows | None = None
    """The rows that were told; None if the change was found."""
    trusted: bool = True
    """False if what was computed from the input may contain a part of this change already."""

    @property
    def keys(self) -> int:
        """The number of changed keys."""
        return self.facts.count

    def lies_within(self, bounds: tuple[int | None, ...]) -> bool:
        """True if no key lies beyond the bounds of the axes, which may have become less."""
        return lies_within(self.facts.largest, bounds)

    def where(self, bounds: tuple[int | None, ...]) -> TableInput:
        """Return the input that is true at the changed keys; `bounds` are those of the axes."""
        return replace(self._read(True, bounds), measured=self.facts.mask(bounds))

    def difference(self, bounds: tuple[int | None, ...]) -> TableInput:
        """Return the input of the differences; `bounds` are those of the axes."""
        return replace(self._read(DELTA, bounds), measured=self.facts.difference(bounds))

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
            ragged=None,
            ends=None,
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


def lies_within(largest: Sequence[int | None], bounds: Sequence[int | None]) -> bool:
    """True if no coordinate lies beyond a bound."""
    pairs = zip(largest, bounds, strict=True)
    return all(x is None or bound is None or x < bound for x, bound in pairs)


def find_change(
    session: Session, watched: WatchedInput, source: TableSource, fill: Scalar, name: str
) -> tuple[WatchedInput, ChangedInput | None]:
    """Find the changed keys of an input; its state stays as it is.

    Args:
        session: in a transaction.
        watched: the input.
        source: its columns.
        fill: its fill.
        name: the name of the temporary table of changed keys.

    Returns:
        The input as it is now, and the changes; None if there are none.

    Raises:
        MaintenanceError: rows were removed from a table to which they are only appended, or the
            state of the input was changed by others.
    """
    if watched.own is not None:
        return watched, None
    keys, weight = state_keys(source), weight_of(source, fill)
    if watched.appended is not None:
        _, last = watched.appended
        now = rows_now(session, watched, source)
        query: Rows = appended_rows(source, last, weight)
        sides = [state_rows(source.keys_alone, last)]
    else:
        assert watched.state is not None
        now = replace(watched, digest=_digest(session, source), trusts=False)
        if now.digest == watched.digest:
            return now, None
        check_state(session, watched, source)
        sides = [state_rows(source), all_rows(watched.state, state_columns(source))]
        query = changed_rows(sides[0], sides[1], keys, state_value(source), weight)
    changed = _change(session, now, source, query, name, sides, weight is not None)
    now = replace(now, trusts=False)
    return now, None if changed is None else replace(changed, trusted=not watched.trusts)


def find_told(
    session: Session, told: ToldRows, fill: Scalar, name: str
) -> tuple[WatchedInput, ChangedInput | None]:
    """Find the changed keys of an input by the rows that were told, as `find_change` does.

    The rows are in the input already, and its state stays as it is.
    """
    watched, source = told.watched, told.source
    if watched.appended is not None:
        now, changed = find_change(session, watched, source, fill, name)
        return now, None if changed is None else replace(changed, told=told)
    assert watched.state is not None
    columns, digests = state_columns(source), (watched.digest, told.come, told.went)
    now = replace(watched, digest=combine_digests(*digests), trusts=True)
    weight = weight_of(source, fill)
    query = told_difference(told, state_value(source), weight)
    sides = [told.now, all_rows(watched.state, columns)]
    changed = _change(session, now, source, query, name, sides, weight is not None)
    return now, None if changed is None else replace(changed, told=told)


def _change(
    session: Session,
    now: WatchedInput,
    source: TableSource,
    query: Rows,
    name: str,
    sides: Sequence[Rows],
    differs_by: bool,
) -> ChangedInput | None:
    """Keep the changed keys that a query finds as a table; `sides` are all keys, now and before."""
    where, table, keys = f"refresh, input {now.name}", ("temp", "main", name), state_keys(source)
    session.run(create_table(table, query, replace=True, temporary=True), where)
    positions = [n for n in range(len(keys)) if not source.is_encoded(n)]
    named = [keys[n] for n in positions]
    found = count_changed(table, keys, named, differs_by=differs_by)
    ((count, added, names, types, *row),) = session.fetch(found)
    if not count:
        session.run(drop_table(table), where)
        return None
    moved = tuple(
        axis
        for place, (key, axis) in enumerate(zip(keys, now.axes, strict=True))
        if source.is_encoded(place)
        and any(session.fetch(absent_keys(table, key, side)) for side in sides)
    )
    note_temporary(session, table, list(zip(names, types, strict=True)))
    facts = ChangedKeys.read(count, row, len(keys), positions, differs_by)
    known = facts.differences is not None
    return ChangedInput(now, table, facts, moved, bool(added), differs_by and known)


def keep_change(
    session: Session, watched: WatchedInput, change: ChangedInput | None, source: TableSource
) -> None:
    """Make the state of an input, whose rows are others or of other types, the present one."""
    if watched.state is None:
        return
    where, keys = f"refresh, input {watched.name}", state_keys(source)
    if not has_types_of_input(session, watched.state, source):
        session.run(create_table(watched.state, state_rows(source), replace=True), where)
    elif change is not None and change.told is not None:
        keep_told(session, change.told)
    elif change is not None:
        session.run(delete_rows(watched.state, all_rows(change.table), keys), where)
        rows = rows_at(state_rows(source), [(change.table, keys)])
        session.run(insert_rows(watched.state, rows), where)


def weight_of(source: TableSource, fill: Scalar) -> int | float | None:
    """Return what a row without a value stands for; None if rows are not added up to entries.

    Its type is the one in which differences are computed.
    """
    kind, plain = source.dtype.kind, not (source.dense or source.wide or source.presence)
    if not plain or source.nulls is not Nulls.REFUSED or kind not in "if" or fill != 0:
        return None
    assert not isinstance(source.constant, complex)
    return float(source.constant) if kind == "f" else int(source.constant)


def keep_state(session: Session, watched: WatchedInput, bound: BoundInput) -> WatchedInput:
    """Make the state of an input the present one, and return the input with it."""
    source = bound.source
    assert isinstance(source, TableSource)
    if watched.own is not None:
        return watched
    where = f"maintain, input {watched.name}"
    if watched.appended is not None:
        return last_rows(session, watched, source)
    assert watched.state is not None
    session.run(create_table(watched.state, state_rows(source), replace=True), where)
    return replace(watched, digest=_digest(session, source))


def _digest(session: Session, source: TableSource) -> Digest:
    return read_digest(session, state_rows(source), source)
