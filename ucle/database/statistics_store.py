"""What notes in a database say, read by a schema: anybody may have written to them.

A note is text, JSON mostly. What does not follow the schema, or has numbers that cannot be, is no
note: whatever it is about is found out anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ucle.ir.layouts import Layout, Level
from ucle.operators.values import Real
from ucle.stats.measure import Measured

LARGEST = 2**63 - 1
"""Of sizes and of numbers of entries."""


def facts_text(measured: Measured) -> str:
    """The text of a note of facts."""
    return json.dumps(
        {
            "sizes": measured.sizes,
            "finite": measured.finite,
            "entries": measured.entries,
            "extremes": measured.extremes,
            "distinct": measured.distinct,
            "exact": measured.exact,
            "largest": measured.largest,
            "counted": sorted(measured.counted),
        }
    )


def read_facts(text: str, rank: int, dense: Sequence[int]) -> Measured | None:
    """The facts that a note holds of a tensor; None where they cannot be facts of it.

    Args:
        text: the note.
        rank: the number of axes.
        dense: sizes of the last axes, which lie inside arrays.

    >>> text = '{"sizes": [3], "finite": true, "entries": 2, "distinct": [2], "exact": true}'
    >>> read_facts(text, 1, ()).sizes
    (3,)
    >>> read_facts(text.replace("3", "-3"), 1, ())
    """
    fields = _json(text)
    if not isinstance(fields, dict):
        return None
    read: Callable[[str], Any] = fields.get
    sizes, distinct = read("sizes"), read("distinct")
    entries, finite, exact = map(read, ("entries", "finite", "exact"))
    if not (_all_counts(sizes, rank) and _all_counts(distinct, rank) and _is_count(entries)):
        return None
    if not (isinstance(finite, bool) and isinstance(exact, bool)):
        return None
    if not all(isinstance(size, int) for size in sizes):
        return None
    if tuple(sizes[rank - len(dense) :]) != tuple(dense):
        return None
    if exact and entries > math.prod(sizes):
        return None
    counted: Any = fields.get("counted", [])
    if not _are_axes(counted, rank):
        return None
    extremes = _read_extremes(fields.get("extremes"))
    totals = tuple(sizes), finite, float(entries), extremes
    largest: Any = fields.get("largest")
    largest = tuple(map(float, largest)) if _all_counts(largest, rank) else ()
    return Measured(*totals, tuple(map(float, distinct)), exact, largest, frozenset(counted))


def _are_axes(noted: Any, rank: int) -> bool:
    return isinstance(noted, list) and all(type(axis) is int and 0 <= axis < rank for axis in noted)


def _read_extremes(ends: Any) -> tuple[Real, Real] | None:
    """The smallest and the largest entry; None where a note does not tell them."""
    if not isinstance(ends, list) or len(ends) != 2:
        return None
    if not all(isinstance(end, int | float) and math.isfinite(end) for end in ends):
        return None
    low, high = ends
    return (low, high) if low <= high else None


def kept_text(data: str, table: str) -> str:
    """The digests in the note of a kept table: of the data that it was made of, and its own."""
    return json.dumps({"data": data, "table": table})


def read_digests(text: str) -> tuple[str, str] | None:
    """Both digests of `kept_text`; None where there are none."""
    fields = _json(text)
    if not isinstance(fields, dict):
        return None
    data, table = fields.get("data"), fields.get("table")
    return (data, table) if isinstance(data, str) and isinstance(table, str) else None


def layout_text(layout: Layout, *, blobs: bool) -> str:
    """The layout of a kept table: its promoted axes, or the level of each where arrays are BLOBs.

    >>> layout_text(Layout.of([True, False]), blobs=False)
    '[0]'
    """
    if not blobs:
        return json.dumps(layout.promoted)
    return json.dumps({"levels": [level.value for level in layout.levels], "tile": layout.tile})


def read_layout(text: str, columns: str, rank: int) -> tuple[Layout, tuple[str, ...], bool] | None:
    """The layout of a kept table, the names of its keys, and whether its arrays are BLOBs.

    None where none of this can be.

    >>> read_layout("[0, 2]", '["i", "k"]', 3)[0].promoted
    (0, 2)
    >>> read_layout("[0, 3]", '["i", "k"]', 3)
    """
    noted, names = _json(text), _json(columns)
    blobs = isinstance(noted, dict)
    layout = _read_levels(noted, rank) if blobs else _read_axes(noted, rank)
    if layout is None or not isinstance(names, list) or len(names) != len(layout.promoted):
        return None
    if not all(isinstance(name, str) for name in names):
        return None
    return layout, tuple(names), blobs


def _read_axes(noted: Any, rank: int) -> Layout | None:
    if not _are_axes(noted, rank) or noted != sorted(set(noted)):
        return None
    return Layout.of(axis in noted for axis in range(rank))


def _read_levels(noted: Mapping[str, Any], rank: int) -> Layout | None:
    """A layout with tiled axes, or one tiled and one compressed, and rows for the latter."""
    levels, tile = noted.get("levels"), noted.get("tile")
    if not isinstance(levels, list) or len(levels) != rank:
        return None
    if type(tile) is not int or not 0 < tile <= LARGEST:
        return None
    known = {level.value: level for level in Level}
    if not all(isinstance(level, str) and level in known for level in levels):
        return None
    layout = Layout.made(*(known[level] for level in levels), tile=tile)
    if layout.levels.count(Level.COMPRESSED) > 1 or layout.scalar:
        return None
    if layout.compressed is not None and (len(layout.dense) != 2 or len(layout.tiled) > 1):
        return None
    return layout


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def _all_counts(noted: Any, rank: int) -> bool:
    return isinstance(noted, list) and len(noted) == rank and all(map(_is_count, noted))


def _is_count(noted: Any) -> bool:
    is_number = isinstance(noted, int | float) and not isinstance(noted, bool)
    return is_number and 0 <= noted <= LARGEST
