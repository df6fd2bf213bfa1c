"""Statistics of the data of tables: measured once for each version, cached, and stored.

A process caches its measurements for as long as the version of a source is known and unchanged
(`ucle.database.data_versions`). Measurements of a large table are also stored in its database, in
``ucle.facts``, for other processes. Those cannot rely on versions, and compare a digest of the
columns instead: one scan, where measuring takes several and a sort.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, replace

from ucle.database.computed_rows import examine
from ucle.database.data_versions import Version, digest, memory_version, source_version
from ucle.database.own_schema import home, read_notes, write_note
from ucle.database.session import Session
from ucle.database.statistics_store import facts_text, read_facts
from ucle.database.table_names import find_relation, identity
from ucle.foundation.caches import BoundedCache
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.foundation.logs import STATISTICS, log_duration
from ucle.foundation.names import fold_name
from ucle.plan.sources import CsvFile, Nulls, Origin, ParquetFile, TableName, TableSource
from ucle.sqlgen.database_queries import FACTS, unique_query
from ucle.sqlgen.input_queries import duplicates_query, repeated_feature_query
from ucle.stats import measure as stats
from ucle.stats.arrays import Fetch, Look, by_kernels, by_numpy
from ucle.stats.measure import (
    Checked,
    MeasuredInput,
    check,
    countable_axes,
    coverage,
    degree,
    elements,
    measure,
    with_coverage,
)
from ucle.stats.positions import Scan, by_positions

NOTED_ENTRIES = 500_000
"""The number of elements from which measuring a table takes long enough to store the results."""

POSITIONS_SHARE = 1 / 4
"""Share of DuckDB's memory limit that the positions of rows may take, beside it, for a while."""

MOST_BYTES = 1 << 23
"""Bytes of all statistics that a process keeps."""

LATER_FIELDS: tuple[tuple[str, object], ...] = (
    ("constant", 1), ("narrowed", None), ("tiles", ()), ("symmetric", False),
    ("wide", ()), ("unfit", ()), ("nulls", Nulls.REFUSED), ("missing", 0),
    ("presence", False), ("times", None), ("features", None), ("ends", None),
)  # fmt: skip
"""Fields of sources that earlier versions did not have, with the values that mean the same."""

_remembered = BoundedCache[Checked](MOST_BYTES)

_single = BoundedCache[bool](1 << 20)
"""Whether no two rows have the same keys, by version of the data and the columns of keys: 1 MB."""


def forget() -> None:
    """Clear the cache of this process, as if it had just started."""
    _remembered.clear()
    _single.clear()


def known_facts(
    session: Session,
    tensor: str,
    source: TableSource,
    fill: Scalar,
    mode: str = "auto",
    prefix: str = "",
    *,
    asks_for_coverage: bool = False,
    data: object = None,
) -> MeasuredInput:
    """Return statistics, sizes and finiteness of a source: cached, stored, or measured.

    Other arguments and errors are those of `ucle.stats.measure.measure`.

    Args:
        session: sees the source.
        tensor: name of the tensor.
        source: the columns to read.
        fill: entries equal to it count as not stored.
        mode: one of `ucle.options.STATISTICS`.
        prefix: prefix of the names of tables that were registered from memory.
        asks_for_coverage: True if it matters that there is an entry at every coordinate of a key.
        data: the table, if it is in memory.
    """
    exact = mode == "exact"
    reading = _reading(source, fill, exact)
    version = source_version(session, source) or memory_version(data)
    read = _reader(session, tensor, source)
    known, note, size = _recall(version, reading), None, None
    if known is not None:
        STATISTICS.debug("%s (%s) is remembered", tensor, source.origin)
    elif version:
        size = elements(read, source, prefix)
        noted = source.from_database and size >= NOTED_ENTRIES
        note = _Note.of(session, source, reading) if noted else None
        known = note.read(session, source) if note else None
        if note and known:
            STATISTICS.debug("%s (%s) is noted in %s", tensor, source.origin, note.database)
            _remember(version, reading, known)
    if known is None:
        measured = examine(
            session,
            source,
            lambda rows: _measure(
                session, tensor, source, rows, fill, prefix, size, asks_for_coverage, exact=exact
            ),
            size,
        )
    elif asks_for_coverage:
        measured = with_coverage(read, source, fill, known, prefix)
    else:
        measured = known
    if measured is not known:
        _remember(version, reading, measured)
        if note and mode != "transient":
            note.write(session, source, version, measured)
    return measured


