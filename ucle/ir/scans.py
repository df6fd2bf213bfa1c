"""Running aggregations: ``cumsum`` and its kin, where a label stays that is aggregated along.

An entry is the aggregate of all entries of its fibre up to it, in the order of the axis, stored or
not. Where two fills make a fill, as 0 + 0 does, a fibre of which nothing is stored is worth the
fill from end to end; otherwise every entry is something of its own, and all of them are met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ucle.foundation.dtypes import DType, Scalar, same_value
from ucle.ir.matrix_maps import MatrixMap
from ucle.ir.ranges import reduced
from ucle.operators import MAX, MIN, PROD, SUM, Reduce
from ucle.operators.values import Values, hull


@dataclass(frozen=True)
class Running:
    """⊕ along an axis, which stays."""

    reduce: Reduce
    label: str
    dense: bool = False
    """Whether all entries have to be met, stored or not: fills do not make a fill."""

    @property
    def name(self) -> str:
        """What programs call it."""
        return f"cum{self.reduce.stem}"

    @property
    def kernel(self) -> str:
        """What kernels call it."""
        return self.name

    @property
    def labels(self) -> tuple[str, ...]:
        """The one that it runs along."""
        return (self.label,)

    def renamed(self, names: Mapping[str, str]) -> Running:
        """The same along a label by another name."""
        return replace(self, label=names.get(self.label, self.label))

    def is_stable(self, fill: Scalar, dtype: DType) -> bool:
        """Whether a fibre of nothing but fill stays what it is.

        >>> [Running(RUNNING["cumsum"], "i").is_stable(x, DType.FLOAT64) for x in (0.0, 1.0)]
        [True, False]
        """
        assert self.reduce.merge is not None
        try:
            return same_value(self.reduce.merge.scalar(fill, fill, dtype), fill)
        except OverflowError:
            return False

    def is_exact(self, dtype: DType) -> bool:
        """Whether the order of the steps says nothing."""
        return self.reduce.extreme is not None or dtype.kind in "bi"

    def values(self, every: Values, fill: Scalar, size: int, dtype: DType) -> Values:
        """What its entries can be, if those of a fibre of some size are such values."""
        if not size:
            return every
        whole = reduced(self.reduce, every, fill, size, dtype)
        values = hull(replace(every, full=False), replace(whole, full=False))
        if self.reduce is PROD:  # factors may change the sign from step to step
            values = replace(values, low=Values().low, high=Values().high, nonzero=False)
        return values


Along = Running | MatrixMap
"""What is made of the fibres along some labels that stay."""

RUNNING: Mapping[str, Reduce] = {f"cum{row.name}": row for row in (SUM, PROD, MAX, MIN)}
"""The aggregations that there are, by their names in programs."""
