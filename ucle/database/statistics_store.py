"""The format of notes in a database, which are validated because anybody may write to them.

A note is text, mostly JSON. A note that does not follow the schema, or has impossible numbers, is
ignored: its content is determined again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ucle.ir.layouts import Layout, Level
from ucle.operators.values import Real
from ucle.stats.measure import MeasuredInput

LARGEST = 2**63 - 1
"""The largest size and number of entries."""


def facts_text(measured: MeasuredInput) -> str:
    """Serialise statistics as the text of a note."""
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
            "runs": measured.runs,
            **({"absent": measured.absent} if measured.absent else {}),
        }
    )


def read_facts(text: str, rank: int, dense: Sequence[int]) -> MeasuredInput | None:
    """Parse the statistics of a tensor from a note; None if they are invalid for it.

    Args:
        text: the note.
        rank: the number of axes.
        dense: sizes of the last axes, which are inside arrays.

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
    runs: Any = fields.get("runs", 0)
    if not _is_count(runs):
        return None
    found = tuple(map(float, distinct)), exact, largest, frozenset(counted)
    absent = _read_absent(fields.get("absent", []), distinct, sizes)
    return MeasuredInput(*totals, *found, float(runs), absent)


def _are_axes(noted: Any, rank: int) -> bool:
    return isinstance(noted, list) and all(type(axis) is int and 0 <= axis < rank for axis in noted)


def _read_absent(
    noted: Any, distinct: Sequence[float], sizes: Sequence[int]
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The coordinates without an entry, by their axes; none where they do not fit V."""
    try:
        pairs = [(int(axis), tuple(map(int, places))) for axis, places in noted]
        fit = all(len(set(x)) == sizes[n] - distinct[n] for n, x in pairs)
    except (IndexError, TypeError, ValueError):
        return ()
    return tuple(pairs) if fit else ()


def _read_extremes(ends: Any) -> tuple[Real, Real] | None:
    """The smallest and the largest entry; None if a note does not contain them."""
    if not isinstance(ends, list) or len(ends) != 2:
        return None
    if not all(isinstance(end, int | float) and math.isfinite(end) for end in ends):
        return None
    low, high = ends
    return (low, high) if low <= high else None


def kept_text(data: str, table: str) -> str:
    """Serialise the digests in the note of a stored table: of its original data, and its own."""
    return json.dumps({"data": data, "table": table})


def read_digests(text: str) -> tuple[str, str] | None:
    """Parse both digests of `kept_text`; None if there are none."""
    fields = _json(text)
    if not isinstance(fields, dict):
        return None
    data, table = fields.get("data"), fields.get("table")
    return (data, table) if isinstance(data, str) and isinstance(table, str) else None


def layout_text(layout: Layout, *, blobs: bool) -> str:
    """Serialise the layout of a stored table: promoted axes, or all levels if arrays are BLOBs.

    >>> layout_text(Layout.of([True, False]), blobs=False)
    '[0]'
    """
    if not blobs:
        return json.dumps(layout.promoted)
    return json.dumps({"levels": [level.value for level in layout.levels], "tile": layout.tile})


def read_layout(text: str, columns: str, rank: int) -> tuple[Layout, tuple[str, ...], bool] | None:
    """Parse the layout of a stored table and the names of its keys; True if arrays are BLOBs.

    None if the note is invalid.

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
    """Parse a layout with tiled axes or one compressed axis; None if its levels are invalid."""
    levels, tile = noted.get("levels"), noted.get("tile")
    if not isinstance(levels, list) or len(levels) != rank:
        return None
    if type(tile) is not int or not 0 < tile <= LARGEST:
        return None
    known = {level.value: level for level in Level}
    if not all(isinstance(level, str) and level in known for level in levels):
        return None
    layout = Layout.from_levels(*(known[level] for level in levels), tile=tile)
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
