"""The values that the entries of each vertex may have: an interval, and NaN and infinity.

`ucle.operators.values.Values` is about the entries that are worth something other than the tensor's
fill, and the row of every operator has a rule that says what it makes of the values of its
operands; an operator without one may make anything. Two facts are kept apart. A tensor is `finite`
where no operation makes NaN or infinity of finite numbers (log 0, 1 / 0 and inf - inf do), which
decides what a fill absorbs. Whether numbers grow beyond their type (`overflows`) costs no
absorption: there an entry that is not stored annihilates (`ucle.ir.annihilation`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ucle.foundation.dtypes import DType, Scalar, is_finite, same_value
from ucle.operators import Combine, PointwiseMap, Reduce
from ucle.operators.rows import Division, Extreme
from ucle.operators.values import (
    Real,
    Values,
    anything,
    common_infinity,
    hull,
    interval,
    is_nonzero,
    of_operands,
    point,
    with_fill,
)

NEXT_TO_ZERO = 1e-100
"""A divisor that may be smaller than this one is not known to be of any size."""


def stored_values(
    entries: float,
    extremes: tuple[Real, Real] | None,
    fill: Scalar,
    dtype: DType,
    *,
    finite: bool,
    infinity: float | None = None,
) -> Values:
    """Return the values of the stored entries of an input.

    Args:
        entries: how many there are.
        extremes: the smallest and the largest; None where they are not known.
        fill: what no stored entry is.
        dtype: the element type.
        finite: whether all are finite.
        infinity: the only one among them that is not finite, if there is no other.

    >>> values = stored_values(3, (0.5, 2.0), 0.0, DType.FLOAT64, finite=True)
    >>> values.low, values.high, values.nonzero
    (0.5, 2.0, True)
    """
    if not entries:
        held = point(fill, dtype) if is_finite(fill) else anything(dtype)
        return replace(held, finite=True)
    bounded = finite and extremes is not None
    values = Values(*extremes) if bounded and extremes else anything(dtype, finite=finite)
    return replace(values, nonzero=finite and fill == 0, finite=finite, infinity=infinity)


# ---- Vertices ----


def join_values(
    operator: Combine, left: Values, right: Values, fills: tuple[Scalar, Scalar], dtype: DType
) -> Values:
    """Return the values of ⊗ of two tensors with these values and fills.

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
    """Return whether the fill of the left, and of the right, absorbs whatever it meets.

    What it meets may outgrow its type, unless the other side holds NaN or infinities: which zeros
    annihilate could then not be told. It may hold the one infinity that is absorbed as well, as
    inf + inf is inf.
    """

    def tame(other: Values, own: Values) -> bool:
        return other.finite and (own.finite or not other.overflows)

    def absorbed(other: Values, own: Values, *, left: bool) -> bool:
        if operator.absorbs_all or tame(other, own):
            return True
        if other.infinity is None or not (own.finite or not other.overflows):
            return False
        fill, infinity = fills[0] if left else fills[1], other.infinity
        one, two = (fill, infinity) if left else (infinity, fill)
        met = operator.scalar(one, two, dtype)
        return same_value(met, absorbed_worth(operator, fill, dtype, left=left))

    by_left = operator.absorbs_left(fills[0]) and absorbed(right, left, left=True)
    by_right = operator.absorbs_right(fills[1]) and absorbed(left, right, left=False)
    if operator.division is Division.TRUE and fills[0] == 0:
        divisor = with_fill(right, fills[1], dtype)
        by_left = divisor.excludes_zero and tame(right, left)
    if operator.division is Division.FLOORED and fills[0] == 0 and dtype.kind == "f":
        divisor = with_fill(right, fills[1], dtype)
        by_left = divisor.excludes_zero and not (divisor.overflows or divisor.touches_zero)
    if operator.extreme is not None and dtype.kind != "c":
        by_left = by_left or _is_bound(operator, fills[0], with_fill(right, fills[1], dtype))
        by_right = by_right or _is_bound(operator, fills[1], with_fill(left, fills[0], dtype))
    return by_left, by_right


