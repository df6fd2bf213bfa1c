"""Labels and levels: of the axes of a tensor (a layout) and of the labels of a vertex."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np


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

    def __post_init__(self) -> None:
        # The tables of the search have them as keys.
        object.__setattr__(self, "_hash", hash(self.levels))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    @staticmethod
    def of(promoted: Iterable[bool]) -> Layout:
        """The layout that promotes the axes marked True; the same object for the same axes."""
        return _layout(tuple(Level.PROMOTED if each else Level.DENSE for each in promoted))

    @cached_property
    def promoted(self) -> tuple[int, ...]:
        """Positions of the promoted axes."""
        return tuple(a for a, level in enumerate(self.levels) if level is Level.PROMOTED)

    @cached_property
    def dense(self) -> tuple[int, ...]:
        """Positions of the dense axes, outermost first."""
        return tuple(a for a, level in enumerate(self.levels) if level is Level.DENSE)

    @property
    def scalar(self) -> bool:
        """Whether every tuple carries one number."""
        return not self.dense

    def union(self, other: Layout) -> Layout:
        """The layout that promotes what either of the two promotes."""
        return _union(self, other)


@lru_cache(maxsize=1 << 16)
def _union(one: Layout, other: Layout) -> Layout:
    both = {*one.promoted, *other.promoted}
    return Layout.of(axis in both for axis in range(len(one.levels)))


@lru_cache(maxsize=1 << 16)
def _layout(levels: tuple[Level, ...]) -> Layout:
    return Layout(levels)


@dataclass(frozen=True)
class Decomposition:
    """How the work of a vertex is decomposed: a level for each of its labels.

    A label has one level in all operands and in the result; their layouts follow from that.

    >>> decomposition = Decomposition.promoting(("i", "j", "k"), {"k", "i"})
    >>> print(decomposition)
    I,j,K
    >>> decomposition.layout(("j", "k")).promoted
    (1,)
    """

    labels: tuple[str, ...]
    """Names of all labels of the vertex, in their order."""
    levels: tuple[Level, ...]
    promoted: frozenset[str] = field(init=False, repr=False, compare=False)
    """The labels that are keys of tuples."""
    _hash: int = field(init=False, repr=False, compare=False)
    _layouts: dict[tuple[str, ...], Layout] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The tables of the search have these as keys, too, and nothing is asked more often than
        # whether a label is promoted.
        pairs = zip(self.labels, self.levels, strict=True)
        promoted = frozenset(name for name, level in pairs if level is Level.PROMOTED)
        object.__setattr__(self, "promoted", promoted)
        object.__setattr__(self, "_hash", hash((self.labels, self.levels)))
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
        return len(self.promoted) == len(self.labels)

    def layout(self, names: tuple[str, ...]) -> Layout:
        """The layout of a tensor whose axes have some of the labels."""
        if names not in self._layouts:
            level = dict(zip(self.labels, self.levels, strict=True))
            self._layouts[names] = _layout(tuple(level[name] for name in names))
        return self._layouts[names]

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

    def cased(self, name: str) -> str:
        """A label in the paper's notation: upper case where it is promoted, else lower case."""
        return name.upper() if name in self.promoted else name.lower()

    def __str__(self) -> str:
        return ",".join(map(self.cased, self.labels))


@lru_cache(maxsize=1 << 17)
def _promoting(labels: tuple[str, ...], promoted: frozenset[str]) -> Decomposition:
    return Decomposition(
        labels, tuple(Level.PROMOTED if name in promoted else Level.DENSE for name in labels)
    )
