"""Masks: the places where a factor differs from its fill, and what an absorbing fill hides.

An absorbing fill gives one value with whatever it meets, so that the other factors are only needed
at the entries of this one. ``A[i,j] != 0`` is then a mask for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ucle.foundation.dtypes import DType, Scalar, is_finite, same_value
from ucle.ir.annihilation import annihilating
from ucle.ir.contraction_trees import Tree, fold
from ucle.ir.maps import Cast, Map, Partial, Pointwise
from ucle.ir.overflow import reaches_the_end
from ucle.ir.ranges import absorbs
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Span
from ucle.lowering.logical import Contraction, Use
from ucle.lowering.mapped_uses import with_constant
from ucle.lowering.step_types import StepTypes
from ucle.operators import (
    GREATEST,
    LEAST,
    NOT_EQUAL,
)


def mask_of(factor: Use, types: StepTypes, span: Span) -> Use:
    """Return the mask of a factor: True where it differs from its fill.

    >>> from ucle.ir.layouts import Label
    >>> i, j = Label("i", 9), Label("j", 9)
    >>> A, number = TensorType((i, j), fill=1.0), DType.FLOAT64
    >>> print(mask_of(Use("A", (i, j), number), StepTypes({}, {"A": A}, True), Span(1, 1)))
    bool(A[i,j] != 1)
    """
    factor = _yes_or_no(factor)
    fill = types.of_use(factor, span).fill
    if factor.dtype is DType.BOOL and not fill:
        return factor
    return with_constant(NOT_EQUAL, factor, fill, False, span)


def _yes_or_no(use: Use) -> Use:
    """Return a use as truth values, if it is that in another type."""
    match use.maps[-1:]:
        case (Cast(source=DType.BOOL),):
            return replace(use, dtype=DType.BOOL, maps=use.maps[:-1])
        case (Map(function=operator) | Partial(combine=operator),) if operator.indicates:
            return use.indicating(DType.BOOL)
    return use


# ---- Masks of what they stand beside ----


def without_own_masks(step: Contraction) -> Contraction:
    """Return a product without the masks of its own factors: ``x * (x != 0)`` is ``x``.

    Otherwise their sizes would be estimated as if they were independent of each other.

    >>> from ucle.ir.layouts import Label
    >>> from ucle.operators import COMBINES
    >>> labels, number = (Label("i", 9),), DType.FLOAT64
    >>> x, y = (Use(name, labels, number) for name in "xy")
    >>> mask = x.then(Partial(NOT_EQUAL, 0.0)).indicating(DType.BOOL)
    >>> chain = Contraction("T", (mask, y, x), COMBINES["mult"], None, (), number, ((0, 1), 2))
    >>> print(without_own_masks(chain))
    T = y[i] * x[i]
    """
    if not step.is_chain or step.combine is None or not step.combine.takes_masks:
        return step
    while len(step.factors) + len(step.constants) > 2 and len(step.factors) > 1:
        uses = [use.cast(step.dtype) for use in step.factors]
        number = next(
            (
                n
                for n, mask in enumerate(uses)
                if any(_is_own_mask(mask, x) for place, x in enumerate(uses) if place != n)
            ),
            None,
        )
        if number is None:
            break
        step = _without_factor(step, number)
    return step


def _is_own_mask(mask: Use, factor: Use) -> bool:
    """Return whether one factor is 1 wherever another one is not 0, and 0 or 1 elsewhere."""
    if mask.operand != factor.operand or factor.dtype.kind == "c":  # inf * (1 + 0j) has a NaN
        return False
    if (found := _condition(mask)) is None:
        return False
    before, hidden = found
    after = factor.maps[len(before) :]
    if factor.maps[: len(before)] != before or not all(map(_is_known, after)):
        return False
    try:
        for function in after:
            hidden = function(hidden)
    except (OverflowError, ValueError):  # no number of the type that a cast would give
        return False
    return hidden == 0


_Condition = tuple[tuple[Pointwise, ...], Scalar]
"""Maps, and the value from which what they give differs where a mask is 1."""


def _condition(mask: Use) -> _Condition | None:
    """Return the condition of a use that is 1 or 0; None if it is not known to be a mask."""
    truth = 0
    found: _Condition | None = ((), False) if mask.read_dtype is DType.BOOL else None
    for number, function in enumerate(mask.maps):
        match function:
            case Partial(combine=operator, constant=constant) if operator is NOT_EQUAL:
                truth, found = number + 1, (mask.maps[:number], constant)
                break
            case Cast(source, result) if result is DType.BOOL and source is not DType.BOOL:
                truth, found = number + 1, (mask.maps[:number], 0)
                break
    return found if all(isinstance(x, Cast) for x in mask.maps[truth:]) else None


def _is_known(function: Pointwise) -> bool:
    """Return whether nothing that users registered would be called."""
    match function:
        case Map(function=operator):
            return operator.rule is not None
        case Partial(combine=combine):
            return combine.rule is not None
    return True


def _without_factor(step: Contraction, number: int) -> Contraction:
    assert step.written is not None

    def leaf(own: int) -> Tree | None:
        return None if own == number else own - 1 if own > number else own

    def node(_: object, left: Tree | None, right: Tree | None) -> Tree | None:
        if left is None or right is None:
            return right if left is None else left
        return left, right

    return replace(
        step,
        factors=(*step.factors[:number], *step.factors[number + 1 :]),
        written=fold(step.written, leaf, node),
        constants=tuple(
            replace(x, place=x.place - 1) if x.place > number else x for x in step.constants
        ),
    )


# ---- What a fill hides ----


def annihilates(
    step: Contraction, one: TensorType, other: TensorType, *, first: bool, exact: bool
) -> bool:
    """Return whether the fill of one factor gives one value with whatever another one holds.

    Args:
        step: the product.
        one: type of the factor with the fill.
        other: type of the other factor.
        first: True if the factor with the fill stands on the left.
        exact: True if NaN and infinities meet entries that are not stored as in NumPy.
    """
    operator = step.combine
    assert operator is not None
    left, right = (one, other) if first else (other, one)
    if not exact:
        operator = annihilating(operator, left, right)
    both = absorbs(operator, left.entries, right.entries, (left.fill, right.fill), step.dtype)
    if not both[0 if first else 1]:
        return False
    if other.entries.full:
        return True
    # The other factor's fill may be infinite although all its stored entries are finite.
    unit = replace(other, fill=step.dtype.scalar(1))
    pairs = [(one, x) if first else (x, one) for x in (other, unit)]
    worth = [operator.scalar(a.fill, b.fill, step.dtype) for a, b in pairs]
    return same_value(*worth)


def clamp_fill(use: Use, beside: TensorType, written: TensorType, span: Span) -> Use:
    """Return a rewritten factor clamped so that its fill is a value that the written one may hold.

    Where no entry is needed, a divisor of positive numbers is now 0, or a reciprocal infinite. Then
    the product would count as possibly infinite, and its results as dense. A maximum or minimum
    that changes no number of the written factor keeps the fill in range.

    Args:
        use: the rewritten factor.
        beside: type of the rewritten factor.
        written: type of the written factor.
        span: span of the statement.
    """
    known, fill = written.every, beside.fill
    if use.dtype.kind != "f" or not known.finite or known.overflows or isinstance(fill, complex):
        return use
    if known.low > 0 and fill <= 0:
        return with_constant(GREATEST, use, _power_below(known.low), False, span)
    if known.high < 0 and fill >= 0:
        return with_constant(LEAST, use, -_power_below(-known.high), False, span)
    if math.isinf(fill):
        operator = LEAST if fill > 0 else GREATEST
        end = _power_above(known.high) if fill > 0 else -_power_above(-known.low)
        return with_constant(operator, use, end, False, span) if math.isfinite(end) else use
    return use


def _power_below(value: float) -> float:
    """Return the largest power of two that is at most a positive number and at most 1.

    Such a coarse bound stays the same for much data that changes.
    """
    return 2.0 ** min(math.frexp(value)[1] - 1, 0)


def _power_above(value: float) -> float:
    """Return the smallest power of two above a number and 1; infinity if it may be out of range."""
    return 2.0 ** max(math.frexp(value)[1], 0) if value < 2.0**100 else math.inf


def unseeing(
    step: Contraction, own: Sequence[TensorType], place: int, number: int, *, exact: bool
) -> Contraction | None:
    """Return a product that hides what one factor holds outside of another factor's mask.

    Args:
        step: the product, one factor of which was rewritten behind the mask.
        own: types of its factors.
        place: number of the factor that is the mask.
        number: number of the factor that was rewritten.
        exact: as in `annihilates`.

    Returns:
        The product, with another ⊗ if necessary; None if there is no such ⊗.
    """
    assert step.combine is not None
    if annihilates(step, own[place], own[number], first=place < number, exact=exact):
        return step
    operator = step.combine.sparse
    if operator is None:
        return None
    if step.combine.division is None:
        # 0 * inf must be NaN where the text has it.
        others = (_is_finite(type_) for n, type_ in enumerate(own) if n != number)
        numbers = (is_finite(constant.value) for constant in step.constants)
        if exact and not (all(others) and all(numbers)):
            return None
    return replace(step, combine=operator)


def _is_finite(type_: TensorType) -> bool:
    return type_.entries.finite and is_finite(type_.fill)


# ---- What raises ----


def never_raises(use: Use, types: StepTypes, span: Span) -> bool:
    """Return whether the maps of a use raise nothing, wherever they are computed.

    Outside of a mask, other numbers are computed than in the text. Integers must not overflow
    there, floats that become integers must fit, and nothing is known of user-defined operators.
    """
    before = types.of_use(use.with_maps(0), span)
    for count, function in enumerate(use.maps, 1):
        match function:
            case Cast(source, result) if result.kind == "i" and source.kind != "b":
                if source.kind != "i" and not _fits_integers(before):
                    return False
            case Map(function=operator) if operator.rule is None:
                return False
            case Partial(combine=operator) if operator.rule is None:
                return False
        before = types.of_use(use.with_maps(count), span)
        if may_overflow(before):
            return False
    return True


def may_overflow(type_: TensorType) -> bool:
    """Return whether integers may reach an end of their type, and so lie beyond it."""
    return reaches_the_end(type_.every, type_.dtype)


def outgrows(type_: TensorType) -> bool:
    """Return whether numbers may outgrow their type, floats to infinity."""
    return type_.every.overflows or may_overflow(type_)


def _fits_integers(type_: TensorType) -> bool:
    """Return whether all floats of a tensor fit 64-bit integers once they are truncated."""
    if not _is_finite(type_) or type_.entries.overflows:
        return False
    return not reaches_the_end(type_.every, DType.INT64)
