"""The rules of intervals that operators of several kinds share.

A rule takes the values of the operands and the type in which they are computed, and returns those
of the result: exact bounds made wide enough for rounding (`ucle.operators.values.interval`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.foundation.dtypes import DType
from ucle.operators.rows import MapRule
from ucle.operators.values import ROUNDING, Real, Values, interval, times


def ends(a: Values) -> tuple[Real, Real]:
    """Return the smallest and the largest value."""
    return a.low, a.high


def sum_values(a: Values, b: Values, dtype: DType) -> Values:
    """Return the values of x + y."""
    same_side = (a.low >= 0 and b.low >= 0) or (a.high <= 0 and b.high <= 0)
    nonzero = same_side and (a.excludes_zero or b.excludes_zero)
    return interval(a.low + b.low, a.high + b.high, dtype, nonzero=nonzero)


def difference_values(a: Values, b: Values, dtype: DType) -> Values:
    """Return the values of x - y."""
    return sum_values(a, opposite_values(b), dtype)


def opposite_values(a: Values) -> Values:
    """Return the values of -x."""
    infinity = None if a.infinity is None else -a.infinity
    return replace(a, low=-a.high, high=-a.low, infinity=infinity)


def product_values(a: Values, b: Values, dtype: DType) -> Values:
    """Return the values of x * y."""
    corners = [times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    nonzero = a.excludes_zero and b.excludes_zero
    return interval(min(corners), max(corners), dtype, nonzero=nonzero)


def quotient_values(a: Values, b: Values, dtype: DType) -> Values:
    """Return the values of x / y, which may be anything where y may be 0."""
    if not b.excludes_zero:
        return interval(-math.inf, math.inf, dtype, finite=False)
    return product_values(a, inverse_values(b), dtype)


def inverse_values(b: Values) -> Values:
    """Return the values of 1 / y for y that is not 0; near 0 there is no limit."""
    if b.low < 0 < b.high:
        return Values(nonzero=True)
    low = -math.inf if b.high == 0 else 0.0 if math.isinf(b.high) else float(np.divide(1, b.high))
    high = math.inf if b.low == 0 else 0.0 if math.isinf(b.low) else float(np.divide(1, b.low))
    return Values(low, high, nonzero=True)


def absolute_values(a: Values, dtype: DType) -> Values:
    """Return the values of the absolute value of x."""
    low = 0 if a.touches_zero else min(abs(a.low), abs(a.high))
    return interval(low, max(abs(a.low), abs(a.high)), dtype, rounding=0, nonzero=a.excludes_zero)


def yes_or_no_values(a: Values, b: Values, dtype: DType) -> Values:
    """Return 0 to 1, whatever the operands."""
    return Values(0, 1)


def rising(
    function: Callable[[Any], Any],
    least: float = -math.inf,
    most: float = math.inf,
    *,
    positive: bool = False,
    rounding: float = ROUNDING,
) -> MapRule:
    """Return the rule of a function that only rises, whose values lie between two limits."""

    def rule(a: Values, dtype: DType) -> Values:
        if dtype.kind == "c":
            return interval(0, 0, dtype)
        image = interval(
            function(a.low), function(a.high), dtype, rounding=rounding, nonzero=positive
        )
        low, high = max(image.low, least), min(image.high, most)
        return replace(image, low=low, high=high)

    return rule


def within_domain(function: Callable[[Any], Any], least: float, most: float) -> MapRule:
    """Return the rule of a monotonic function that is NaN outside of an interval."""

    def rule(a: Values, dtype: DType) -> Values:
        if not least <= a.low <= a.high <= most:
            return interval(-math.inf, math.inf, dtype, finite=False)
        images = [float(function(float(x))) for x in ends(a)]
        return interval(min(images), max(images), dtype)

    return rule


def no_limit(a: Values, dtype: DType) -> Values:
    """Return anything, as a complex function with poles makes."""
    return Values(finite=False)


def unless_complex(rule: MapRule) -> MapRule:
    """Return a rule for real numbers that knows nothing of complex ones."""
    return lambda a, dtype: (no_limit if dtype.kind == "c" else rule)(a, dtype)
