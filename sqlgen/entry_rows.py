"""The entries of an input table in SQL, one row each: arrays and tiles are unnested."""

from __future__ import annotations

import math

from sqlglot import exp, select

from ucle.ir.tensor_types import TensorType
from ucle.plan.sources import TableSource
from ucle.sqlgen.input_tables import list_value, scalar_value, source_table, sum_duplicates
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    cast,
    column,
    differs,
    function,
    group_by_keys,
    integer,
    key_columns,
    key_type,
    scale_key,
    strides,
    total,
)

ENTRY = "v"


def key_name(axis: int) -> str:
    """The column of `entry_rows` that holds the position along an axis."""
    return f"k{axis}"


def entry_rows(
    source: TableSource, prefix: str, every: int = 1, where: exp.Expr | None = None
) -> exp.Select:
    """Return one row per entry of one in `every` rows: k0, k1, ... and v; arrays are unnested.

    The rows may be restricted by a condition on their columns.
    """
    keys = [add_alias(column(name), key_name(axis)) for axis, name in enumerate(source.keys)]
    query = select(*keys).from_(source_table(source, prefix))
    if where is not None:
        query = query.where(where)
    if every > 1:
        digest = function("hash", *(column(name) for name in source.keys))
        picked = exp.Mod(this=digest, expression=integer(every))
        query = query.where(exp.EQ(this=picked, expression=integer(0)))
    if not source.dense:
        value = scalar_value(source)
        if not source.sum_duplicates:
            return query.select(add_alias(value, ENTRY))
        query = query.select(add_alias(sum_duplicates(source, value), ENTRY))
        return group_by_keys(query, [integer(n + 1) for n in range(len(keys))])
    assert source.value is not None
    # Not a cross join with positions, which copies an array for every 2,048 of them.
    array = function("unnest", list_value(column(source.value), source))
    places = function("unnest", function("range", integer(math.prod(source.dense))))
    entries = query.select(add_alias(array, ENTRY), add_alias(places, "position"))
    columns: list[exp.Expr] = [column(key_name(axis)) for axis in range(len(source.keys))]
    for axis, (bound, stride) in enumerate(zip(source.dense, strides(source.dense), strict=True)):
        index = exp.Mod(
            this=exp.paren(exp.IntDiv(this=column("position"), expression=integer(max(stride, 1)))),
            expression=integer(max(bound, 1)),
        )
        columns.append(add_alias(index, key_name(len(source.keys) + axis)))
    query = select(*columns).from_(entries.subquery("arrays"))
    if not source.sum_duplicates:
        return query.select(column(ENTRY))
    summed = sum_duplicates(source, column(ENTRY))
    return query.select(add_alias(summed, ENTRY)).group_by(
        *(integer(n + 1) for n in range(len(columns)))
    )


def places(source: TableSource) -> list[exp.Expr]:
    """The position along each axis of an entry in the rows of `entry_rows`."""
    positions: list[exp.Expr] = []
    inside = iter(range(len(source.keys), len(source.keys) + len(source.dense)))
    for axis in range(len(source.keys)):
        key: exp.Expr = column(key_name(axis))
        if axis < len(source.tiles) and (size := source.tiles[axis]):
            key = total([scale_key(key, size), column(key_name(next(inside)))])
        positions.append(key)
    return positions + [column(key_name(n)) for n in inside]


def tile_entries(source: TableSource, type_: TensorType, prefix: str) -> exp.Select:
    """Return the scan of a table whose tiles are unnested: keys and numbers."""
    names, positions = key_columns(type_), places(source)
    keys = [
        add_alias(cast(position, key_type(type_, axis)), names[axis])
        for axis, position in enumerate(positions)
    ]
    query = select(*keys, add_alias(column(ENTRY), VALUE)).from_(
        entry_rows(source.apart, prefix).subquery("entries")
    )
    query = query.where(differs(column(ENTRY), type_))
    for axis, size in enumerate(source.tiles):
        if size and type_.shape[axis] % size:
            limit = exp.LT(this=positions[axis].copy(), expression=integer(type_.shape[axis]))
            query = query.where(limit)
    return query
