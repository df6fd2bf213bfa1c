"""What the entries of a tensor can be: an interval, and whether NaN or infinity can be among them.

`Values` is about the entries that are worth something else than the tensor's fill. Every operator
has a rule here that says what it makes of the values of its operands; an operator without one may
make anything. Two facts are kept apart. A tensor is `finite` where no operation makes NaN or
infinity of finite numbers (log 0, 1 / 0 and inf - inf do), which decides what a fill absorbs.
Whether numbers grow beyond their type (`overflows`) costs no absorption: there an entry that is not
stored annihilates (`ucle.ir.annihilation`).

Intervals are those of the exact numbers, made wide enough for rounding. Of complex numbers it is
known whether they are 0, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ucle.foundation.dtypes import DType, Scalar, is_finite, same_value
from ucle.foundation.normal_quantile import normal_quantile
from ucle.foundation.philox import BITS
from ucle.operators import Combine, PointwiseMap, Reduce
from ucle.operators.algebra import HIGHEST, LOWEST

Real = int | float

ROUNDING = 4
"""Units in the last place by which one operation may be off, functions of the C library too."""


@dataclass(frozen=True)
class Values:
    """What the entries of a tensor can be that are not worth its fill.

    The interval from `low` to `high` holds all of them but NaN. `nonzero` says that 0, though in
    the interval, is not among them; `finite` that none is NaN or infinite, unless it outgrew its
    type, which `overflows` admits. `full` says that every entry of the tensor is such a value, and
    `varies` that they are made of numbers which others are going to replace: then `overflows` is
    said of all that a type can hold, and not of any data.

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

    @property
    def excludes_zero(self) -> bool:
        """Whether none of the values is 0; one that is too small for its type may be."""
        return self.finite and (self.nonzero or self.low > 0 or self.high < 0)

    @property
    def may_outgrow(self) -> bool:
        """Whether finite numbers may outgrow their type, as far as the data is known."""
        return self.finite and self.overflows and not self.varies

    @property
    def touches_zero(self) -> bool:
        """Whether 0 lies in the interval, be it excluded or not."""
        return self.low <= 0 <= self.high


YES = Values(1, 1, nonzero=True)
"""True, and 1."""


def anything(dtype: DType, *, finite: bool = True) -> Values:
    """All that a type can hold, or all its finite numbers."""
    match dtype.kind:
        case "b":
            return Values(0, 1)
        case "i":
            return Values(-(2**63), 2**63 - 1)
        case "f" if finite:
            return Values(-_largest(dtype), _largest(dtype))
    return Values(finite=finite)


def point(value: Scalar, dtype: DType) -> Values:
    """One value."""
    if not is_finite(value):
        infinite = dtype.kind == "f" and not math.isnan(float(value.real))
        side = float(value.real)
        return Values(side, side, finite=False) if infinite else Values(finite=False)
    if isinstance(value, complex):
        return Values(nonzero=value != 0)
    return Values(value, value, nonzero=value != 0)


def stored(
    entries: float,
    extremes: tuple[Real, Real] | None,
    fill: Scalar,
    dtype: DType,
    *,
    finite: bool,
) -> Values:
    """What is known of the stored entries of an input.

    Args:
        entries: how many there are.
        extremes: the smallest and the largest; None where they are not known.
        fill: what no stored entry is.
        dtype: the element type.
        finite: whether all are finite.

    >>> stored(3, (0.5, 2.0), 0.0, DType.FLOAT64, finite=True)
    Values(low=0.5, high=2.0, nonzero=True, finite=True, overflows=False, full=False, varies=False)
    """
    if not entries:
        held = point(fill, dtype) if is_finite(fill) else anything(dtype)
        return replace(held, finite=True)
    bounded = finite and extremes is not None
    values = Values(*extremes) if bounded and extremes else anything(dtype, finite=finite)
    return replace(values, nonzero=finite and fill == 0, finite=finite)


