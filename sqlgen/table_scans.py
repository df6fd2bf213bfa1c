"""Scans of input tables: coordinates as positions, payloads packed, summed and cut to bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from ucle.ir.tensor_types import TensorType
from ucle.plan.relation_nodes import TableScan
from ucle.plan.sources import TableSource
from ucle.sqlgen.array_extents import Extents
from ucle.sqlgen.compressed_arrays import END, compress_runs
from ucle.sqlgen.entry_rows import tile_entries
from ucle.sqlgen.feature_arrays import (
    ROWS,
    feature_arrays,
    find_parts,
    number_places,
    scatter,
)
from ucle.sqlgen.feature_rows import feature_rows, reads_once
from ucle.sqlgen.input_tables import (
    duplicates_sum,
    key_value,
    list_value,
    placed_list,
    scalar_value,
    source_table,
    sum_duplicates,
    sum_lists,
    whole_table,
)
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.operand_aliases import choose_alias
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    cast,
    column,
    differs,
    function,
    group_by_keys,
    integer,
    join,
    key_columns,
    key_type,
    number,
    select_from,
    subquery,
    table,
)


def scan_table(
    scan: TableScan, kernels: KernelCalls, prefix: str, beside: Sequence[str] = ()
) -> exp.Select:
    """Return the query that reads an input table: its keys as positions, and its payload.

    The rows of arrays that it reads also have the columns `beside`.
    """
    source, type_ = scan.source, scan.type
    if len(source.tile_sizes) > 1:
        return tile_entries(source, type_, prefix)
    if source.ends is not None and scan.layout.compressed is not None:
        return _scan_runs(scan, kernels, prefix)
    if source.features is not None and source.dense:
        return _scan_feature_arrays(scan, kernels, prefix, beside)
    # The columns of a source need a qualifier only beside those of a dictionary.
    alias = choose_alias(scan) if any(source.encoded) else None
    rows = source_table(source, prefix, alias, beside)
    if source.features is not None and any(source.encoded[:-1]):
        rows, scan = _number_first(scan, alias, prefix)
    query, keys = scan_keys(scan, rows, alias, prefix)
    query = query.select(*keys, copy=False)
    if not scan.layout.scalar:
        assert source.value is not None
        if source.kept_as is not None:
            return query.select(add_alias(column(source.value, alias), VALUE), copy=False)
        value = list_value(column(source.value, alias), source)
        scattered = source.placed and kernels.available
        if source.wide and not scattered:
            value = _in_places(source, type_, value, prefix)
        if source.sum_duplicates and not kernels.available:
            return sum_lists(query, value, type_.dtype)
        if scattered:
            value = _scatter(source, type_, value, prefix, kernels)
        elif kernels.available:
            value = kernels.scalar("pack", value, dtype=type_.dtype)
        if source.sum_duplicates:
            size = type_.shape[-1] if source.wide else math.prod(source.dense)
            stem = duplicates_sum(type_.dtype).stem
            value = kernels.aggregate(f"{stem}_vec", size, [value], dtype=type_.dtype)
            query = group_by_keys(query, [integer(n + 1) for n in range(len(keys))])
        if kernels.available:
            value = _cut(source, type_, value, [key.unalias() for key in keys], kernels)
        return query.select(add_alias(value, VALUE), copy=False)
    value = scalar_value(source, alias)
    if source.sum_duplicates:
        summed = sum_duplicates(source, value, kernels.dialect)
        positions = [integer(n + 1) for n in range(len(keys))]
        query = group_by_keys(query.select(add_alias(summed, VALUE), copy=False), positions)
        return query.having(differs(summed, type_), copy=False) if keys else query
    query = query.select(add_alias(value, VALUE), copy=False)
    return query.where(differs(value, type_), copy=False)


def _scan_runs(scan: TableScan, kernels: KernelCalls, prefix: str) -> exp.Select:
    """Return the compressed arrays of a table of runs, which are read as they are."""
    source = scan.source
    assert source.ends is not None
    rows = replace(scan, layout=source.layout)
    alias = choose_alias(rows) if any(source.encoded) else None
    query, keys = scan_keys(rows, whole_table(source, prefix, alias), alias, prefix)
    value = add_alias(scalar_value(source, alias), VALUE)
    query = query.select(*keys, value, add_alias(column(source.ends, alias), END), copy=False)
    runs = "runs"
    return compress_runs(scan.type, scan.layout, subquery(query, runs), runs, kernels)


def _scan_feature_arrays(
    scan: TableScan, kernels: KernelCalls, prefix: str, beside: Sequence[str]
) -> exp.Select:
    """Return the rows of a wide table with categories, each with an array of its features."""
    source, axis = scan.source, scan.type.axes[-1]
    assert axis.dictionary is not None
    alias = choose_alias(scan) if any(source.encoded) else None
    ids = table(prefix + axis.dictionary)
    rows = feature_arrays(source, whole_table(source, prefix, ROWS), ids, beside)
    query, keys = scan_keys(scan, subquery(rows, alias or "arrays"), alias, prefix)
    parts = [column(name, alias) for name in find_parts(source, beside)]
    value = scatter(source, kernels, parts, axis.bound)
    return query.select(*keys, add_alias(value, VALUE), copy=False)


def scan_keys(
    scan: TableScan, rows: exp.Expr, alias: str | None, prefix: str
) -> tuple[exp.Select, list[exp.Expr]]:
    """Return the rows of a table with what numbers their keys, and the keys as positions.

    Args:
        scan: the table.
        rows: the table in FROM, under `alias`.
        alias: of the rows; None if nothing numbers their keys.
        prefix: of the tables of dictionaries.
    """
    query, names, keys = select_from(rows), key_columns(scan.type), list[exp.Expr]()
    for place, axis in enumerate(scan.layout.promoted):
        query, position = _number_key(query, scan, place, alias, prefix)
        keys.append(add_alias(position, names[axis]))
    return query, keys


def _number_key(
    query: exp.Select, scan: TableScan, place: int, alias: str | None, prefix: str
) -> tuple[exp.Select, exp.Expr]:
    """Return rows joined with what numbers one of their keys, and this key as positions."""
    source, type_, axis = scan.source, scan.type, scan.layout.promoted[place]
    key, dictionary = source.keys[place], type_.axes[axis].dictionary
    if axis in scan.unnumbered:
        return query, key_value(source, key, alias)
    position: exp.Expr = column(key, alias)
    if source.encoded[place] and dictionary is not None:
        ids = f"{key_columns(type_)[axis]}_ids"
        match = exp.EQ(this=column("value", ids), expression=key_value(source, key, alias))
        query = join(query, table(prefix + dictionary, alias=ids), on=match)
        position = column("id", ids)
    return query, cast(position, key_type(type_, axis))


def _number_first(scan: TableScan, alias: str | None, prefix: str) -> tuple[exp.Expr, TableScan]:
    """Return the features of rows whose other keys are positions already, and the scan of these.

    So each row is looked up in dictionaries once, and not each of its features.
    """
    source, numbered = scan.source, "numbered rows"
    assert source.features is not None
    *own, feature = range(len(source.keys))
    query = select_from(whole_table(source, prefix, "T"))
    for place in own:
        query, position = _number_key(query, scan, place, "T", prefix)
        query = query.select(add_alias(position, source.keys[place]), copy=False)
    names = (*source.features.numbers, *source.features.categories)
    query = query.select(*(column(name, "T") for name in names), copy=False)
    if reads_once(source):
        rows = feature_rows(source, subquery(query, numbered))
    else:
        rows = feature_rows(source, table(numbered))
        rows = rows.with_(exp.to_identifier(numbered, quoted=True), query, materialized=True)
    encoded = (*(False for _ in own), source.encoded[feature])
    keys_as = (*(None for _ in own), source.key_as(source.keys[feature]))
    looked_up = replace(scan, source=replace(source, encoded=encoded, keys_as=keys_as))
    return subquery(rows, alias or "features"), looked_up


def _in_places(source: TableSource, type_: TensorType, value: exp.Expr, prefix: str) -> exp.Expr:
    """Return the values of a wide row at the places of its columns along the axis of their names.

    The axis may be longer than the row: others may name more coordinates, or a bound be stated.
    """
    axis = type_.axes[-1]
    if source.placed:
        assert axis.dictionary is not None
        return placed_list(source, value, table(prefix + axis.dictionary), axis.bound)
    if axis.bound == len(source.wide):
        return value
    fill = number(source.missing, source.dtype)
    return function("list_resize", value, integer(axis.bound), fill)


def _scatter(
    source: TableSource, type_: TensorType, value: exp.Expr, prefix: str, kernels: KernelCalls
) -> exp.Expr:
    """Return the array with the values of a wide row at the places of their names."""
    axis = type_.axes[-1]
    assert axis.dictionary is not None
    places = number_places(source.wide, table(prefix + axis.dictionary)).subquery()
    none = cast(exp.Array(expressions=[]), "BIGINT", 1)
    return scatter(source, kernels, (value, places, none), axis.bound)


def _cut(
    source: TableSource,
    type_: TensorType,
    value: exp.Expr,
    keys: Sequence[exp.Expr],
    kernels: KernelCalls,
) -> exp.Expr:
    """Return a stored tile with these keys, cut off at the bounds."""
    inside = Extents(type_, source.layout, dict(enumerate(keys)))
    whole = Extents(type_, source.layout, padded=True)
    if not source.tiles or inside.sizes == whole.sizes:
        return value
    axes = source.layout.dense
    sizes = inside.list_sql([inside.sizes[axis] for axis in axes])
    steps = whole.list_sql([whole.steps[axis] for axis in axes])
    return kernels.scalar("slice", value, integer(0), sizes, steps, dtype=type_.dtype)
