"""Top-k along an axis: ``top_k`` and ``bottom_k``, with the positions of the entries.

From each fibre the k greatest or least entries are kept, best first, whether they are stored or
not. Of two equal entries the one at the smaller position comes first, so that the values alone
decide; NaN counts as the greatest number. An entry is a pair of a value and a position, told apart
by a label of size 2: one vertex gives both, and a reader takes the part that it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ucle.foundation.dtypes import DType
from ucle.operators import (
    MAX,
    MIN,
)

VALUE, POSITION = 0, 1
"""The coordinates of the two parts of a pair."""

PAIR = 2

LONGEST_AXIS = 1 << 53
"""The longest axis whose positions float64 holds exactly."""


@dataclass(frozen=True)
class TopK:
    """Top-k along one axis, which is replaced by a rank and by the part of a pair."""

    label: str
    rank: str
    part: str
    largest: bool

    @property
    def kernel(self) -> str:
        """The name of the order in kernels."""
        return MAX.stem if self.largest else MIN.stem

    @property
    def name(self) -> str:
        """The name of the function in programs."""
        return "top_k" if self.largest else "bottom_k"

    def rename_labels(self, names: Mapping[str, str]) -> TopK:
        """Return this top-k with its labels renamed."""
        label, rank, part = (names.get(x, x) for x in (self.label, self.rank, self.part))
        return replace(self, label=label, rank=rank, part=part)

    def text(self, source: str, label: str) -> str:
        """Return the call on a tensor along a label, as a person would write it."""
        return f"{self.name}[{label},{self.rank}]({source})"


def pair_dtype(dtype: DType) -> DType | None:
    """Return the type that holds both values of `dtype` and positions exactly; None if unordered.

    >>> [pair_dtype(x) for x in (DType.FLOAT32, DType.BOOL, DType.COMPLEX128)]
    [<DType.FLOAT64: 'float64'>, <DType.INT64: 'int64'>, None]
    """
    return {"f": DType.FLOAT64, "i": DType.INT64, "b": DType.INT64}.get(dtype.kind)
