"""Compressed arrays in SQL: built from entries or dense arrays, and expanded again.

A compressed array has rows, along its one other axis, and lists for each row the positions of the
compressed axis that hold an entry.
"""

from __future__ import annotations

from sqlglot import exp

from ucle.foundation.names import fold_name, unique_names
from ucle.ir.layouts import Layout, Level
from ucle.ir.tensor_types import TensorType
from ucle.plan import relation_nodes as plan
from ucle.sqlgen.array_extents import Extents
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    cast,
    column,
    function,
    group_by_keys,
    integer,
    key_columns,
    key_type,
    number,
    scale_key,
    select_from,
    subquery,
)


def repartition_compressed(
    node: plan.Rearrange, source: exp.Expr, alias: str, kernels: KernelCalls
) -> exp.Select:
    """Return the query of a node that builds or expands compressed arrays; as `repartition`."""
    match node:
        case plan.Compress(_, layout):
            return _compress_entries(node.type, layout, source, alias, kernels)
        case plan.Expand(before):
            return _expand_arrays(node.type, before.layout, source, alias, kernels)
        case plan.Recode(before, layout):
            return _recode_arrays(node.type, before.layout, layout, source, alias, kernels)
        case plan.Gather(before, layout):
            return _gather_tiles(node.type, before.layout, layout, source, alias, kernels)
    raise AssertionError("no repartition")


def _shape(type_: TensorType, layout: Layout, key: exp.Expr | None) -> tuple[exp.Expr, exp.Expr]:
    """The numbers of rows and columns of the array in the tuple whose tile is `key`."""
    extents = Extents(type_, layout, {axis: key for axis in layout.tiled if key is not None})
    assert layout.compressed is not None
    rows, columns = (extents.sizes[axis] for axis in (layout.row, layout.compressed))
    return extents.sql(rows), extents.sql(columns)


END = "the end"
"""The column of the position before which a run ends: labels have no blanks."""


def compress_runs(
    type_: TensorType, layout: Layout, source: exp.Expr, alias: str, kernels: KernelCalls
) -> exp.Select:
    """Return the query that compresses runs, whose last key is where they begin."""
    return _compress_entries(type_, layout, source, alias, kernels, runs=True)


def _compress_entries(
    type_: TensorType,
    layout: Layout,
    source: exp.Expr,
    alias: str,
    kernels: KernelCalls,
    *,
    runs: bool = False,
) -> exp.Select:
    names, row = key_columns(type_), layout.row
    assert layout.compressed is not None
    place: exp.Expr = cast(column(names[row], alias), "BIGINT")
    keys: list[exp.Expr] = []
    outputs: list[exp.Expr] = []
    if row in layout.tiled:
        keys = [exp.IntDiv(this=column(names[row], alias), expression=integer(layout.tile))]
        outputs = [add_alias(cast(keys[0].copy(), key_type(type_, row)), names[row])]
        place = exp.paren(exp.Mod(this=place, expression=integer(layout.tile)), copy=False)
    rows, columns = _shape(type_, layout, keys[0] if keys else None)
    entries = [
        column(VALUE, alias),
        place,
        cast(column(names[layout.compressed], alias), "BIGINT"),
    ]
    trailing = [rows, columns, number(type_.fill, type_.dtype)]
    if runs:
        entries.append(cast(column(END, alias), "BIGINT"))
    name = "stack_runs" if runs else "stack_csr"
    value = kernels.compressing(name, entries, trailing, dtype=type_.dtype)
    query = select_from(source, *outputs, add_alias(value, VALUE))
    return group_by_keys(query, keys, type_.tuple_bytes(layout))


def _expand_arrays(
    type_: TensorType, layout: Layout, source: exp.Expr, alias: str, kernels: KernelCalls
) -> exp.Select:
    """Return a row for each entry; ``unnest`` of lists that are columns takes a sixth of the time.

    DuckDB evaluates what else it unnests again and again for the lists of long arrays.
    """
    names, dtype = key_columns(type_), type_.dtype
    array = column(VALUE, alias)
    rows = kernels.scalar("csr_rows", array, dtype=dtype)
    columns = kernels.scalar("csr_cols", array.copy(), dtype=dtype)
    values = kernels.scalar("csr_values", array.copy(), dtype=dtype)
    entries = kernels.scalar("vec_to_list", values, dtype=dtype)
    taken = {fold_name(name) for name in (*names, VALUE)}
    lists = unique_names(("rows", "columns", "entries"), taken)
    listed = select_from(
        source,
        *(column(names[axis], alias) for axis in layout.promoted),
        *map(add_alias, (rows, columns, entries), lists),
    )
    in_row, in_column, entry = (function("unnest", column(name, alias)) for name in lists)
    places = {layout.row: in_row, layout.compressed: in_column}
    keys = []
    for axis in range(type_.rank):
        place: exp.Expr = places.get(axis, column(names[axis], alias))
        if axis in layout.tiled:
            first = scale_key(column(names[axis], alias), layout.tile)
            place = exp.Add(this=first, expression=place)
        keys.append(add_alias(cast(place, key_type(type_, axis)), names[axis]))
    return select_from(subquery(listed, alias), *keys, add_alias(entry, VALUE))


def _recode_arrays(
    type_: TensorType,
    before: Layout,
    after: Layout,
    source: exp.Expr,
    alias: str,
    kernels: KernelCalls,
) -> exp.Select:
    names = key_columns(type_)
    keys = [column(names[axis], alias) for axis in after.promoted]
    value = recode_array(type_, before, after, column(VALUE, alias), kernels)
    return select_from(source, *keys, add_alias(value, VALUE))


def recode_array(
    type_: TensorType, before: Layout, after: Layout, array: exp.Expr, kernels: KernelCalls
) -> exp.Expr:
    """Return an array with an axis compressed or made dense, as one layout has it and not another.

    Args:
        type_: type of the tensor.
        before: the layout of the array.
        after: the layout that it is to have.
        array: the array of a tuple.
        kernels: writes calls.
    """
    dtype = type_.dtype
    fill = number(type_.fill, dtype)
    if before.compressed is not None:
        return kernels.scalar("csr_to_mat", array, fill, dtype=dtype)
    assert after.compressed is not None
    columns = integer(type_.shape[after.compressed])
    return kernels.scalar("mat_to_csr", array, columns, fill, dtype=dtype)


def _gather_tiles(
    type_: TensorType,
    before: Layout,
    after: Layout,
    source: exp.Expr,
    alias: str,
    kernels: KernelCalls,
) -> exp.Select:
    names, (tiled,) = key_columns(type_), before.tiled
    assert after.levels[tiled] is Level.DENSE
    keys = [column(names[axis], alias) for axis in after.promoted]
    first = scale_key(cast(column(names[tiled], alias), "BIGINT"), before.tile)
    rows = [column(VALUE, alias), first]
    shape = list(_shape(type_, after, None))
    value = kernels.compressing("stack_csr_rows", rows, shape, dtype=type_.dtype)
    query = select_from(source, *keys, add_alias(value, VALUE))
    return group_by_keys(query, keys, type_.tuple_bytes(after))
