"""The rows of a view or of a CSV file, computed once for all that is asked of them together.

Statistics and checks read a relation up to six times. Of a table each reading is a fast scan, but a
view is computed anew each time, and a text file parsed. Where that is work, the rows are put into a
temporary table for as long as they are examined.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from ucle.database.data_versions import in_transaction
from ucle.database.session import Session
from ucle.database.table_names import TEMPORARY
from ucle.errors import UcleError
from ucle.plan.sources import CsvFile, TableName, TableSource
from ucle.sqlgen.database_queries import drop_table
from ucle.sqlgen.input_queries import stored_columns
from ucle.sqlgen.write_statements import create_table, explain_plan

T = TypeVar("T")

COPY = TableName((TEMPORARY, "main", "ucle_computed_rows"))
"""The table of the rows; one relation is examined at a time, and its table dropped then."""

LEAST_ROWS = 100_000
"""The number of rows read from which computing them again takes longer than making a table."""

SCANS = frozenset({
    "COLUMN_DATA_SCAN", "DUMMY_SCAN", "EMPTY_RESULT", "FILTER", "LIMIT", "PARQUET_SCAN",
    "PROJECTION", "READ_PARQUET", "SEQ_SCAN", "STREAMING_LIMIT", "TABLE_SCAN", "UNION",
})  # fmt: skip
"""Operators of DuckDB that pass rows on. Views of these alone are read as fast as tables, and only
the columns that a query needs."""


def examine(
    session: Session,
    source: TableSource,
    of: Callable[[TableSource], T],
    size: int | None = None,
) -> T:
    """Return what a function finds out of a source, from a table of its rows where that is faster.

    Args:
        session: sees the source.
        source: the rows to examine.
        of: reads them several times.
        size: how many there are, if it is known.

    Raises:
        UcleError: what `of` raises of the source itself, so that messages name it.
    """
    if _is_work(session, source, size):
        try:
            with _copied(session, source) as rows:
                return of(rows)
        except UcleError:
            pass  # there is no space for a table, or the error is to name the source
    return of(source)


@contextmanager
def _copied(session: Session, source: TableSource) -> Iterator[TableSource]:
    where = f"rows of {source.origin}"
    rows = stored_columns(source)
    session.read(create_table(COPY.parts, rows, replace=True, temporary=True), where)
    try:
        yield replace(source, origin=COPY)
    finally:
        session.read(drop_table(COPY), where)


def _is_work(session: Session, source: TableSource, size: int | None) -> bool:
    """True if each reading of a source computes many rows.

    In a transaction it is not: an error of a statement, for lack of memory, would end it.
    """
    file = isinstance(source.origin, CsvFile)
    if not (file or source.computed) or in_transaction(session):
        return False
    if file:
        return size is not None and size >= LEAST_ROWS
    explained = session.read(explain_plan(stored_columns(source)), f"{source.origin}")
    plan = [x for _, text in explained for root in json.loads(text) for x in _operators(root)]
    read = max((_rows(each) for each in plan), default=0)
    return read >= LEAST_ROWS and any(each["name"].strip() not in SCANS for each in plan)


def _operators(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node["children"]:
        yield from _operators(child)


def _rows(operator: Mapping[str, Any]) -> int:
    """DuckDB's estimate of the rows of an operator; 0 where it has none."""
    return int(operator.get("extra_info", {}).get("Estimated Cardinality", 0))
