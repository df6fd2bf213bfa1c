"""The two statistics of a tensor: T(U) and V(U, l)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar, differs_from
from ucle.ir.layouts import Layout
from ucle.ir.ranges import stored_values
from ucle.operators.values import Values, anything


@dataclass(frozen=True)
class TensorStatistics:
    """T and V of one tensor (sparse_einsum.txt, section 7.1).

    `entries` is T: the stored entries that differ from the fill. `distinct` holds V for each axis:
    the number of sub-tensors along it with such an entry. `exact` is True if these are counts and
    not estimates; where only some V are estimates, `counted` has the axes of the others. `largest`
    holds the degree of each axis, or an upper bound: the number of entries in the fullest of these
    sub-tensors. It is empty where degrees were not counted; where it is not, `entries` is no
    estimate either.
    """

    entries: float
    distinct: tuple[float, ...]
    exact: bool = False
    largest: tuple[float, ...] = ()
    counted: frozenset[int] = frozenset()
    tiles: tuple[Layout, float] | None = None
    """A layout in which the tensor is stored in tiles, and the number of tuples it has there."""
    runs: float = 0.0
    """The number of runs of one value along the last axis of which its table has rows; 0: it has
    none of runs."""
    close: bool = False
    """True if T is estimated within a few percent, so that it may stand for a bound."""

    def tuples_of(self, layout: Layout) -> float | None:
        """The number of tuples counted in a layout with tiles; None where it was not counted."""
        return self.tiles[1] if self.tiles is not None and self.tiles[0] == layout else None

    def find_covered_axes(self, shape: Sequence[int]) -> frozenset[int]:
        """The axes along which each coordinate is known to have an entry.

        >>> TensorStatistics(5, (2, 4), True).find_covered_axes((2, 5))
        frozenset({0})
        """
        axes = range(len(shape)) if self.exact else self.counted
        return frozenset(axis for axis in axes if 0 < shape[axis] <= self.distinct[axis])

    @property
    def deciding_axis(self) -> int | None:
        """The first axis along which no coordinate has more than one entry, as far as is known.

        >>> TensorStatistics(5, (4, 5), largest=(2, 1)).deciding_axis
        1
        """
        return next((axis for axis, degree in enumerate(self.largest) if 0 < degree <= 1), None)

    def find_decided_axes(self) -> frozenset[int]:
        """The axes along which an entry's coordinates follow from its coordinate along another.

        >>> TensorStatistics(5, (5, 4, 2), largest=(1, 2, 3)).find_decided_axes()
        frozenset({1, 2})
        """
        key = self.deciding_axis
        return frozenset(axis for axis in range(len(self.largest)) if key not in (None, axis))

    def within(self, shape: Sequence[int]) -> TensorStatistics:
        """Return the statistics limited to the size of each axis: bounds may have shrunk."""
        least = tuple(min(v, float(n)) for v, n in zip(self.distinct, shape, strict=True))
        return self if least == self.distinct else replace(self, distinct=least)


BLOCK = 1 << 15
"""How many elements are looked at at a time: few enough to be read from memory once."""


def _blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield parts of an array that have all of its elements, without copying any."""
    if array.size <= BLOCK:
        yield array
        return
    flat = array if array.flags.c_contiguous else array.T
    rows = flat.reshape(-1) if flat.flags.c_contiguous else array
    step = max(BLOCK * len(rows) // rows.size, 1)
    yield from (rows[start : start + step] for start in range(0, len(rows), step))


def array_statistics(array: NDArray[Any], fill: Scalar) -> TensorStatistics:
    """Exact T and V of a dense array.

    >>> array_statistics(np.array([[1.0, 0.0], [0.0, 0.0]]), 0.0).distinct
    (1.0, 1.0)
    """
    counts = (np.count_nonzero(differs_from(block, fill)) for block in _blocks(array))
    return _statistics(array, fill, sum(map(int, counts)))


def _statistics(array: NDArray[Any], fill: Scalar, entries: int) -> TensorStatistics:
    if entries and entries == array.size:
        return dense_statistics(array.shape)
    stored, axes = differs_from(array, fill), range(array.ndim)
    degrees = [np.count_nonzero(stored, axis=tuple(a for a in axes if a != axis)) for axis in axes]
    return TensorStatistics(
        float(entries),
        tuple(float(np.count_nonzero(counts)) for counts in degrees),
        exact=True,
        largest=tuple(float(np.max(counts, initial=0)) for counts in degrees),
    )


def dense_statistics(shape: Sequence[int]) -> TensorStatistics:
    """T and V of an array whose elements may be any numbers, all of which are entries.

    >>> dense_statistics((2, 3)).distinct, dense_statistics((2, 3)).largest
    ((2.0, 3.0), (3.0, 2.0))
    """
    entries = math.prod(shape)
    distinct = tuple(float(size if entries else 0) for size in shape)
    largest = tuple(float(entries // max(size, 1)) for size in shape)
    return TensorStatistics(float(entries), distinct, exact=True, largest=largest)


def varying_statistics(
    array: NDArray[Any], fill: Scalar, infinity: float | None = None
) -> TensorStatistics:
    """T and V of an array that others are going to replace.

    All elements count as entries, whatever the first array holds. Only of a state that is known to
    hold no infinity but its fill are they estimated by the first array, as those of a table are.

    >>> varying_statistics(np.array([0.0, np.inf, np.inf]), np.inf, infinity=np.inf).entries
    1.0
    >>> varying_statistics(np.array([0.0, np.inf, np.inf]), np.inf).entries
    3.0
    """
    if infinity is None or infinity != fill:
        return dense_statistics(array.shape)
    counted = array_statistics(array, fill)
    return TensorStatistics(counted.entries, counted.distinct)


def any_values(
    array: NDArray[Any], fill: Scalar, dtype: DType, infinity: float | None = None
) -> Values:
    """The range of entries when other numbers, as finite as the array's own, replace them.

    Args:
        array: the present numbers.
        fill: what no entry is.
        dtype: the element type.
        infinity: the one infinity that is among the numbers if it is known to remain the only one.

    >>> any_values(np.array([True]), False, DType.BOOL).high
    1
    >>> any_values(np.array([0.0, np.inf]), np.inf, DType.FLOAT64, np.inf).finite
    True
    """
    if infinity is not None and infinity == fill:
        return replace(anything(dtype), varies=True)
    finite = bool(np.isfinite(array).all())
    values = replace(anything(dtype, finite=finite), varies=True)
    return values if finite else replace(values, infinity=infinity)


def find_infinity(array: NDArray[Any]) -> float | None:
    """Return the one infinity in an array; 0 if all numbers are finite.

    It is None if there are NaN, both infinities, or complex numbers that are not finite.

    >>> find_infinity(np.array([1.0, np.inf])), find_infinity(np.array([1.0, np.nan]))
    (inf, None)
    """
    if array.dtype.kind not in "fc":
        return 0.0
    found = array[~np.isfinite(array)]
    if not found.size:
        return 0.0
    one = found[0]
    return float(one) if array.dtype.kind == "f" and bool((found == one).all()) else None


def array_facts(array: NDArray[Any], fill: Scalar, dtype: DType) -> tuple[TensorStatistics, Values]:
    """Exact T and V of a dense array, and the range of what differs from the fill.

    >>> statistics, values = array_facts(np.array([2.0, 0.0, 0.5]), 0.0, DType.FLOAT64)
    >>> statistics.entries, values.low
    (2.0, 0.5)
    """
    count, finite, extremes = 0, True, None
    lows, highs = [], []
    for block in _blocks(array):
        stored = differs_from(block, fill)
        entries = block if stored.all() else block[stored]
        count += entries.size
        if dtype.kind == "c":
            finite = finite and bool(np.isfinite(entries).all())
        elif entries.size:
            lows.append(entries.min())
            highs.append(entries.max())
    if lows:
        extremes = np.min(lows).item(), np.max(highs).item()
        finite = all(map(math.isfinite, extremes))  # a NaN is the least and the largest
    infinity = None if finite else find_infinity(array[differs_from(array, fill)])
    values = stored_values(count, extremes, fill, dtype, finite=finite, infinity=infinity)
    return _statistics(array, fill, count), values
