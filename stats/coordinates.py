"""Statistics of a sparse array in memory: counted by NumPy, which takes no query.

They are those that `ucle.stats.measure` counts of a table of the same entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dtypes import Scalar, differs_from
from ucle.stats.arrays import known_ends
from ucle.stats.measure import MeasuredInput

MOST_COUNTERS = 1 << 22
"""Positions along an axis that are counted one by one, whatever the number of entries."""

_PER_ENTRY = 4
"""Positions for each entry, up to which that takes less time than to sort the coordinates."""


def measure_coordinates(
    keys: Sequence[NDArray[Any]], values: NDArray[Any], fill: Scalar
) -> MeasuredInput:
    """Count T, V, degrees, extents and extremes.

    Args:
        keys: for each axis the coordinates of the entries; no two entries share all of them.
        values: the entries; those equal to the fill do not count.
        fill: the value of all others.

    >>> keys = np.array([0, 0, 2]), np.array([1, 3, 3])
    >>> found = measure_coordinates(keys, np.array([0.5, 2.0, 0.0]), 0.0)
    >>> found.entries, found.sizes, found.distinct, found.largest, found.extremes
    (2.0, (3, 4), (1.0, 2.0), (2.0, 1.0), (0.5, 2.0))
    """
    sizes = tuple(int(key.max(initial=-1)) + 1 for key in keys)
    stored = np.asarray(differs_from(values, fill))
    if not stored.all():
        keys, values = [key[stored] for key in keys], values[stored]
    counts = [_count(key, size) for key, size in zip(keys, sizes, strict=True)]
    ends = None
    if values.dtype.kind != "c" and len(values):
        ends = known_ends(values.min().item(), values.max().item())
    return MeasuredInput(
        sizes,
        bool(np.isfinite(values).all()),
        float(len(values)),
        ends,
        tuple(float(distinct) for distinct, _ in counts),
        True,
        tuple(float(most) for _, most in counts),
    )


def _count(key: NDArray[Any], size: int) -> tuple[int, int]:
    """The number of distinct coordinates, and the most entries at one of them."""
    if size <= max(MOST_COUNTERS, _PER_ENTRY * len(key)):
        counts = np.bincount(key, minlength=1)
        return int(np.count_nonzero(counts)), int(counts.max())
    _, counts = np.unique(key, return_counts=True)
    return len(counts), int(counts.max(initial=0))
