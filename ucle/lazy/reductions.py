"""Aggregations along axes, and functions composed of them: variance, softmax, argmax.

Axes are positions or names, one or several; by default all axes are aggregated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ucle.errors import BoundError
from ucle.ir.axis_functions import RUNNING
from ucle.language.functions import ALONG, FIRST, Gives
from ucle.language.parse import template
from ucle.language.syntax import Access, Binary, Call, Expression, Number
from ucle.lazy.axes import AxisLike, find_axes, find_axis
from ucle.lazy.elementwise import elementwise
from ucle.lazy.nodes import Apply, Axis, FirstAlong, Lazy, apply
from ucle.lazy.rearranging import reshape_tensor
from ucle.operators import (
    DIV,
    EXP,
    ISNAN,
    MAX,
    MEAN,
    MULT,
    NOT,
    OR,
    REDUCES,
    SQRT,
    SUB,
    SUM,
    WHEN,
    PointwiseMap,
)

Along = AxisLike | Sequence[AxisLike] | None


def reduce_tensor(operator: str, tensor: Lazy, axis: Along = None, keepdims: bool = False) -> Lazy:
    """Aggregate a tensor along axes by an aggregation of the language.

    >>> from ucle.lazy.elementwise import ones
    >>> print(reduce_tensor("sum", ones((Axis("node", 4), Axis("feature", 3))), "node"))
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
    """Scan a tensor along an axis by an aggregation; without an axis, scan all entries in order.

    >>> from ucle.lazy.elementwise import ones
    >>> print(running("cumsum", ones((Axis("node", 4), Axis("feature", 3))), "node"))
    (node: 4, feature: 3)
    """
    if axis is None:
        return running(
            operator, tensor if len(tensor.axes) == 1 else reshape_tensor(tensor, (-1,)), 0
        )
    place, reduce = find_axis(tensor, axis, operator), RUNNING[operator]
    labels = range(len(tensor.axes))
    read = tensor.operand(labels)
    if tensor.axes[place].unit:  # scans of one entry, in the result type of the aggregation
        return apply(None, [read], tensor.axes, labels, reduce=reduce.name)
    made = apply(None, [read], tensor.axes, labels)
    assert isinstance(made.node, Apply)
    return Lazy(replace(made.node, along=(reduce, (place,))), tensor.axes)


def variance(tensor: Lazy, axis: Along, correction: float, keepdims: bool) -> Lazy:
    """The mean squared distance from the mean; `correction` is subtracted from the count.

    Raises:
        BoundError: a correction needs sizes that are only known to the data of a table.
    """
    mean = reduce_tensor(MEAN.name, tensor, axis, keepdims=True)
    distance = elementwise(SUB.name, tensor, mean)
    mean_square = reduce_tensor(MEAN.name, elementwise("size_squared", distance), axis, keepdims)
    if not correction:
        return mean_square
    count = _count(tensor, axis, "var(correction=...)")
    factor = count / (count - correction) if count > correction else math.nan
    return elementwise(MULT.name, mean_square, factor)


def root(tensor: Lazy) -> Lazy:
    """Square roots of nonnegative numbers; as in PyTorch, zeros get no gradient."""
    return elementwise(WHEN.name, tensor, elementwise(SQRT.name, tensor))


def _count(tensor: Lazy, axis: Along, where: str) -> int:
    sizes = [tensor.axes[n].size for n in find_axes(tensor, axis, where)]
    if any(size is None for size in sizes):
        raise BoundError(
            "the size of an axis is not known before the program is compiled",
            where=where,
            expected=f"sizes of all its axes: {tensor}",
            found="an axis whose size only the data of a table determines",
            hint="state it: ucle.table(..., bounds=[...])",
        )
    return math.prod(size for size in sizes if size is not None)


def softmax(tensor: Lazy, axis: AxisLike) -> Lazy:
    """Exponentials divided by their sum along an axis; the maximum is subtracted to avoid overflow.

    Source: transformer attention, as in the SparseEinSum paper, section 2.
    """
    place = find_axis(tensor, axis, "softmax")
    greatest = reduce_tensor(MAX.name, tensor, place, keepdims=True)
    # As a float, since booleans have no difference.
    shifted = elementwise(SUB.name, tensor, elementwise(MULT.name, greatest, 1.0))
    powers = elementwise(EXP.name, shifted)
    return elementwise(DIV.name, powers, reduce_tensor(SUM.name, powers, place, keepdims=True))


