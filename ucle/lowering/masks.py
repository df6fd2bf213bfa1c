"""Masks: where a factor holds something else than its fill, and what such a fill hides.

A fill that absorbs makes one value of whatever it meets, so that of the other factors nothing is
looked at beside the entries of this one. ``A[i,j] != 0`` is then a mask for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ucle.foundation.dtypes import DType, is_finite, same_value
from ucle.ir.annihilation import annihilating
from ucle.ir.maps import Cast, Map, Partial
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
    """Where a factor holds something else than its fill, as yes or no.

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
    """A use as yes or no, where it is that in another type."""
    match use.maps[-1:]:
        case (Cast(source=DType.BOOL),):
            return replace(use, dtype=DType.BOOL, maps=use.maps[:-1])
        case (Map(function=operator) | Partial(combine=operator),) if operator.indicates:
            return use.indicating(DType.BOOL)
    return use


# ---- What a fill hides ----


def annihilates(
    step: Contraction, one: TensorType, other: TensorType, *, first: bool, exact: bool
) -> bool:
    """Whether the fill of one factor makes one value of whatever another one is.

    Args:
        step: the product.
        one: the type of the factor whose fill it is.
        other: that of the other one.
        first: whether the one stands on the left.
        exact: whether NaN and infinities meet entries that are not stored as in NumPy.
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
    # What the other one does not store may be infinite where all is finite that it stores.
    unit = replace(other, fill=step.dtype.scalar(1))
    pairs = [(one, x) if first else (x, one) for x in (other, unit)]
    worth = [operator.scalar(a.fill, b.fill, step.dtype) for a, b in pairs]
    return same_value(*worth)


def held(use: Use, beside: TensorType, written: TensorType, span: Span) -> Use:
    """A rewritten factor whose fill is a number that the written one might hold, if there is one.

    Where nobody looks, a divisor of positive numbers is 0 now, or a reciprocal infinite. Then what
    the product makes would count as possibly infinite, and what is made of that as dense. A maximum
    or a minimum that changes no number of the written factor keeps it among them.

    Args:
        use: the factor as it is rewritten.
        beside: its type.
        written: the type of what it is rewritten from.
        span: of the statement.
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
    """The largest power of two up to a positive number and 1.

    Numbers that are as rough as that are the same for much data that changes.
    """
    return 2.0 ** min(math.frexp(value)[1] - 1, 0)


def _power_above(value: float) -> float:
    """The smallest power of two beyond a number, and 1; infinity where a type might not hold it."""
    return 2.0 ** max(math.frexp(value)[1], 0) if value < 2.0**100 else math.inf


def unseeing(
    step: Contraction, own: Sequence[TensorType], place: int, number: int, *, exact: bool
) -> Contraction | None:
    """A product that does not see what one factor holds outside of the mask that another one is.

    Args:
        step: the product, one factor of which was rewritten behind the mask.
        own: the types of its factors.
        place: which factor is the mask.
        number: which one was rewritten.
        exact: as in `annihilates`.

    Returns:
        The product, with another ⊗ where that needs it; None where there is none.
    """
    assert step.combine is not None
    if annihilates(step, own[place], own[number], first=place < number, exact=exact):
        return step
    operator = step.combine.sparse
    if operator is None:
        return None
    if step.combine.division is None:
        # 0 * inf is to be NaN where the text has it.
        others = (_is_finite(type_) for n, type_ in enumerate(own) if n != number)
        numbers = (is_finite(constant.value) for constant in step.constants)
        if exact and not (all(others) and all(numbers)):
            return None
    return replace(step, combine=operator)


def _is_finite(type_: TensorType) -> bool:
    return type_.entries.finite and is_finite(type_.fill)


# ---- What raises ----


def never_raises(use: Use, types: StepTypes, span: Span) -> bool:
    """Whether nothing is raised by the maps of a use, wherever one looks.

    What is computed outside of a mask is other numbers than those of the text. Integers must not
    overflow there, floats that become integers must fit, and of operators of the user's own
    nothing is known.
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
    """Whether integers may reach an end of their type, and so lie beyond it."""
    return reaches_the_end(type_.every, type_.dtype)


def outgrows(type_: TensorType) -> bool:
    """Whether numbers may outgrow their type, floats to infinity."""
    return type_.every.overflows or may_overflow(type_)


def _fits_integers(type_: TensorType) -> bool:
    """Whether all floats of a tensor are integers of 64 bits once they are cut."""
    if not _is_finite(type_) or type_.entries.overflows:
        return False
    return not reaches_the_end(type_.every, DType.INT64)
