"""Picking positions of an axis: slices, lists of positions, and coordinates by name.

A selection is an EinSum as well: a join with a small tensor of yes and no, one entry for each
position picked. ``t[[4, 2], :]`` is ``S[p,i]`` with (0, 4) and (1, 2), and of the rows i only those
that it names survive the join. The ⊗ is ``when``, which NaN and infinity pass unharmed.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ucle.dtypes import DType
from ucle.errors import ArgumentTypeError, BoundError, LabelError, PositionError, UnsupportedError
from ucle.inputs import TableInput
from ucle.lazy.axes import AxisLike, find_axis, with_unit_axis
from ucle.lazy.elementwise import ones
from ucle.lazy.nodes import Axis, Lazy, Leaf, Operand, apply


def indexed(tensor: Lazy, key: Any) -> Lazy:
    """``t[key]`` with integers, slices, lists of positions, an ellipsis and None, as in NumPy.

    Raises:
        PositionError: a position outside its axis, or too many of them.
        BoundError: a slice that counts from the end of an axis whose size is not known.
        UnsupportedError: masks, and lists for several axes.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    for one in keys:
        _check_key(one)
    count = sum(one is not None and one is not Ellipsis for one in keys)
    if count > len(tensor.axes):
        raise PositionError(
            "there are more positions than axes",
            where=f"[{_text(keys)}]",
            expected=f"at most {len(tensor.axes)}, as the tensor is {tensor}",
            found=str(count),
        )
    if Ellipsis not in [one for one in keys if isinstance(one, type(Ellipsis))]:
        keys.append(Ellipsis)
    split = next(n for n, one in enumerate(keys) if one is Ellipsis)
    keys[split : split + 1] = [slice(None)] * (len(tensor.axes) - count)
    place = 0
    for one in keys:
        if one is None:
            tensor = with_unit_axis(tensor, place)
        elif isinstance(one, slice):
            if one != slice(None):
                tensor = taken(tensor, place, _range(one, tensor, place))
        elif hasattr(one, "__index__"):
            tensor = dropped(tensor, place, operator.index(one))
            continue
        else:
            tensor = taken(tensor, place, integers(one))
        place += 1
    return tensor


def _check_key(key: Any) -> None:
    if isinstance(key, slice | type(Ellipsis)) or key is None:
        return
    if not isinstance(key, bool) and hasattr(key, "__index__") and not isinstance(key, np.ndarray):
        return
    if isinstance(key, list | range | np.ndarray):
        if np.asarray(key).dtype != bool and np.ndim(key) == 1:
            return
        raise UnsupportedError(
            "a tensor cannot be indexed by a mask or an array of several axes",
            where="[...]",
            expected="integers, slices, or a list of positions",
            found=f"an array of {np.asarray(key).dtype}, {np.ndim(key)} axes",
            hint="ucle.where(condition, t, 0) keeps what meets a condition",
        )
    raise ArgumentTypeError(
        "a tensor cannot be indexed by this",
        where="[...]",
        expected="integers, slices, lists of positions, ... and None",
        found=repr(key)[:80],
        hint="t.sel({axis: coordinate}) goes by coordinates, ucle.where(condition, t, 0) by a mask",
    )


def _text(keys: Sequence[Any]) -> str:
    return ", ".join(map(repr, keys))


def integers(key: Any) -> list[int]:
    """Positions, as integers.

    Raises:
        PositionError: something else.
    """
    values = np.asarray(key)
    if values.size and values.dtype.kind not in "iu":
        raise PositionError(
            "positions are not integers",
            where="[...]",
            expected="a list of integers",
            found=f"dtype {values.dtype}",
        )
    return [int(value) for value in values]


def _range(key: slice, tensor: Lazy, place: int) -> range:
    axis = tensor.axes[place]
    if axis.size is not None:
        return range(*key.indices(axis.size))
    start, stop, step = key.start or 0, key.stop, 1 if key.step is None else key.step
    if stop is None or min(start, stop) < 0 or step < 1:
        raise BoundError(
            "where the axis ends is not known before the program is compiled",
            where=f"axis {place} of {tensor}",
            expected="a start and a stop of at least 0",
            found=str(key),
            hint="state its size: ucle.table(..., bounds=[...])",
        )
    return range(start, stop, step)


