"""Equal positions, and rows by coordinate: loops of the compiled module, or NumPy without it.

Both ways give the same answers. That of NumPy sorts positions, which takes four times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.errors import KernelsMissingError
from ucle.udf_kernels.native import load_module

CHUNK = 1 << 22
"""Positions of which NumPy computes something at a time."""

MULTIPLIERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""Those of the generator SplitMix64, whose steps turn any integers into ones that look random."""

Integers = NDArray[np.int64]


def may_repeat(positions: Integers) -> bool:
    """Return whether two positions, which are from 0 below 2^62, are equal; may put them in order.

    >>> may_repeat(np.array([3, 1, 2])), may_repeat(np.array([3, 1, 3]))
    (False, True)
    """
    if _follow(positions, np.greater):
        return False
    if (compiled := _compiled()) is not None:
        found = compiled.lib.ucle_positions_repeat(_pointer(compiled, positions), len(positions))
        if found >= 0:
            return bool(found)
    positions.sort()
    return not _follow(positions, np.not_equal)


def count_coordinates(positions: Integers, shift: int, bits: int, most: int) -> Integers:
    """Return the rows of each coordinate, which lies in so many bits of a position above `shift`.

    There are at most so many counters, a power of two: where there are more coordinates, a hash
    picks the counter of each.

    >>> count_coordinates(np.array([4, 5, 12]), 2, 2, 4)
    array([0, 2, 0, 1])
    """
    counters = np.zeros(min(1 << bits, most), np.int64)
    if (compiled := _compiled()) is not None:
        data, width = _pointer(compiled, positions), len(counters).bit_length() - 1
        counted = _pointer(compiled, counters)
        count = compiled.lib.ucle_count_coordinates
        count(data, len(positions), shift, bits, width, counted)
        return counters
    for start in range(0, len(positions), CHUNK):
        coordinates = positions[start : start + CHUNK] >> shift & (1 << bits) - 1
        if 1 << bits > most:
            coordinates = _hash(coordinates, most)
        counters += np.bincount(coordinates, minlength=len(counters))
    return counters


def _compiled() -> Any:
    try:
        return load_module()
    except KernelsMissingError:
        return None


def _pointer(compiled: Any, integers: Integers) -> Any:
    return compiled.ffi.from_buffer("int64_t[]", integers)


def _follow(positions: Integers, relation: Callable[[Any, Any], Any]) -> bool:
    """Return whether each position has a relation to the one before it."""
    later, earlier = positions[1:], positions[:-1]
    return all(
        relation(later[n : n + CHUNK], earlier[n : n + CHUNK]).all()
        for n in range(0, len(later), CHUNK)
    )


def _hash(coordinates: Integers, counters: int) -> Integers:
    mixed = coordinates.view(np.uint64)
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * multiplier
    return (mixed >> np.uint64(65 - counters.bit_length())).view(np.int64)
