"""Facts about tables to which rows are only appended: those of before, and those of the new rows.

Measuring a table takes several scans, and a sort for the check that no two rows have the same
coordinates. New rows are few: they are measured by themselves, and compared with the others by one
scan of these.
"""

from __future__ import annotations

from dataclasses import replace

from ucle.database.session import Session
from ucle.database.statistics_cache import cover_facts, known_facts
from ucle.database.statistics_store import facts_text, read_facts
from ucle.errors import DuplicateCoordinatesError
from ucle.foundation.dtypes import Scalar
from ucle.foundation.names import fresh_prefix
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import Measure
from ucle.maintenance.document import WatchedInput
from ucle.plan.sources import Nulls, TableName, TableSource
from ucle.sqlgen.maintained_tables import drop_table, repeated_keys, rows_behind
from ucle.sqlgen.write_statements import create_table
from ucle.stats.measure import MeasuredInput, combine

MOST_GROWN = 1.5
"""How much a table may grow until all of it is measured again: V of the parts only limits its V."""


def measure_with(watched: WatchedInput, found: dict[str, MeasuredInput]) -> Measure | None:
    """Return what measures an input by its new rows; None if all of it has to be measured.

    Args:
        watched: the input, with the facts as of the last refresh.
        found: receives the present facts.
    """
    if watched.appended is None or not watched.facts:
        return None
    before = read_facts(watched.facts, len(watched.keys), ())
    if before is None:
        return None
    _, last = watched.appended

    def measure(
        session: Session, tensor: str, source: TableSource, fill: Scalar, coverage: bool
    ) -> MeasuredInput:
        new = _measure_new_rows(session, tensor, source, fill, last)
        distinct = [v + w for v, w in zip(before.distinct, new.distinct, strict=True)]
        now = combine([before, new], distinct)
        if _has_outgrown(watched, now):
            now = known_facts(session, tensor, source, fill, asks_for_coverage=coverage)
        elif coverage:
            now = cover_facts(session, tensor, source, fill, now)
        found[tensor] = now
        return now

    return measure


def _has_outgrown(watched: WatchedInput, now: MeasuredInput) -> bool:
    return now.entries > MOST_GROWN * watched.measured


def _measure_new_rows(
    session: Session, tensor: str, source: TableSource, fill: Scalar, last: int
) -> MeasuredInput:
    """Measure and check the rows of a table behind a row, and compare them with those before.

    Raises:
        UcleError: they do not pass the checks of an input, or one of them has the coordinates of a
            row before.
    """
    where, table = f"input {tensor}", ("temp", "main", f"{fresh_prefix()}appended")
    rows = rows_behind(source, last)
    session.run(create_table(table, rows, replace=False, temporary=True), where)
    try:
        new = replace(source, origin=TableName(table), table=True)
        measured = known_facts(session, tensor, new, fill, "transient")
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
    return measured


def keep_facts(
    session: Session, watched: WatchedInput, bound: BoundInput, known: MeasuredInput | None
) -> WatchedInput:
    """Return an input with the facts about all of its present rows.

    Args:
        session: on the database.
        watched: the input, with the facts as of the last refresh.
        bound: the same, as it is now.
        known: the facts that `measure_with` found; None if they are those of all rows.
    """
    source = bound.source
    assert isinstance(source, TableSource)
    plain = not (source.dense or source.wide or source.sum_duplicates or source.symmetric)
    if watched.appended is None or not plain or source.nulls is not Nulls.REFUSED:
        return watched
    now = known or known_facts(session, watched.name, source.apart, bound.fill)
    whole = known is None or _has_outgrown(watched, now)
    measured = now.entries if whole else watched.measured
    return replace(watched, facts=facts_text(now), measured=measured)
