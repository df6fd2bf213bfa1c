"""Facts about inputs, kept from one refresh to the next, and brought up to date by changed rows.

Measuring a table takes several scans, and a sort for the check that no two rows have the same
coordinates. An input that has not changed is not measured again. Where rows were appended, or told,
they are measured by themselves: new rows are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ucle.database.idle_databases import ONE
from ucle.database.session import Session
from ucle.database.statistics_cache import count_facts, cover_facts, known_facts
from ucle.database.statistics_store import facts_text, read_facts
from ucle.errors import DuplicateCoordinatesError
from ucle.foundation.dtypes import Scalar
from ucle.inputs.table_input import Measure
from ucle.maintenance.changes import ChangedInput
from ucle.maintenance.document import WatchedInput
from ucle.maintenance.told_rows import ToldRows
from ucle.plan.sources import Nulls, TableName, TableSource
from ucle.sqlgen.maintained_tables import drop_table, repeated_keys, rows_behind
from ucle.sqlgen.new_coordinates import (
    absent_coordinates,
    count_new_keys,
    lost_coordinates,
    now_present,
)
from ucle.sqlgen.told_changes import ends_of_rows
from ucle.sqlgen.write_statements import create_table
from ucle.stats.measure import MOST_BITS, MeasuredInput, combine

MOST_GROWN = 1.5
"""How much a table may grow or shrink until all of it is measured again: V of the parts only limits
its V."""

MOST_ABSENT = 500
"""The most coordinates of an axis without an entry that are remembered."""

FEW_VALUES = 0.25
"""The largest share of a key's values by which rows are passed over before all are compared."""

MOST_KEYS = 1 if ONE else 2
"""The most keys by which rows are passed over: a scan of DuckDB 2 looks for the values of several,
and DuckDB 1 for those of none, so that a second join only takes time."""


def measure_with(
    watched: WatchedInput, change: ChangedInput | None, found: dict[str, MeasuredInput]
) -> Measure:
    """Return what measures an input.

    Args:
        watched: the input, with the facts as of the last refresh.
        change: what has changed since.
        found: receives the present facts.
    """

    def measure(
        session: Session, tensor: str, source: TableSource, fill: Scalar, coverage: bool
    ) -> MeasuredInput:
        now = _present_facts(session, watched, change, source, fill)
        if now is None:
            now = known_facts(session, tensor, source, fill, asks_for_coverage=coverage)
        elif coverage:
            now = _count_changed(session, watched, change, source, now)
            now = cover_facts(session, tensor, source, fill, now)
        found[tensor] = now
        return now

    return measure


def _present_facts(
    session: Session,
    watched: WatchedInput,
    change: ChangedInput | None,
    source: TableSource,
    fill: Scalar,
) -> MeasuredInput | None:
    """Return the facts about an input by those of before; None if it has to be measured."""
    before = read_facts(watched.facts, len(source.keys) + len(source.dense), source.dense)
    if before is None or change is None:
        return before
    plain = not (source.dense or source.wide or source.sum_duplicates or source.symmetric)
    if not plain or source.presence or source.nulls is not Nulls.REFUSED:
        return None
    if watched.appended is not None:
        new = _measure_new_rows(session, watched, change, source, fill, before)
        now: MeasuredInput | None = _joined([before, new])
    elif change.told is not None:
        now = _with_told(session, change, change.told, fill, before)
    else:
        return None
    changed_size = now is not None and _has_other_size(watched, now)
    return None if changed_size else now