def hull(one: Values, other: Values) -> Values:
    """What is among one or the other."""
    return Values(
        min(one.low, other.low),
        max(one.high, other.high),
        one.excludes_zero and other.excludes_zero,
        one.finite and other.finite,
        one.overflows or other.overflows,
        one.full and other.full,
        one.varies or other.varies,
    )


def with_fill(values: Values, fill: Scalar, dtype: DType) -> Values:
    """What any entry of a tensor can be, stored or not."""
    return values if values.full else hull(values, point(fill, dtype))


# ---- Vertices ----


def combined(
    operator: Combine, left: Values, right: Values, fills: tuple[Scalar, Scalar], dtype: DType
) -> Values:
    """What ⊗ makes of two tensors with these values and fills.

    Two entries that are both worth the fill give the fill of the result, as does a fill that
    absorbs what it meets.
    """
    joined = pair_fill(operator, left, right, fills, dtype)
    absorbing = absorbs(operator, left, right, fills, dtype)
    values = combine_values(operator, left, right, dtype)
    if not left.full:
        worth = absorbed_worth(operator, fills[0], dtype, left=True) if absorbing[0] else None
        if worth is None or not same_value(worth, joined):
            values = hull(values, combine_values(operator, point(fills[0], dtype), right, dtype))
    if not right.full:
        worth = absorbed_worth(operator, fills[1], dtype, left=False) if absorbing[1] else None
        if worth is None or not same_value(worth, joined):
            values = hull(values, combine_values(operator, left, point(fills[1], dtype), dtype))
    varies = (left.varies or right.varies) and not operator.indicates
    return replace(values, full=left.full and right.full, varies=varies)


def absorbs(
    operator: Combine, left: Values, right: Values, fills: tuple[Scalar, Scalar], dtype: DType
) -> tuple[bool, bool]:
    """Whether the fill of the left, and of the right, makes one value of whatever it meets.

    What it meets may outgrow its type, unless the other side holds NaN or infinities: which zeros
    annihilate could then not be told.
    """

    def tame(other: Values, own: Values) -> bool:
        return other.finite and (own.finite or not other.overflows)

    by_left = operator.absorbs_left(fills[0]) and (operator.absorbs_all or tame(right, left))
    by_right = operator.absorbs_right(fills[1]) and (operator.absorbs_all or tame(left, right))
    if operator.name == "div" and fills[0] == 0:
        divisor = with_fill(right, fills[1], dtype)
        by_left = divisor.excludes_zero and tame(right, left)
    if operator.name in ("floor_divide", "remainder") and fills[0] == 0 and dtype.kind == "f":
        divisor = with_fill(right, fills[1], dtype)
        by_left = divisor.excludes_zero and not (divisor.overflows or divisor.touches_zero)
    if operator.name in ("min", "max") and dtype.kind != "c":
        by_left = by_left or _is_bound(operator, fills[0], with_fill(right, fills[1], dtype))
        by_right = by_right or _is_bound(operator, fills[1], with_fill(left, fills[0], dtype))
    return by_left, by_right


def _is_bound(operator: Combine, fill: Scalar, values: Values) -> bool:
    """Whether no value is smaller than a fill, or larger where the larger one is taken."""
    if not values.finite or not is_finite(fill) or isinstance(fill, complex):
        return False
    return fill <= values.low if operator.name == "min" else fill >= values.high


def pair_fill(
    operator: Combine, left: Values, right: Values, fills: tuple[Scalar, Scalar], dtype: DType
) -> Scalar:
    """What a pair is worth that a join leaves out.

    Where one side has no entry that is worth its fill, there are no pairs of two fills, and the
    other side's fill alone decides.
    """
    by_left, by_right = absorbs(operator, left, right, fills, dtype)
    if right.full and by_left:
        return absorbed_worth(operator, fills[0], dtype, left=True)
    if left.full and by_right:
        return absorbed_worth(operator, fills[1], dtype, left=False)
    return operator.scalar(*fills, dtype)


