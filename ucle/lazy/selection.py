"""Selecting positions of an axis: slices, lists of positions, and masks.

A selection is an EinSum as well: a join with a small boolean tensor that has one entry for each
selected position. ``t[[4, 2], :]`` is ``S[p,i]`` with entries at (0, 4) and (1, 2), and only the
rows i that it names survive the join. The ⊗ is ``when``, which passes NaN and infinity unchanged.
"""

from __future__ import annotations

import datetime
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ucle.errors import ArgumentTypeError, BoundError, LabelError, PositionError, UnsupportedError
from ucle.foundation.dtypes import DType
from ucle.foundation.libraries import pa
from ucle.inputs.objects import is_instance
from ucle.inputs.table_input import PickedPositions, TableInput
from ucle.lazy.axes import (
    check_axis_names,
    permute_axes,
    with_unit_axis,
)
from ucle.lazy.elementwise import check_names, elementwise, ones
from ucle.lazy.nodes import Apply, Axis, Lazy, Leaf, NodeOperand, apply
from ucle.operators import PICK, WHEN

MASKED = (
    "ucle.where(mask, t, 0) is t where the mask is true and 0 elsewhere, in the shape of t; "
    "t.to_numpy()[mask.to_numpy()] has the selected entries alone, and "
    "ucle.mean(t, where=mask) is their mean"
)
"""The hint for masks of tensors whose axes have no names."""


