"""How long the axes of an array are, in SQL where the last tile of an axis is shorter.

At most one axis of a layout is tiled, and so each length is a number, or a number times the
positions of the row's tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.sqlgen.sql_trees import cast, integer, integers, scaled


@dataclass(frozen=True)
class Extent:
    """`factor` elements, or as many for each position of a `ragged` tile."""

    factor: int
    ragged: bool = False

    def times(self, other: Extent) -> Extent:
        """The product; at most one of the two is ragged."""
        return Extent(self.factor * other.factor, self.ragged or other.ragged)


def tile_length(bound: int, tile: int, key: exp.Expr) -> exp.Expr:
    """The positions of the tile `key`, of which the last one may have fewer than `tile`."""
    rest = exp.Sub(this=integer(bound), expression=scaled(key.copy(), tile))
    return exp.func("least", integer(tile), rest, copy=False)


@dataclass(frozen=True)
class Extents:
    """Sizes and steps of the axes inside the arrays of a relation, of a row whose tile is `key`.

    The key may be any expression; None where no axis is tiled.
    """

    type: TensorType
    layout: Layout
    key: exp.Expr | None = None

    @cached_property
    def is_ragged(self) -> bool:
        """Whether tiles are of two lengths."""
        if (axis := self.layout.tiled) is None:
            return False
        bound, tile = self.type.shape[axis], self.layout.tile
        return bound > tile and bound % tile > 0

    @cached_property
    def sizes(self) -> dict[int, Extent]:
        """Positions along each axis inside the arrays."""
        lengths = zip(self.layout.dense, self.type.dense_shape(self.layout), strict=True)
        return {
            axis: Extent(1, ragged=True)
            if self.is_ragged and axis == self.layout.tiled
            else Extent(length)
            for axis, length in lengths
        }

    @cached_property
    def steps(self) -> dict[int, Extent]:
        """By how many elements a position of each axis moves within an array."""
        steps, step = {}, Extent(1)
        for axis in reversed(self.layout.dense):
            steps[axis] = step
            step = step.times(self.sizes[axis])
        return steps

    @cached_property
    def length(self) -> Extent:
        """Elements of an array."""
        whole = Extent(1)
        for size in self.sizes.values():
            whole = whole.times(size)
        return whole

    def sql(self, extent: Extent) -> exp.Expr:
        """An extent in SQL."""
        if not extent.ragged:
            return integer(extent.factor)
        assert self.layout.tiled is not None
        assert self.key is not None
        bound = self.type.shape[self.layout.tiled]
        return scaled(tile_length(bound, self.layout.tile, self.key), extent.factor)

    def list_sql(self, extents: Sequence[Extent]) -> exp.Expr:
        """Extents as a BIGINT[]."""
        if not any(extent.ragged for extent in extents):
            return integers(extent.factor for extent in extents)
        return cast(exp.Array(expressions=[self.sql(extent) for extent in extents]), "BIGINT[]")

    def moved(self, position: exp.Expr, step: Extent) -> exp.Expr:
        """``position * step``."""
        if not step.ragged:
            return scaled(position, step.factor)
        return exp.Mul(this=exp.paren(position, copy=False), expression=self.sql(step))


def joined(sizes: Sequence[Extent], steps: Sequence[Extent]) -> tuple[list[Extent], list[Extent]]:
    """Sizes and steps of axes, those that lie one behind the other as one: kernels take few.

    >>> sizes, steps = joined(*[[Extent(n) for n in row] for row in ((2, 3, 4), (100, 4, 1))])
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
    """Whether an axis lies right inside of another one."""
    outer_size, outer_step = outer
    if size.ragged and (step.ragged or outer_size.ragged):
        return False
    return outer_step == size.times(step)