def absorbed_worth(operator: Combine, fill: Scalar, dtype: DType, *, left: bool) -> Scalar:
    """What a fill that absorbs, of the left or of the right, makes of whatever it meets."""
    if operator.name in ("min", "max"):
        return fill
    one = dtype.scalar(1)
    return operator.scalar(fill, one, dtype) if left else operator.scalar(one, fill, dtype)


def reduced(operator: Reduce, values: Values, fill: Scalar, count: int, dtype: DType) -> Values:
    """What ⊕ makes of `count` entries that have these values or are worth the fill."""
    if not count:
        identity = operator.identity
        return anything(dtype) if identity is None else point(identity(dtype), dtype)
    if (rule := REDUCE_RULES.get(operator.name)) is None:
        return declared(operator, values, dtype)
    aggregated = rule(values, fill, count, dtype)
    return replace(aggregated, full=values.full, varies=values.varies)


# ---- Operators ----


def combine_values(operator: Combine, left: Values, right: Values, dtype: DType) -> Values:
    """What ⊗ makes of two values."""
    if (rule := COMBINE_RULES.get(operator.name)) is None:
        return declared(operator, left, dtype)
    with np.errstate(all="ignore"):
        values = rule(left, right, dtype)
    if operator.indicates:
        return values
    return _of_operands(values, (left, right), dtype)


def map_values(function: PointwiseMap, values: Values, dtype: DType) -> Values:
    """What a pointwise map makes of a value."""
    if (rule := MAP_RULES.get(function.name)) is None:
        return declared(function, values, dtype)
    with np.errstate(all="ignore"):
        mapped = rule(values, dtype)
    if not function.indicates and not function.always_finite:
        mapped = _of_operands(mapped, (values,), dtype)
    varies = values.varies and not function.indicates
    return replace(mapped, full=values.full, varies=varies)


def cast_values(values: Values, source: DType, result: DType) -> Values:
    """What becomes of values in another type."""
    if result.kind == "b":
        return replace(_is_nonzero(values), full=values.full)
    if result.kind == "c":
        return replace(values, low=-math.inf, high=math.inf, nonzero=values.excludes_zero)
    if source.kind == "c":
        converted = anything(result, finite=values.finite)
    elif result.kind == "i" and source.kind == "f":
        converted = _interval(_cut(values.low), _cut(values.high), result)
    else:
        converted = _interval(values.low, values.high, result, nonzero=values.excludes_zero)
    kept = _of_operands(converted, (values,), result)
    return replace(kept, full=values.full, varies=values.varies)


def declared(operator: Combine | PointwiseMap | Reduce, values: Values, dtype: DType) -> Values:
    """What an operator of the user's makes: what was said of it, or anything."""
    if operator.interval is not None:
        return replace(_interval(*operator.interval, dtype), full=values.full)
    return replace(anything(dtype, finite=dtype.kind in "bi"), full=values.full)


def _of_operands(values: Values, operands: tuple[Values, ...], dtype: DType) -> Values:
    """The same, where NaN, infinities and what outgrew its type come from operands, too."""
    if dtype.kind in "bi":
        return values
    finite = values.finite and all(x.finite for x in operands)
    return replace(
        values,
        finite=finite,
        nonzero=values.nonzero and finite,
        overflows=values.overflows or any(x.overflows for x in operands),
    )


def _largest(dtype: DType) -> float:
    return float(np.finfo(dtype.real.numpy).max)


def _interval(
    low: Any,
    high: Any,
    dtype: DType,
    *,
    rounding: float = ROUNDING,
    nonzero: bool = False,
    finite: bool = True,
) -> Values:
    """The values of an interval, a little wider, which may outgrow their type."""
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
    largest = _largest(dtype)
    low = _widened(low, -share, largest)
    high = _widened(high, share, largest)
    low, high = _rounded_to_zero(low, dtype), _rounded_to_zero(high, dtype)
    overflows = low < -largest or high > largest
    return Values(low, high, nonzero, finite, overflows)


