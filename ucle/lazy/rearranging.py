"""Tensors with moved entries: shift, roll, pad, concatenate, reshape and related functions.

Names and meanings are NumPy's; operations on a flattened array are selected by ``axis=None``. Where
a result's sizes follow from those of its operands, these have to be known.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.errors import ArgumentTypeError, AxisError, BoundError, LabelError, UnsupportedError
from ucle.foundation import arguments as args
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.affine import Affine
from ucle.ir.conditions import NOTHING, All, Compare, Condition, Sign, Some
from ucle.lazy.axes import AxisLike, find_axis, with_names, with_unit_axis
from ucle.lazy.constants import broadcast_to
from ucle.lazy.elementwise import check_names, elementwise, merge_axes
from ucle.lazy.nodes import Apply, Axes, Axis, Lazy, Leaf, NodeOperand, apply
from ucle.lazy.places import number, position, read, read_at, where
from ucle.lazy.selection import take_positions
from ucle.lazy.types import node_types
from ucle.operators import (
    ADD,
    MULT,
    WHEN,
)

NOWHERE = Some(())
"""The condition that never holds."""


def known_size(tensor: Lazy, place: int, function: str) -> int:
    """The size of an axis, whose coordinates have to be positions.

    Raises:
        BoundError: the size is only known to the data of a table.
        UnsupportedError: its coordinates are values of a dictionary.
    """
    axis = tensor.axes[place]
    if axis.encoded:
        raise UnsupportedError(
            "the coordinates of this axis are not numbers",
            where=f"{function}, axis {place} of {tensor}",
            expected="an axis whose coordinates are positions",
            found="coordinates that are looked up in a dictionary",
            hint="add a column that numbers the coordinates, and use it as the key",
        )
    if axis.size is None:
        raise BoundError(
            "the size of an axis is not known before the program is compiled",
            where=f"{function}, axis {place} of {tensor}",
            expected="an axis of a known size",
            found="an axis whose size only the data of a table determines",
            hint="state it: ucle.table(..., bounds=[...]), with None for axes that need no size",
        )
    return axis.size


def known_count(tensor: Lazy, place: int, function: str) -> int:
    """The number of positions of an axis, where it does not matter what its coordinates are.

    Raises:
        BoundError: the size is only known to the data of a table.
    """
    plain = replace(tensor.axes[place], encoded=False)
    axes = (*tensor.axes[:place], plain, *tensor.axes[place + 1 :])
    return known_size(Lazy(tensor.node, axes), place, function)


def known_sizes(tensor: Lazy, function: str) -> list[int]:
    """The sizes of all axes; errors are as for `known_size`."""
    return [known_size(tensor, place, function) for place in range(len(tensor.axes))]


def resize_axis(axes: Axes, place: int, size: int | None) -> Axes:
    """Replace the size of one axis."""
    return (*axes[:place], replace(axes[place], size=size), *axes[place + 1 :])


def crop_axis(tensor: Lazy, place: int, start: int, count: int) -> Lazy:
    """Keep some positions of an axis that follow each other, all of which there are."""
    if not start and tensor.axes[place].size == count:
        return tensor
    axes = resize_axis(tensor.axes, place, count)
    indices = _replace_position(len(axes), place, position(place).plus(number(start)))
    if not count:
        return read_at(tensor, axes, indices, NOWHERE)
    return apply(None, [read(tensor, axes, indices, inside=False)], axes)


def _positions(count: int) -> list[Affine]:
    return [position(n) for n in range(count)]


def _replace_position(rank: int, place: int, affine: Affine) -> list[Affine]:
    """The indices that read one axis at a function and the others at their own positions."""
    return [affine if n == place else position(n) for n in range(rank)]


def _fill_outside(
    condition: Condition, axes: Axes, moved: NodeOperand, value: Any, dtype: Any
) -> Lazy:
    """Fill with a number, in the operand's type, where a condition does not hold."""
    met = where(condition, axes)
    if met.source is True:
        return apply(None, [moved], axes)
    if isinstance(dtype, DType):
        value = np.asarray(value).astype(dtype.numpy).item()
    if not value:
        return apply(WHEN.name, [met, moved], axes)
    return apply("where", [met, moved, NodeOperand(value)], axes)


