"""Digests of the data of tables: equal for equal rows, in any order and in any process.

A digest takes one scan of a table. Within a process it is cached for each version of the table
(`ucle.database.data_versions`).
"""

from __future__ import annotations

import json
from dataclasses import replace

from ucle.database.data_versions import Version, source_version
from ucle.database.session import Session
from ucle.plan.sources import TableSource
from ucle.sqlgen.input_queries import digest_query

REMEMBERED = 1000
"""The number of digests that a process remembers; the oldest are forgotten first."""

_remembered: dict[tuple[Version, tuple[str | None, ...]], str] = {}


def digest(session: Session, source: TableSource) -> str:
    """Compute a digest of the columns that a source reads; it depends on DuckDB's version."""
    version = source_version(session, source)
    if version is None:
        return _digest(session, source)
    key = version, (*source.keys, source.value)
    if key not in _remembered:
        while len(_remembered) >= REMEMBERED:
            _remembered.pop(next(iter(_remembered)), None)
        _remembered[key] = _digest(session, source)
    return _remembered[key]


def _digest(session: Session, source: TableSource) -> str:
    rows = replace(source, symmetric=False)  # the stored rows, not the mirrored ones
    return json.dumps(session.read(digest_query(rows)), default=str)
