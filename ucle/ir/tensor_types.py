"""Tensor types: the axes with their bounds, the element type, the fill and the values."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.layouts import Label, Layout
from ucle.operators.values import Values, anything, with_fill


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor in any layout: axes with bounds, element type, fill and values.

    `fill` is the value of an entry that is not stored. `values` is the range of the other entries:
    by default, any finite number of the element type. `covered` are the axes along which each
    coordinate has an entry whose value `entries` describes, for example the nodes of a graph in
    which each node has an edge; `occupied` is True if there is such an entry anywhere
    (`ucle.ir.coverage`). Along the axes that are `decided` together, there is at most one entry for
    each position of the other axes. If the values are positions along an axis with a dictionary,
    `positions_in` is the name of that dictionary; it is known of outputs only.
    """

    axes: tuple[Label, ...]
    dtype: DType = DType.FLOAT64
    fill: Scalar = 0.0
    values: Values | None = None
    covered: frozenset[int] = frozenset()
    occupied: bool = False
    decided: frozenset[int] = frozenset()
    positions_in: str | None = None

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash of all fields: types are parts of the keys of what has been worked out."""
        facts = self.fill, self.values, self.covered, self.occupied, self.decided
        return hash((self.axes, self.dtype, *facts, self.positions_in))

    @cached_property
    def entries(self) -> Values:
        """The range of the entries that are not the fill."""
        return anything(self.dtype) if self.values is None else self.values

    @cached_property
    def every(self) -> Values:
        """The range of all entries, stored or not."""
        return with_fill(self.entries, self.fill, self.dtype)

    def transpose_axes(self, axes: tuple[Label, ...]) -> TensorType:
        """Return this type with its axes in another order."""

        def move_axes(own: frozenset[int]) -> frozenset[int]:
            labels = {self.axes[axis] for axis in own}
            return frozenset(place for place, axis in enumerate(axes) if axis in labels)

        return replace(
            self, axes=axes, covered=move_axes(self.covered), decided=move_axes(self.decided)
        )

    @property
    def dictionaries(self) -> tuple[str, ...]:
        """The dictionaries of the axes, and of values that are positions."""
        names = (*(axis.dictionary for axis in self.axes), self.positions_in)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @property
    def covers_axes(self) -> bool:
        """True if each coordinate of each axis has an entry, as in most dense tensors."""
        return len(self.covered) == len(self.axes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The bounds of the axes."""
        return tuple(axis.bound for axis in self.axes)

    def dense_shape(self, layout: Layout) -> tuple[int, ...]:
        """Return the shape of each tuple's array in a layout; last tiles may be smaller."""
        sizes = (self.shape[a] for a in layout.dense)
        if not layout.tiled:
            return tuple(sizes)
        return tuple(
            min(size, layout.tile) if axis in layout.tiled else size
            for axis, size in zip(layout.dense, sizes, strict=True)
        )

    def key_range(self, layout: Layout, axis: int) -> int:
        """Return the number of possible keys of an axis: its positions, or its tiles."""
        size = self.shape[axis]
        return -(-size // layout.tile) if axis in layout.tiled else size

    def dense_size(self, layout: Layout) -> int:
        """Return the number of elements in the array of one tuple; 1 for a scalar."""
        if (size := self._dense_sizes.get(layout)) is None:
            size = self._dense_sizes[layout] = math.prod(self.dense_shape(layout))
        return size

    @cached_property
    def _dense_sizes(self) -> dict[Layout, int]:
        """A cache of array sizes: the search needs few of them, each very often."""
        return {}

    def tuple_bytes(self, layout: Layout) -> int:
        """Return the number of bytes in the payload of one tuple."""
        return self.dense_size(layout) * self.dtype.bytes


@dataclass(frozen=True)
class NamedTensor:
    """A named tensor of a program."""

    name: str
    type: TensorType
