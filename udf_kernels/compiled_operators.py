"""The operators that kernels apply to elements: their rows, by element type and name.

`ucle.udf_kernels.KERNELS` has kernels for each of them, and names them so.
"""

from __future__ import annotations

from ucle import operators
from ucle.operators import Combine, PointwiseMap, Reduce, Typing
from ucle.udf_kernels.element_types import ELEMENT_TYPES


def _maps(kind: str) -> dict[str, PointwiseMap]:
    """Return the maps of a kind of numbers."""
    rows = (row for row in operators.MAPS.values() if row.compiled)
    return {row.name: row for row in rows if kind in (row.kernel_kinds or row.kinds)}


def _combines(kind: str) -> dict[str, Combine]:
    """Return the combinations of a kind of numbers; logic takes the kernels of others."""
    rows = (row for row in operators.COMBINES.values() if row.typing is not Typing.LOGICAL)
    return {row.stem: row for row in rows if row.compiled and kind in row.kinds}


def _reduces(kind: str) -> dict[str, Reduce]:
    """Return the reductions of a kind of numbers."""
    rows = (row for row in operators.REDUCES.values() if row.compiled)
    return {row.stem: row for row in rows if kind in row.kinds}


MAPS = {tag: _maps(element.dtype.kind) for tag, element in ELEMENT_TYPES.items()}
"""By tag and name, the pointwise maps."""

COMBINES = {tag: _combines(element.dtype.kind) for tag, element in ELEMENT_TYPES.items()}
"""By tag and name, the combinations of two tensors of one length, or of a tensor and a number."""

REDUCES = {tag: _reduces(element.dtype.kind) for tag, element in ELEMENT_TYPES.items()}
"""By tag and name, the reductions."""
