"""Quantiles along an axis, of all entries or of those of a mask, by sorting the entries.

Entries outside the mask are infinite, so that they follow all others and are not stored. A quantile
between two consecutive entries is interpolated, by NumPy's method ``linear``.
"""

from __future__ import annotations

import math

from ucle.errors import ArgumentError
from ucle.foundation.dtypes import DType
from ucle.lazy.axes import AxisLike, find_axis, with_names
from ucle.lazy.elementwise import elementwise
from ucle.lazy.nodes import Apply, Axis, Lazy
from ucle.lazy.rearranging import flatten
from ucle.lazy.reductions import first_entries, reduce_tensor
from ucle.lazy.stored import count_entries, mask_along
from ucle.operators import (
    ADD,
    AND,
    ANY,
    FLOOR,
    GREATEST,
    ISNAN,
    LEAST,
    LESS,
    LESS_EQUAL,
    MULT,
    NOT,
    PICK,
    SUB,
    WHEN,
    WHEN_HIGHEST,
)


def quantile_along(
    tensor: Lazy, mask: Lazy | None, q: float, axis: AxisLike | None, keepdims: bool, function: str
) -> Lazy:
    """A quantile of the entries along an axis; NaN where there is none, or one of them is NaN.

    Args:
        tensor: a tensor of real numbers.
        mask: the entries; None for all.
        q: the part of the entries that is not greater, from 0 to 1.
        axis: an axis; None for all entries.
        keepdims: as in NumPy.
        function: its name, for messages.

    Raises:
        ArgumentError: `q` is not from 0 to 1.
    """
    if not 0 <= q <= 1:
        raise ArgumentError(
            "this is not the part of a whole", where=function, expected="0 to 1", found=repr(q)
        )
    mask = None if mask is None else mask_along(tensor, mask)
    if axis is None and len(tensor.axes) != 1:
        kept = tuple(Axis(each.name, 1) for each in tensor.axes)
        mask = None if mask is None else flatten(mask)
        found = quantile_along(flatten(tensor), mask, q, 0, False, function)
        return Lazy(found.node, kept) if keepdims else found
    place = find_axis(tensor, 0 if axis is None else axis, function)
    names = [each.name for each in tensor.axes]
    found = _of_axis(
        with_names(tensor, [None] * len(names)),
        None if mask is None else with_names(mask, [None] * len(names)),
        q,
        place,
    )
    if not keepdims:
        del names[place]
        found = Lazy(found.node, (*found.axes[:place], *found.axes[place + 1 :]))
    return with_names(found, names)


def _of_axis(tensor: Lazy, mask: Lazy | None, q: float, place: int) -> Lazy:
    """The quantile along an axis of a tensor without names, which keeps the axis with size 1."""
    numbers = elementwise(MULT.name, tensor, 1.0)
    is_nan = elementwise(ISNAN.name, numbers)
    entries = numbers
    if mask is not None:
        entries = elementwise(WHEN_HIGHEST.name, mask, numbers)
        is_nan = elementwise(WHEN.name, mask, is_nan)
    size = tensor.axes[place].size
    if size is None:  # only the data of a table determines it
        ordered = first_entries("bottom_k", entries, place, every=True)
    else:
        # Of all entries, the positions are known, and nothing behind them is sorted.
        most = size if mask is not None else min(math.floor((size - 1) * q) + 2, size)
        ordered = first_entries("bottom_k", entries, place, most)
    count = count_entries(tensor, mask, place, True)
    last = elementwise(SUB.name, count, 1)
    at = elementwise(MULT.name, last, q)
    low = elementwise(FLOOR.name, at)
    high = elementwise(LEAST.name, elementwise(ADD.name, low, 1), last)
    part = elementwise(SUB.name, at, low)
    one, other = (_entry_at(ordered, place, position) for position in (low, high))
    apart = elementwise(SUB.name, other, one)
    # NumPy interpolates from the nearer of the two.
    from_one = elementwise(ADD.name, one, elementwise(MULT.name, apart, part))
    rest = elementwise(SUB.name, 1.0, part)
    from_other = elementwise(SUB.name, other, elementwise(MULT.name, apart, rest))
    nearer = elementwise(LESS_EQUAL.name, 0.5, part)
    value = elementwise("where", nearer, from_other, from_one)
    none = elementwise(NOT.name, reduce_tensor(ANY.name, is_nan, place, True))
    exists = elementwise(AND.name, elementwise(LESS.name, 0, count), none)
    return elementwise("where", exists, value, math.nan)


def _entry_at(ordered: Lazy, place: int, position: Lazy) -> Lazy:
    """The entries at computed positions of an axis, which keeps size 1."""
    if ordered.axes[place].size == 1:
        return ordered
    rank = len(ordered.axes)
    # Without an entry there is no position, and what is read at 0 is not used.
    at = elementwise(DType.INT64.value, elementwise(GREATEST.name, position, 0))
    labels = [rank if n == place else n for n in range(rank)]
    read = at.operand(labels), ordered.operand(range(rank))
    axes = [Axis(own.name, 1) if n == place else own for n, own in enumerate(ordered.axes)]
    output = tuple(n for n, own in enumerate(axes) if not own.unit)
    long = tuple(own for own in axes if not own.unit)
    return Lazy(Apply(WHEN, read, output, long, PICK), tuple(axes))
