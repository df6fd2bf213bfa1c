"""The rows of a weight in a layout, in chunks of a few megabytes.

An array that is mapped from a file is read piece by piece, and each piece is given back to the
system, so that storing a model does not load it.
"""

from __future__ import annotations

import itertools
import math
import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.libraries import pa
from ucle.inputs.inputs import value_array
from ucle.models.weight_layouts import WeightLayout

CHUNK = 1 << 21
"""Bytes of a chunk, unless one block is larger."""

Range = tuple[int, int]
"""The numbers of some blocks of an axis: the first, and that behind the last."""


def weight_rows(
    array: NDArray[Any], layout: WeightLayout, names: Sequence[str], value: str
) -> Iterator[pa.Table]:
    """Yield the rows of a weight as Arrow tables, in the order of the layout.

    Args:
        array: the weight.
        layout: how rows hold it.
        names: of the columns of keys.
        value: the name of the column of arrays, or of one number if the weight has no axes.

    >>> layout = WeightLayout((2, 2), (1, 0))
    >>> (chunk,) = weight_rows(np.arange(12.0).reshape(3, 4), layout, ("bi", "bj"), "val")
    >>> chunk["val"].to_pylist()[2:]
    [[2.0, 3.0, 6.0, 7.0], [10.0, 11.0, 0.0, 0.0]]
    """
    if not array.ndim:
        yield pa.table([value_array(array.reshape(1))], names=[value])
        return
    blocks = layout.blocks
    counts = tuple(-(-size // block) for size, block in zip(array.shape, blocks, strict=False))
    rest = array.shape[len(blocks) :]
    length = math.prod(blocks) * math.prod(rest)
    for ranges in _runs([counts[axis] for axis in layout.order], length * array.itemsize):
        of = dict(zip(layout.order, ranges, strict=True))
        whole = [of[axis] for axis in range(len(blocks))]
        numbers = [stop - start for start, stop in whole]
        padded = _region(array, [(a * n, b * n) for (a, b), n in zip(whole, blocks, strict=True)])
        split = padded.reshape(
            *(n for pair in zip(numbers, blocks, strict=True) for n in pair), *rest
        )
        key_axes = [2 * axis for axis in layout.order]
        others = [axis for axis in range(split.ndim) if axis not in key_axes]
        rows = split.transpose(*key_axes, *others).reshape(-1)
        count = math.prod(numbers)
        places = np.indices([numbers[axis] for axis in layout.order]).reshape(len(blocks), count)
        keys: list[Any] = [None] * len(blocks)
        for axis, place in zip(layout.order, places, strict=True):
            keys[axis] = pa.array((place + whole[axis][0]).astype(np.int32))
        ends = pa.array(np.arange(count + 1, dtype=np.int32) * length)
        lists = pa.ListArray.from_arrays(ends, value_array(rows))
        yield pa.table([*keys, lists], names=[*names, value])


def _runs(counts: Sequence[int], each: int) -> Iterator[tuple[Range, ...]]:
    """Yield ranges of blocks for each axis that make a chunk; later axes change first."""
    divided = 0
    while divided < len(counts) - 1 and math.prod(counts[divided + 1 :]) * each >= CHUNK:
        divided += 1
    tail = tuple((0, count) for count in counts[divided + 1 :])
    for head in itertools.product(*map(range, counts[:divided])):
        fixed = tuple((n, n + 1) for n in head)
        if not counts:
            yield ()
            continue
        step = max(1, CHUNK // max(math.prod(counts[divided + 1 :]) * each, 1))
        for start in range(0, counts[divided], step):
            yield (*fixed, (start, min(start + step, counts[divided])), *tail)


def _region(array: NDArray[Any], region: Sequence[Range]) -> NDArray[Any]:
    """Copy a part of an array; positions beyond its axes are 0."""
    shape = (*(b - a for a, b in region), *array.shape[len(region) :])
    mapping = _mapping(array)
    stops = [min(b, size) for (_, b), size in zip(region, array.shape, strict=False)]
    inside = tuple(slice(a, stop) for (a, _), stop in zip(region, stops, strict=True))
    if mapping is None and array[inside].shape == shape:
        return array[inside]
    padded = np.zeros(shape, array.dtype)
    first, stop = (region[0][0], stops[0]) if region else (0, array.shape[0])
    step = max(1, CHUNK // max(array[:1].nbytes, 1))
    for start in range(first, stop, step):
        end = min(start + step, stop)
        part = array[(slice(start, end), *inside[1:])]
        padded[(slice(start - first, end - first), *map(slice, part.shape[1:]))] = part
        if mapping is not None:
            _give_back(mapping)
    return padded


def _mapping(array: Any) -> mmap.mmap | None:
    """Return the file that an array is mapped from; None if it is in memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


def _give_back(mapping: mmap.mmap) -> None:
    """Tell the system that the pages of a mapped file are not needed any more."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)
