"""Functions of the array API standard that move or repeat entries.

Names and meanings are NumPy's; nothing is stored for a result. The number of repetitions has to be
known without reading data: a tensor of repetitions is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ucle.errors import ArgumentTypeError, AxisError, UnsupportedError
from ucle.foundation.dtypes import DType
from ucle.lazy import axes as moves
from ucle.lazy.axes import AxisLike, find_axes, find_axis, with_unit_axis
from ucle.lazy.constants import constant
from ucle.lazy.elementwise import align, check_names, elementwise, merge_axes
from ucle.lazy.nodes import Apply, Axis, Lazy
from ucle.lazy.places import number, position, read_at
from ucle.lazy.rearranging import known_size, pad_tensor, reshape_tensor, resize_axis
from ucle.lazy.selection import check_entries, drop_axis, integers, take_positions
from ucle.lazy.tensor import Tensor, as_tensor, tensor_operand
from ucle.operators import (
    ADD,
    PICK,
    WHEN,
)


def flip(x: Any, axis: AxisLike | Sequence[AxisLike] | None = None) -> Tensor:
    """Reverse the order along axes, by default along all of them.

    >>> import ucle
    >>> ucle.flip(ucle.array([[1, 2], [3, 4]]), axis=1).to_numpy()
    array([[2, 1],
           [4, 3]])
    """
    tensor = tensor_operand(x)
    indices = [position(n) for n in range(len(tensor.axes))]
    for place in find_axes(tensor, axis, "flip"):
        size = known_size(tensor, place, "flip")
        indices[place] = number(size - 1).plus(position(place), -1)
    return Tensor(read_at(tensor, tensor.axes, indices))


def moveaxis(
    x: Any, source: AxisLike | Sequence[AxisLike], destination: int | Sequence[int]
) -> Tensor:
    """Move some axes to other positions; the others keep their order."""
    tensor = tensor_operand(x)
    rank = len(tensor.axes)
    sources = find_axes(tensor, source, "moveaxis")
    given = list(destination) if isinstance(destination, Sequence) else [destination]
    goals = [operator.index(n) + (rank if n < 0 else 0) for n in given]
    if len(goals) != len(sources) or len(set(goals) & {*range(rank)}) < len(goals):
        raise AxisError(
            "axes and their new places do not go together",
            where="moveaxis",
            expected=f"{len(sources)} places from {-rank} to {rank - 1}, each once",
            found=repr(destination),
        )
    order = [n for n in range(rank) if n not in sources]
    for goal, place in sorted(zip(goals, sources, strict=True)):
        order.insert(goal, place)
    return Tensor(moves.permute_axes(tensor, order))


def repeat(x: Any, repeats: Any, /, *, axis: AxisLike | None = None) -> Tensor:
    """Repeat every position of an axis a number of times, consecutively.

    Args:
        x: the tensor; without `axis`, all of its entries are repeated in order.
        repeats: the number of repetitions: one number for all positions, or one for each.
        axis: the axis.

    Raises:
        UnsupportedError: `repeats` is a lazy tensor, on which the size of the result would depend.

    >>> import ucle
    >>> ucle.repeat(ucle.array([1, 2]), 2).to_numpy()
    array([1, 1, 2, 2])
    """
    if isinstance(repeats, Tensor):
        raise UnsupportedError(
            "the number of repetitions must be known before anything is computed",
            where="repeat",
            expected="a number, or a list of them",
            found="a lazy tensor",
            hint="repeats.to_numpy() computes it",
        )
    tensor = tensor_operand(x)
    if axis is None:
        tensor, axis = (tensor if len(tensor.axes) == 1 else reshape_tensor(tensor, (-1,))), 0
    place = find_axis(tensor, axis, "repeat")
    size = known_size(tensor, place, "repeat")
    counts = [operator.index(repeats)] if np.ndim(repeats) == 0 else integers(repeats)
    if any(n < 0 for n in counts) or len(counts) not in (1, size):
        raise ArgumentTypeError(
            "these are not numbers of repetitions",
            where="repeat",
            expected=f"a number of at least 0, or {size} of them",
            found=repr(repeats)[:80],
        )
    if len(counts) > 1:
        return Tensor(take_positions(tensor, place, np.repeat(range(size), counts).tolist()))
    (times,) = counts
    axes = resize_axis(tensor.axes, place, size * times)
    if not times or not size:
        return Tensor(_nothing(tensor, axes))
    indices = [position(n) for n in range(len(axes))]
    indices[place] = position(place).digit(times, False)
    if times > 1:
        indices[place] = indices[place].make_nonnegative(lambda label: axes[int(label)].size or 0)
    return Tensor(read_at(tensor, axes, indices))


def tile(x: Any, repetitions: int | Sequence[int], /) -> Tensor:
    """Repeat the whole tensor a number of times along each of its last axes.

    >>> import ucle
    >>> ucle.tile(ucle.array([1, 2]), (2, 2)).to_numpy()
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    tensor = tensor_operand(x)
    given: Any = [repetitions] if np.ndim(repetitions) == 0 else repetitions
    times = [operator.index(n) for n in given]
    if any(n < 0 for n in times):
        raise ArgumentTypeError(
            "these are not numbers of repetitions",
            where="tile",
            expected="integers of at least 0",
            found=repr(repetitions)[:80],
        )
    while len(tensor.axes) < len(times):
        tensor = with_unit_axis(tensor, 0)
    times = [1] * (len(tensor.axes) - len(times)) + times
    axes, indices = tensor.axes, []
    for place, count in enumerate(times):
        if count == 1:
            indices.append(position(place))
            continue
        size = known_size(tensor, place, "tile")
        axes = resize_axis(axes, place, size * count)
        indices.append(position(place) if size < 2 else position(place).digit(size, True))
    if any(axis.size == 0 for axis in axes):
        return Tensor(_nothing(tensor, axes))
    return Tensor(read_at(tensor, axes, indices))


