"""Top-k along an axis in SQL: a kernel within arrays, and window ranks over keys.

An entry that is not stored counts with the fill. Along an axis that is a key column, the first k
entries that are not stored are added as rows: if s entries are stored, they are among the first s +
k positions. Where those that are not stored come last, and only values are read, the stored ones
are numbered in their order, and nothing is added.
"""

from __future__ import annotations

import math

from sqlglot import exp

from ucle.foundation.names import fold_name, unique_names
from ucle.ir.axis_functions import VALUE as VALUE_PART
from ucle.ir.tensor_types import TensorType
from ucle.plan import relation_nodes as plan
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.missing_tuples import fill_value
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    cast,
    column,
    either,
    function,
    group_by_keys,
    identifier,
    integer,
    integers_below,
    join,
    key_columns,
    key_type,
    select_from,
    subquery,
    table,
    when,
)

FIBRES, COUNTED, ABSENT, RANKED, PARTS = "fibres", "counted", "absent", "ranked", "parts"


def first_entries(
    node: plan.TopKEntries, source: exp.Expr, alias: str, kernels: KernelCalls
) -> exp.Query:
    """Return the query that finds the first entries.

    Args:
        node: the relation.
        source: the relation in FROM for its input, under `alias`.
        alias: of the input.
        kernels: how kernels are called.
    """
    if node.axis in node.input.layout.dense:
        return within_arrays(node, source, alias, kernels)
    if not node.whole:
        source = subquery(_candidates(node, source, alias, kernels), alias)
    if node.kernel.name is not None:
        return _over_tuples(node, source, alias, kernels)
    return _ranks(node, source, alias)


def _find_kept_axes(node: plan.TopKEntries) -> list[int]:
    """The axes of the input that are also keys of the result."""
    return [axis for axis in node.input.layout.promoted if axis != node.axis]


def _outputs(node: plan.TopKEntries, alias: str) -> list[exp.Expr]:
    """The keys of the input, named as in the result."""
    stored, names = key_columns(node.input.type), key_columns(node.type)
    axes = [axis for axis in range(node.input.type.rank) if axis != node.axis]
    return [
        add_alias(column(stored[n], alias), names[axes.index(n)]) for n in _find_kept_axes(node)
    ]


def within_arrays(
    node: plan.TopKEntries, source: exp.Expr, alias: str, kernels: KernelCalls
) -> exp.Select:
    """Return the query for an axis inside the arrays."""
    type_, layout, axis = node.input.type, node.input.layout, node.axis
    inner = math.prod(type_.shape[other] for other in layout.dense if other > axis)
    sizes = (type_.shape[axis], inner, node.count)
    assert node.kernel.name is not None
    pairs = kernels.scalar(
        node.kernel.name, column(VALUE, alias), *map(integer, sizes), dtype=type_.dtype
    )
    return select_from(source, *_outputs(node, alias), add_alias(pairs, VALUE))


def _over_tuples(
    node: plan.TopKEntries, source: exp.Expr, alias: str, kernels: KernelCalls
) -> exp.Select:
    """Along a key axis, arrays of pairs: for each entry of the tuples' arrays."""
    type_, names = node.input.type, key_columns(node.input.type)
    assert node.kernel.name is not None
    numbers = node.input.layout.scalar
    pairs = kernels.aggregate(
        f"{node.kernel.name}_sca" if numbers else node.kernel.name,
        node.type.dense_size(node.layout),
        [column(VALUE, alias), cast(column(names[node.axis], alias), "BIGINT")],
        trailing=[integer(node.count)],
        dtype=type_.dtype,
    )
    query = select_from(source, *_outputs(node, alias), add_alias(pairs, VALUE))
    return group_by_keys(query, [column(names[axis], alias) for axis in _find_kept_axes(node)])


