"""Facts about tables to which rows are only appended: those of before, and those of the new rows.

Measuring a table takes several scans, and a sort for the check that no two rows have the same
coordinates. New rows are few: they are measured by themselves, and compared with the others by one
scan of these.
"""

from __future__ import annotations

from dataclasses import replace

from ucle.database.session import Session
from ucle.database.statistics_cache import known_facts
from ucle.database.statistics_store import facts_text, read_facts
from ucle.errors import DuplicateCoordinatesError
from ucle.inputs.binding import with_facts
from ucle.inputs.states import BoundInput
from ucle.maintenance.document import WatchedInput
from ucle.plan.sources import Nulls, TableName, TableSource
from ucle.sqlgen.maintained_tables import drop_table, repeated_keys, rows_behind
from ucle.sqlgen.write_statements import create_table
from ucle.stats.measure import MeasuredInput, combine

MOST_GROWN = 1.5
"""How much a table may grow until all of it is measured again: V of the parts only limits its V."""


def facts_before(watched: WatchedInput) -> MeasuredInput | None:
    """Return the facts about an input as of the last refresh; None if it has to be measured."""
    if watched.appended is None or not watched.facts:
        return None
    return read_facts(watched.facts, len(watched.keys), ())


def facts_now(
    session: Session, watched: WatchedInput, bound: BoundInput, before: MeasuredInput, name: str
) -> MeasuredInput | None:
    """Return the facts about an input with its new rows; None if it has grown too much.

    Args:
        session: on the database.
        watched: the input.
        bound: the same, with the facts of before.
        before: these facts.
        name: of a temporary table, which is dropped again.

    Raises:
        UcleError: the new rows do not pass the checks of an input, or one of them has the
            coordinates of a row before.
    """
    source = bound.source
    assert isinstance(source, TableSource)
    assert watched.appended is not None
    last, where = watched.appended[1], f"input {watched.name}"
    table = ("temp", "main", name)
    session.run(create_table(table, rows_behind(source, last), replace=True, temporary=True), where)
    try:
        rows = replace(source, origin=TableName(table), table=True)
        new = known_facts(session, watched.name, rows.apart, bound.fill, "transient")
        if not new.entries:
            return before
        if repeated := session.read(repeated_keys(source, table, last), where):
            position = ", ".join(
                f"{key} = {value}" for key, value in zip(source.keys, repeated[0], strict=True)
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
    distinct = [v + w for v, w in zip(before.distinct, new.distinct, strict=True)]
    now = combine([before, new], distinct)
    return now if now.entries <= MOST_GROWN * watched.measured else None


def with_new_rows(
    session: Session, inputs: dict[str, BoundInput], watched: tuple[WatchedInput, ...]
) -> tuple[dict[str, BoundInput], dict[str, MeasuredInput]]:
    """Return the inputs with the facts of their new rows, and these facts by input.

    An input that has grown too much stands with the facts of before, and has none.
    """
    found, facts = dict(inputs), dict[str, MeasuredInput]()
    for n, each in enumerate(watched):
        before = facts_before(each)
        if before is None:
            continue
        now = facts_now(session, each, inputs[each.name], before, f"ucle_appended_{n}")
        if now is not None:
            facts[each.name] = now
            found[each.name] = with_facts(each.name, inputs[each.name], now)
    return found, facts


def keep_facts(
    session: Session, watched: WatchedInput, bound: BoundInput, known: MeasuredInput | None
) -> WatchedInput:
    """Return an input with the facts about all of its present rows.

    Args:
        session: on the database.
        watched: the input.
        bound: the same, as it is now.
        known: the facts, if they were found by those of before.
    """
    source = bound.source
    assert isinstance(source, TableSource)
    plain = not (source.dense or source.wide or source.sum_duplicates or source.symmetric)
    if watched.appended is None or not plain or source.nulls is not Nulls.REFUSED:
        return watched
    if known is not None:
        return replace(watched, facts=facts_text(known))
    measured = known_facts(session, watched.name, source.apart, bound.fill)
    return replace(watched, facts=facts_text(measured), measured=measured.entries)
