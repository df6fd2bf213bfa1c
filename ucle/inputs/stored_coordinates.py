"""How many coordinates of an axis have a row in a table, whatever its value: also 0, or False.

`ucle.stats` counts only those with an entry that differs from the fill, as only these are read.
"""

from __future__ import annotations

from dataclasses import replace

from ucle.database.session import Session
from ucle.foundation.dtypes import DType
from ucle.foundation.names import fresh_prefix
from ucle.inputs.dictionaries import Dictionaries
from ucle.inputs.relations import register_table
from ucle.inputs.states import SizedInput
from ucle.plan.sources import Nulls, TableSource
from ucle.sqlgen import input_queries as sql
from ucle.stats.measure import MOST_BITS


def count_coordinates(
    session: Session, name: str, bound: SizedInput, axis: int, dictionaries: Dictionaries
) -> float:
    """Return the number of coordinates of an axis that have a row with a value.

    Args:
        session: sees the input.
        name: of the input.
        bound: the input, a table.
        axis: the axis.
        dictionaries: those of the program.

    Returns:
        The number; where counting would take long, that of the coordinates with an entry that
        differs from the fill.
    """
    source, size = bound.source, bound.shape[axis]
    assert isinstance(source, TableSource)
    known = bound.statistics.distinct[axis]
    if bound.entries is not None:
        return float(bound.entries.count_coordinates(axis))
    rows = _rows_with_values(source)
    if rows is None:
        return known
    if axis >= len(source.keys) or _has_own_dictionary(name, source, axis, dictionaries):
        return float(size)  # every row has an element there, or every coordinate is that of a row
    if not rows.is_encoded(axis) and size > MOST_BITS:
        return known
    with register_table(session, source.origin, bound.data, prefix := fresh_prefix()):
        query = sql.coverage_query(rows, False, {axis: size}, prefix)
        ((found,),) = session.read(query, f"input {name}, {source.origin}")
    return float(found)


def _rows_with_values(source: TableSource) -> TableSource | None:
    """The keys of the rows that have a value; None where a row has other coordinates, too."""
    many = source.symmetric, source.times, source.features, source.ends, source.tiles, source.ragged
    if any(many) or source.value is None or source.nulls is Nulls.OBSERVED:
        return None
    if source.dense or source.wide:
        if source.nulls is not Nulls.REFUSED:
            return None
        keys = replace(source, value=None, constant=True, wide=(), dense=(), nesting=0, unfit=())
        return replace(keys, dtype=DType.BOOL, pairs=False, narrowed=None)
    there = replace(source, presence=True, nulls=Nulls.REFUSED, dtype=DType.BOOL)
    return replace(there, pairs=False, narrowed=None)


def _has_own_dictionary(
    name: str, source: TableSource, axis: int, dictionaries: Dictionaries
) -> bool:
    """True if the coordinates of an axis are those of the table alone, which all have a value."""
    own = dictionaries.of(name, axis)
    if own is None or source.nulls is not Nulls.REFUSED:
        return False
    (columns,) = (table.columns for table in dictionaries.tables if table.name == own)
    return {(each.origin, key) for each, key in columns} == {(source.origin, source.keys[axis])}