def cover_facts(
    session: Session,
    tensor: str,
    source: TableSource,
    fill: Scalar,
    measured: MeasuredInput,
    prefix: str = "",
) -> MeasuredInput:
    """Return facts with V counted where every coordinate of a key may have an entry.

    Arguments are those of `known_facts`; `measured` are the facts.
    """
    return with_coverage(_reader(session, tensor, source), source, fill, measured, prefix)


def _measure(
    session: Session,
    tensor: str,
    source: TableSource,
    rows: TableSource,
    fill: Scalar,
    prefix: str,
    size: int | None,
    covered: bool,
    *,
    exact: bool,
) -> MeasuredInput:
    """Measure the rows of a source, which they may be a copy of; `size` is counted if not given."""
    read, look = _reader(session, tensor, source), _look(session)
    with log_duration(STATISTICS, logging.INFO, "measured %s (%s)", tensor, source.origin):
        large = (elements(read, rows, prefix) if size is None else size) > stats.EXACT_ENTRIES
        measured = measure(
            read,
            look,
            tensor,
            rows,
            fill,
            prefix,
            exact=exact or not large,
            unique=large and _is_unique(session, tensor, source, prefix),
            scan=_scan(session) if large else None,
        )
        if covered:
            measured = with_coverage(read, rows, fill, measured, prefix)
    STATISTICS.debug("%s: %s", tensor, measured)
    return measured


def has_single_rows(session: Session, tensor: str, source: TableSource, prefix: str = "") -> bool:
    """True if no two rows of a relation with features have the same keys.

    No two may have the same feature, which was checked before. So they have different keys if
    each row has a number; others may share a key, and each have some of its features.
    """
    features = source.features
    assert features is not None
    if features.numbers and source.nulls is Nulls.REFUSED:
        return True
    return _have_own_keys(session, tensor, source, prefix)


def _have_own_keys(session: Session, tensor: str, source: TableSource, prefix: str) -> bool:
    """True if no two rows of the relation have the same keys, whatever features they have."""
    rows = replace(source.without_features, value=None, nulls=Nulls.REFUSED)
    if are_unique(session, rows.origin, rows.keys):
        return True
    version = source_version(session, source)
    key = None if version is None else (version, rows.origin, rows.keys)
    query = duplicates_query(rows, prefix)
    return _single.get_or_make(key, lambda: not _reader(session, tensor, source)(query))


def count_facts(
    session: Session, tensor: str, source: TableSource, fill: Scalar, rows: int | None = None
) -> Checked:
    """Measure a source of which it is known that no two rows have the same coordinates.

    That is one scan. Arguments and errors are those of `check_facts`; `rows` is the number of rows,
    where that is known.
    """
    read = _reader(session, tensor, source)
    return check(read, _look(session), tensor, source, fill, unique=True, rows=rows)


def check_facts(
    session: Session, tensor: str, source: TableSource, fill: Scalar, mode: str = "auto"
) -> Checked:
    """Check a source and return its sizes, finiteness and number of entries; V is not measured.

    Arguments and errors are those of `ucle.stats.measure.check`; `mode` is as for `known_facts`.
    """
    version, exact = source_version(session, source), mode == "exact"
    reading = _reading(source, fill, exact)
    if version is not None:
        if remembered := _remembered.get((version, reading)):
            return remembered
        note = _Note.of(session, source, reading)
        if note and (noted := note.read(session, source)):
            _remember(version, reading, noted)
            return noted
    with log_duration(STATISTICS, logging.INFO, "checked %s (%s)", tensor, source.origin):
        checked = examine(
            session,
            source,
            lambda rows: check(
                _reader(session, tensor, source),
                _look(session),
                tensor,
                rows,
                fill,
                exact=exact,
                unique=_is_unique(session, tensor, source),
                scan=_scan(session),
            ),
        )
    STATISTICS.debug("%s: %s", tensor, checked)
    _remember(version, reading, checked)
    return checked


def known_coverage(
    session: Session,
    tensor: str,
    source: TableSource,
    fill: Scalar,
    checked: Checked,
    mode: str = "auto",
) -> dict[int, float]:
    """V of the axes for which `known_facts` would determine coverage of every coordinate.

    Arguments are those of `check_facts`; `checked` is its result.
    """
    read = _reader(session, tensor, source)
    counts = checked.counts if isinstance(checked, MeasuredInput) else {}
    axes = countable_axes(read, source, checked, exact=mode == "exact")
    others = [axis for axis in axes if axis not in counts]
    return counts | coverage(read, source, fill, checked, others)