def taken(tensor: Lazy, place: int, positions: Sequence[int]) -> Lazy:
    """The tensor at positions of one axis, in their order; they may repeat, and count from the end.

    Raises:
        PositionError: a position outside the axis.
        UnsupportedError: the axis has coordinates and no positions.
    """
    axis = tensor.axes[place]
    if axis.encoded:
        raise UnsupportedError(
            "this axis goes by coordinates",
            where=f"axis {place} of {tensor}",
            expected="coordinates, as they stand in the table",
            found="positions",
            hint="t.sel({axis: [coordinate, ...]})",
        )
    found = [_position(position, axis, place, tensor) for position in positions]
    made = Axis(axis.name, len(found))
    if axis.unit:
        return _repeated(tensor, place, made)
    return _joined(tensor, place, pa.array(found, pa.int64()), made, encoded=False)


def dropped(tensor: Lazy, place: int, position: int) -> Lazy:
    """The tensor at one position of an axis, without the axis."""
    made = taken(tensor, place, [position])
    return Lazy(made.node, (*made.axes[:place], *made.axes[place + 1 :]))


def _position(position: int, axis: Axis, place: int, tensor: Lazy) -> int:
    low, high = (0, None) if axis.size is None else (-axis.size, axis.size)
    if position < low or (high is not None and position >= high):
        raise PositionError(
            f"the position {position} is outside of its axis",
            where=f"axis {place} of {tensor}",
            expected="a position of at least 0" if high is None else f"{low} to {high - 1}",
            found=str(position),
        )
    return position % axis.size if axis.size else position


def selected(tensor: Lazy, coordinates: Mapping[AxisLike, Any]) -> Lazy:
    """The tensor at coordinates of named axes: one of them drops its axis, a list keeps it.

    Coordinates are what stands in the key columns of tables: strings, dates, or integers. A
    coordinate that does not occur has the fill value there.

    Raises:
        AxisError: no such axis.
        LabelError: coordinates of another type than integers for an axis that goes by position.
    """
    for axis, wanted in coordinates.items():
        place = find_axis(tensor, axis, "sel")
        single = isinstance(wanted, str | bytes) or not hasattr(wanted, "__len__")
        values = pa.array([wanted] if single else list(wanted))
        numbered = pa.types.is_integer(values.type) or not len(values)
        if numbered and not tensor.axes[place].encoded:
            tensor = taken(tensor, place, integers(values.to_pylist()))
        elif tensor.axes[place].unit:
            raise LabelError(
                "an axis of size 1 has no coordinates but 0",
                where=f"sel, axis {axis!r}",
                expected="position 0",
                found=repr(wanted),
            )
        else:
            made = Axis(tensor.axes[place].name, len(values))
            tensor = _joined(tensor, place, values, made, encoded=True)
        if single:
            axes = (*tensor.axes[:place], *tensor.axes[place + 1 :])
            tensor = Lazy(tensor.node, axes)
    return tensor


def _joined(tensor: Lazy, place: int, keys: pa.Array, made: Axis, *, encoded: bool) -> Lazy:
    """The join with a selection: one row for each coordinate of the axis that is picked."""
    axis, new = tensor.axes[place], len(tensor.axes)
    size = None if encoded else axis.size
    columns = {"picked": keys}
    axes: tuple[Axis, ...] = (axis,)
    bounds: tuple[int | None, ...] = (size,)
    labels: tuple[int, ...] = (place,)
    if not made.unit:
        columns = {"position": pa.array(range(len(keys)), pa.int64()), **columns}
        axes, bounds, labels = (made, *axes), (len(keys), *bounds), (new, *labels)
    spec = TableInput(
        pa.table(columns),
        tuple(columns),
        bounds=bounds,
        dtype=DType.BOOL,
        encoded_keys=(len(columns) - 1,) if encoded else (),
    )
    return apply(
        "when",
        [Operand(Leaf(spec, axes, "picked", DType.BOOL), labels), tensor.operand(range(new))],
        [made if n == place else a for n, a in enumerate(tensor.axes)],
        [new if n == place else n for n in range(new)],
        reduce="dot",
    )


def _repeated(tensor: Lazy, place: int, made: Axis) -> Lazy:
    """An axis of size 1 repeated any number of times."""
    axes = [made if n == place else a for n, a in enumerate(tensor.axes)]
    if made.unit:
        return tensor
    many = ones((made,))
    read = [tensor.operand(range(len(axes))), Operand(many.node, (place,))]
    return apply("mult", read, axes)
