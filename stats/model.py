"""The two statistics of a tensor: T(U) and V(U, l)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TensorStatistics:
    """T and V of one tensor (sparse_einsum.txt, section 7.1).

    `entries` is T: the stored entries that differ from the fill. `distinct` holds V for each axis:
    how many sub-tensors along it hold such an entry. `exact` tells counts from estimates.
    """

    entries: float
    distinct: tuple[float, ...]
    exact: bool = False


def differs_from(array: NDArray[np.float64], fill: float) -> NDArray[np.bool_]:
    """Where an array holds something else than the fill; NaN is a fill like any other."""
    return ~np.isnan(array) if np.isnan(fill) else array != fill


def array_statistics(array: NDArray[np.float64], fill: float) -> TensorStatistics:
    """Exact T and V of a dense array.

    >>> array_statistics(np.array([[1.0, 0.0], [0.0, 0.0]]), 0.0).distinct
    (1.0, 1.0)
    """
    stored = differs_from(array, fill)
    axes = range(array.ndim)
    distinct = (
        float(np.count_nonzero(stored.any(axis=tuple(a for a in axes if a != axis))))
        for axis in axes
    )
    return TensorStatistics(float(np.count_nonzero(stored)), tuple(distinct), exact=True)