def _count_changed(
    session: Session,
    watched: WatchedInput,
    change: ChangedInput | None,
    source: TableSource,
    now: MeasuredInput,
) -> MeasuredInput:
    """Return facts about a table that has changed with V counted where it was counted before.

    New coordinates are counted, and those of the rows before are not looked through again: where
    each had a row, there is none to be found, and where few had none, these are known. Of removed
    rows, the coordinates are looked for that no other row has.
    """
    before = read_facts(watched.facts, len(source.keys) + len(source.dense), source.dense)
    if change is None or before is None:
        return now
    if (_rows(watched), _rows(change.watched)) != (before.entries, now.entries):
        return now  # some rows are no entries
    removed = None if change.told is None else change.told.removed_rows
    counts = {axis: v for axis, v in before.counts.items() if not source.is_encoded(axis)}
    others = [axis for axis, v in counts.items() if removed or v != now.sizes[axis]]
    absent = _known_absent(before, now, others)
    where = f"input {watched.name}"
    if known := {axis: places for axis, places in absent.items() if places}:
        (present,) = session.read(now_present(change.table, known), where)
        for (axis, places), found in zip(known.items(), present, strict=True):
            absent[axis] = tuple(x for x in places if x not in (found or ()))
    if removed and absent:
        (lost,) = session.read(lost_coordinates(source, removed, list(absent)), where)
        for (axis, places), found in zip(absent.items(), lost, strict=True):
            absent[axis] = tuple(sorted({*places, *(found or ())}))
    unknown = [axis for axis in others if axis not in absent]
    for axis in [x for x in unknown if now.sizes[x] - counts[x] <= MOST_ABSENT]:
        if now.sizes[axis] <= MOST_BITS:
            rows = session.read(absent_coordinates(source, axis, now.sizes[axis]), where)
            absent[axis] = tuple(int(x) for (x,) in rows)
            unknown.remove(axis)
    counts |= {axis: float(now.sizes[axis] - len(places)) for axis, places in absent.items()}
    if unknown and watched.appended is None:
        counts = {axis: v for axis, v in counts.items() if axis not in unknown}
    elif unknown and watched.appended is not None:
        query = count_new_keys(source, watched.appended[1], change.table, unknown)
        (new,) = session.read(query, where)
        counts |= {axis: counts[axis] + float(x) for axis, x in zip(unknown, new, strict=True)}
    distinct = tuple(counts.get(axis, v) for axis, v in enumerate(now.distinct))
    few = tuple((x, places) for x, places in absent.items() if 0 < len(places) <= MOST_ABSENT)
    return replace(now, distinct=distinct, counted=now.counted.union(counts), absent=few)


def _rows(watched: WatchedInput) -> int | None:
    """Return the number of rows of an input."""
    return watched.digest[0] if watched.appended is None else watched.appended[0]