def along_axes(function: str, tensor: Lazy, axis: Along) -> Lazy:
    """A function of the language along axes that stay (`ucle.language.functions.ALONG`).

    >>> from ucle.lazy.elementwise import ones
    >>> print(along_axes("layer_norm", ones((Axis("node", 4), Axis("feature", 3))), "feature"))
    (node: 4, feature: 3)
    """
    known: dict[Expression, Lazy | float] = {}

    def value(expression: Expression) -> Lazy | float:
        if expression not in known:
            known[expression] = evaluated(expression)
        return known[expression]

    def evaluated(expression: Expression) -> Lazy | float:
        match expression:
            case Access():
                return tensor
            case Number(number):
                return float(number.real)
            case Call(str() as name, (argument,)) if name in REDUCES:
                inner = value(argument)
                assert isinstance(inner, Lazy), "an aggregation is of the tensor"
                return reduce_tensor(name, inner, axis, keepdims=True)
            case Call(PointwiseMap() as row, (argument,)):
                return elementwise(row.name, value(argument))
            case Binary(operator, left, right):
                return elementwise(operator.name, value(left), value(right))
        raise AssertionError(f"no template has {expression}")

    made = value(template(ALONG[function]))
    assert isinstance(made, Lazy), "a function is of the tensor"
    return made


def first_entries(
    function: str,
    tensor: Lazy,
    axis: AxisLike | None,
    count: int | None = None,
    *,
    every: bool = False,
) -> Lazy:
    """The first entries along an axis, or their positions, by a top-k function of the language.

    Args:
        function: its name (`ucle.language.functions`).
        tensor: a tensor of real numbers.
        axis: the axis; None is for a tensor of one axis, or for all entries in their order.
        count: the number of entries, which are ranked along a new axis in the place of `axis`. None
            returns only the first, without a new axis.
        every: True for all entries, however many the data of a table has; `count` is None.

    Raises:
        BoundError: there are fewer entries.

    >>> from ucle.lazy.elementwise import ones
    >>> print(first_entries("top_k", ones((Axis("node", 4), Axis("feature", 3))), "node", 2))
    (rank: 2, feature: 3)
    """
    if axis is None and len(tensor.axes) != 1:
        tensor = reshape_tensor(tensor, (-1,))
    place = find_axis(tensor, 0 if axis is None else axis, function)
    along, row = tensor.axes[place], FIRST[function]
    size = along.size
    if (count is not None and count < 1) or (size is not None and (count or 1) > size):
        raise BoundError(
            "there are not so many entries along the axis",
            where=function,
            expected="at least 1" + ("" if size is None else f", at most {size}"),
            found=f"{1 if count is None else count} of {tensor}",
        )
    if along.unit:
        return _of_one(tensor, place, row.gives, 1 if every else count)
    made, output = list(tensor.axes), list(range(len(tensor.axes)))
    ranked = every or count is not None
    rank = len(tensor.axes) if every or (count or 1) > 1 else None
    if row.gives is not Gives.MEMBERS:
        made[place : place + 1] = _ranks(tensor, count, every)
        output[place : place + 1] = (len(tensor.axes),) if ranked else ()
    read = tensor.operand(range(len(tensor.axes)))
    result = apply(None, [read], made, output)
    assert isinstance(result.node, Apply)
    first = FirstAlong(row, place, rank, count or 1)
    return Lazy(replace(result.node, first=first), result.axes)


def _ranks(tensor: Lazy, count: int | None, every: bool = False) -> tuple[Axis, ...]:
    """The axis of ranks, if there is one; of all entries, the data may tell its size."""
    if count is None and not every:
        return ()
    return (Axis("rank" if tensor.named else None, count),)


def _of_one(tensor: Lazy, place: int, gives: Gives, count: int | None) -> Lazy:
    """The first entry along an axis of size 1: that entry, at position 0."""
    axes = (*tensor.axes[:place], *_ranks(tensor, count), *tensor.axes[place + 1 :])
    if gives is Gives.VALUES:
        return Lazy(tensor.node, axes)
    is_nan = elementwise(ISNAN.name, tensor)
    if gives is Gives.MEMBERS:
        return elementwise(OR.name, is_nan, elementwise(NOT.name, is_nan))
    return Lazy(elementwise(MULT.name, is_nan, 0).node, axes)


def extreme_position(operator: str, tensor: Lazy, axis: AxisLike | None, keepdims: bool) -> Lazy:
    """The first position along an axis of the greatest (``max``) or least (``min``) value.

    NaN counts as both. Errors are as for `first_entries`.
    """
    found = first_entries(f"arg{operator}", tensor, axis)
    if not keepdims:
        return found
    place = None if axis is None else find_axis(tensor, axis, f"arg{operator}")
    units = (Axis(a.name, 1) if place in (None, n) else a for n, a in enumerate(tensor.axes))
    return Lazy(found.node, tuple(units))
