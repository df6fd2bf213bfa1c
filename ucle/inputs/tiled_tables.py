"""Tables whose rows hold tiles of a tensor: sizes, statistics, and entries beyond a bound.

Such a table is measured and checked as the tensor that it is by itself, with axes for the tiles and
for the positions within them (`TableSource.apart`). Here the measurements are converted to those of
the tiled tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ucle.database.session import Session
from ucle.errors import CoordinateError
from ucle.foundation.dtypes import Scalar
from ucle.language.bounds import AxisBound
from ucle.plan.sources import TableSource
from ucle.sqlgen.input_queries import counts_query, outside_query
from ucle.stats.measure import EXACT_ENTRIES, MeasuredInput, elements
from ucle.stats.model import TensorStatistics


def tiled_sizes(source: TableSource, sizes: Sequence[int]) -> tuple[int, ...]:
    """Compute the sizes of a tensor's axes from those of its table's keys and arrays."""
    return tuple(
        sizes[first] if second is None else sizes[first] * sizes[second]
        for first, second in _pairs(source)
    )


def _pairs(source: TableSource) -> Iterator[tuple[int, int | None]]:
    """The axes of `TableSource.apart` for each axis: of tiles and within them, or one alone."""
    inside = iter(range(len(source.keys), len(source.keys) + len(source.dense)))
    for axis in range(len(source.keys)):
        tiled = axis < len(source.tiles) and source.tiles[axis]
        yield axis, next(inside) if tiled else None
    yield from ((axis, None) for axis in inside)


def measure_tiles(
    session: Session,
    name: str,
    source: TableSource,
    fill: Scalar,
    measured: MeasuredInput,
    prefix: str = "",
) -> TensorStatistics:
    """Measure T, V and degrees of the tensor, and the number of tiles.

    They are counted for small tables; for others they follow from tiles and positions within them.

    Args:
        session: sees the table.
        name: the name of the tensor.
        source: the table.
        fill: entries equal to it count as not stored.
        measured: the measurements of `source.apart`.
        prefix: prefix of the names of tables that were registered from memory.
    """

    def fetch(query: str) -> Sequence[tuple[object, ...]]:
        return session.read(query, f"input {name}, {source.origin}")

    count = elements(fetch, source, prefix)
    rows = count // max(math.prod(source.dense), 1)
    stored = None if source.layout.plain else (source.layout, float(rows))
    if count <= EXACT_ENTRIES and not source.sum_duplicates:
        (row,) = session.read(counts_query(source, fill, prefix), f"input {name}")
        numbers = [0.0 if each is None else float(each) for each in row]
        distinct, largest = tuple(numbers[::2]), tuple(numbers[1::2])
        return TensorStatistics(measured.entries, distinct, True, largest, tiles=stored)
    distinct = tuple(
        measured.distinct[first]
        if second is None
        else min(measured.distinct[first] * measured.distinct[second], measured.entries)
        for first, second in _pairs(source)
    )
    largest = ()
    if measured.largest:
        largest = tuple(
            measured.largest[first]
            if second is None
            else min(measured.largest[first], measured.largest[second])
            for first, second in _pairs(source)
        )
    return TensorStatistics(measured.entries, distinct, largest=largest, tiles=stored)


def check_tile_ends(
    session: Session,
    name: str,
    source: TableSource,
    fill: Scalar,
    bounds: Sequence[AxisBound],
    prefix: str = "",
) -> None:
    """Check that the last tiles hold only the fill beyond the bounds that the caller states.

    Raises:
        CoordinateError: a tile holds another value there.
    """
    for axis, tile in enumerate(source.tiles):
        size = bounds[axis].size
        if not tile or not size % tile:
            continue
        query = outside_query(source, fill, axis, size, prefix)
        if rows := session.read(query, f"input {name}, {source.origin}"):
            *place, value = rows[0]
            raise CoordinateError(
                "an entry of a tile is outside its bound",
                where=f"input {name}, {source.origin}, column {source.value}",
                expected=f"{fill} beyond coordinate {size - 1} of axis {axis}",
                found=f"{value} at ({', '.join(map(str, place))})",
                hint="state a larger bound in ucle.table(bounds=...), or None for whole tiles",
            )
