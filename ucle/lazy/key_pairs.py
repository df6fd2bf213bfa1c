"""Inputs that pair the coordinates of a key column, over the relation of another input."""

from __future__ import annotations

from dataclasses import replace

from ucle.errors import UnsupportedError
from ucle.foundation.dtypes import DType
from ucle.lazy.nodes import Axis, Leaf
from ucle.plan.sources import Nulls, RangeEnd, TimePairs


def pairs_of_keys(leaf: Leaf, axis: int, own: Axis, pairs: TimePairs) -> Leaf:
    """The input that pairs coordinates of a key column: those of results, and those of entries.

    Args:
        leaf: the input that has the coordinates: in a key column, or as results of other pairs.
        axis: its axis.
        own: the axis of the entries.
        pairs: what they are; the relation and its axis are filled in.
    """
    spec = leaf.value
    encoded = (0, 1) if own.encoded else (0,)
    axes = Axis(own.name, None, encoded=True), own
    name = f"{leaf.name}_{pairs.kind}s"
    if spec.times is not None:
        made = spec.times if axis == 0 else spec.times.of
        times = replace(pairs, axis=spec.times.axis, rank=spec.times.rank, unique=True, of=made)
        spec = replace(spec, times=times, encoded_keys=encoded)
        return Leaf(spec, axes, name, DType.BOOL, leaf.database)
    wide = spec.columns_as is not None  # its value columns are left out
    rank = len(leaf.axes) - wide
    shared = spec.sum_duplicates or spec.tiles or spec.one_hot
    unique = rank == 1 and not shared  # several rows may have some of the features of a key
    spec = replace(
        spec,
        times=replace(pairs, axis=axis, rank=rank, unique=unique),
        value=1 if wide else spec.value,
        columns_as=None,
        values=None,
        one_hot=(),
        ragged=None,
        ends=None,
        nulls=Nulls.REFUSED,  # rows have coordinates whatever is NULL in them
        dtype=DType.BOOL,
        fill=False,
        bounds=None,
        presence=False,
        sum_duplicates=False,
        symmetric=False,
        tiles=None,
        shape=None,
        encode=False,
        encoded_keys=encoded,
        dictionaries=(),
        unsorted=frozenset(),
        picks=False,
    )
    return Leaf(spec, axes, name, DType.BOOL, leaf.database)


def origin_of_coordinates(leaf: Leaf, axis: int) -> tuple[int, TimePairs | None]:
    """What two axes have in common whose coordinates are the same, as far as inputs tell.

    It is a relation, and the pairs whose results have the coordinates, if not a column has them.
    """
    pairs = leaf.value.times
    if pairs is not None and axis:
        pairs = pairs.of
    while pairs is not None and pairs.kind == "window":  # it has one at each time
        pairs = pairs.of
    if pairs is not None and pairs.kind != "range":
        pairs = replace(pairs, kind="step")  # steps are the same, whatever is read of them
    return id(leaf.value.relation), pairs


def pairs_of_range(
    leaf: Leaf, axis: int, own: Axis, low: RangeEnd, high: RangeEnd, where: str
) -> Leaf:
    """The input that pairs each coordinate of a range with itself.

    Args:
        leaf: an input that has the coordinates.
        axis: its axis.
        own: the axis of the tensor along which a range is selected.
        low: the first coordinate, or None.
        high: the last one, or None.
        where: for messages.

    Raises:
        UnsupportedError: the coordinates are names of columns, or positions in lists.
    """
    spec = leaf.value
    last = axis == len(leaf.axes) - 1
    names = last and spec.columns_as is not None
    places = spec.ragged is not None and leaf.axes[axis].name == spec.ragged
    if names or places or (last and spec.ends is not None) or (axis < 2 and spec.symmetric):
        raise UnsupportedError(
            "this axis has no key column of which a slice could be read",
            where=where,
            expected="a list of names" if names else "a list of coordinates",
            found=f"{low!r} to {high!r}",
        )
    return pairs_of_keys(leaf, axis, own, TimePairs(0, 0, "range", low=low, high=high))
