"""Axis lookup, and operations that only move, name or add axes without computing anything."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ucle.errors import ArgumentTypeError, AxisError, LabelError, did_you_mean
from ucle.lazy.nodes import Axes, Axis, Lazy, apply
from ucle.operators import WORDS

AxisLike = int | str


def find_axis(tensor: Lazy, axis: AxisLike, where: str) -> int:
    """Find the position of an axis, given as a position or a name.

    Raises:
        AxisError: there is no such axis.
        ArgumentTypeError: neither a position nor a name.
    """
    if isinstance(axis, str):
        places = [n for n, a in enumerate(tensor.axes) if a.name == axis]
        if places:
            return places[0]
        raise AxisError(
            f"there is no axis {axis!r}",
            where=where,
            expected="one of " + ", ".join(a.name for a in tensor.axes if a.name)
            if tensor.named
            else "a position, as the axes have no names",
            found=repr(axis),
            hint=did_you_mean(axis, [a.name or "" for a in tensor.axes])
            if tensor.named
            else "t.named('row', 'column') names axes",
        )
    try:
        place = operator.index(axis)
    except TypeError as error:
        raise ArgumentTypeError(
            "this is not a valid axis",
            where=where,
            expected="a position or a name",
            found=repr(axis),
        ) from error
    rank = len(tensor.axes)
    if not -rank <= place < rank:
        raise AxisError(
            f"there is no axis {place}",
            where=where,
            expected=f"positions from {-rank} to {rank - 1}" if rank else "no axis of a scalar",
            found=str(place),
        )
    return place % rank


def find_axes(
    tensor: Lazy, axes: AxisLike | Sequence[AxisLike] | None, where: str
) -> tuple[int, ...]:
    """Find the positions of some axes, each at most once; None stands for all axes."""
    if axes is None:
        return tuple(range(len(tensor.axes)))
    listed = (axes,) if isinstance(axes, str) or not isinstance(axes, Iterable) else tuple(axes)
    places = tuple(find_axis(tensor, axis, where) for axis in listed)
    if len(set(places)) < len(places):
        raise AxisError(
            "an axis is given twice", where=where, expected="each axis once", found=repr(axes)
        )
    return places


def permute_axes(tensor: Lazy, places: Sequence[int]) -> Lazy:
    """Reorder the axes of a tensor."""
    labels = range(len(tensor.axes))
    axes = (tensor.axes[place] for place in places)
    return apply(None, [tensor.operand(labels)], axes, places)


def replace_axes(tensor: Lazy, axes: Axes) -> Lazy:
    """Replace the axes by others of the same sizes; axes of size 1 may be added or removed."""
    long = [place for place, axis in enumerate(axes) if not axis.unit]
    labels = dict(zip(tensor.labelled, long, strict=True))
    read = tensor.operand(labels.get(n, -1) for n in range(len(tensor.axes)))
    return apply(None, [read], axes)


def with_names(tensor: Lazy, names: Sequence[str | None]) -> Lazy:
    """Replace the names of the axes, or remove them.

    Raises:
        LabelError: the wrong number of names, or names that cannot be labels.
    """
    if len(names) != len(tensor.axes):
        raise LabelError(
            "the number of names is not the number of axes",
            where="names of axes",
            expected=f"{len(tensor.axes)} names for {tensor}",
            found=", ".join(map(repr, names)) or "none",
        )
    axes = tuple(
        Axis(name, axis.size, axis.encoded) for name, axis in zip(names, tensor.axes, strict=True)
    )
    check_axis_names([name for name in names if name is not None])
    return replace_axes(tensor, axes)


def is_axis_name(name: Any) -> bool:
    """True if a name can be a label of a program."""
    return isinstance(name, str) and name.isidentifier() and name not in WORDS


def check_axis_names(names: Sequence[Any]) -> None:
    """Check that names of axes can be labels of a program.

    Raises:
        LabelError: a name is not an identifier, or occurs twice.
    """
    for name in names:
        if not is_axis_name(name):
            raise LabelError(
                "this cannot be the name of an axis",
                where="names of axes",
                expected="letters, digits and '_', not beginning with a digit; no 'and', 'or', "
                "'xor' or 'not'",
                found=repr(name),
            )
        if list(names).count(name) > 1:
            raise LabelError(
                f"two axes are called {name!r}",
                where="names of axes",
                expected="different names",
                found=", ".join(names),
            )


def rename_axes(tensor: Lazy, names: Mapping[str, str]) -> Lazy:
    """Rename some axes."""
    for name in names:
        find_axis(tensor, name, "rename")
    return with_names(tensor, [names.get(a.name or "", a.name) for a in tensor.axes])


def with_unit_axis(tensor: Lazy, place: int, name: str | None = None) -> Lazy:
    """Insert an axis of size 1 at a position.

    Raises:
        AxisError: there is no such position.
        LabelError: a tensor with named axes needs a name for the new one; others must not have it.
    """
    rank = len(tensor.axes) + 1
    if not -rank <= place < rank:
        raise AxisError(
            f"there is no place {place} for a new axis",
            where="expand_dims",
            expected=f"places from {-rank} to {rank - 1}",
            found=str(place),
        )
    if tensor.axes and (name is not None) != tensor.named:
        raise LabelError(
            "a new axis needs a name like the others" if tensor.named else "the axes have no names",
            where="expand_dims",
            expected="a name" if tensor.named else "no name",
            found=repr(name),
            hint="tensors with named axes are aligned by name and need no axes of size 1; "
            "t.expand_dims(axis, name='lag') names one"
            if tensor.named
            else None,
        )
    axes = list(tensor.axes)
    axes.insert(place % rank, Axis(name, 1))
    if name is not None:
        check_axis_names([axis.name for axis in axes])
    return Lazy(tensor.node, tuple(axes))


def squeeze_axes(tensor: Lazy, axes: AxisLike | Sequence[AxisLike] | None) -> Lazy:
    """Remove axes of size 1: the given ones, or all of them.

    Raises:
        AxisError: an axis is not known to have size 1.
    """
    units = {n for n, axis in enumerate(tensor.axes) if axis.unit}
    places = units if axes is None else set(find_axes(tensor, axes, "squeeze"))
    if wrong := sorted(places - units):
        raise AxisError(
            "an axis to be squeezed is not known to have size 1",
            where="squeeze",
            expected="axes of size 1",
            found=f"axis {wrong[0]} of {tensor}",
            hint="sum(axis) removes an axis of any size",
        )
    return Lazy(tensor.node, tuple(a for n, a in enumerate(tensor.axes) if n not in places))
