"""The values that entries of a tensor may have, as an interval.

Intervals are those of the exact numbers, made wide enough for rounding. Of complex numbers it is
known whether they are 0, and nothing else. `ucle.ir.ranges` says what becomes of `Values` from one
vertex to the next.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar, is_finite

Real = int | float

ROUNDING = 4
"""Units in the last place by which one operation may be off, functions of the C library too."""


@dataclass(frozen=True)
class Values:
    """The values of those entries of a tensor that are not worth its fill.

    The interval from `low` to `high` holds all of them but NaN. `nonzero` says that 0, though in
    the interval, is not among them; `finite` that none is NaN or infinite, unless it outgrew its
    type, which `overflows` admits. `full` says that every entry of the tensor is such a value, and
    `varies` that they are made of numbers which others are going to replace: then `overflows` is
    said of all that a type can hold, and not of any data. Of values that are not `finite`,
    `infinity` is the one that may be there besides finite ones, inf or -inf; it is None where there
    may be NaN or both. `vague` values were divided by numbers that may be next to 0, or are those
    of an inverse: as far as one knows they are huge, which says nothing about the data.

    >>> Values(1.0, 2.0).excludes_zero, Values(0.0, 2.0).excludes_zero
    (True, False)
    """

    low: Real = -math.inf
    high: Real = math.inf
    nonzero: bool = False
    finite: bool = True
    overflows: bool = False
    full: bool = False
    varies: bool = False
    infinity: float | None = None
    vague: bool = False

    @property
    def excludes_zero(self) -> bool:
        """True if none of the values is 0; one that is too small for its type may be."""
        return self.finite and (self.nonzero or self.low > 0 or self.high < 0)

    @property
    def may_outgrow(self) -> bool:
        """True if finite numbers may outgrow their type, as far as the data is known."""
        return self.finite and self.overflows and not self.varies

    @property
    def order_matters(self) -> bool:
        """True if the order of factors decides which numbers outgrow their type, by the data."""
        return self.may_outgrow and not self.vague

    @property
    def touches_zero(self) -> bool:
        """True if 0 lies in the interval, be it excluded or not."""
        return self.low <= 0 <= self.high


YES = Values(1, 1, nonzero=True)
"""True, and 1."""


def anything(dtype: DType, *, finite: bool = True) -> Values:
    """Return all that a type can hold, or all its finite numbers."""
    match dtype.kind:
        case "b":
            return Values(0, 1)
        case "i":
            return Values(-(2**63), 2**63 - 1)
        case "f" if finite:
            return Values(-largest_number(dtype), largest_number(dtype))
    return Values(finite=finite)


def point(value: Scalar, dtype: DType) -> Values:
    """Return the values of one value."""
    if not is_finite(value):
        infinite = dtype.kind == "f" and not math.isnan(float(value.real))
        side = float(value.real)
        if infinite:
            return Values(side, side, finite=False, infinity=side)
        return Values(finite=False)
    if isinstance(value, complex):
        return Values(nonzero=value != 0)
    return Values(value, value, nonzero=value != 0)


def hull(one: Values, other: Values) -> Values:
    """Return the values that are among one or the other."""
    return Values(
        min(one.low, other.low),
        max(one.high, other.high),
        one.excludes_zero and other.excludes_zero,
        one.finite and other.finite,
        one.overflows or other.overflows,
        one.full and other.full,
        one.varies or other.varies,
        common_infinity(one, other),
        one.vague or other.vague,
    )


def common_infinity(one: Values, other: Values) -> float | None:
    """Return the one infinity that may be among two sets of values; None if there is none.

    >>> common_infinity(Values(0.0, 1.0), point(math.inf, DType.FLOAT64))
    inf
    """
    if one.finite or other.finite:
        return one.infinity if other.finite else other.infinity
    return one.infinity if one.infinity == other.infinity else None


def with_fill(values: Values, fill: Scalar, dtype: DType) -> Values:
    """Return the values of any entry of a tensor, stored or not."""
    return values if values.full else hull(values, point(fill, dtype))


def of_operands(values: Values, operands: tuple[Values, ...], dtype: DType) -> Values:
    """Return the same, where NaN, infinities and what outgrew its type come from operands, too."""
    if dtype.kind in "bi":
        return values
    alone = all(x.finite for x in operands)  # then the operator makes the infinity, if there is one
    finite = values.finite and alone
    return replace(
        values,
        finite=finite,
        nonzero=values.nonzero and finite,
        overflows=values.overflows or any(x.overflows for x in operands),
        infinity=values.infinity if alone else None,
        vague=values.vague or any(x.vague for x in operands),
    )


def is_nonzero(values: Values) -> Values:
    """Return the truth of values; those that may be too small for their type may be 0."""
    if not values.excludes_zero:
        return Values(0, 1)
    return Values(0, 1, nonzero=True) if values.touches_zero else YES


def largest_number(dtype: DType) -> float:
    """Return the largest finite number of a floating or complex type."""
    return float(np.finfo(dtype.real.numpy).max)


def interval(
    low: Any,
    high: Any,
    dtype: DType,
    *,
    rounding: float = ROUNDING,
    nonzero: bool = False,
    finite: bool = True,
) -> Values:
    """Return the values of an interval, a little wider, which may outgrow their type.

    Args:
        low: the smallest value; NaN where it is not known.
        high: the largest one.
        dtype: the type of the values.
        rounding: units in the last place by which the ends may be off.
        nonzero: True if no value is 0.
        finite: True if none is NaN or infinite.
    """
    if dtype.kind == "c":
        return Values(nonzero=nonzero, finite=finite, overflows=True)
    if dtype.kind in "bi":
        least, most = anything(dtype).low, anything(dtype).high
        return Values(_within(low, least, most, least), _within(high, least, most, most), nonzero)
    low, high = float(low), float(high)
    nonzero = nonzero or low > 0 or high < 0
    share = min(rounding * float(np.finfo(dtype.numpy).eps), 0.5)
    low = -math.inf if math.isnan(low) else low
    high = math.inf if math.isnan(high) else high
    largest = largest_number(dtype)
    low = _widen_end(low, -share, largest)
    high = _widen_end(high, share, largest)
    low, high = _round_to_zero(low, dtype), _round_to_zero(high, dtype)
    overflows = low < -largest or high > largest
    return Values(low, high, nonzero, finite, overflows)


def _widen_end(end: float, share: float, largest: float) -> float:
    """An end of an interval moved outwards; beyond the largest number it is infinite."""
    moved = end if math.isinf(end) else end + abs(end) * share
    if abs(moved) <= largest:
        return moved
    outwards = (moved > 0) == (share > 0)
    return math.copysign(math.inf if outwards else largest, moved)


def _round_to_zero(end: float, dtype: DType) -> float:
    """An end of an interval, or 0 where it is too small for a type."""
    return 0.0 if abs(end) < float(np.finfo(dtype.numpy).smallest_subnormal) else end


def _within(value: Real, least: Real, most: Real, otherwise: Real) -> Real:
    return otherwise if math.isnan(value) else int(min(max(value, least), most))


def times(x: Real, y: Real) -> Real:
    """Return a product of ends of intervals; an infinite end stands for numbers below it."""
    return 0 if x == 0 or y == 0 else x * y
