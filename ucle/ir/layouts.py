"""Labels and levels: of the axes of a tensor (layout) and of the labels of a vertex."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from enum import Enum
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np

from ucle.foundation.dataclasses import dataclass

TILE = 256
"""The default number of positions in a tile. The last tile of an axis may have fewer."""


class Coordinates(Enum):
    """The SQL types in which a key column stores the coordinates of a label."""

    INT32 = "INTEGER"
    INT64 = "BIGINT"

    @staticmethod
    def of(size: int) -> Coordinates:
        """Return the narrowest type that holds the positions along an axis of `size`.

        >>> Coordinates.of(2**31), Coordinates.of(2**31 + 1)
        (<Coordinates.INT32: 'INTEGER'>, <Coordinates.INT64: 'BIGINT'>)
        """
        return Coordinates.INT32 if size <= 2**31 else Coordinates.INT64

    @property
    def numpy(self) -> np.dtype[np.signedinteger[Any]]:
        """The NumPy type of the coordinates."""
        return np.dtype(np.int32 if self is Coordinates.INT32 else np.int64)


class Level(Enum):
    """The place where one label of one use of a tensor is handled."""

    PROMOTED = "promoted"
    """Upper case: a key column of the tensor relation."""
    DENSE = "dense"
    """Lower case: an index into the array that each tuple carries."""
    TILED = "tiled"
    """Both: a key column holds the number of a tile, and the array holds the positions within
    it."""
    COMPRESSED = "compressed"
    """Inside the array, which lists the positions of stored entries, row by row."""

    # Tuples of levels are dictionary keys, and the default hash of an enum is several times slower.
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
    """Name of the dictionary that the coordinates are positions in; None if they are the data's
    own."""

    def __hash__(self) -> int:
        return hash(self.name)  # sets of labels are used everywhere, and names tell them apart

    def __str__(self) -> str:
        return f"{self.name}:{self.bound}"


@dataclass(frozen=True)
class Layout:
    """The decomposition of a tensor: a level for each axis.

    Dense axes keep the order of the tensor's axes, row-major. The encoding of arrays and the order
    of rows are not part of a layout.

    >>> Layout.of([True, False]).dense
    (1,)
    """

    levels: tuple[Level, ...]
    tile: int = TILE
    """The number of positions in a tile along each tiled axis."""
    deferred: bool = False
    """True if the tensor has no relation: its reader computes the entries of this layout that it
    needs."""

    def __post_init__(self) -> None:
        # Layouts are keys of the tables of the search.
        object.__setattr__(self, "_hash", hash((self.levels, self.tile, self.deferred)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    @staticmethod
    def of(promoted: Iterable[bool]) -> Layout:
        """Return the layout that promotes the axes marked True; equal axes give one object."""
        return _layout(tuple(Level.PROMOTED if each else Level.DENSE for each in promoted))

    @cached_property
    def promoted(self) -> tuple[int, ...]:
        """Positions of the axes with a key column, which holds tile numbers for a tiled axis."""
        keys = Level.PROMOTED, Level.TILED
        return tuple(a for a, level in enumerate(self.levels) if level in keys)

    @cached_property
    def dense(self) -> tuple[int, ...]:
        """Positions of the axes that are inside the arrays, outermost first."""
        return tuple(a for a, level in enumerate(self.levels) if level is not Level.PROMOTED)

    @cached_property
    def is_in_order(self) -> bool:
        """True if the keys and then the arrays have the axes in the tensor's own order."""
        order = dict.fromkeys((*self.promoted, *self.dense))
        return tuple(order) == tuple(range(len(self.levels)))

    @cached_property
    def tiled(self) -> tuple[int, ...]:
        """The axes that are both keys and inside the arrays; two or more of them make blocks."""
        return tuple(a for a, level in enumerate(self.levels) if level is Level.TILED)

    @cached_property
    def compressed(self) -> int | None:
        """The axis whose positions the arrays list; None if no axis is compressed."""
        return next((a for a, level in enumerate(self.levels) if level is Level.COMPRESSED), None)

    @property
    def row(self) -> int:
        """The axis of the rows of compressed arrays."""
        (row,) = (axis for axis in self.dense if axis != self.compressed)
        return row

    @cached_property
    def plain(self) -> bool:
        """True if every axis is promoted or dense and the tensor has a relation."""
        return not self.tiled and self.compressed is None and not self.deferred

    @cached_property
    def shown(self) -> Layout:
        """The plain layout with tiles split into rows, and compressed arrays into entries.

        >>> Layout.from_levels(Level.TILED, Level.DENSE).shown.promoted
        (0,)
        """
        if self.compressed is not None:
            return Layout.of(True for _ in self.levels)
        return self.with_level(self.tiled, Level.PROMOTED)

    @property
    def scalar(self) -> bool:
        """True if every tuple carries a single number."""
        return not self.dense

    def union(self, other: Layout) -> Layout:
        """Return the layout that promotes or tiles each axis that either does; none is compressed.

        If the two have tiles of different sizes, the tiles of the first are split into rows.

        >>> tiled = Layout.from_levels(Level.TILED, Level.DENSE)
        >>> [level.value for level in tiled.union(Layout.of([False, True])).levels]
        ['tiled', 'promoted']
        """
        return _union(self, other)

    def name_tensor(self, tensor: str, labels: Sequence[str]) -> str:
        """Return a name that describes the decomposition of a tensor.

        >>> by_row, whole = Layout.of([True, False]), Layout.of([False, False])
        >>> by_row.name_tensor("H", "if"), whole.name_tensor("H", "if")
        ('H_by_i', 'H_whole')
        >>> Layout.from_levels(Level.TILED, Level.COMPRESSED).name_tensor("A", "ij")
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
        """Return this layout with another level for one or several axes."""
        chosen = (axes,) if isinstance(axes, int) else axes
        if not chosen:
            return self
        levels = (level if axis in chosen else own for axis, own in enumerate(self.levels))
        return _layout(tuple(levels), self.tile)

    @staticmethod
    def from_levels(*levels: Level, tile: int = TILE) -> Layout:
        """Return the layout with these levels; the same object for the same levels."""
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
"""The role of the tensor that a vertex makes; the roles of its operands are their numbers."""


@dataclass(frozen=True)
class Decomposition:
    """The decomposition of a vertex's work: a level for each of its labels.

    A label has the same level in all operands and in the result, unless it is compressed in one of
    them. The layouts of these tensors follow from the levels.

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
    """Labels that are compressed in one tensor of the vertex, as pairs of a role (the number of the
    operand, or `RESULT`) and a name. In the other tensors such a label has its level from
    `levels`."""
    tile: int = TILE
    """The number of positions in a tile, if a label is tiled."""
    deferred: int | None = None
    """The role of the tensor that has no relation (`Layout.deferred`), if there is one."""
    promoted: frozenset[str] = field(init=False, repr=False, compare=False)
    """The labels that are keys of tuples, including tiled ones."""
    _hash: int = field(init=False, repr=False, compare=False)
    _layouts: dict[tuple[int, tuple[str, ...]], Layout] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        # Decompositions are keys of the tables of the search, too, and `promoted` is the most
        # frequent query of all.
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
        """Return the decomposition that promotes some labels; equal labels give one object."""
        return _promoting(labels, frozenset(promoted))

    @staticmethod
    def every(labels: tuple[str, ...]) -> Iterator[Decomposition]:
        """Yield every decomposition of the labels, from none promoted to all promoted.

        >>> print(*Decomposition.every(("i", "j")))
        i,j i,J I,j I,J
        """
        for choice in product((False, True), repeat=len(labels)):
            yield _promoting(
                labels, frozenset(x for x, chosen in zip(labels, choice, strict=True) if chosen)
            )

    @property
    def relational(self) -> bool:
        """True if every label is promoted, so that there are no arrays."""
        return all(level is Level.PROMOTED for level in self.levels)

    @property
    def plain(self) -> bool:
        """True if every label is promoted or dense, and every tensor has a relation."""
        return not self.tiled and not self.compressed and self.deferred is None

    @cached_property
    def tiled(self) -> frozenset[str]:
        """The labels that are both keys and inside the arrays."""
        pairs = zip(self.labels, self.levels, strict=True)
        return frozenset(name for name, level in pairs if level is Level.TILED)

    @cached_property
    def inside(self) -> frozenset[str]:
        """The labels that index into arrays."""
        pairs = zip(self.labels, self.levels, strict=True)
        return frozenset(name for name, level in pairs if level is not Level.PROMOTED)

    def layout(self, names: tuple[str, ...], role: int) -> Layout:
        """Return the layout of one tensor of the vertex.

        Args:
            names: the labels of its axes.
            role: the number of the operand, or `RESULT`.
        """
        key = role, names
        if (layout := self._layouts.get(key)) is None:
            level = dict(zip(self.labels, self.levels, strict=True))
            level.update((x, Level.COMPRESSED) for n, x in self.compressed if n == role)
            levels = tuple(level[name] for name in names)
            layout = _layout(levels, self.tile, deferred=role == self.deferred)
            self._layouts[key] = layout
        return layout

    def reading(self, names: tuple[str, ...], layout: Layout) -> Decomposition:
        """Return this decomposition with the labels of a tensor at the levels of its layout.

        A label of two axes gets the higher of their levels.

        >>> decomposition = Decomposition.promoting(("i", "j"), {"i"})
        >>> print(decomposition.reading(("j", "j"), Layout.of([True, False])))
        I,J
        """
        keys = {names[axis] for axis in layout.promoted}
        return self.promoting(self.labels, self.promoted.difference(names) | keys)

    def rename_labels(self, labels: tuple[str, ...]) -> Decomposition:
        """Return the decomposition of the same work whose labels have other names.

        >>> print(Decomposition.promoting(("i", "j"), {"i"}).rename_labels(("k", "i")))
        K,i
        """
        names = dict(zip(self.labels, labels, strict=True))
        if self.plain:
            return self.promoting(labels, {names[name] for name in self.promoted})
        compressed = frozenset((role, names[name]) for role, name in self.compressed)
        return replace(self, labels=labels, compressed=compressed)

    def flip_label(self, name: str) -> Decomposition:
        """Return this decomposition with one label's level changed: promoted to demoted or back."""
        return self.promoting(self.labels, self.promoted ^ {name})

    @property
    def spelled(self) -> frozenset[str]:
        """The decomposition in the notation that callers pass.

        A promoted label is its name. A tiled label has the number of positions in a tile behind a
        slash. A compressed label stands in braces behind the number of the operand, or ``result``.
        A deferred tensor has empty braces.

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

    def spell_label(self, name: str, role: int | None = None) -> str:
        """Return a label in the paper's notation: upper case if it is promoted, else lower case.

        A label in tiles of 256 is ``I/256``; one that is compressed in the tensor of `role` is
        ``{i}``.
        """
        if (role, name) in self.compressed:
            return f"{{{name.lower()}}}"
        if name in self.tiled:
            return f"{name.upper()}/{self.tile}"
        return name.upper() if name in self.promoted else name.lower()

    def __str__(self) -> str:
        return ",".join(map(self.spell_label, self.labels))


@lru_cache(maxsize=1 << 17)
def _promoting(labels: tuple[str, ...], promoted: frozenset[str]) -> Decomposition:
    return Decomposition(
        labels, tuple(Level.PROMOTED if name in promoted else Level.DENSE for name in labels)
    )
