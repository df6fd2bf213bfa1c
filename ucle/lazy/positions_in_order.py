"""The positions of an axis in its order, as entries of tensors, and shifts that know where it ends.

Positions along dates and times are those of the times that the data has. They are numbered by a
scan of ones, which needs neither the size of the axis nor what its coordinates are.
"""

from __future__ import annotations

from ucle.foundation.dtypes import DType, Scalar
from ucle.lazy.axes import AxisLike, find_axis
from ucle.lazy.constants import constant, everywhere
from ucle.lazy.elementwise import elementwise
from ucle.lazy.key_columns import find_key_columns
from ucle.lazy.nodes import Axis, Lazy, apply
from ucle.lazy.places import number, position, read
from ucle.lazy.rearranging import shift_tensor
from ucle.lazy.reductions import reduce_tensor, running
from ucle.lazy.stored import is_empty_elsewhere
from ucle.operators import ADD, LESS, LESS_EQUAL, MAX


def ordinals(tensor: Lazy, place: int) -> Lazy:
    """The numbers from 1 on along an axis; the other axes have size 1.

    >>> from ucle.lazy.elementwise import ones
    >>> print(ordinals(ones((Axis("day", 4), Axis("name", 3))), 0))
    (day: 4, name: 1)
    """
    axis = tensor.axes[place]
    units = tuple(
        axis if n == place else Axis(other.name, 1) for n, other in enumerate(tensor.axes)
    )
    if _has_known_positions(tensor, place):
        return running("cumsum", constant(units, 1, DType.INT64), place)
    # Of an axis of a table, which may have times: the ones are read from the tensor.
    others = [n for n in range(len(tensor.axes)) if n != place]
    every = everywhere(tensor, 1, DType.INT64)
    return running("cumsum", reduce_tensor(MAX.name, every, others, keepdims=True), place)


def exists(order: Lazy, place: int, by: int) -> Lazy:
    """True at the positions of an axis from which there is one `by` places before.

    Args:
        order: the `ordinals` of the axis.
        place: the axis.
        by: the places; negative numbers look for positions behind.
    """
    if by >= 0:
        return elementwise(LESS.name, by, order)
    size = reduce_tensor(MAX.name, order, place, keepdims=True)
    return elementwise(LESS_EQUAL.name, elementwise(ADD.name, order, -by), size)


def moved_along(tensor: Lazy, place: int, by: int) -> Lazy:
    """The tensor moved by some places along an axis; what moves in from outside is the fill."""
    indices = [
        position(n).plus(number(-by)) if n == place else position(n)
        for n in range(len(tensor.axes))
    ]
    return apply(None, [read(tensor, tensor.axes, indices, inside=False)], tensor.axes)


def shift_along(tensor: Lazy, by: int, axis: AxisLike, value: Scalar) -> Lazy:
    """Shift a tensor along an axis, and fill vacated positions with a number."""
    place = find_axis(tensor, axis, "shift")
    if _has_known_positions(tensor, place):
        return shift_tensor(tensor, by, place, value)
    if not value and is_empty_elsewhere(tensor):  # so is what is read outside of the axis
        return moved_along(tensor, place, by)
    inside = exists(ordinals(tensor, place), place, by)
    return elementwise("where", inside, moved_along(tensor, place, by), value)


def _has_known_positions(tensor: Lazy, place: int) -> bool:
    """True if the coordinates of an axis are known to be positions, up to a known size.

    The keys of a table may be times, also if their number is stated.
    """
    axis = tensor.axes[place]
    if axis.unit or axis.size is None or axis.encoded:
        return axis.unit
    return not find_key_columns(tensor.node, tensor.labelled.index(place))
