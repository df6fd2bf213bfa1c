"""From one layout to another: the changes that bring a tensor there, one after the other.

Tuples are decomposed to the finest levels of both layouts, then stacked (section 6 of
sparse_einsum.txt). A compressed axis is made of entries, or of what a dense array holds, and taken
apart likewise. What is planned and what is priced follow the same path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from ucle.ir.layouts import Layout, Level


class ChangeKind(Enum):
    """What is done to the tuples of a tensor."""

    DECOMPOSE = "decompose"
    """A tuple for every position, or tile, of axes that become keys."""
    STACK = "stack"
    """Tuples that agree on the remaining keys become one array."""
    COMPRESS = "compress"
    """Entries that agree on the remaining keys become one compressed array."""
    EXPAND = "expand"
    """A tuple for each position that compressed arrays list."""
    RECODE = "recode"
    """A dense array is compressed in its place, or a compressed one is made dense."""
    GATHER = "gather"
    """Compressed tiles become one compressed array."""


@dataclass(frozen=True)
class LayoutChange:
    """One change, and the layout after it."""

    kind: ChangeKind
    layout: Layout


@lru_cache(maxsize=1 << 14)
def changes(
    source: Layout, target: Layout, shape: tuple[int, ...] | None = None
) -> tuple[LayoutChange, ...]:
    """The changes from one layout to another; none where they are the same.

    Args:
        source: how the tensor lies.
        target: how it is to lie.
        shape: of the tensor, where that is known: blocks of one size are put together as they are.

    >>> rows, whole = Layout.of([True, False]), Layout.of([False, False])
    >>> csr = Layout.made(Level.TILED, Level.COMPRESSED)
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
        yield from _rearranged(current, target, shape)
        return
    dense = target.with_level(axis, Level.DENSE)
    if current.levels[axis] is not Level.DENSE or target.dense[-1] != axis:
        entries = Layout.of(True for _ in source.levels)
        yield from _rearranged(current, entries, shape)
        yield LayoutChange(ChangeKind.COMPRESS, target)
    else:
        yield from _rearranged(current, dense, shape)
        yield LayoutChange(ChangeKind.RECODE, target)


def _in_one_piece(source: Layout, target: Layout, joined: tuple[int, ...]) -> bool:
    """Whether a tile lies in one piece in the arrays in which tiles along some axes are joined."""
    inner = source.dense
    return inner[:1] == joined and target.dense[-len(inner) :] == inner


def _are_full(layout: Layout, shape: tuple[int, ...] | None) -> bool:
    """Whether it is known that no tile is shorter than the others."""
    return shape is not None and not any(shape[axis] % layout.tile for axis in layout.tiled)


def _gathers(source: Layout, target: Layout) -> bool:
    """Whether all that happens is that tiles of rows come together."""
    tiled = source.tiled
    return len(tiled) == 1 and source.with_level(tiled, Level.DENSE) == target


def _rearranged(
    source: Layout, target: Layout, shape: tuple[int, ...] | None
) -> Iterator[LayoutChange]:
    """Decompose, then stack, between layouts in which nothing is compressed."""
    finer = source.union(target)
    joined = tuple(axis for axis in finer.tiled if axis not in target.tiled)
    if joined and not _in_one_piece(finer, target, joined) and not _are_full(finer, shape):
        # Each row of a tile goes to a place of its own, and the last tile has fewer of them.
        finer = finer.with_level(joined, Level.PROMOTED)
    if finer != source:
        yield LayoutChange(ChangeKind.DECOMPOSE, finer)
    if finer != target:
        yield LayoutChange(ChangeKind.STACK, target)
