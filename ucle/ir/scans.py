"""Prefix scans: ``cumsum``, ``cumprod``, ``cummax`` and ``cummin`` along a label that stays.

An entry is the aggregate of all entries of its fibre up to it, in the order of the axis, stored or
not. If ⊕ of two fills is the fill, as 0 + 0 is, a fibre with nothing stored is fill from end to
end. Otherwise each entry has a value of its own, and all of them must be met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ucle.foundation.dtypes import DType, Scalar, same_value
from ucle.ir.matrix_maps import MatrixMap
from ucle.ir.ranges import reduce_values
from ucle.operators import REDUCES, Reduce
from ucle.operators.values import Values, hull


@dataclass(frozen=True)
class Running:
    """A prefix scan with ⊕ along an axis, which stays."""

    reduce: Reduce
    label: str
    dense: bool = False
    """True if all entries must be met, stored or not, because ⊕ of two fills is not the fill."""

    @property
    def name(self) -> str:
        """The name of the function in programs."""
        return f"cum{self.reduce.stem}"

    @property
    def kernel(self) -> str:
        """The name of the function in kernels."""
        return self.name

    @property
    def labels(self) -> tuple[str, ...]:
        """The label that the scan runs along, alone in a tuple."""
        return (self.label,)

    def rename_labels(self, names: Mapping[str, str]) -> Running:
        """Return this scan with its label renamed."""
        return replace(self, label=names.get(self.label, self.label))

    def is_stable(self, fill: Scalar, dtype: DType) -> bool:
        """Return whether a fibre of fill alone is unchanged by the scan.

        >>> [Running(RUNNING["cumsum"], "i").is_stable(x, DType.FLOAT64) for x in (0.0, 1.0)]
        [True, False]
        """
        assert self.reduce.merge is not None
        try:
            return same_value(self.reduce.merge.scalar(fill, fill, dtype), fill)
        except OverflowError:
            return False

    def is_exact(self, dtype: DType) -> bool:
        """Return whether the order of the steps cannot change the result."""
        return self.reduce.extreme is not None or dtype.kind in "bi"

    def values(self, every: Values, fill: Scalar, size: int, dtype: DType) -> Values:
        """Return the range of the scan's entries from the range and the size of a fibre."""
        if not size:
            return every
        whole = reduce_values(self.reduce, every, fill, size, dtype)
        values = hull(replace(every, full=False), replace(whole, full=False))
        if self.reduce.may_alternate:
            values = replace(values, low=Values().low, high=Values().high, nonzero=False)
        return values


Along = Running | MatrixMap
"""An operation on fibres along labels that stay: a prefix scan or a function of matrices."""

RUNNING: Mapping[str, Reduce] = {row.scan_name: row for row in REDUCES.values() if row.has_scan}
"""The aggregations with a prefix scan, by their names in programs."""
