"""Labels and levels: of the axes of a tensor (a layout) and of the labels of a vertex."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np

TILE = 256
"""Positions of a tile, unless something else is said. The last one of an axis may have fewer."""


class Coordinates(Enum):
    """How the coordinates of a label are stored in a key column."""

    INT32 = "INTEGER"
    INT64 = "BIGINT"

    @staticmethod
    def of(size: int) -> Coordinates:
        """The narrowest that hold the positions along an axis of a size.

        >>> Coordinates.of(2**31), Coordinates.of(2**31 + 1)
        (<Coordinates.INT32: 'INTEGER'>, <Coordinates.INT64: 'BIGINT'>)
        """
        return Coordinates.INT32 if size <= 2**31 else Coordinates.INT64

    @property
    def numpy(self) -> np.dtype[np.signedinteger[Any]]:
        """Their type in NumPy."""
        return np.dtype(np.int32 if self is Coordinates.INT32 else np.int64)


class Level(Enum):
    """Where one label of one use of a tensor is handled."""

    PROMOTED = "promoted"
    """Upper case: a key column of the tensor relation."""
    DENSE = "dense"
    """Lower case: an index into the array that each tuple carries."""
    TILED = "tiled"
    """Both: a key column has the number of a tile of positions, and the array those within."""
    COMPRESSED = "compressed"
    """Inside the array, of which it lists the positions that hold something, row by row."""

    # Tuples of levels are keys, and an enum's own hash takes several times as long.
    __hash__ = object.__hash__


@dataclass(frozen=True)
class Label:
    """An index symbol with the size of its dimension.

    >>> print(Label("i", 10))
    i:10
    """

    name: str
    bound: int
    coordinates: Coordinates = Coordinates.INT32
    dictionary: str | None = None
    """Name of the dictionary whose positions the coordinates are, if they are not the data's."""

    def __hash__(self) -> int:
        return hash(self.name)  # sets of labels are asked for everywhere, and names tell them apart

    def __str__(self) -> str:
        return f"{self.name}:{self.bound}"