def _widened(end: float, share: float, largest: float) -> float:
    """An end of an interval moved outwards; beyond the largest number it is infinite."""
    moved = end if math.isinf(end) else end + abs(end) * share
    if abs(moved) <= largest:
        return moved
    outwards = (moved > 0) == (share > 0)
    return math.copysign(math.inf if outwards else largest, moved)


def _rounded_to_zero(end: float, dtype: DType) -> float:
    """An end of an interval, or 0 where it is too small for a type."""
    return 0.0 if abs(end) < float(np.finfo(dtype.numpy).smallest_subnormal) else end


def _within(value: Real, least: Real, most: Real, otherwise: Real) -> Real:
    return otherwise if math.isnan(value) else int(min(max(value, least), most))


def _cut(value: Real) -> Real:
    return math.trunc(value) if math.isfinite(value) else value


def _times(x: Real, y: Real) -> Real:
    """A product of ends of intervals: an end that is infinite stands for numbers below it."""
    return 0 if x == 0 or y == 0 else x * y


# ---- Rules of ⊗ ----

CombineRule = Callable[[Values, Values, DType], Values]


def _add(a: Values, b: Values, dtype: DType) -> Values:
    same_side = (a.low >= 0 and b.low >= 0) or (a.high <= 0 and b.high <= 0)
    nonzero = same_side and (a.excludes_zero or b.excludes_zero)
    return _interval(a.low + b.low, a.high + b.high, dtype, nonzero=nonzero)


def _sub(a: Values, b: Values, dtype: DType) -> Values:
    return _add(a, _opposite(b), dtype)


def _opposite(a: Values) -> Values:
    return replace(a, low=-a.high, high=-a.low)


