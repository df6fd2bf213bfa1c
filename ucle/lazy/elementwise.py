"""Elementwise functions, and the rules by which the axes of their operands are aligned.

Axes without names are aligned as in NumPy: from the last one on, and an axis of size 1 is
broadcast. Axes with names are aligned by name, in the order of their first appearance. Tensors with
named axes and those with unnamed axes cannot be combined, but a number combines with everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ucle.errors import BoundError, LabelError
from ucle.foundation.dtypes import DType, Scalar
from ucle.inputs.table_input import TableInput
from ucle.lazy.nodes import Axes, Axis, Lazy, Leaf, NodeOperand, apply


def elementwise(function: str, *operands: Lazy | Scalar, backwards: bool = False) -> Lazy:
    """Apply a function of tensors and numbers, at least one of them a tensor, entry by entry.

    Args:
        function: its name.
        operands: in its order.
        backwards: True if they were written in the other order, as those of ``x > y``, which is
            ``y < x``: axes come in the order in which they were written.

    Raises:
        LabelError: named and unnamed axes are combined.
        BoundError: two sizes contradict each other.
    """
    tensors = [operand for operand in operands if isinstance(operand, Lazy)]
    step = -1 if backwards else 1
    axes, positions = align(tensors[::step], function)
    places = iter(positions[::step])
    read = [
        operand.operand(next(places)) if isinstance(operand, Lazy) else NodeOperand(operand)
        for operand in operands
    ]
    return apply(function, read, axes)


def align(tensors: Sequence[Lazy], where: str) -> tuple[Axes, list[tuple[int, ...]]]:
    """The axes of the common shape, and for each tensor the positions of its axes in it."""
    check_names(tensors, where)
    if any(tensor.named for tensor in tensors):
        names = list(dict.fromkeys(axis.name for tensor in tensors for axis in tensor.axes))
        places = [tuple(names.index(axis.name) for axis in tensor.axes) for tensor in tensors]
    else:
        rank = max((len(tensor.axes) for tensor in tensors), default=0)
        places = [tuple(range(rank - len(tensor.axes), rank)) for tensor in tensors]
    axes_at: list[list[Axis]] = []
    for tensor, at in zip(tensors, places, strict=True):
        for place, axis in zip(at, tensor.axes, strict=True):
            axes_at.extend([] for _ in range(place + 1 - len(axes_at)))
            axes_at[place].append(axis)
    shown = " and ".join(map(str, tensors))
    return tuple(merge_axes(axes, f"{where}, {shown}") for axes in axes_at), places


def check_names(tensors: Sequence[Lazy], where: str) -> None:
    """Check that either all tensors have named axes, or none does.

    Raises:
        LabelError: some have names and some do not.
    """
    named = next((tensor for tensor in tensors if tensor.named), None)
    other = next((tensor for tensor in tensors if tensor.axes and not tensor.named), None)
    if named is not None and other is not None:
        raise LabelError(
            "axes with names meet axes without",
            where=where,
            expected="names for all axes, or for none",
            found=f"{named} and {other}",
            hint="name them with t.named('row', 'column') or ucle.array(x, axes=...), "
            "or go by position with t.unnamed()",
        )


def merge_axes(axes: Sequence[Axis], where: str) -> Axis:
    """Merge the axes of one label: the size that is not 1, and the name of the first.

    Raises:
        BoundError: two different sizes, neither of them 1.
    """
    long = [axis for axis in axes if not axis.unit]
    if not long:
        return axes[0]
    sizes = [axis.size for axis in long if axis.size is not None]
    for size in sizes[1:]:
        if size != sizes[0]:
            raise BoundError(
                "two shapes do not fit each other",
                where=where,
                expected=f"one size, or size 1, along {_title(axes)}",
                found=f"sizes {sizes[0]} and {size}",
                hint="stretch an axis of size 1, such as x[:, None]"
                if axes[0].name is None
                else "t.rename({'old': 'new'}) gives different axes different names",
            )
    return Axis(long[0].name, sizes[0] if sizes else None, any(axis.encoded for axis in long))


def _title(axes: Sequence[Axis]) -> str:
    return "an axis" if axes[0].name is None else f"the axis {axes[0].name!r}"


def ones(axes: Axes) -> Lazy:
    """Boolean ones, as the conditions of a ``when`` that changes neither values nor type.

    None of them is stored: they are the fill.
    """
    long = tuple(axis for axis in axes if not axis.unit)
    values = np.ones([axis.size or 0 for axis in long], dtype=bool)
    return Lazy(Leaf(TableInput(values, fill=True), long, "ones", DType.BOOL), axes)
