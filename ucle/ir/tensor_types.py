"""Tensors: the names and bounds of their axes, what an entry is, and the fill."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.layouts import Label, Layout
from ucle.operators.values import Values, anything, with_fill


@dataclass(frozen=True)
class TensorType:
    """What a tensor is, whatever its layout: axes with bounds, element type, fill, values.

    `fill` is what an entry that is not stored is worth, `entries` what the others can be: any
    finite number of the type, unless something else is said. `covered` are the axes along which
    each coordinate has an entry that is what `entries` says, as each node of a graph that has an
    edge; `occupied` says that there is an entry anywhere (`ucle.ir.coverage`). Along the axes that
    are `decided` together, there is at most one entry for each position of the others.
    """

    axes: tuple[Label, ...]
    dtype: DType = DType.FLOAT64
    fill: Scalar = 0.0
    values: Values | None = None
    covered: frozenset[int] = frozenset()
    occupied: bool = False
    decided: frozenset[int] = frozenset()

    @cached_property
    def entries(self) -> Values:
        """What the entries can be that are not worth the fill."""
        return anything(self.dtype) if self.values is None else self.values

    @cached_property
    def every(self) -> Values:
        """What any entry can be, stored or not."""
        return with_fill(self.entries, self.fill, self.dtype)

    def transposed(self, axes: tuple[Label, ...]) -> TensorType:
        """The same with its axes in another order."""

        def moved(own: frozenset[int]) -> frozenset[int]:
            labels = {self.axes[axis] for axis in own}
            return frozenset(place for place, axis in enumerate(axes) if axis in labels)

        return replace(self, axes=axes, covered=moved(self.covered), decided=moved(self.decided))

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Bounds of the axes."""
        return tuple(axis.bound for axis in self.axes)

    def dense_shape(self, layout: Layout) -> tuple[int, ...]:
        """Shape of the array that each tuple of `layout` carries; the last of tiles may be less."""
        sizes = (self.shape[a] for a in layout.dense)
        if not layout.tiled:
            return tuple(sizes)
        return tuple(
            min(size, layout.tile) if axis in layout.tiled else size
            for axis, size in zip(layout.dense, sizes, strict=True)
        )

    def key_range(self, layout: Layout, axis: int) -> int:
        """How many values the key column of an axis may have: positions, or tiles."""
        size = self.shape[axis]
        return -(-size // layout.tile) if axis in layout.tiled else size

    def dense_size(self, layout: Layout) -> int:
        """Number of elements in the array of one tuple; 1 for a scalar."""
        if (size := self._dense_sizes.get(layout)) is None:
            size = self._dense_sizes[layout] = math.prod(self.dense_shape(layout))
        return size

    @cached_property
    def _dense_sizes(self) -> dict[Layout, int]:
        """The search asks for few sizes, and for each of them very often."""
        return {}

    def tuple_bytes(self, layout: Layout) -> int:
        """Bytes of the payload of one tuple."""
        return self.dense_size(layout) * self.dtype.bytes


@dataclass(frozen=True)
class Tensor:
    """A named tensor of a program."""

    name: str
    type: TensorType