def known_degree(
    session: Session, tensor: str, source: TableSource, fill: Scalar, checked: Checked, axis: int
) -> float:
    """The degree of an axis that is a key; arguments are those of `known_coverage`."""
    if isinstance(checked, MeasuredInput) and checked.largest:
        return checked.largest[axis]
    return degree(_reader(session, tensor, source), source, fill, axis)


def _reader(session: Session, tensor: str, source: TableSource) -> Fetch:
    """A function that runs queries over a source, and names it in errors."""
    return lambda query: session.read(query, f"input {tensor}, {source.origin}")


def _look(session: Session) -> Look:
    """The function that inspects the elements of arrays on a connection."""
    otherwise = by_numpy(session.batches)
    return (
        by_kernels(session.read, otherwise) if session.capabilities.native_aggregates else otherwise
    )


def _scan(session: Session) -> Scan:
    """The function that reads the positions of rows on a connection."""
    return by_positions(session.batches, session.memory_limit * POSITIONS_SHARE)


def _recall(version: Version | None, reading: str) -> MeasuredInput | None:
    """The cached measurements of a version."""
    known = None if version is None else _remembered.get((version, reading))
    return known if isinstance(known, MeasuredInput) else None


def _remember(version: Version | None, reading: str, checked: Checked) -> None:
    """Cache measurements that were made after a version was taken.

    If the data has changed in between, this does no harm: a version never recurs.
    """
    if version is not None:
        _remembered.put((version, reading), checked)


@dataclass(frozen=True)
class _Note:
    """The place where statistics of a relation, as a source reads it, are stored."""

    database: str
    relation: str
    reading: str

    @staticmethod
    def of(session: Session, source: TableSource, reading: str) -> _Note | None:
        """The place of the note; None if there cannot be one."""
        if (database := home(session, source)) is None:
            return None
        if (relation := identity(session, source)) is None:
            return None
        return _Note(database, relation, reading)

    def read(self, session: Session, source: TableSource) -> MeasuredInput | None:
        """Read the stored statistics, if they match the current data."""
        about = {"relation": self.relation, "reading": self.reading}
        for *_, of, facts in read_notes(session, self.database, FACTS, about):
            if of == digest(session, source):
                rank = len(source.keys) + len(source.dense)
                if noted := read_facts(facts, rank, source.dense):
                    return noted
                message = "the note on %s in %s is not one that could be true; it is made again"
                STATISTICS.warning(message, source.origin, self.database)
        return None

    def write(
        self,
        session: Session,
        source: TableSource,
        version: Version | None,
        measured: MeasuredInput,
    ) -> None:
        """Store the statistics of a version, unless the data has changed since."""
        row = (self.relation, self.reading, digest(session, source), facts_text(measured))
        if source_version(session, source) == version:
            write_note(session, self.database, FACTS, row)


def _reading(source: TableSource, fill: Scalar, exact: bool) -> str:
    """The way in which a source reads its relation, as text."""
    fields = asdict(replace(source, origin=ParquetFile("")))
    del fields["table"]  # a view and a table with the same rows have the same statistics
    del fields["placed"]  # statistics are those of the columns
    for known in ("of_floats", "single_rows", "computed", "uncast"):  # and this is known of them
        del fields[known]
    for name, default in LATER_FIELDS:
        if fields[name] == default:  # so that notes of versions without these fields are found
            del fields[name]
    fields |= {"origin": None, "fill": repr(fill), "exact": exact}
    if isinstance(source.origin, CsvFile):  # the same file may be read in another format
        fields["origin"] = asdict(replace(source.origin, path=""))
    return json.dumps(fields, default=str, sort_keys=True)


def _is_unique(session: Session, tensor: str, source: TableSource, prefix: str = "") -> bool:
    """True if it takes little to see that no two rows have the same coordinates.

    So it does where a constraint of the database prevents them. Features of rows that differ in
    their keys are in different positions, unless two columns name a feature alike.
    """
    if source.symmetric:
        return False
    if source.features is None:
        return are_unique(session, source.origin, source.keys)
    if _reader(session, tensor, source)(repeated_feature_query(source, prefix)):
        return False
    return _have_own_keys(session, tensor, source, prefix)


def are_unique(session: Session, origin: Origin, columns: Sequence[str]) -> bool:
    """True if a constraint of the database prevents two rows with the same values in columns."""
    if not isinstance(origin, TableName):
        return False
    if (relation := find_relation(session, origin)) is None:
        return False
    keys = {fold_name(key) for key in columns}
    constraints = session.fetch(unique_query(relation.full_name.parts))
    return any(keys.issuperset(fold_name(name) for name in names) for (names,) in constraints)
