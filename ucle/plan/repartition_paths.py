"""Repartition paths: the changes that bring a tensor from one layout to another, in order.

Tuples are decomposed to the finest levels of both layouts, then stacked (section 6 of
sparse_einsum.txt). A compressed axis is built from entries or from a dense array, and taken apart
in the same way. Plans and prices follow the same path.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Layout, Level


class ChangeKind(Enum):
    """A change to the tuples of a tensor."""

    DECOMPOSE = "decompose"
    """Split each tuple into one for every position, or tile, of the axes that become keys."""
    STACK = "stack"
    """Combine tuples that agree on the remaining keys into one array."""
    COMPRESS = "compress"
    """Combine entries that agree on the remaining keys into one compressed array."""
    EXPAND = "expand"
    """Make a tuple for each position that compressed arrays list."""
    RECODE = "recode"
    """Compress a dense array in place, or make a compressed one dense."""
    GATHER = "gather"
    """Combine compressed tiles into one compressed array."""


@dataclass(frozen=True)
class LayoutChange:
    """One change, and the layout after it."""

    kind: ChangeKind
    layout: Layout


@lru_cache(maxsize=1 << 14)
def changes(
    source: Layout, target: Layout, shape: tuple[int, ...] | None = None
) -> tuple[LayoutChange, ...]:
    """Return the changes from one layout to another; none if they are the same.

    Args:
        source: the current layout of the tensor.
        target: the layout that it is to have.
        shape: shape of the tensor, if known: blocks of equal size are put together as they are.

    >>> rows, whole = Layout.of([True, False]), Layout.of([False, False])
    >>> csr = Layout.from_levels(Level.TILED, Level.COMPRESSED)
    >>> [change.kind.value for change in changes(rows, csr)]
    ['stack', 'recode']
    >>> [change.kind.value for change in changes(csr, whole)]
    ['recode', 'stack']
    """
    return tuple(_changes(source, target, shape))


def _changes(
    source: Layout, target: Layout, shape: tuple[int, ...] | None
) -> Iterator[LayoutChange]:
    current = source
    if current != target and (axis := current.compressed) is not None:
        dense = current.with_level(axis, Level.DENSE)
        if axis == target.compressed and _gathers(current, target):
            yield LayoutChange(ChangeKind.GATHER, target)
            return
        if target.levels[axis] is Level.DENSE and current.dense[-1] == axis:
            yield LayoutChange(ChangeKind.RECODE, dense)
            current = dense
        else:
            current = Layout.of(True for _ in source.levels)
            yield LayoutChange(ChangeKind.EXPAND, current)
    if current == target:
        return
    if (axis := target.compressed) is None:
        yield from _rearrange_layout(current, target, shape)
        return
    dense = target.with_level(axis, Level.DENSE)
    if current.levels[axis] is not Level.DENSE or target.dense[-1] != axis:
        entries = Layout.of(True for _ in source.levels)
        yield from _rearrange_layout(current, entries, shape)
        yield LayoutChange(ChangeKind.COMPRESS, target)
    else:
        yield from _rearrange_layout(current, dense, shape)
        yield LayoutChange(ChangeKind.RECODE, target)


def _in_one_piece(source: Layout, target: Layout, joined: tuple[int, ...]) -> bool:
    """Return whether a tile is contiguous in the arrays that join tiles along some axes."""
    inner = source.dense
    return inner[:1] == joined and target.dense[-len(inner) :] == inner


def _are_full(layout: Layout, shape: tuple[int, ...] | None) -> bool:
    """Return whether it is known that no tile is shorter than the others."""
    return shape is not None and not any(shape[axis] % layout.tile for axis in layout.tiled)


def _gathers(source: Layout, target: Layout) -> bool:
    """Return whether the only change is that tiles of rows come together."""
    tiled = source.tiled
    return len(tiled) == 1 and source.with_level(tiled, Level.DENSE) == target


def _rearrange_layout(
    source: Layout, target: Layout, shape: tuple[int, ...] | None
) -> Iterator[LayoutChange]:
    """Yield the decompose and stack between layouts in which nothing is compressed."""
    finer = source.union(target)
    joined = tuple(axis for axis in finer.tiled if axis not in target.tiled)
    if joined and not _in_one_piece(finer, target, joined) and not _are_full(finer, shape):
        # Each row of a tile goes to a place of its own, and the last tile has fewer rows.
        finer = finer.with_level(joined, Level.PROMOTED)
    if finer != source:
        yield LayoutChange(ChangeKind.DECOMPOSE, finer)
    if finer != target:
        yield LayoutChange(ChangeKind.STACK, target)