def _mult(a: Values, b: Values, dtype: DType) -> Values:
    corners = [_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    nonzero = a.excludes_zero and b.excludes_zero
    return _interval(min(corners), max(corners), dtype, nonzero=nonzero)


def _div(a: Values, b: Values, dtype: DType) -> Values:
    if not b.excludes_zero:
        return _interval(-math.inf, math.inf, dtype, finite=False)
    return _mult(a, _inverse(b), dtype)


def _inverse(b: Values) -> Values:
    """One through values that are not 0; near 0 there is no limit."""
    if b.low < 0 < b.high:
        return Values(nonzero=True)
    low = -math.inf if b.high == 0 else 0.0 if math.isinf(b.high) else float(np.divide(1, b.high))
    high = math.inf if b.low == 0 else 0.0 if math.isinf(b.low) else float(np.divide(1, b.low))
    return Values(low, high, nonzero=True)


def _pow(a: Values, b: Values, dtype: DType) -> Values:
    if dtype.kind in "bi":
        return anything(dtype)
    whole = b.low == b.high and math.isfinite(b.low) and b.low == int(b.low)
    if dtype.kind == "c":
        return _interval(0, 0, dtype, finite=a.excludes_zero, nonzero=a.excludes_zero)
    if a.low < 0 and not whole:
        return _interval(-math.inf, math.inf, dtype, finite=False)
    if not a.excludes_zero and b.low < 0:
        return _interval(-math.inf, math.inf, dtype, finite=False)
    if a.low < 0 and b.low < 0:
        return _interval(-math.inf, math.inf, dtype, nonzero=True)
    ends = [float(np.power(float(x), float(y))) for x in (a.low, a.high) for y in (b.low, b.high)]
    if a.touches_zero and b.high > 0:
        ends.append(0.0)  # beside 0 ^ 0, which is 1
    if b.touches_zero:
        ends.append(1.0)
    return _interval(min(ends), max(ends), dtype, nonzero=a.excludes_zero)


def _least(a: Values, b: Values, dtype: DType) -> Values:
    nonzero = a.excludes_zero and b.excludes_zero
    return _interval(min(a.low, b.low), min(a.high, b.high), dtype, rounding=0, nonzero=nonzero)


def _greatest(a: Values, b: Values, dtype: DType) -> Values:
    nonzero = a.excludes_zero and b.excludes_zero
    return _interval(max(a.low, b.low), max(a.high, b.high), dtype, rounding=0, nonzero=nonzero)


def _yes_or_no(a: Values, b: Values, dtype: DType) -> Values:
    return Values(0, 1)


def _differs(a: Values, b: Values, dtype: DType) -> Values:
    zero = Values(0, 0)
    for one, other in ((a, b), (b, a)):
        if replace(other, full=False) == zero:
            return _is_nonzero(one)
    return Values(0, 1)


def _is_nonzero(values: Values) -> Values:
    """Whether values are no 0, as is also said of those that may be too small for their type."""
    if not values.excludes_zero:
        return Values(0, 1)
    return Values(0, 1, nonzero=True) if values.touches_zero else YES


def _selected(condition: Values, value: Values, dtype: DType) -> Values:
    """The value or 0; what the condition is, is not among them."""
    selected = _interval(min(value.low, 0), max(value.high, 0), dtype, rounding=0)
    return replace(selected, overflows=value.overflows)


def _selected_or(otherwise: Callable[[DType], Scalar]) -> CombineRule:
    """The rule of a selection that gives another value where the condition does not hold."""

    def rule(condition: Values, value: Values, dtype: DType) -> Values:
        value = replace(value, full=False)
        if condition.excludes_zero:
            return value
        return hull(value, point(otherwise(dtype), dtype))

    return rule


def _hypot(a: Values, b: Values, dtype: DType) -> Values:
    one, other = _abs(a, dtype), _abs(b, dtype)
    nonzero = a.excludes_zero or b.excludes_zero
    low = np.hypot(float(one.low), float(other.low))
    high = np.hypot(float(one.high), float(other.high))
    return _interval(low, high, dtype, nonzero=nonzero)


def _ends(a: Values) -> tuple[Real, Real]:
    return a.low, a.high


def _logaddexp(a: Values, b: Values, dtype: DType) -> Values:
    low = np.logaddexp(float(a.low), float(b.low))
    high = np.logaddexp(float(a.high), float(b.high))
    # Where terms cancel, what rounds is the greater one.
    most = max(abs(x) for x in (*_ends(a), *_ends(b)))
    slack = ROUNDING * float(np.finfo(dtype.numpy).eps) * (most if math.isfinite(most) else 0)
    return _interval(low - slack, high + slack, dtype)


def _copysign(a: Values, b: Values, dtype: DType) -> Values:
    size = _abs(a, dtype)
    low = size.low if b.low >= 0 else -size.high
    return _interval(low, size.high, dtype, rounding=0, nonzero=a.excludes_zero)


def _nextafter(a: Values, b: Values, dtype: DType) -> Values:
    return _interval(min(a.low, b.low), max(a.high, b.high), dtype, rounding=0)


def _remainder(a: Values, b: Values, dtype: DType) -> Values:
    finite = dtype.kind == "i" or b.excludes_zero
    return _interval(min(b.low, 0), max(b.high, 0), dtype, finite=finite)


def _floor_divide(a: Values, b: Values, dtype: DType) -> Values:
    if dtype.kind == "i":
        most = max(abs(a.low), abs(a.high))
        return _interval(-most, most, dtype)
    if not b.excludes_zero:
        return _interval(-math.inf, math.inf, dtype, finite=False)
    quotient = _mult(a, _inverse(b), dtype)
    low, high = quotient.low - 1, quotient.high + 1
    return replace(_interval(low, high, dtype), nonzero=False)


def _right_shift(a: Values, b: Values, dtype: DType) -> Values:
    return _interval(min(a.low, 0), max(a.high, 0), dtype)


def _any_bits(a: Values, b: Values, dtype: DType) -> Values:
    return anything(dtype)


COMBINE_RULES: Mapping[str, CombineRule] = {
    "mult": _mult,
    "add": _add,
    "sub": _sub,
    "div": _div,
    "pow": _pow,
    "min": _least,
    "max": _greatest,
    "when": _selected,
    "unless": _selected,
    "when_one": _selected_or(lambda dtype: dtype.scalar(1)),
    "when_lowest": _selected_or(lambda dtype: dtype.scalar(LOWEST.get(dtype.kind, -math.inf))),
    "when_highest": _selected_or(lambda dtype: dtype.scalar(HIGHEST.get(dtype.kind, math.inf))),
    "sparse_mult": _mult,
    "sparse_div": _div,
    "random_bits": lambda left, right, dtype: Values(0, 2**BITS - 1),
    "atan2": lambda left, right, dtype: _interval(-math.pi, math.pi, dtype),
    "hypot": _hypot,
    "logaddexp": _logaddexp,
    "copysign": _copysign,
    "nextafter": _nextafter,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
    "bitwise_right_shift": _right_shift,
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor", "bitwise_left_shift"), _any_bits),
    "not_equal": _differs,
    **dict.fromkeys(("less", "less_equal", "equal", "and", "or", "xor"), _yes_or_no),
}

# ---- Rules of pointwise maps ----

MapRule = Callable[[Values, DType], Values]


def _rising(
    function: Callable[[Any], Any],
    least: float = -math.inf,
    most: float = math.inf,
    *,
    positive: bool = False,
    rounding: float = ROUNDING,
) -> MapRule:
    """The rule of a function that only rises, whose values lie between two limits."""

    def rule(a: Values, dtype: DType) -> Values:
        if dtype.kind == "c":
            return _interval(0, 0, dtype)
        image = _interval(
            function(a.low), function(a.high), dtype, rounding=rounding, nonzero=positive
        )
        low, high = max(image.low, least), min(image.high, most)
        return replace(image, low=low, high=high)

    return rule


def _exp(a: Values, dtype: DType) -> Values:
    if dtype.kind == "c":
        return _interval(0, 0, dtype, nonzero=True)
    image = _interval(
        np.exp(float(a.low)), np.exp(float(a.high)), dtype, rounding=2**6, nonzero=True
    )
    return replace(image, low=max(image.low, 0.0))


def _log(a: Values, dtype: DType) -> Values:
    if dtype.kind == "c" or not (a.low >= 0 and a.excludes_zero):
        finite = dtype.kind == "c" and a.excludes_zero
        return _interval(-math.inf, math.inf, dtype, finite=finite)
    smallest = float(np.finfo(dtype.numpy).smallest_subnormal)
    low, high = (math.log(max(x, smallest)) if x < math.inf else x for x in (a.low, a.high))
    # What is no 0 by its operands may be too small for its type: log is infinite then.
    return replace(_interval(low, high, dtype), overflows=a.touches_zero)


def _log_to(base: float) -> MapRule:
    """The rule of a logarithm to another base than e."""

    def rule(a: Values, dtype: DType) -> Values:
        natural = _log(a, dtype)
        low, high = natural.low / math.log(base), natural.high / math.log(base)
        image = _interval(low, high, dtype, finite=natural.finite)
        return replace(image, overflows=image.overflows or natural.overflows)

    return rule


def _within_domain(function: Callable[[Any], Any], least: float, most: float) -> MapRule:
    """The rule of a monotonic function that is finite in an interval, and NaN outside of it."""

    def rule(a: Values, dtype: DType) -> Values:
        if not least <= a.low <= a.high <= most:
            return _interval(-math.inf, math.inf, dtype, finite=False)
        ends = [float(function(float(x))) for x in _ends(a)]
        return _interval(min(ends), max(ends), dtype)

    return rule


def _cosh(a: Values, dtype: DType) -> Values:
    low, high = (float(np.cosh(float(x))) for x in _ends(_abs(a, dtype)))
    return _interval(low, high, dtype, rounding=2**6)


def _log1p(a: Values, dtype: DType) -> Values:
    if not a.low > -1:
        return _interval(-math.inf, math.inf, dtype, finite=False)
    image = _interval(np.log1p(float(a.low)), np.log1p(float(a.high)), dtype)
    return replace(image, nonzero=a.excludes_zero)


def _sqrt(a: Values, dtype: DType) -> Values:
    if dtype.kind == "c":
        return _interval(0, 0, dtype, nonzero=a.excludes_zero)
    if a.low < 0:
        return _interval(-math.inf, math.inf, dtype, finite=False)
    return _interval(math.sqrt(a.low), math.sqrt(a.high), dtype, nonzero=a.excludes_zero)


def _abs(a: Values, dtype: DType) -> Values:
    low = 0 if a.touches_zero else min(abs(a.low), abs(a.high))
    return _interval(low, max(abs(a.low), abs(a.high)), dtype, rounding=0, nonzero=a.excludes_zero)


def _square(a: Values, dtype: DType) -> Values:
    size = _abs(a, DType.FLOAT64) if dtype.kind == "f" else _abs(a, dtype)
    return _mult(size, size, dtype)


def _reciprocal(a: Values, dtype: DType) -> Values:
    return _div(Values(1, 1), a, dtype)


def _bent(least: float) -> MapRule:
    """The rule of gelu and silu: near x for large x, near 0 for small ones, a dip between."""

    def rule(a: Values, dtype: DType) -> Values:
        low = 0.0 if a.low >= 0 else least
        return _interval(low, max(a.high, 0), dtype)

    return rule


def _softplus(x: Real) -> float:
    return float(np.logaddexp(float(x), 0.0))


def _sigmoid(x: Real) -> float:
    return float(1 / (1 + np.exp(-float(x))))


def _quantile(a: Values, dtype: DType) -> Values:
    if not 0 < a.low <= a.high < 1:
        return _interval(-math.inf, math.inf, dtype, finite=False)
    low, high = (float(normal_quantile(x)) for x in (a.low, a.high))
    return _interval(low, high, dtype)


def _part(a: Values, dtype: DType) -> Values:
    """The rule of parts of complex numbers."""
    return Values(finite=a.finite) if dtype.kind == "c" else _interval(a.low, a.high, dtype)


def _leaky(x: Real) -> Real:
    return x if x >= 0 else 0.01 * x


def _no_limit(a: Values, dtype: DType) -> Values:
    """The rule of complex functions that have poles."""
    return Values(finite=False)


def _where_finite(a: Values, dtype: DType) -> Values:
    """Numbers as they are, and 0 in the places of those that are none or infinite."""
    largest = _largest(dtype) if dtype.kind == "f" else math.inf
    low, high = max(a.low, -largest), min(a.high, largest)
    if a.finite and not a.overflows:
        return replace(a, low=low, high=high)
    return Values(min(low, 0.0), max(high, 0.0))


def _unless_complex(rule: MapRule) -> MapRule:
    return lambda a, dtype: (_no_limit if dtype.kind == "c" else rule)(a, dtype)


MAP_RULES: Mapping[str, MapRule] = {
    "relu": _rising(lambda x: max(x, 0), rounding=0),
    "leaky_relu": _rising(_leaky),
    "sigmoid": _unless_complex(_rising(_sigmoid, 0.0, 1.0)),
    "tanh": _unless_complex(_rising(lambda x: np.tanh(float(x)), -1.0, 1.0)),
    "exp": _exp,
    "log": _log,
    "log1p": _log1p,
    **dict.fromkeys(("sin", "cos"), lambda a, dtype: Values(-1.0, 1.0)),
    "tan": lambda a, dtype: anything(dtype),
    "asin": _within_domain(np.arcsin, -1, 1),
    "acos": _within_domain(np.arccos, -1, 1),
    "atan": _rising(lambda x: np.arctan(float(x))),
    "sinh": _rising(lambda x: np.sinh(float(x)), rounding=2**6),
    "cosh": _cosh,
    "asinh": _rising(lambda x: np.arcsinh(float(x))),
    "acosh": _within_domain(np.arccosh, 1, math.inf),
    "atanh": _within_domain(np.arctanh, math.nextafter(-1, 0), math.nextafter(1, 0)),
    "expm1": _rising(lambda x: np.expm1(float(x)), -1.0, rounding=2**6),
    "log2": _log_to(2),
    "log10": _log_to(10),
    "sqrt": _sqrt,
    "abs": _abs,
    "neg": lambda a, dtype: _interval(-a.high, -a.low, dtype, rounding=0, nonzero=a.excludes_zero),
    "square": _square,
    "reciprocal": _reciprocal,
    "sign": lambda a, dtype: _interval(
        np.sign(a.low), np.sign(a.high), dtype, rounding=0, nonzero=a.excludes_zero
    ),
    "gelu": _bent(-0.18),
    "silu": _bent(-0.28),
    "softplus": _rising(_softplus, 0.0),
    "floor": _rising(np.floor, rounding=0),
    "ceil": _rising(np.ceil, rounding=0),
    "trunc": _rising(np.trunc, rounding=0),
    "round": _rising(np.round, rounding=0),
    "normal_quantile": _quantile,
    "conj": lambda a, dtype: a,
    "real": _part,
    "imag": _part,
    "finite": _where_finite,
    **dict.fromkeys(("isnan", "isinf", "isfinite", "not"), lambda a, dtype: Values(0, 1)),
}

# ---- Rules of ⊕ ----

ReduceRule = Callable[[Values, Scalar, int, DType], Values]


def _every(values: Values, fill: Scalar, dtype: DType) -> Values:
    """What the entries of a fibre can be whose aggregate is not that of fills alone.

    An infinite fill makes a sum infinite, which is then the fill of the sums.
    """
    return with_fill(values, fill, dtype) if is_finite(fill) else values


def _sum(values: Values, fill: Scalar, count: int, dtype: DType) -> Values:
    every = _every(values, fill, dtype)
    total = _interval(
        _times(count, every.low), _times(count, every.high), dtype, rounding=ROUNDING + count
    )
    some = fill == 0 or values.full
    nonzero = some and values.excludes_zero and (values.low >= 0 or values.high <= 0)
    low, high = total.low, total.high
    if some and values.low >= 0:  # one entry is there, and no other makes the sum smaller
        low = max(low, values.low)
    if some and values.high <= 0:
        high = min(high, values.high)
    total = replace(total, low=low, high=high, nonzero=total.nonzero or nonzero)
    return _of_operands(total, (values,), dtype)


def _prod(values: Values, fill: Scalar, count: int, dtype: DType) -> Values:
    every = with_fill(values, fill, dtype)
    if dtype.kind in "bi":
        return anything(dtype)
    sizes = [abs(float(every.low)), abs(float(every.high))]
    try:
        least, most = min(sizes) ** count, max(sizes) ** count
    except OverflowError:
        least, most = 0.0, math.inf
    low = least if every.low >= 0 else -most
    product = _interval(low, most, dtype, rounding=ROUNDING + count, nonzero=every.excludes_zero)
    return _of_operands(product, (every,), dtype)


def _one_of(values: Values, fill: Scalar, count: int, dtype: DType) -> Values:
    """The rule of min and max, which pick an entry."""
    return values


REDUCE_RULES: Mapping[str, ReduceRule] = {
    "sum": _sum,
    "prod": _prod,
    "min": _one_of,
    "max": _one_of,
    "any": _one_of,
    "all": _one_of,
}
