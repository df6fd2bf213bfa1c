"""Lengths of the axes of an array in SQL, where the last tile of an axis is shorter.

Each length is a number, or a number times the positions of the row's tiles along some axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property, reduce

from sqlglot import exp

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.sqlgen.sql_trees import cast, integer, integers, scale_key


@dataclass(frozen=True)
class Extent:
    """`factor` elements for each position of the tiles along the `ragged` axes."""

    factor: int
    ragged: tuple[int, ...] = ()

    def times(self, other: Extent) -> Extent:
        """The product; no axis is ragged in both."""
        ragged = tuple(sorted((*self.ragged, *other.ragged)))
        return Extent(self.factor * other.factor, ragged)


def tile_length(bound: int, tile: int, key: exp.Expr) -> exp.Expr:
    """The number of positions in the tile `key`; the last tile may have fewer than `tile`."""
    rest = exp.Sub(this=integer(bound), expression=scale_key(key.copy(), tile))
    return exp.func("least", integer(tile), rest, copy=False)


def product(factor: int, lengths: Sequence[exp.Expr]) -> exp.Expr:
    """``factor * length * ...``, as short as it can be written."""
    if not lengths:
        return integer(factor)
    first, *others = lengths
    return reduce(
        lambda one, other: exp.Mul(this=one, expression=other), others, scale_key(first, factor)
    )


@dataclass(frozen=True)
class Extents:
    """Sizes and steps of the axes inside the arrays of a relation.

    `keys` has the number of a row's tile along each tiled axis, as any expression. Where arrays are
    `padded`, the last tiles are as long as the others.
    """

    type: TensorType
    layout: Layout
    keys: Mapping[int, exp.Expr] = field(default_factory=dict)
    padded: bool = False

    @cached_property
    def ragged(self) -> frozenset[int]:
        """The axes whose last tile is shorter than the others."""
        shape, tile = self.type.shape, self.layout.tile
        return frozenset(a for a in self.layout.tiled if shape[a] > tile and shape[a] % tile)

    @cached_property
    def sizes(self) -> dict[int, Extent]:
        """The number of positions along each axis inside the arrays."""
        layout, tile = self.layout, self.layout.tile
        if self.padded:
            return {
                axis: Extent(tile if axis in layout.tiled else self.type.shape[axis])
                for axis in layout.dense
            }
        lengths = zip(layout.dense, self.type.dense_shape(layout), strict=True)
        return {
            axis: Extent(1, (axis,)) if axis in self.ragged else Extent(length)
            for axis, length in lengths
        }

    @cached_property
    def steps(self) -> dict[int, Extent]:
        """The number of elements between neighbouring positions of each axis within an array."""
        steps, step = {}, Extent(1)
        for axis in reversed(self.layout.dense):
            steps[axis] = step
            step = step.times(self.sizes[axis])
        return steps

    @cached_property
    def length(self) -> Extent:
        """The number of elements of an array."""
        whole = Extent(1)
        for size in self.sizes.values():
            whole = whole.times(size)
        return whole

    def tile_length(self, axis: int) -> exp.Expr:
        """The number of positions in the row's tile along a tiled axis."""
        return tile_length(self.type.shape[axis], self.layout.tile, self.keys[axis])

    def sql(self, extent: Extent) -> exp.Expr:
        """An extent in SQL."""
        return product(extent.factor, [self.tile_length(axis) for axis in extent.ragged])

    def list_sql(self, extents: Sequence[Extent]) -> exp.Expr:
        """Extents as a BIGINT[]."""
        if not any(extent.ragged for extent in extents):
            return integers(extent.factor for extent in extents)
        return cast(exp.Array(expressions=[self.sql(extent) for extent in extents]), "BIGINT[]")

    def scale_position(self, position: exp.Expr, step: Extent) -> exp.Expr:
        """``position * step``."""
        if not step.ragged:
            return scale_key(position, step.factor)
        return exp.Mul(this=exp.paren(position, copy=False), expression=self.sql(step))


def merge_axes(
    sizes: Sequence[Extent], steps: Sequence[Extent]
) -> tuple[list[Extent], list[Extent]]:
    """Return sizes and steps with adjacent axes merged, as kernels take few axes.

    >>> sizes, steps = merge_axes(*[[Extent(n) for n in row] for row in ((2, 3, 4), (100, 4, 1))])
    >>> [size.factor for size in sizes], [step.factor for step in steps]
    ([2, 12], [100, 1])
    """
    pairs: list[tuple[Extent, Extent]] = []
    for size, step in zip(sizes, steps, strict=True):
        if pairs and _are_one(pairs[-1], size, step):
            pairs[-1] = pairs[-1][0].times(size), step
        else:
            pairs.append((size, step))
    return [size for size, _ in pairs], [step for _, step in pairs]


def _are_one(outer: tuple[Extent, Extent], size: Extent, step: Extent) -> bool:
    """True if an axis lies directly inside another one, so that both can be one axis."""
    outer_size, outer_step = outer
    counted = (*size.ragged, *step.ragged, *outer_size.ragged)
    return len(set(counted)) == len(counted) and outer_step == size.times(step)