def _ranks(node: plan.TopKEntries, source: exp.Expr, alias: str) -> exp.Select:
    """Along a key axis, a row for each value and for each position."""
    type_, names = node.type, key_columns(node.type)
    rank, part = type_.rank - 2, type_.rank - 1
    stored = key_columns(node.input.type)
    value, position = column(VALUE, alias), column(stored[node.axis], alias)
    (place,) = _other_columns(type_, "position")
    order = [
        exp.Ordered(this=value.copy(), desc=node.top.largest, nulls_first=False),
        exp.Ordered(this=position.copy(), desc=False, nulls_first=False),
    ]
    ranks = exp.Window(
        this=exp.RowNumber(),
        partition_by=[column(stored[axis], alias) for axis in _find_kept_axes(node)],
        order=exp.Order(expressions=order),
    )
    keys = _outputs(node, alias)
    numbered = exp.Sub(this=ranks, expression=integer(1))
    inner = select_from(source, *keys, add_alias(value, VALUE), add_alias(position, place))
    inner = inner.select(add_alias(numbered, names[rank]), copy=False)
    within = exp.LT(this=column(names[rank], RANKED), expression=integer(node.count))
    if node.leaves_out:
        query = select_from(
            subquery(inner, RANKED),
            *(column(key.alias_or_name, RANKED) for key in keys),
            add_alias(cast(column(names[rank], RANKED), key_type(type_, rank)), names[rank]),
            add_alias(cast(integer(VALUE_PART), key_type(type_, part)), names[part]),
            column(VALUE, RANKED),
        )
        return query.where(within, copy=False)
    is_value = exp.EQ(this=column(names[part], PARTS), expression=integer(VALUE_PART))
    number = cast(column(place, RANKED), type_.dtype)
    query = select_from(
        subquery(inner, RANKED),
        *(column(key.alias_or_name, RANKED) for key in keys),
        add_alias(cast(column(names[rank], RANKED), key_type(type_, rank)), names[rank]),
        add_alias(cast(column(names[part], PARTS), key_type(type_, part)), names[part]),
        add_alias(when(is_value, column(VALUE, RANKED), number), VALUE),
    )
    query = join(query, integers_below(type_.shape[part], PARTS, names[part]), "CROSS")
    return query.where(within, copy=False)


def _candidates(
    node: plan.TopKEntries, source: exp.Expr, alias: str, kernels: KernelCalls
) -> exp.Select:
    """All stored tuples, and the first tuples of each fibre that are not stored, with the fill."""
    type_, layout, axis = node.input.type, node.input.layout, node.axis
    names, kept = key_columns(type_), _find_kept_axes(node)
    every, place = f"{alias}_stored", names[axis]
    (counted,) = _other_columns(type_, COUNTED)
    stored = [column(names[n], every) for n in layout.promoted]

    count = exp.Add(this=column(counted, FIBRES), expression=integer(node.count))
    last = function("least", count, integer(type_.shape[axis]))
    places = select_from(
        subquery(_fibres(type_, kept, every, counted), FIBRES),
        *(column(names[n], FIBRES) for n in kept),
        add_alias(function("unnest", function("range", last)), place),
    )
    absent = [column(names[n], ABSENT) for n in layout.promoted]
    typed = [cast(key, key_type(type_, n)) for n, key in zip(layout.promoted, absent, strict=True)]
    query = select_from(
        subquery(places, ABSENT),
        *(add_alias(key, names[n]) for n, key in zip(layout.promoted, typed, strict=True)),
        add_alias(fill_value(type_, layout, kernels, {}), VALUE),
    )
    matches = (
        exp.EQ(this=one.copy(), expression=other.copy())
        for one, other in zip(stored, absent, strict=True)
    )
    query = join(query, table(every), "LEFT", exp.and_(*matches, copy=False))
    missing = exp.Is(this=column(place, every), expression=exp.null())
    query = query.where(missing, copy=False)

    both = exp.Union(
        this=select_from(table(every), *stored, column(VALUE, every)),
        expression=query,
        distinct=False,
    )
    own = [column(names[n], alias) for n in layout.promoted]
    whole = select_from(subquery(both, alias), exp.Star())
    inner = select_from(source, *own, column(VALUE, alias))
    return whole.with_(identifier(every), inner, materialized=True, copy=False)


def _fibres(type_: TensorType, kept: list[int], stored: str, counted: str) -> exp.Select:
    """The keys of all fibres, and the number of stored tuples in each."""
    names, count = key_columns(type_), add_alias(exp.Count(this=exp.Star()), counted)
    if not kept:
        return select_from(table(stored), count)
    keys = [column(names[n], stored) for n in kept]
    found = group_by_keys(select_from(table(stored), *keys, count), keys)
    ranges = {n: f"{names[n]}_range" for n in kept}
    first, *others = (integers_below(type_.shape[n], ranges[n], names[n]) for n in kept)
    number = either(column(counted, COUNTED), integer(0))
    query = select_from(
        first, *(column(names[n], ranges[n]) for n in kept), add_alias(number, counted)
    )
    for other in others:
        query = join(query, other, "CROSS")
    matches = (
        exp.EQ(this=column(names[n], COUNTED), expression=column(names[n], ranges[n])) for n in kept
    )
    return join(query, subquery(found, COUNTED), "LEFT", exp.and_(*matches, copy=False))


def _other_columns(type_: TensorType, *stems: str) -> list[str]:
    """Names for columns that no key has."""
    return unique_names(stems, {VALUE, *map(fold_name, key_columns(type_))})