def _dtype(tensor: Lazy) -> DType | None:
    return node_types([tensor.node])[tensor.node]


# ---- Along one axis ----


def shift_tensor(tensor: Lazy, by: int, axis: AxisLike, value: Scalar) -> Lazy:
    """Shift a tensor along an axis; fill vacated positions with a number, drop entries beyond.

    >>> from ucle.lazy.elementwise import ones
    >>> print(shift_tensor(ones((Axis(size=4),)), 1, 0, 0))
    (4)
    """
    place = find_axis(tensor, axis, "shift")
    size = known_size(tensor, place, "shift")
    by = max(-size, min(by, size))
    if not by:
        return tensor
    source = position(place).plus(number(-by))
    moved = read(
        tensor, tensor.axes, _replace_position(len(tensor.axes), place, source), inside=False
    )
    inside = _inside(source, size, low=by > 0, high=by < 0)
    return _fill_outside(inside, tensor.axes, moved, value, _dtype(tensor))


def roll_tensor(tensor: Lazy, by: Any, axis: Any) -> Lazy:
    """Roll a tensor along axes; entries that leave at one end enter at the other."""
    if axis is None:
        sizes = known_sizes(tensor, "roll")
        if len(sizes) == 1:
            return roll_tensor(tensor, by, 0)
        flat = roll_tensor(reshape_tensor(tensor, (-1,)), by, 0)
        return reshape_tensor(flat, sizes)
    listed = axis if isinstance(axis, tuple | list) else [axis]
    places = [find_axis(tensor, x, "roll") for x in listed]
    shifts = [operator.index(x) for x in (by if isinstance(by, tuple | list) else [by])]
    if len(shifts) != len(places) and 1 not in (len(shifts), len(places)):
        raise ArgumentTypeError(
            "shifts and axes do not go together",
            where="roll",
            expected="as many of the one as of the other, or one",
            found=f"{len(shifts)} shifts and {len(places)} axes",
        )
    count = max(len(shifts), len(places))
    along: dict[int, int] = {}
    for n in range(count):
        place = places[n % len(places)]
        along[place] = along.get(place, 0) + shifts[n % len(shifts)]
    indices = _positions(len(tensor.axes))
    for place, shift in along.items():
        size = known_size(tensor, place, "roll")
        if size > 1 and shift % size:
            indices[place] = position(place).plus(number(-shift % size)).digit(size, True)
    return read_at(tensor, tensor.axes, indices)


def differences(tensor: Lazy, times: int, axis: AxisLike, prepend: Any, append: Any) -> Lazy:
    """Compute differences of consecutive entries along an axis, a number of times."""
    if times < 0:
        raise ArgumentTypeError(
            "differences are taken a number of times",
            where="diff",
            expected="n of at least 0",
            found=str(times),
        )
    place = find_axis(tensor, axis, "diff")
    if not times:
        return tensor
    ends = [_end(end, tensor, place) for end in (prepend, append)]
    parts = [x for x in (ends[0], tensor, ends[1]) if x is not None]
    tensor = concatenate_tensors(parts, place) if len(parts) > 1 else tensor
    for _ in range(times):
        own = tensor.axes[place]
        axes = resize_axis(tensor.axes, place, None if own.size is None else max(own.size - 1, 0))
        next_one = _replace_position(len(axes), place, position(place).plus(number(1)))
        read_both = [read(tensor, axes, x) for x in (next_one, _positions(len(axes)))]
        if own.size is not None and own.size < 2:  # the result is empty, so nothing is read
            read_both = [read(tensor, axes, _positions(len(axes)), inside=True)] * 2
        tensor = apply("difference", read_both, axes)
    return tensor


