"""Digests of the data of tables: equal for equal rows, in any order, in this and other processes.

A digest takes one scan of a table. Within a process it belongs to a version of the table
(`ucle.database.data_versions`) and is not computed twice for it.
"""

from __future__ import annotations

import json
from dataclasses import replace

from ucle.database.data_versions import Version, source_version
from ucle.database.session import Session
from ucle.plan.sources import TableSource
from ucle.sqlgen.input_queries import digest_query

REMEMBERED = 1000
"""Digests that a process remembers; the oldest are forgotten first."""

_remembered: dict[tuple[Version, tuple[str | None, ...]], str] = {}


def digest(session: Session, source: TableSource) -> str:
    """A digest of the columns that a source reads; with another version of DuckDB another one."""
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
    rows = replace(source, symmetric=False)  # however they are read
    return json.dumps(session.read(digest_query(rows)), default=str)
