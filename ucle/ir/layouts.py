"""Labels and layouts: the axes of a tensor, and which of them are keys of tuples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
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
    """One decomposition of a tensor: a level for each axis.

    Dense axes keep the order of the tensor's axes, row-major. How arrays are encoded, and in which
    order rows lie, is no part of it.

    >>> Layout.of([True, False]).dense
    (1,)
    """

    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        # Layouts are the keys of every table of the search; hashing enums takes long.
        object.__setattr__(self, "_hash", hash(self.levels))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    @staticmethod
    def of(promoted: Iterable[bool]) -> Layout:
        """The layout that promotes the axes marked True; the same object for the same axes."""
        return _layout(tuple(promoted))

    @staticmethod
    @lru_cache(maxsize=1 << 17)
    def promoting(names: tuple[str, ...], promoted: frozenset[str]) -> Layout:
        """The layout of axes of these names that promotes some of them."""
        return Layout.of(name in promoted for name in names)

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
def _layout(promoted: tuple[bool, ...]) -> Layout:
    return Layout(tuple(Level.PROMOTED if p else Level.DENSE for p in promoted))