def _end(end: Any, tensor: Lazy, place: int) -> Lazy | None:
    """The tensor to put before or after another; a number is broadcast to one position."""
    if not isinstance(end, Lazy):
        return None
    if end.axes:
        return end
    sizes = known_sizes(tensor, "diff")
    sizes[place] = 1
    stretched = broadcast_to(end, sizes)
    names = zip(tensor.axes, stretched.axes, strict=True)
    return Lazy(stretched.node, tuple(replace(b, name=a.name) for a, b in names))


# ---- Around and together ----


def pad_tensor(tensor: Lazy, widths: Any, mode: str, values: Any) -> Lazy:
    """Pad a tensor with numbers on all sides.

    Raises:
        UnsupportedError: a mode other than ``constant``.
        ArgumentTypeError: widths or values that do not fit the axes.
    """
    if mode != "constant":
        raise UnsupportedError(
            "tensors are padded with numbers alone",
            where="pad",
            expected="mode='constant'",
            found=f"mode={mode!r}",
            hint="ucle.concat can join a tensor with slices of itself",
        )
    rank = len(tensor.axes)
    around = _pairs(widths, tensor, "pad_width")
    filled = _pairs(values, tensor, "constant_values")
    for pair in around:
        if any(isinstance(x, bool) or not hasattr(x, "__index__") or x < 0 for x in pair):
            raise ArgumentTypeError(
                "this is not a width",
                where="pad",
                expected="integers of at least 0",
                found=repr(pair),
            )
    dtype = _dtype(tensor)
    for place in range(rank):
        before, after = (operator.index(x) for x in around[place])
        if not before and not after:
            continue
        size = known_size(tensor, place, "pad")
        axes = resize_axis(tensor.axes, place, before + size + after)
        source = position(place).plus(number(-before))
        moved = read(tensor, axes, _replace_position(rank, place, source), inside=False)
        low, high = filled[place]
        inside = _inside(source, size, low=before > 0, high=after > 0)
        tensor = _fill_outside(inside, axes, moved, low, dtype)
        if after and low != high:
            all_of_it = tensor.operand(range(rank))
            tensor = _fill_outside(_inside(source, size, high=True), axes, all_of_it, high, dtype)
    return tensor


def _pairs(given: Any, tensor: Lazy, where: str) -> list[tuple[Any, Any]]:
    """A pair for each axis, from NumPy's formats: a number, one pair, one per axis, or a dict."""
    rank = len(tensor.axes)
    if isinstance(given, Mapping):
        chosen = {find_axis(tensor, axis, where): pair for axis, pair in given.items()}
        given = [chosen.get(n, 0) for n in range(rank)]
        return [_pair(x) for x in given]
    try:
        spread = np.broadcast_to(np.asarray(given), (rank, 2))
    except ValueError as error:
        raise ArgumentTypeError(
            "these do not fit the axes",
            where=where,
            expected=f"a number, a pair, or {rank} pairs",
            found=repr(given)[:80],
        ) from error
    return [(pair[0].item(), pair[1].item()) for pair in spread]


def _pair(value: Any) -> tuple[Any, Any]:
    low, high = value if isinstance(value, tuple | list) else (value, value)
    return low, high


