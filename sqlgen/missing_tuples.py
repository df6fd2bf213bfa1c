"""Tuples that are not stored: their values, and relations in which none is missing."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.sqlgen.array_extents import Extents
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.sql_trees import (
    VALUE,
    cast,
    column,
    integers_below,
    join,
    key_columns,
    key_type,
    named,
    number,
    select_from,
)

LARGE_BYTES = 1 << 14
"""Bytes from which on an array of fills is not a constant: DuckDB's planner copies constants."""


def fill_value(
    type_: TensorType,
    layout: Layout,
    kernels: KernelCalls,
    tiles: Mapping[int, exp.Expr],
    zero: exp.Expr | None = None,
) -> exp.Expr:
    """The payload of a tuple that is not stored.

    Args:
        type_: of the tensor.
        layout: of its relation.
        kernels: how kernels are called.
        tiles: the keys of its tiles by axis.
        zero: a column that is 0, which keeps a large array from being a constant.
    """
    fill = number(type_.fill, type_.dtype)
    if layout.scalar:
        return fill
    extents = Extents(type_, layout, tiles)
    if layout.compressed is not None:  # entries that are not listed are the fill, of any type
        shape = [extents.sql(extents.sizes[axis]) for axis in (layout.row, layout.compressed)]
        return kernels.scalar("csr_empty", *shape, dtype=DType.FLOAT64)
    length = extents.sql(extents.length)
    if zero is not None and type_.tuple_bytes(layout) >= LARGE_BYTES:
        length = exp.Add(this=zero, expression=length)
    return kernels.scalar("full", length, fill, dtype=type_.dtype)


def densify(
    type_: TensorType, layout: Layout, source: exp.Expr, alias: str, kernels: KernelCalls
) -> exp.Select:
    """Return every tuple that the bounds allow; those that are missing hold the fill.

    Args:
        type_: of the tensor.
        layout: of its relation.
        source: the relation in FROM, under `alias`.
        alias: of the relation.
        kernels: how kernels are called.
    """
    names = key_columns(type_)
    ranges = {axis: f"{names[axis]}_range" for axis in layout.promoted}
    keys = [
        named(cast(column(names[a], ranges[a]), key_type(type_, a)), names[a])
        for a in layout.promoted
    ]
    tiles = {axis: column(names[axis], ranges[axis]) for axis in layout.tiled}
    zero = None if layout.promoted else column("one", "one")
    fill = fill_value(type_, layout, kernels, tiles, zero)
    value = kernels.stored_or(column(VALUE, alias), fill)
    counts = {axis: type_.key_range(layout, axis) for axis in layout.promoted}
    sources = [integers_below(counts[a], ranges[a], names[a]) for a in layout.promoted]
    # A tensor in one tuple is made complete against a relation of one row.
    sources = sources or [integers_below(1, "one", "one")]
    query = select_from(sources[0], *keys, named(value, VALUE))
    for other in sources[1:]:
        query = join(query, other, "CROSS")
    matches = [
        exp.EQ(this=column(names[a], alias), expression=column(names[a], ranges[a]))
        for a in layout.promoted
    ]
    condition = exp.and_(*matches, copy=False) if matches else exp.true()
    return join(query, source, "LEFT", condition)