def _nothing(tensor: Lazy, axes: Sequence[Axis]) -> Lazy:
    """An empty tensor with the type of another."""
    dtype = Tensor(tensor).dtype
    if dtype is None:
        raise UnsupportedError(
            "the element type of an empty tensor is not known before the table is read",
            where="a repetition",
            expected="a tensor of a known type",
            found=str(tensor),
            hint="t.astype(...) states it",
        )
    return constant(tuple(axes), 0, DType(dtype.name))


def unstack(x: Any, /, *, axis: AxisLike = 0) -> tuple[Tensor, ...]:
    """Split a tensor into the tensors at each position of an axis, without the axis.

    >>> import ucle
    >>> [row.sum().item() for row in ucle.unstack(ucle.array([[1, 2], [3, 4]]))]
    [3, 7]
    """
    tensor = tensor_operand(x)
    place = find_axis(tensor, axis, "unstack")
    size = known_size(tensor, place, "unstack")
    return tuple(Tensor(drop_axis(tensor, place, n)) for n in range(size))


def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Broadcast tensors to their common shape."""
    tensors = [tensor_operand(x) for x in arrays]
    axes, _ = align(tensors, "broadcast_arrays")
    for place, axis in enumerate(axes):
        if axis.size is None or axis.encoded:
            known_size(Lazy(tensors[0].node, axes), place, "broadcast_arrays")
    nothing = constant(axes, False, DType.BOOL)
    return tuple(
        Tensor(x if x.axes == axes else elementwise(ADD.name, nothing, x)) for x in tensors
    )


def take_along_axis(x: Any, indices: Any, /, *, axis: AxisLike = -1) -> Tensor:
    """Read a tensor along an axis, at the positions in a tensor of integers.

    Along the other axes, both tensors are read at the same position. A position that is negative or
    beyond the axis raises a `PositionError` when the program runs.

    >>> import ucle
    >>> x, at = ucle.array([[1, 2], [3, 4]]), ucle.array([[1, 0], [0, 0]])
    >>> ucle.take_along_axis(x, at).to_numpy()
    array([[2, 1],
           [3, 3]])
    """
    tensor, at = tensor_operand(x), tensor_operand(indices)
    check_entries(Tensor(at).dtype)
    check_names([tensor, at], "take_along_axis")
    place, rank = find_axis(tensor, axis, "take_along_axis"), len(tensor.axes)
    if len(at.axes) != rank:
        raise AxisError(
            "the positions have another number of axes",
            where="take_along_axis",
            expected=f"{rank} axes, as of {tensor}",
            found=str(at),
        )
    if tensor.named:
        order = [find_axis(at, axis.name or "", "take_along_axis") for axis in tensor.axes]
        at = moves.permute_axes(at, order)
    axes = [
        new if n == place else merge_axes([own, new], "take_along_axis")
        for n, (own, new) in enumerate(zip(tensor.axes, at.axes, strict=True))
    ]
    if tensor.axes[place].unit:  # it has no label to look positions up by
        tensor = pad_tensor(tensor, [(0, int(n == place)) for n in range(rank)], "constant", 0)
    new_label = rank
    labels = [new_label if n == place else n for n in range(rank)]
    read = at.operand(labels), tensor.operand(range(rank))
    output = tuple(x for x, one in zip(labels, axes, strict=True) if not one.unit)
    long = tuple(one for one in axes if not one.unit)
    return Tensor(Lazy(Apply(WHEN, read, output, long, PICK), tuple(axes)))


def cumulative_sum(
    x: Any, /, *, axis: AxisLike | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Sum the entries up to each position of an axis, optionally with an initial 0.

    >>> import ucle
    >>> ucle.cumulative_sum(ucle.array([1, 2, 3]), include_initial=True).to_numpy()
    array([0, 1, 3, 6])
    """
    return _cumulative("cumulative_sum", x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Any, /, *, axis: AxisLike | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Multiply the entries up to each position of an axis, optionally with an initial 1."""
    return _cumulative("cumulative_prod", x, axis, dtype, 1 if include_initial else None)


def _cumulative(
    name: str, x: Any, axis: AxisLike | None, dtype: Any, initial: int | None
) -> Tensor:
    tensor = as_tensor(x)
    if axis is None and tensor.ndim != 1:
        raise AxisError(
            "the axis is not stated",
            where=name,
            expected="axis=..., as the tensor has not just one",
            found=str(tensor.lazy),
        )
    along = 0 if axis is None else axis
    run = tensor.cumsum if name == "cumulative_sum" else tensor.cumprod
    running = run(along, dtype)
    if initial is None:
        return running
    place = find_axis(running.lazy, along, name)
    widths = [(int(n == place), 0) for n in range(running.ndim)]
    return Tensor(pad_tensor(running.lazy, widths, "constant", initial))