def index_tensor(tensor: Lazy, key: Any) -> Lazy:
    """``t[key]`` with integers, slices, lists of positions, an ellipsis and None, as in NumPy.

    Raises:
        PositionError: a position outside its axis, too many positions, or lists that do not match.
        BoundError: a slice that counts from the end of an axis whose size is not known.
        UnsupportedError: masks, and lists for several named axes.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    for n, part in enumerate(keys):
        _check_key(part, tensor, _find_place(tensor, keys, n))
    count = sum(part is not None and part is not Ellipsis for part in keys)
    if count > len(tensor.axes):
        raise PositionError(
            "there are more positions than axes",
            where=f"[{_text(keys)}]",
            expected=f"at most {len(tensor.axes)}, as the tensor is {tensor}",
            found=str(count),
        )
    if Ellipsis not in [part for part in keys if isinstance(part, type(Ellipsis))]:
        keys.append(Ellipsis)
    split = next(n for n, part in enumerate(keys) if part is Ellipsis)
    keys[split : split + 1] = [slice(None)] * (len(tensor.axes) - count)
    listed = [n for n, part in enumerate(keys) if _is_list(part)]
    picked: dict[int, Sequence[int]] = {}
    picking: list[int] = []
    named = place = 0
    for n, part in enumerate(keys):
        if part is None:
            tensor = with_unit_axis(tensor, place)
        elif isinstance(part, slice):
            if part != slice(None):
                tensor = take_positions(tensor, place, positions_of_slice(part, tensor, place))
        elif _is_list(part) or listed:  # together with a list, an integer is a list of one position
            picked[place] = integers(part if _is_list(part) else [operator.index(part)])
            picking.append(n)
            named = place if _is_list(part) else named
        else:
            tensor = drop_axis(tensor, place, operator.index(part))
            continue
        place += 1
    if not picked:
        return tensor
    together = picking[-1] - picking[0] == len(picking) - 1
    return _gather_positions(tensor, picked, len(listed), named, min(picked) if together else 0)


def place_of_entries(tensor: Lazy, keys: Sequence[Any], entries: int) -> int | None:
    """The axis that the entries of a tensor index, once the other keys of ``t[...]`` are applied.

    Args:
        tensor: the tensor that is indexed.
        keys: all keys.
        entries: the place of the tensor among them.

    Returns:
        The axis, or None unless each of the other keys keeps an axis or makes one.
    """
    others = [part for n, part in enumerate(keys) if n != entries]
    if not all(part is None or isinstance(part, slice | type(Ellipsis)) for part in others):
        return None
    if not any(part is Ellipsis for part in keys[:entries]):
        return entries
    return len(tensor.axes) + sum(part is None for part in keys) - len(keys) + entries


def _find_place(tensor: Lazy, keys: Sequence[Any], n: int) -> int | None:
    """The axis that a key indexes, if the tensor has so many."""
    before, after = keys[:n], keys[n + 1 :]
    if any(part is Ellipsis for part in before):
        place = len(tensor.axes) - 1 - sum(part is not None for part in after)
    else:
        place = sum(part is not None for part in before)
    return place if 0 <= place < len(tensor.axes) else None


def _selecting(tensor: Lazy, place: int | None, coordinates: str) -> str:
    """The call that selects along an axis by coordinates, for hints."""
    if place is None:
        return f"t.sel({{axis: {coordinates}}})"
    name = tensor.axes[place].name
    return f"t.sel({{{place}: {coordinates}}})" if name is None else f"t.sel({name}={coordinates})"


def _is_list(key: Any) -> bool:
    return isinstance(key, list | range | np.ndarray) and np.ndim(key) > 0


def _gather_positions(
    tensor: Lazy, picked: Mapping[int, Sequence[int]], lists: int, named: int, position: int
) -> Lazy:
    """Select positions of several axes jointly, which become one axis at a given place.

    Args:
        tensor: the tensor.
        picked: positions by the place of their axis, in lists of one length or of length 1.
        lists: the number of axes for which the caller has given a list.
        named: the place of the axis whose name the new axis gets.
        position: the place of the new axis.
    """
    if lists > 1 and tensor.named:
        raise UnsupportedError(
            "lists of positions for several axes are paired, so their joint axis has no name",
            where=f"[...] of {tensor}",
            expected="a list for one axis",
            found=f"lists for {lists} axes",
            hint="for every combination, call t.take(positions, axis) for one axis after "
            "another; to pair the lists, as in NumPy, write t.unnamed()[...]",
        )
    lengths = {len(positions) for positions in picked.values()} - {1}
    if len(lengths) > 1:
        raise PositionError(
            "lists of positions have different lengths",
            where=f"[...] of {tensor}",
            expected="lists of one length, or of length 1",
            found="lengths " + ", ".join(str(len(positions)) for positions in picked.values()),
            hint="for every combination, call t.take(positions, axis) for one axis after another",
        )
    joint_axis = Axis(tensor.axes[named].name, next(iter(lengths), 1))
    offsets = {
        place: check_positions(tensor, place, positions) for place, positions in picked.items()
    }
    untouched = [place for place in range(len(tensor.axes)) if place not in picked]
    order = [*untouched[:position], len(tensor.axes), *untouched[position:]]
    axes = [joint_axis if place == len(tensor.axes) else tensor.axes[place] for place in order]
    long = [place for place in offsets if not tensor.axes[place].unit]
    if not long:
        bare = Lazy(tensor.node, tuple(Axis(a.name, 1) if a is joint_axis else a for a in axes))
        return _repeat_axis(bare, position, joint_axis)
    size = joint_axis.size or 0
    columns = {
        f"picked{n}": pa.array(offsets[n] * (size if len(offsets[n]) == 1 else 1), pa.int64())
        for n in long
    }
    read = [tensor.axes[n] for n in long]
    labels = list(long)
    if not joint_axis.unit:
        columns = {"position": pa.array(range(size), pa.int64()), **columns}
        read, labels = [joint_axis, *read], [len(tensor.axes), *labels]
    spec = TableInput(
        pa.table(columns),
        tuple(columns),
        bounds=tuple(axis.size for axis in read),
        dtype=DType.BOOL,
        positions=tuple(
            _picked(tensor, n, len(columns) - len(long) + key) for key, n in enumerate(long)
        ),
    )
    chosen = NodeOperand(Leaf(spec, tuple(read), "picked", DType.BOOL), tuple(labels))
    every = tensor.operand(range(len(tensor.axes)))
    return apply(WHEN.name, [chosen, every], axes, order, reduce="dot")


def _check_key(key: Any, tensor: Lazy, place: int | None) -> None:
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
            hint=MASKED,
        )
    shown = repr(key).splitlines()[0][:80]
    hint = (
        "t.take(positions, axis) selects the positions in a tensor along one axis, and then along "
        "another; ucle.where(condition, t, 0) keeps the entries that meet a condition"
    )
    if not is_instance(key, "ucle.lazy.tensor", "Tensor"):
        given = shown if isinstance(key, str | datetime.date | np.datetime64) else "coordinate"
        hint = (
            f"{_selecting(tensor, place, given)} selects by coordinates, "
            "ucle.where(condition, t, 0) by a mask"
        )
    raise ArgumentTypeError(
        "a tensor cannot be indexed by this",
        where="[...]",
        expected="integers, slices, lists of positions, ... and None",
        found=shown,
        hint=hint,
    )


def _text(keys: Sequence[Any]) -> str:
    return ", ".join(map(repr, keys))


def integers(key: Any) -> list[int]:
    """Check positions and convert them to integers.

    Raises:
        PositionError: they are not a list of integers.
    """
    values = np.asarray(key)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise PositionError(
            "positions are not integers",
            where="[...]",
            expected="a list of integers",
            found=f"dtype {values.dtype}" if values.ndim else repr(key)[:80],
        )
    return [int(value) for value in values]


def positions_of_slice(key: slice, tensor: Lazy, place: int) -> range:
    """The positions of a slice of an axis.

    Raises:
        PositionError: its ends are no positions, or its step is 0.
        BoundError: it counts from the end of an axis whose size is not known.
    """
    axis = tensor.axes[place]
    bounds = (key.start, key.stop, key.step)
    whole = all(x is None or (hasattr(x, "__index__") and np.ndim(x) == 0) for x in bounds)
    if not whole or key.step == 0:
        raise PositionError(
            "this is not a slice of positions",
            where=f"axis {place} of {tensor}",
            expected="integers, and a step that is not 0",
            found=str(key),
        )
    if axis.size is not None:
        return range(*key.indices(axis.size))
    start, stop, step = key.start or 0, key.stop, 1 if key.step is None else key.step
    if stop is None or min(start, stop) < 0 or step < 1:
        raise BoundError(
            END_UNKNOWN,
            where=f"axis {place} of {tensor}",
            expected="a start and a stop of at least 0",
            found=str(key),
            hint=_with_size(tensor, place),
        )
    return range(start, stop, step)


END_UNKNOWN = "the end of the axis is not known before the program is compiled"


def _with_size(tensor: Lazy, place: int) -> str:
    """A hint for positions that count from the end of an axis of a table."""
    return (
        "state its size: ucle.table(..., bounds=[...]); names, dates and times are selected by "
        + _selecting(tensor, place, "[coordinate, ...]")
    )


def take_positions(tensor: Lazy, place: int, positions: Sequence[int]) -> Lazy:
    """Select positions of one axis, in the given order; they may repeat or count from the end.

    Raises:
        PositionError: a position outside the axis.
        UnsupportedError: the axis has coordinates instead of positions.
    """
    offsets = check_positions(tensor, place, positions)
    axis = tensor.axes[place]
    new_axis = Axis(axis.name, len(offsets))
    if axis.unit:
        return _repeat_axis(tensor, place, new_axis)
    return _join_selection(tensor, place, offsets, new_axis)


def keep_entries(tensor: Lazy, mask: Lazy) -> Lazy:
    """``t[t > 3]`` with named axes: the entries at which a mask is true, and 0 elsewhere.

    Axes and coordinates stay, so that a mask along one axis keeps the rows of its coordinates.

    Raises:
        LabelError: the mask has an axis that the tensor lacks, or axes without names.

    >>> named = ones((Axis("node", 4), Axis("feature", 3)))
    >>> print(keep_entries(named, ones((Axis("feature", 3),))))
    (node: 4, feature: 3)
    """
    check_names([tensor, mask], "[...]")
    names = [axis.name for axis in tensor.axes]
    if other := [axis for axis in mask.axes if axis.name not in names]:
        raise LabelError(
            "the mask has an axis that the tensor lacks",
            where="[...]",
            expected=f"a mask along {tensor}",
            found=str(other[0]),
        )
    kept = elementwise(WHEN.name, mask, tensor)
    places = [[axis.name for axis in kept.axes].index(name) for name in names]
    return permute_axes(kept, places)


def check_entries(dtype: np.dtype[Any] | None) -> None:
    """Check that entries can be positions, if their type is known.

    Raises:
        ArgumentTypeError: they are not integers.
    """
    if dtype is not None and dtype.kind == "b":
        raise ArgumentTypeError(
            "how many entries a mask selects is known only when it is computed",
            where="[...]",
            expected="a tensor of integers, or axes with names, for which t[mask] keeps the shape",
            found="a mask",
            hint=MASKED,
        )
    if dtype is not None and dtype.kind != "i":
        raise ArgumentTypeError(
            "a tensor cannot be indexed by this",
            where="[...]",
            expected="a tensor of integers",
            found=f"one of {dtype}",
            hint="t.astype('int64') makes integers of whole numbers",
        )


def take_at_entries(tensor: Lazy, place: int, indices: Lazy) -> Lazy:
    """Index an axis by the entries of another tensor, whose axes replace the axis.

    The entries are known when the program runs: one that is negative, or beyond the axis, is an
    error then.

    Raises:
        LabelError: named and unnamed axes are mixed, or two axes have the same name.
    """
    check_names([tensor, indices], "take")
    first = len(tensor.axes)
    added = range(first, first + len(indices.axes))
    every = {**dict(enumerate(tensor.axes)), **dict(zip(added, indices.axes, strict=True))}
    order = [*range(place), *added, *range(place + 1, first)]
    axes = [every[n] for n in order]
    check_axis_names([axis.name for axis in axes if axis.name is not None])
    source = tensor.operand(range(first))
    if tensor.axes[place].unit:
        source = NodeOperand(_with_label(tensor, place), (place, *source.labels))
    read = indices.operand(added), source
    return Lazy(
        Apply(
            WHEN,
            read,
            tuple(n for n in order if not every[n].unit),
            tuple(axis for axis in axes if not axis.unit),
            PICK,
        ),
        tuple(axes),
    )


def _with_label(tensor: Lazy, place: int) -> Apply:
    """A node that gives an axis of size 1 a label, which it normally lacks, as its first label."""
    axis = tensor.axes[place]
    values = TableInput(np.ones(1, dtype=bool), fill=True)
    leaf = Leaf(values, (axis,), "ones", DType.BOOL)
    others = tensor.operand(range(len(tensor.axes)))
    axes = (axis, *(tensor.axes[n] for n in tensor.labelled))
    return Apply(WHEN, (NodeOperand(leaf, (place,)), others), (place, *others.labels), axes)


def check_positions(tensor: Lazy, place: int, positions: Sequence[int]) -> list[int]:
    """Check positions of an axis and count them from its beginning.

    Raises:
        PositionError: a position is outside the axis.
        UnsupportedError: the axis has coordinates instead of positions.
    """
    axis = tensor.axes[place]
    if axis.encoded:
        raise UnsupportedError(
            "this axis is selected by coordinates",
            where=f"axis {place} of {tensor}",
            expected="coordinates, as they stand in the table",
            found="positions",
            hint=_selecting(tensor, place, "[coordinate, ...]"),
        )
    return [_position(position, axis, place, tensor) for position in positions]


def drop_axis(tensor: Lazy, place: int, position: int) -> Lazy:
    """Select one position of an axis, and drop the axis."""
    single = take_positions(tensor, place, [position])
    return Lazy(single.node, (*single.axes[:place], *single.axes[place + 1 :]))


def _position(position: int, axis: Axis, place: int, tensor: Lazy) -> int:
    size = axis.size
    if size is None and position < 0:
        raise PositionError(
            END_UNKNOWN,
            where=f"axis {place} of {tensor}",
            expected="a position of at least 0",
            found=str(position),
            hint=_with_size(tensor, place),
        )
    if size is not None and not -size <= position < size:
        raise PositionError(
            f"the position {position} is outside of its axis",
            where=f"axis {place} of {tensor}",
            expected=f"{-size} to {size - 1}",
            found=str(position),
        )
    return position % axis.size if axis.size else position


def _join_selection(tensor: Lazy, place: int, positions: Sequence[int], new_axis: Axis) -> Lazy:
    """Join with a selection: one row for each selected position of the axis."""
    axis, new = tensor.axes[place], len(tensor.axes)
    columns = {"picked": pa.array(positions, pa.int64())}
    axes: tuple[Axis, ...] = (axis,)
    labels: tuple[int, ...] = (place,)
    if not new_axis.unit:
        columns = {"position": pa.array(range(len(positions)), pa.int64()), **columns}
        axes, labels = (new_axis, *axes), (new, *labels)
    bounds = tuple(a.size for a in axes)
    spec = TableInput(
        pa.table(columns),
        tuple(columns),
        bounds=bounds,
        dtype=DType.BOOL,
        positions=(_picked(tensor, place, len(columns) - 1),),
    )
    picked = Leaf(spec, axes, "picked", DType.BOOL)
    return where_picked(tensor, place, new_axis, NodeOperand(picked, labels))


def _picked(tensor: Lazy, place: int, key: int) -> PickedPositions:
    """Say which axis a key of positions indexes."""
    name = tensor.axes[place].name
    return PickedPositions(key, place if name is None else name, str(tensor))


def where_picked(tensor: Lazy, place: int, new_axis: Axis, picked: NodeOperand) -> Lazy:
    """Join with a boolean tensor; its new axis, if any, is labelled last and replaces another."""
    new = len(tensor.axes)
    return apply(
        WHEN.name,
        [picked, tensor.operand(range(new))],
        [new_axis if n == place else a for n, a in enumerate(tensor.axes)],
        [new if n == place else n for n in range(new)],
        reduce="dot",
    )


def _repeat_axis(tensor: Lazy, place: int, new_axis: Axis) -> Lazy:
    """Repeat an axis of size 1 any number of times."""
    axes = [new_axis if n == place else a for n, a in enumerate(tensor.axes)]
    if new_axis.unit:
        return tensor
    many = ones((new_axis,))
    read = [NodeOperand(many.node, (place,)), tensor.operand(range(len(axes)))]
    return apply(WHEN.name, read, axes)  # a product would make NaN of infinite complex numbers