def _is_bound(operator: Combine, fill: Scalar, values: Values) -> bool:
    """True if no value is smaller than a fill, or larger where the larger one is picked."""
    if not values.finite or not is_finite(fill) or isinstance(fill, complex):
        return False
    return fill <= values.low if operator.extreme is Extreme.LEAST else fill >= values.high


def pair_fill(
    operator: Combine, left: Values, right: Values, fills: tuple[Scalar, Scalar], dtype: DType
) -> Scalar:
    """Return the value of a pair that a join leaves out.

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
    """Return the result of a fill that absorbs, of the left or of the right."""
    if operator.extreme is not None:
        return fill
    one = dtype.scalar(1)
    return operator.scalar(fill, one, dtype) if left else operator.scalar(one, fill, dtype)


def reduce_values(
    operator: Reduce, values: Values, fill: Scalar, count: int, dtype: DType
) -> Values:
    """Return the values of ⊕ over `count` entries that have these values or equal the fill."""
    if not count:
        identity = operator.identity
        return anything(dtype) if identity is None else point(identity(dtype), dtype)
    if (rule := operator.rule) is None:
        return declared_values(operator, values, dtype)
    aggregated = rule(values, fill, count, dtype)
    return replace(aggregated, full=values.full, varies=values.varies, vague=values.vague)


# ---- Operators ----


def combine_values(operator: Combine, left: Values, right: Values, dtype: DType) -> Values:
    """Return the values of ⊗ of two values."""
    if (rule := operator.rule) is None:
        return declared_values(operator, left, dtype)
    with np.errstate(all="ignore"):
        values = rule(left, right, dtype)
    if operator.indicates:
        return values
    values = of_operands(values, (left, right), dtype)
    if operator.division is Division.TRUE and dtype.kind == "f" and _is_next_to_zero(right):
        values = replace(values, vague=True)
    if operator.keeps_infinity and not values.finite:
        return replace(values, infinity=common_infinity(left, right))
    return values


def map_values(function: PointwiseMap, values: Values, dtype: DType) -> Values:
    """Return the values of a pointwise map."""
    if (rule := function.rule) is None:
        return declared_values(function, values, dtype)
    with np.errstate(all="ignore"):
        mapped = rule(values, dtype)
    if not function.indicates and not function.always_finite:
        mapped = of_operands(mapped, (values,), dtype)
    varies = values.varies and not function.indicates
    return replace(mapped, full=values.full, varies=varies)


def cast_values(values: Values, source: DType, result: DType) -> Values:
    """Return values cast to another type."""
    if result.kind == "b":
        return replace(is_nonzero(values), full=values.full)
    if result.kind == "c":
        return replace(values, low=-math.inf, high=math.inf, nonzero=values.excludes_zero)
    if source.kind == "c":
        converted = anything(result, finite=values.finite)
    elif result.kind == "i" and source.kind == "f":
        converted = interval(_cut(values.low), _cut(values.high), result)
    else:
        converted = interval(values.low, values.high, result, nonzero=values.excludes_zero)
    kept = of_operands(converted, (values,), result)
    return replace(kept, full=values.full, varies=values.varies)


def declared_values(
    operator: Combine | PointwiseMap | Reduce, values: Values, dtype: DType
) -> Values:
    """Return the values of a user's operator: the declared interval, or anything."""
    if operator.interval is not None:
        return replace(interval(*operator.interval, dtype), full=values.full)
    return replace(anything(dtype, finite=dtype.kind in "bi"), full=values.full)


def _is_next_to_zero(values: Values) -> bool:
    return values.low < NEXT_TO_ZERO and values.high > -NEXT_TO_ZERO


def _cut(value: Real) -> Real:
    return math.trunc(value) if math.isfinite(value) else value
