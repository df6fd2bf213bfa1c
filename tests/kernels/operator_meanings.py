"""The meaning of operators in one element type, in NumPy: that of their rows.

Integers wrap around here, where the kernels raise an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle import operators
from ucle.operators import Combine, PointwiseMap, Reduce, Typing
from ucle.udf_kernels import ELEMENT_TYPES

Array = NDArray[Any]
Function = Callable[..., Any]


def _typed(function: Function, dtype: np.dtype[Any]) -> Function:
    """Return a function of elements whose operands and result have one type."""

    def meaning(*operands: Any) -> Array:
        return np.asarray(function(*(np.asarray(x, dtype) for x in operands))).astype(dtype)

    return meaning


def _maps(kind: str) -> dict[str, PointwiseMap]:
    """Return the maps of a kind of numbers that have kernels."""
    rows = (row for row in operators.MAPS.values() if row.compiled)
    return {row.name: row for row in rows if kind in (row.kernel_kinds or row.kinds)}


def _combines(kind: str) -> dict[str, Combine]:
    """Return the combinations of a kind that have kernels; logic takes the kernels of others."""
    rows = (row for row in operators.COMBINES.values() if row.typing is not Typing.LOGICAL)
    return {row.stem: row for row in rows if row.compiled and kind in row.kinds}


def _reduces(kind: str) -> dict[str, Reduce]:
    """Return the reductions of a kind of numbers that have kernels."""
    rows = (row for row in operators.REDUCES.values() if row.compiled)
    return {row.stem: row for row in rows if kind in row.kinds}


_KINDS = {tag: element.dtype.kind for tag, element in ELEMENT_TYPES.items()}
_COMBINES = {tag: _combines(kind) for tag, kind in _KINDS.items()}


def _by_type(
    rows: Mapping[str, Mapping[str, PointwiseMap]] | Mapping[str, Mapping[str, Combine]],
) -> dict[str, dict[str, Function]]:
    """Return functions by tag and name."""
    return {
        tag: {name: _typed(row.numpy, ELEMENT_TYPES[tag].dtype) for name, row in of_type.items()}
        for tag, of_type in rows.items()
    }


def _merge(row: Reduce) -> np.ufunc:
    """Return the function that joins two results; all and any have one that is of nothing, too."""
    assert row.merge is not None
    assert isinstance(row.merge.numpy, np.ufunc)
    return row.merge.numpy


MAPS = _by_type({tag: _maps(kind) for tag, kind in _KINDS.items()})
"""By tag and name, the pointwise maps."""

COMBINES = _by_type(_COMBINES)
"""By tag and name, the combinations of two tensors of one length, or of a tensor and a number."""

_NOT_COMMUTATIVE = (
    name for rows in _COMBINES.values() for name, row in rows.items() if not row.commutative
)
ORDERED = tuple(dict.fromkeys(_NOT_COMMUTATIVE))
"""The combinations whose operands may not change places."""

REDUCES = {
    tag: {name: _merge(row) for name, row in _reduces(kind).items()} for tag, kind in _KINDS.items()
}
"""By tag and name, the reductions."""