def concatenate_tensors(tensors: Sequence[Lazy], axis: AxisLike | None) -> Lazy:
    """Concatenate tensors along an axis; without an axis, concatenate all their entries.

    Raises:
        BoundError: sizes of other axes differ, or sizes are not known.
    """
    _check_some(tensors, "concat")
    if axis is None:
        return concatenate_tensors([reshape_tensor(tensor, (-1,)) for tensor in tensors], 0)
    check_names(tensors, "concat")
    first = tensors[0]
    place = find_axis(first, axis, "concat")
    aligned = [_align_axes(tensor, first) for tensor in tensors]
    sizes = [known_size(tensor, place, "concat") for tensor in aligned]
    others: list[Axis] = []
    for n in range(len(first.axes)):
        own = [tensor.axes[n] for tensor in aligned]
        if n != place and len({a.size for a in own if a.size is not None}) > 1:
            raise BoundError(
                "the sizes of the other axes differ",
                where="concat, " + " and ".join(map(str, tensors)),
                expected=f"one size of axis {n}",
                found=", ".join(str(a.size) for a in own),
            )
        others.append(own[0] if n == place else merge_axes(own, "concat"))
    axes = resize_axis(tuple(others), place, sum(sizes))
    start, parts = 0, []
    for tensor, size in zip(aligned, sizes, strict=True):
        if size or len(aligned) == 1:
            source = position(place).plus(number(-start))
            inside = _inside(source, size, low=start > 0, high=start + size < sum(sizes))
            parts.append(read_at(tensor, axes, _replace_position(len(axes), place, source), inside))
        start += size
    if not parts:
        return _cast_like(aligned[0], aligned[1:])
    result = parts[0]
    for part in parts[1:]:
        result = elementwise(ADD.name, result, part)
    missing = [tensor for tensor, size in zip(aligned, sizes, strict=True) if not size]
    return result if not missing else _cast_like(result, missing)


def _check_some(tensors: Sequence[Lazy], function: str) -> None:
    if not tensors:
        raise ArgumentTypeError(
            "there is nothing to put together", where=function, expected="tensors", found="none"
        )


def _inside(source: Affine, size: int, *, low: bool = False, high: bool = False) -> Condition:
    """A condition that a function is within an axis, tested at the given ends only."""
    parts = [Compare(source, Sign.AT_LEAST)] if low else []
    parts += [Compare(number(size - 1).plus(source, -1), Sign.AT_LEAST)] if high else []
    return All(tuple(parts))


def _cast_like(tensor: Lazy, others: Sequence[Lazy]) -> Lazy:
    """Cast a tensor to the common type with other tensors, which are empty."""
    types = [_dtype(x) for x in (tensor, *others)]
    known = [x.numpy for x in types if x is not None]
    common = DType(np.result_type(*known).name) if len(known) == len(types) else None
    return tensor if common is None or common is types[0] else elementwise(common.value, tensor)


def _align_axes(tensor: Lazy, first: Lazy) -> Lazy:
    """Permute a tensor's axes to the order of another's, by name if they have names."""
    if len(tensor.axes) != len(first.axes):
        raise AxisError(
            "the tensors have different numbers of axes",
            where="concat",
            expected=f"{len(first.axes)} axes, as of {first}",
            found=str(tensor),
        )
    if not first.named:
        return tensor
    places = [find_axis(tensor, axis.name or "", "concat") for axis in first.axes]
    axes = [tensor.axes[n] for n in places]
    return apply(None, [tensor.operand(range(len(axes)))], axes, places)


def stack_tensors(tensors: Sequence[Lazy], axis: int, name: str | None) -> Lazy:
    """Stack tensors of one shape along a new axis.

    Raises:
        ArgumentTypeError: there are none, or the place of the axis is not an integer.
        BoundError: their shapes differ.
        LabelError: one has named axes, and the new axis has no name, or the other way round.
    """
    _check_some(tensors, "stack")
    if isinstance(axis, str):
        raise ArgumentTypeError(
            "the new axis is placed by a number",
            where="stack(axis=...)",
            expected="an integer",
            found=repr(axis),
            hint=f"stack(..., name={axis!r}) names it",
        )
    args.integer(axis, "stack(axis=...)")
    shapes = {tuple(axis.size for axis in tensor.axes) for tensor in tensors}
    if len(shapes) > 1 and not any(tensor.named for tensor in tensors):
        raise BoundError(
            "tensors of different shapes cannot be stacked",
            where="stack",
            expected="one shape",
            found=" and ".join(map(str, tensors)),
        )
    named = any(tensor.named for tensor in tensors)
    if any(tensor.axes for tensor in tensors) and named != (name is not None):
        raise LabelError(
            "the new axis needs a name like the others" if named else "the axes have no names",
            where="stack, " + " and ".join(map(str, tensors)),
            expected="a name" if named else "no name",
            found=repr(name),
            hint="stack(..., name='lag') names it" if named else "t.named(...) names axes",
        )
    aligned = [_align_axes(tensor, tensors[0]) for tensor in tensors]
    place = operator.index(axis)
    longer = [with_unit_axis(tensor, place, name) for tensor in aligned]
    return concatenate_tensors(longer, place % len(longer[0].axes))


