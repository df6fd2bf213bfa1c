"""Aggregations along axes, and what is written with them: variance, softmax, argmax.

Axes are positions or names, one or several; without any, all axes are aggregated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ucle.errors import AxisError, BoundError, UnsupportedError
from ucle.foundation.dtypes import DType
from ucle.ir.running import RUNNING
from ucle.lazy.axes import AxisLike, find_axes, find_axis
from ucle.lazy.elementwise import elementwise
from ucle.lazy.nodes import Apply, Axis, Lazy, Leaf, apply
from ucle.lazy.rearranging import reshaped

Along = AxisLike | Sequence[AxisLike] | None


def reduced(operator: str, tensor: Lazy, axis: Along = None, keepdims: bool = False) -> Lazy:
    """A tensor aggregated along axes by an aggregation of the language.

    >>> from ucle.lazy.elementwise import ones
    >>> print(reduced("sum", ones((Axis("node", 4), Axis("feature", 3))), "node"))
    (feature: 3)
    """
    over = set(find_axes(tensor, axis, operator))
    kept = [place for place in range(len(tensor.axes)) if place not in over]
    read = tensor.operand(range(len(tensor.axes)))
    aggregated = apply(None, [read], [tensor.axes[n] for n in kept], kept, reduce=operator)
    if not keepdims:
        return aggregated
    units = (Axis(a.name, 1) if n in over else a for n, a in enumerate(tensor.axes))
    return Lazy(aggregated.node, tuple(units))


def running(operator: str, tensor: Lazy, axis: AxisLike | None) -> Lazy:
    """A tensor aggregated up to each position of an axis; without one, of all entries in order.

    >>> from ucle.lazy.elementwise import ones
    >>> print(running("cumsum", ones((Axis("node", 4), Axis("feature", 3))), "node"))
    (node: 4, feature: 3)
    """
    if axis is None:
        return running(operator, tensor if len(tensor.axes) == 1 else reshaped(tensor, (-1,)), 0)
    place, reduce = find_axis(tensor, axis, operator), RUNNING[operator]
    labels = range(len(tensor.axes))
    read = tensor.operand(labels)
    if tensor.axes[place].unit:  # of one entry each, in the type of what they come to
        return apply(None, [read], tensor.axes, labels, reduce=reduce.name)
    made = apply(None, [read], tensor.axes, labels)
    assert isinstance(made.node, Apply)
    return Lazy(replace(made.node, along=(reduce, place)), tensor.axes)


def variance(tensor: Lazy, axis: Along, correction: float, keepdims: bool) -> Lazy:
    """Mean of the squared distances from the mean; `correction` is taken from their number.

    Raises:
        BoundError: a correction needs sizes that only the data of a table tells.
    """
    mean = reduced("mean", tensor, axis, keepdims=True)
    distance = elementwise("abs", elementwise("sub", tensor, mean))
    mean_square = reduced("mean", elementwise("square", distance), axis, keepdims)
    if not correction:
        return mean_square
    count = _count(tensor, axis, "var(correction=...)")
    factor = count / (count - correction) if count > correction else math.nan
    return elementwise("mult", mean_square, factor)


def _count(tensor: Lazy, axis: Along, where: str) -> int:
    sizes = [tensor.axes[n].size for n in find_axes(tensor, axis, where)]
    if any(size is None for size in sizes):
        raise BoundError(
            "the size of an axis is not known before the program is compiled",
            where=where,
            expected=f"sizes of all its axes: {tensor}",
            found="an axis whose size a table tells",
            hint="state it: ucle.table(..., bounds=[...])",
        )
    return math.prod(size for size in sizes if size is not None)


def softmax(tensor: Lazy, axis: AxisLike) -> Lazy:
    """Exponentials divided by their sum along an axis, the greatest taken out so that none is inf.

    Source: transformer attention, as in the SparseEinSum paper, section 2.
    """
    place = find_axis(tensor, axis, "softmax")
    shifted = elementwise("sub", tensor, reduced("max", tensor, place, keepdims=True))
    powers = elementwise("exp", shifted)
    return elementwise("div", powers, reduced("sum", powers, place, keepdims=True))


def extreme_position(operator: str, tensor: Lazy, axis: AxisLike | None, keepdims: bool) -> Lazy:
    """The first position along an axis that holds the greatest (``max``) or least (``min``) value.

    It is the least of the positions whose value equals the extreme one, or is NaN.

    Raises:
        AxisError: no axis, and the tensor has another number of axes than one.
        UnsupportedError: how many positions there are, only the data of a table tells.
    """
    where = f"arg{operator}"
    if axis is None and len(tensor.axes) != 1:
        raise AxisError(
            "positions in a flattened tensor are not computed",
            where=where,
            expected=f"an axis of {tensor}",
            found="axis=None",
        )
    place = find_axis(tensor, 0 if axis is None else axis, where)
    along = tensor.axes[place]
    if along.size is None or along.encoded:
        raise UnsupportedError(
            "positions along this axis are not known before the program is compiled",
            where=where,
            expected="an axis of a known size whose coordinates are positions",
            found=str(tensor),
            hint="state its size: ucle.table(..., bounds=[...])",
        )
    greatest = reduced(operator, tensor, place, keepdims=True)
    at_extreme = elementwise(
        "or", elementwise("equal", tensor, greatest), elementwise("isnan", tensor)
    )
    numbers = Leaf(np.arange(along.size), (along,), "position", DType.INT64)
    units = (Axis(a.name, 1) if n != place else a for n, a in enumerate(tensor.axes))
    positions = Lazy(numbers if not along.unit else _zero(), tuple(units))
    chosen = elementwise("where", at_extreme, positions, max(along.size, 1))
    return reduced("min", chosen, place, keepdims)


def _zero() -> Leaf:
    return Leaf(np.array(0), (), "position", DType.INT64)