@dataclass(frozen=True)
class Layout:
    """How a tensor is decomposed: a level for each axis.

    Dense axes keep the order of the tensor's axes, row-major. How arrays are encoded, and in which
    order rows lie, is no part of it.

    >>> Layout.of([True, False]).dense
    (1,)
    """

    levels: tuple[Level, ...]
    tile: int = TILE
    """Positions of a tile along each axis that is tiled."""
    deferred: bool = False
    """There is no relation: who reads the tensor computes what it looks at of these levels."""

    def __post_init__(self) -> None:
        # The tables of the search have them as keys.
        object.__setattr__(self, "_hash", hash((self.levels, self.tile, self.deferred)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    @staticmethod
    def of(promoted: Iterable[bool]) -> Layout:
        """The layout that promotes the axes marked True; the same object for the same axes."""
        return _layout(tuple(Level.PROMOTED if each else Level.DENSE for each in promoted))

    @cached_property
    def promoted(self) -> tuple[int, ...]:
        """Positions of the axes that have a key column; that of a tiled axis numbers its tiles."""
        keys = Level.PROMOTED, Level.TILED
        return tuple(a for a, level in enumerate(self.levels) if level in keys)

    @cached_property
    def dense(self) -> tuple[int, ...]:
        """Positions of the axes that the arrays have, outermost first."""
        return tuple(a for a, level in enumerate(self.levels) if level is not Level.PROMOTED)

    @cached_property
    def tiled(self) -> tuple[int, ...]:
        """The axes that are both keys and inside the arrays; two and more make blocks."""
        return tuple(a for a, level in enumerate(self.levels) if level is Level.TILED)

    @cached_property
    def compressed(self) -> int | None:
        """The axis of which the arrays list positions."""
        return next((a for a, level in enumerate(self.levels) if level is Level.COMPRESSED), None)

    @property
    def row(self) -> int:
        """The axis of the rows of compressed arrays."""
        (row,) = (axis for axis in self.dense if axis != self.compressed)
        return row

    @cached_property
    def plain(self) -> bool:
        """Whether every axis is promoted or dense, in a relation."""
        return not self.tiled and self.compressed is None and not self.deferred

    @cached_property
    def shown(self) -> Layout:
        """The plain layout of the same rows: those of tiles one by one, of what is listed entries.

        >>> Layout.made(Level.TILED, Level.DENSE).shown.promoted
        (0,)
        """
        if self.compressed is not None:
            return Layout.of(True for _ in self.levels)
        return self.with_level(self.tiled, Level.PROMOTED)

    @property
    def scalar(self) -> bool:
        """Whether every tuple carries one number."""
        return not self.dense

    def union(self, other: Layout) -> Layout:
        """The layout that promotes, or tiles, what either of the two does; nothing is compressed.

        Where the two have tiles of different sizes, those of the first are taken apart.

        >>> tiled = Layout.made(Level.TILED, Level.DENSE)
        >>> [level.value for level in tiled.union(Layout.of([False, True])).levels]
        ['tiled', 'promoted']
        """
        return _union(self, other)

    def called(self, tensor: str, labels: Sequence[str]) -> str:
        """A name that says how a tensor is decomposed.

        >>> Layout.of([True, False]).called("H", "if"), Layout.of([False, False]).called("H", "if")
        ('H_by_i', 'H_whole')
        >>> Layout.made(Level.TILED, Level.COMPRESSED).called("A", "ij")
        'A_tiles_of_i_lists_of_j'
        """
        if self.tiled:
            name = f"{tensor}_tiles_of_{'_'.join(labels[axis] for axis in self.tiled)}"
        elif self.promoted:
            name = f"{tensor}_by_{'_'.join(labels[axis] for axis in self.promoted)}"
        else:
            name = f"{tensor}_whole"
        if self.compressed is None:
            return name
        return f"{name}_lists_of_{labels[self.compressed]}"

    def with_level(self, axes: int | Collection[int], level: Level) -> Layout:
        """The same with another level of an axis, or of several."""
        chosen = (axes,) if isinstance(axes, int) else axes
        if not chosen:
            return self
        levels = (level if axis in chosen else own for axis, own in enumerate(self.levels))
        return _layout(tuple(levels), self.tile)

    @staticmethod
    def made(*levels: Level, tile: int = TILE) -> Layout:
        """The layout of these levels; the same object for the same ones."""
        return _layout(levels, tile)


@lru_cache(maxsize=1 << 16)
def _union(one: Layout, other: Layout) -> Layout:
    if one.tiled and other.tiled and one.tile != other.tile:
        one = one.with_level(one.tiled, Level.PROMOTED)
    levels = (
        next((level for level in _FROM_THE_FINEST if level in pair), Level.DENSE)
        for pair in zip(one.levels, other.levels, strict=True)
    )
    return _layout(tuple(levels), one.tile if one.tiled else other.tile)


_FROM_THE_FINEST = (Level.PROMOTED, Level.TILED)


def _layout(levels: tuple[Level, ...], tile: int = TILE, *, deferred: bool = False) -> Layout:
    return _known_layout(levels, tile if Level.TILED in levels else TILE, deferred)


@lru_cache(maxsize=1 << 16)
def _known_layout(levels: tuple[Level, ...], tile: int, deferred: bool) -> Layout:
    return Layout(levels, tile, deferred)


RESULT = -1
"""The role of the tensor that a vertex makes; those of its operands are their numbers."""


@dataclass(frozen=True)
class Decomposition:
    """How the work of a vertex is decomposed: a level for each of its labels.

    A label has one level in all operands and in the result, unless it is compressed in one of them;
    their layouts follow from that.

    >>> decomposition = Decomposition.promoting(("i", "j", "k"), {"k", "i"})
    >>> print(decomposition)
    I,j,K
    >>> decomposition.layout(("j", "k"), 0).promoted
    (1,)
    """

    labels: tuple[str, ...]
    """Names of all labels of the vertex, in their order."""
    levels: tuple[Level, ...]
    compressed: frozenset[tuple[int, str]] = frozenset()
    """Labels that are compressed in one tensor of the vertex: the number of the operand, or
    `RESULT`, and the name. Elsewhere such a label has the level that `levels` says."""
    tile: int = TILE
    """Positions of a tile, where a label is tiled."""
    deferred: int | None = None
    """The role of a tensor of which there is no relation (`Layout.deferred`)."""
    promoted: frozenset[str] = field(init=False, repr=False, compare=False)
    """The labels that are keys of tuples, those that are tiled among them."""
    _hash: int = field(init=False, repr=False, compare=False)
    _layouts: dict[tuple[int, tuple[str, ...]], Layout] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        # The tables of the search have these as keys, too, and nothing is asked more often than
        # whether a label is promoted.
        pairs = zip(self.labels, self.levels, strict=True)
        keys = Level.PROMOTED, Level.TILED
        object.__setattr__(self, "promoted", frozenset(n for n, level in pairs if level in keys))
        own = self.labels, self.levels, self.compressed, self.deferred, self.tile
        object.__setattr__(self, "_hash", hash(own))
        object.__setattr__(self, "_layouts", {})

    def __hash__(self) -> int:
        return self._hash

    @staticmethod
    def promoting(labels: tuple[str, ...], promoted: Collection[str]) -> Decomposition:
        """The decomposition that promotes some of the labels; the same object for the same ones."""
        return _promoting(labels, frozenset(promoted))

    @staticmethod
    def every(labels: tuple[str, ...]) -> Iterator[Decomposition]:
        """Every decomposition of labels, from the one that promotes none to that of all.

        >>> print(*Decomposition.every(("i", "j")))
        i,j i,J I,j I,J
        """
        for choice in product((False, True), repeat=len(labels)):
            yield _promoting(
                labels, frozenset(x for x, chosen in zip(labels, choice, strict=True) if chosen)
            )

    @property
    def relational(self) -> bool:
        """Whether every label is promoted: then there are no arrays."""
        return all(level is Level.PROMOTED for level in self.levels)

    @property
    def plain(self) -> bool:
        """Whether every label is promoted or dense, and every tensor a relation."""
        return not self.tiled and not self.compressed and self.deferred is None

    @cached_property
    def tiled(self) -> frozenset[str]:
        """The labels that are both keys and inside the arrays."""
        pairs = zip(self.labels, self.levels, strict=True)
        return frozenset(name for name, level in pairs if level is Level.TILED)

    @cached_property
    def inside(self) -> frozenset[str]:
        """The labels that arrays have."""
        pairs = zip(self.labels, self.levels, strict=True)
        return frozenset(name for name, level in pairs if level is not Level.PROMOTED)

    def layout(self, names: tuple[str, ...], role: int) -> Layout:
        """The layout of a tensor of the vertex.

        Args:
            names: the labels of its axes.
            role: the number of the operand that it is, or `RESULT`.
        """
        key = role, names
        if key not in self._layouts:
            level = dict(zip(self.labels, self.levels, strict=True))
            level.update((x, Level.COMPRESSED) for n, x in self.compressed if n == role)
            levels = tuple(level[name] for name in names)
            self._layouts[key] = _layout(levels, self.tile, deferred=role == self.deferred)
        return self._layouts[key]

    def reading(self, names: tuple[str, ...], layout: Layout) -> Decomposition:
        """The same but for the labels of a tensor, which get the levels that its layout has.

        Of a label that two axes have the higher level counts.

        >>> decomposition = Decomposition.promoting(("i", "j"), {"i"})
        >>> print(decomposition.reading(("j", "j"), Layout.of([True, False])))
        I,J
        """
        keys = {names[axis] for axis in layout.promoted}
        return self.promoting(self.labels, self.promoted.difference(names) | keys)

    def flipped(self, name: str) -> Decomposition:
        """The same with the other level of one label."""
        return self.promoting(self.labels, self.promoted ^ {name})

    @property
    def spelled(self) -> frozenset[str]:
        """The labels as callers give a decomposition.

        A promoted one is its name, a tiled one has the positions of a tile behind a slash, and one
        that is compressed stands in braces behind the number of the operand, or ``result``. Of a
        tensor that is deferred there are braces with nothing in them.

        >>> levels, compressed = (Level.TILED, Level.DENSE), frozenset({(0, "j")})
        >>> sorted(Decomposition(("i", "j"), levels, compressed).spelled)
        ['0{j}', 'i/256']
        """
        pairs = zip(self.labels, self.levels, strict=True)
        marks = {Level.PROMOTED: "", Level.TILED: f"/{self.tile}"}
        keys = (name + marks[level] for name, level in pairs if level in marks)
        listed = [*self.compressed, *([] if self.deferred is None else [(self.deferred, "")])]
        roles = (("result" if n == RESULT else n, name) for n, name in listed)
        return frozenset((*keys, *(f"{role}{{{name}}}" for role, name in roles)))

    def cased(self, name: str, role: int | None = None) -> str:
        """A label in the paper's notation: upper case where it is promoted, else lower case.

        Of a label in tiles of 256 it is ``I/256``, of one that is compressed in the tensor of a
        role ``{i}``.
        """
        if (role, name) in self.compressed:
            return f"{{{name.lower()}}}"
        if name in self.tiled:
            return f"{name.upper()}/{self.tile}"
        return name.upper() if name in self.promoted else name.lower()

    def __str__(self) -> str:
        return ",".join(map(self.cased, self.labels))


@lru_cache(maxsize=1 << 17)
def _promoting(labels: tuple[str, ...], promoted: frozenset[str]) -> Decomposition:
    return Decomposition(
        labels, tuple(Level.PROMOTED if name in promoted else Level.DENSE for name in labels)
    )