# ---- Shapes ----


def reshape_tensor(tensor: Lazy, shape: Any) -> Lazy:
    """Reshape a tensor, keeping the row-major order of its entries.

    Raises:
        LabelError: the axes have names, which a reshaped tensor would lose.
        BoundError: a shape with another number of entries.
    """
    if tensor.named:
        raise LabelError(
            "the names of the axes of another shape are not known",
            where="reshape",
            expected="axes without names",
            found=str(tensor),
            hint="t.unnamed().reshape(...).named(...)",
        )
    old = known_sizes(tensor, "reshape")
    sizes = [operator.index(n) for n in (shape if isinstance(shape, tuple | list) else [shape])]
    total = math.prod(old)
    if sizes.count(-1) == 1:
        rest = math.prod(n for n in sizes if n != -1)
        sizes[sizes.index(-1)] = total // rest if rest else 0
    if any(n < 0 for n in sizes) or math.prod(sizes) != total:
        raise BoundError(
            "a tensor cannot be reshaped to that shape",
            where=f"reshape of {tensor}",
            expected=f"a shape of {total} entries, with -1 at most once",
            found=str(shape),
        )
    if sizes == old:
        return tensor
    axes = tuple(Axis(size=size) for size in sizes)
    flat, stride = Affine(), 1
    for place in reversed(range(len(sizes))):
        flat, stride = flat.plus(position(place), stride), stride * sizes[place]

    def size_of(label: str) -> int:
        return max(sizes[int(label)], 1)

    indices, stride = list[Affine](), 1
    for place in reversed(range(len(old))):
        whole = max(stride, 1)
        index = flat.digit(whole, False).make_nonnegative(size_of)
        if place and old[place]:
            index = index.digit(old[place], True).make_nonnegative(size_of)
        indices.insert(0, index)
        stride *= old[place]
    if not total:
        return read_at(tensor, axes, [number(0)] * len(old), NOWHERE)
    return read_at(tensor, axes, indices)


def flatten(tensor: Lazy) -> Lazy:
    """All entries along one axis, in the order of their positions, whatever their coordinates are.

    Sizes need not be known.

    >>> from ucle.lazy.elementwise import ones
    >>> print(flatten(ones((Axis("node"), Axis("feature", 3, encoded=True)))))
    (?)
    """
    sizes = [axis.size for axis in tensor.axes]
    if None not in sizes and not any(axis.encoded for axis in tensor.axes):
        return reshape_tensor(with_names(tensor, [None] * len(sizes)), (-1,))
    labels, known = range(len(tensor.axes)), [size for size in sizes if size is not None]
    all_of_them = Axis(size=math.prod(known) if len(known) == len(sizes) else None)
    made = apply(None, [tensor.operand(labels)], (all_of_them,), (len(labels),))
    assert isinstance(made.node, Apply)
    return Lazy(replace(made.node, flat=True), made.axes)


