"""The first entries along an axis: ``top_k`` and its kin, with the positions that they stand at.

Of each fibre the k first entries are kept, greatest or least first, stored or not. Of two that are
equal the one at the smaller position comes first, so that nothing but the values decides; NaN
counts as the greatest number. An entry is a pair of a value and a position, told apart by a label
of two positions: so one vertex tells both, and whoever wants one of them reads it there.
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
"""What the two entries of a pair are."""

PAIR = 2

LONGEST_AXIS = 1 << 53
"""Up to here float64 holds every position."""


@dataclass(frozen=True)
class TopK:
    """The first entries along an axis, which gives way to their rank and the part of a pair."""

    label: str
    rank: str
    part: str
    largest: bool

    @property
    def kernel(self) -> str:
        """What kernels call the order."""
        return MAX.stem if self.largest else MIN.stem

    @property
    def name(self) -> str:
        """What programs call it."""
        return "top_k" if self.largest else "bottom_k"

    def renamed(self, names: Mapping[str, str]) -> TopK:
        """The same with labels by other names."""
        label, rank, part = (names.get(x, x) for x in (self.label, self.rank, self.part))
        return replace(self, label=label, rank=rank, part=part)

    def text(self, source: str, label: str) -> str:
        """The first entries of a tensor along a label, as a person would write it."""
        return f"{self.name}[{label},{self.rank}]({source})"


def pair_dtype(dtype: DType) -> DType | None:
    """The type that holds values of a type and positions exactly; none where nothing has an order.

    >>> [pair_dtype(x) for x in (DType.FLOAT32, DType.BOOL, DType.COMPLEX128)]
    [<DType.FLOAT64: 'float64'>, <DType.INT64: 'int64'>, None]
    """
    return {"f": DType.FLOAT64, "i": DType.INT64, "b": DType.INT64}.get(dtype.kind)
