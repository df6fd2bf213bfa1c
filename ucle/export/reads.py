"""Reads at computed positions, conditions on labels, and coordinates as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ucle.errors import UnsupportedError
from ucle.export.entries import Entries, every_label
from ucle.export.graph import Value, choose
from ucle.export.open_axes import Extents
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.affine import Affine
from ucle.ir.conditions import NOTHING, All, Compare, Condition, Sign
from ucle.language.syntax import Reindexed

Coordinates = Mapping[str, Any]
"""The coordinates of labels, each aligned along all labels: arrays, or nodes."""


def read_elsewhere(
    read: Reindexed, source: Entries, labels: Sequence[str], extents: Extents, outside: Scalar
) -> Entries:
    """The entries of a `Reindexed` without hits.

    Args:
        read: the expression.
        source: the tensor that it reads, with the labels of its axes.
        labels: those of the result.
        extents: their sizes.
        outside: the value of entries that are not read.
    """
    at = coordinates(labels, extents)
    graph = extents.graph
    if read.value is not None:
        number = as_value(affine_at(read.value, at), source.value, DType.INT64)
        entries = Entries(number, tuple(labels))
    else:
        entries = _gather(read, source, extents, outside)
    every = tuple(labels)
    value = entries.aligned(every) if read.value is None else entries.value
    if read.condition != NOTHING:
        holds = as_value(condition_at(read.condition, at), value, DType.BOOL)
        value = choose(holds, value, outside, value.dtype)
    if not every:
        return Entries(value, every)
    return Entries(graph.node("Expand", (value, extents.shape(every)), value.dtype), every)


def coordinates(labels: Sequence[str], extents: Extents) -> dict[str, Any]:
    """The coordinates of labels, aligned along all of them."""
    found: dict[str, Any] = {}
    for place, label in enumerate(labels):
        own = extents.coordinates(label)
        after = len(labels) - 1 - place
        if isinstance(own, Value):
            found[label] = own.axes("Unsqueeze", range(1, after + 1))
        else:
            found[label] = own.reshape(-1, *(1,) * after)
    return found


def affine_at(affine: Affine, at: Coordinates) -> Any:
    """A function of labels at coordinates: an array, a node or a number."""
    value: Any = np.int64(affine.constant)
    for term, factor in affine.terms:
        if isinstance(term, str):
            own = at[term]
        else:
            inner = affine_at(term.of, at)
            own = inner % term.by if term.remainder else inner // term.by
        value = own * factor + value
    return value


def condition_at(condition: Condition, at: Coordinates) -> Any:
    """The truth of a condition at coordinates."""
    match condition:
        case Compare(affine, sign):
            value = affine_at(affine, at)
            if sign is Sign.AT_LEAST:
                return value >= 0
            equal = value.equals(0) if isinstance(value, Value) else value == 0
            return ~equal if sign is Sign.UNEQUAL else equal
        case All(parts):
            result: Any = np.bool_(True)
            for part in parts:
                result = condition_at(part, at) & result
            return result
    result = np.bool_(False)
    for part in condition.parts:
        result = condition_at(part, at) | result
    return result


def as_value(known: Any, near: Value, dtype: DType) -> Value:
    """What was computed with coordinates as a value of a graph."""
    return known if isinstance(known, Value) else near.graph.constant(known, dtype)


def _gather(read: Reindexed, source: Entries, extents: Extents, outside: Scalar) -> Entries:
    """The entries that are read, axis by axis, or together where axes share labels."""
    labels = [index.labels for index in read.indices]
    shared = [x for n, own in enumerate(labels) for x in own if _occurs(x, labels, n)]
    together = [n for n in range(len(labels)) if set(labels[n]).intersection(shared)]
    inside: list[tuple[Any, tuple[str, ...]]] = []
    value = source.value
    if together:
        own = tuple(dict.fromkeys(x for n in together for x in labels[n]))
        value, after = _gather_together(read, value, together, own, extents, inside)
    else:
        after = [(axis,) for axis in range(len(labels))]  # each by its number, until it is read
    for axis in range(len(labels)):
        if axis in together or _passes(read, axis, extents):
            continue
        places = _positions(read, axis, labels[axis], extents, inside)
        at = after.index((axis,))
        place = sum(map(len, after[:at]))
        value = value.apply("Gather", extents.graph.constant(places, DType.INT64), axis=place)
        after[at] = labels[axis]
    flat = tuple(x for group in after for x in _flat(group, labels))
    entries = Entries(value, flat)
    for known, own in inside:
        every = every_label(entries, Entries(value, own))
        mask = Entries(extents.graph.constant(known, DType.BOOL), own).aligned(every)
        entries = Entries(choose(mask, entries.aligned(every), outside, value.dtype), every)
    return entries


def _passes(read: Reindexed, axis: int, extents: Extents) -> bool:
    """Whether an axis is read at a label of its own size."""
    index, axes = read.indices[axis], extents.axes
    label = index.affine.label
    if label is None:
        return False
    one = axes.classes.find((extents.target, label))
    other = axes.classes.find((read.source.tensor, axis))
    if one == other:
        return True
    return axes.bounds.sizes[read.source.tensor, axis] == extents.number(label)


def _occurs(label: str, labels: Sequence[tuple[str, ...]], besides: int) -> bool:
    return any(label in own for n, own in enumerate(labels) if n != besides)


def _flat(group: tuple[Any, ...], labels: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The labels of a group of axes: those of one that is passed on are its own."""
    return tuple(y for x in group for y in (labels[x] if isinstance(x, int) else (x,)))


def _positions(
    read: Reindexed,
    axis: int,
    labels: tuple[str, ...],
    extents: Extents,
    inside: list[tuple[Any, tuple[str, ...]]],
) -> Any:
    """The positions along an axis for all entries along labels, which include those of its index.

    Those outside are moved to its ends, and `inside` gets a mask.

    Raises:
        UnsupportedError: the axis has no positions.
    """
    at = coordinates(labels, extents)
    shape = [extents.number(label) for label in labels]
    places = np.broadcast_to(affine_at(read.indices[axis].affine, at), shape)
    size = extents.axes.bounds.sizes[read.source.tensor, axis]
    within = (places >= 0) & (places < size)
    if not within.all():
        inside.append((np.array(within), labels))
    if size == 0:
        raise UnsupportedError(f"{read.source.tensor} is read along an axis of size 0")
    return np.clip(places, 0, size - 1)


def _gather_together(
    read: Reindexed,
    value: Value,
    together: Sequence[int],
    labels: tuple[str, ...],
    extents: Extents,
    inside: list[tuple[Any, tuple[str, ...]]],
) -> tuple[Value, list[tuple[Any, ...]]]:
    """Read some axes at positions that share labels.

    Raises:
        UnsupportedError: the sizes of these labels are open, or an axis has no positions.
    """
    if any(isinstance(extents.size(label), Value) for label in labels):
        raise UnsupportedError(f"{read.source.tensor} is read at {labels[0]}, whose size is open")
    columns = [_positions(read, axis, labels, extents, inside) for axis in together]
    rest = [n for n in range(len(read.indices)) if n not in together]
    moved = value.transpose([*together, *rest])
    places = extents.graph.constant(np.stack(columns, axis=-1), DType.INT64)
    return moved.apply("GatherND", places), [labels, *((n,) for n in rest)]