def diagonal(tensor: Lazy, offset: int, axis1: AxisLike, axis2: AxisLike) -> Lazy:
    """The entries whose positions along two axes differ by an offset, along a new last axis."""
    places = [find_axis(tensor, axis, "diagonal") for axis in (axis1, axis2)]
    if places[0] == places[1]:
        raise AxisError(
            "a diagonal needs two axes",
            where="diagonal",
            expected="two axes",
            found=f"{axis1!r} twice",
        )
    rows, columns = (tensor.axes[place].size for place in places)
    size = None
    if rows is not None and columns is not None:
        size = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
        size = min(size, rows, columns)
        if rows != columns:
            for place, first in zip(places, (max(-offset, 0), max(offset, 0)), strict=True):
                tensor = take_positions(tensor, place, range(first, first + size))
            return diagonal(tensor, 0, axis1, axis2)
    kept = [n for n in range(len(tensor.axes)) if n not in places]
    last = replace(tensor.axes[places[0]], size=size)
    axes = (*(tensor.axes[n] for n in kept), last)
    if size is None and offset:
        for place in places:
            known_size(tensor, place, "diagonal")
    indices = [position(0)] * len(tensor.axes)
    for n, place in enumerate(kept):
        indices[place] = position(n)
    at = position(len(kept))
    indices[places[0]] = at.plus(number(max(-offset, 0)))
    indices[places[1]] = at.plus(number(max(offset, 0)))
    if offset or rows != columns:
        return read_at(tensor, axes, indices, NOWHERE if size == 0 else NOTHING)
    labels = [0] * len(tensor.axes)
    for n, place in enumerate(kept):
        labels[place] = n
    labels[places[0]] = labels[places[1]] = len(kept)
    return apply(None, [tensor.operand(labels)], axes)


def triangle(tensor: Lazy, offset: int, *, lower: bool) -> Lazy:
    """Keep a tensor on one side of a diagonal of its last two axes; set the other side to 0."""
    rank, function = len(tensor.axes), "tril" if lower else "triu"
    if rank < 2:
        raise AxisError(
            "a triangle needs two axes",
            where=function,
            expected="at least two axes",
            found=str(tensor),
        )
    for axis in (-2, -1):
        if tensor.axes[axis].encoded:
            known_size(tensor, rank + axis, function)
    row, column = position(rank - 2), position(rank - 1)
    one, other = (column, row.plus(number(offset))) if lower else (row.plus(number(offset)), column)
    condition = Compare(other.plus(one, -1), Sign.AT_LEAST)
    return read_at(tensor, tensor.axes, _positions(rank), condition)


def identity(rows: int, columns: int, offset: int, dtype: DType) -> Lazy:
    """A matrix with ones on a diagonal."""
    axes = Axis(size=rows), Axis(size=columns)
    on = position(1).plus(position(0), -1).plus(number(-offset))
    met = where(Compare(on, Sign.EQUAL), axes)
    if isinstance(met.source, bool):  # a matrix with one entry
        return Lazy(Leaf(np.array(met.source, dtype.numpy), (), "eye", dtype), axes)
    return apply(dtype.value, [met], axes)


def kronecker(left: Lazy, right: Lazy) -> Lazy:
    """The Kronecker product: blocks of one tensor, scaled by each entry of the other."""
    check_names([left, right], "kron")
    rank = max(len(left.axes), len(right.axes))
    while len(left.axes) < rank:
        left = with_unit_axis(left, 0)
    while len(right.axes) < rank:
        right = with_unit_axis(right, 0)
    sizes = known_sizes(left, "kron"), known_sizes(right, "kron")
    names = [one.name for one in left.axes]
    if names != [one.name for one in right.axes]:
        raise LabelError(
            "the axes of the tensors are called differently",
            where="kron",
            expected=f"the axes of {left}",
            found=str(right),
        )
    both = zip(names, *sizes, strict=True)
    axes = tuple(Axis(name, n * m) for name, n, m in both)
    each = apply(
        MULT.name,
        [left.operand(range(0, 2 * rank, 2)), right.operand(range(1, 2 * rank, 2))],
        [Axis(size=size) for pair in zip(*sizes, strict=True) for size in pair],
    )
    indices: list[Affine] = []
    for k, (n, m) in enumerate(zip(*sizes, strict=True)):
        whole = position(k).digit(max(m, 1), False)
        indices.append(whole.make_nonnegative(lambda label: max(axes[int(label)].size or 0, 1)))
        indices.append(position(k) if n == 1 else position(k).digit(max(m, 1), True))
    some = 0 not in (*sizes[0], *sizes[1])
    return read_at(each, axes, indices, NOTHING if some else NOWHERE)