def _known_absent(
    before: MeasuredInput, now: MeasuredInput, axes: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    """Return the coordinates that had no row, where these are known."""
    known: dict[int, tuple[int, ...]] = dict(before.absent)
    known |= {axis: () for axis, v in before.counts.items() if v == before.sizes[axis]}
    return {x: known[x] for x in axes if x in known and now.sizes[x] == before.sizes[x]}


def _joined(parts: list[MeasuredInput]) -> MeasuredInput:
    """Return the facts about some sets of rows together."""
    return combine(parts, [sum(v) for v in zip(*(x.distinct for x in parts), strict=True)])


def _has_other_size(watched: WatchedInput, now: MeasuredInput) -> bool:
    return not watched.measured / MOST_GROWN <= now.entries <= MOST_GROWN * watched.measured


def _with_told(
    session: Session, change: ChangedInput, told: ToldRows, fill: Scalar, before: MeasuredInput
) -> MeasuredInput | None:
    """Return the facts about an input of which rows were told; None if it has to be measured."""
    source, tensor, parts = told.source, told.watched.name, [before]
    if told.inserted_rows is not None:
        # With deleted rows, some of the changed keys are those of no inserted one.
        own = None if told.deleted_rows is not None else change
        new = _facts_of_new(session, tensor, told.inserted_rows, fill, own, told.come[0] or 0)
        parts.append(new)
    if not told.went[0]:
        return _joined(parts)
    assert told.removed_rows is not None
    ((_, entries, low, high, *largest),) = session.read(
        ends_of_rows(told.removed_rows, source, fill)
    )
    if not before.finite or source.dtype.kind == "c":
        return None
    ends = before.extremes
    remaining = max(0.0, before.entries - entries)
    at_end = any(x is not None and x + 1 >= n for x, n in zip(largest, before.sizes, strict=True))
    lost = entries and (ends is None or low <= ends[0] or high >= ends[1])
    constant = ends is not None and ends[0] == ends[1] and remaining > 0
    if at_end or (lost and not constant):
        # What is the largest now takes a look at all rows.
        checked = count_facts(session, tensor, source, fill, change.watched.digest[0])
        distinct = [sum(v) for v in zip(*(x.distinct for x in parts), strict=True)]
        limited = zip(distinct, checked.sizes, strict=True)
        return MeasuredInput(
            checked.sizes,
            checked.finite,
            checked.entries,
            checked.extremes,
            tuple(min(v, checked.entries, float(n) if n else checked.entries) for v, n in limited),
            exact=False,
        )
    degrees = tuple(min(x, remaining) for x in before.largest)
    kept = replace(before, entries=remaining, exact=False, largest=degrees, counted=frozenset())
    return _joined([kept, *parts[1:]])


def _facts_of_new(
    session: Session,
    tensor: str,
    source: TableSource,
    fill: Scalar,
    change: ChangedInput | None,
    rows: int,
) -> MeasuredInput:
    """Measure and check new rows of an input.

    Args:
        session: in a transaction.
        tensor: the name of the input.
        source: the new rows.
        fill: the fill of the input.
        change: their keys; None if there are others among them.
        rows: the number of rows.

    Raises:
        UcleError: they do not pass the checks of an input.
    """
    if change is None or change.facts.count != rows:
        return known_facts(session, tensor, source, fill, "transient")
    # No two of them are alike: what is known of their keys need not be found again.
    checked, keys = count_facts(session, tensor, source, fill, rows), change.facts
    return MeasuredInput(
        checked.sizes,
        checked.finite,
        checked.entries,
        checked.extremes,
        tuple(min(v, checked.entries) for v in keys.distinct),
        exact=False,
        largest=keys.most,
    )


def _measure_new_rows(
    session: Session,
    watched: WatchedInput,
    change: ChangedInput,
    source: TableSource,
    fill: Scalar,
    before: MeasuredInput,
) -> MeasuredInput:
    """Measure and check the rows of a table behind a row, and compare them with those before.

    Args:
        session: in a transaction.
        watched: the table, as of the last refresh.
        change: the keys of these rows.
        source: the columns of the table.
        fill: its fill.
        before: the facts about the rows before.

    Raises:
        UcleError: they do not pass the checks of an input, or one of them has the coordinates of a
            row before.
    """
    assert watched.appended is not None
    assert change.watched.appended is not None
    (rows, last), name = watched.appended, watched.name
    own = name.encode().hex()  # names of tensors may differ in capitals alone
    where, table = f"input {name}", ("temp", "main", f"ucle_appended_{own}")
    added = rows_behind(source, last)
    session.run(create_table(table, added, replace=False, temporary=True), where)
    try:
        new = replace(source, origin=TableName(table), table=True)
        keys = change.facts
        measured = _facts_of_new(
            session, name, new, fill, change, change.watched.appended[0] - rows
        )
        first = rare_keys(source.keys, keys.distinct, before.distinct)
        if repeated := session.read(repeated_keys(source, table, last, first), where):
            position = ", ".join(
                f"{key} = {value}" for key, value in zip(source.keys, repeated[0], strict=False)
            )
            raise DuplicateCoordinatesError(
                "several rows claim the same coordinates",
                where=f"{where}, {source.origin}",
                expected="new rows at new coordinates",
                found=f"a row behind the last one at {position}",
                hint="maintain the program without append_only, or with "
                "ucle.table(..., duplicates='sum')",
            )
    finally:
        session.run(drop_table(table), where)
    return measured


def rare_keys(
    keys: Sequence[str], new: Sequence[float], before: Sequence[float]
) -> tuple[str, ...]:
    """Return the keys of which rows have the smallest shares of values, where these are not large.

    Args:
        keys: the keys of a table.
        new: V of each key in these rows, at most.
        before: V in the table.
    """
    shares = {key: v / max(n, 1.0) for key, v, n in zip(keys, new, before, strict=False)}
    if len(shares) < 2:
        return ()
    few = [key for key in sorted(shares, key=shares.__getitem__) if shares[key] <= FEW_VALUES]
    return tuple(few[:MOST_KEYS])


def keep_facts(watched: WatchedInput, before: WatchedInput, now: MeasuredInput) -> WatchedInput:
    """Return an input with the facts about all of its present rows.

    Args:
        watched: the input.
        before: the same, as of the last refresh; its facts are empty if there was none.
        now: the facts.
    """
    whole = not before.facts or _has_other_size(before, now)
    measured = now.entries if whole else before.measured
    return replace(watched, facts=facts_text(now), measured=measured)
