"""Scans along an axis (running aggregations) in SQL: windows over keys, a kernel within arrays.

Where the axis is a key column, each fibre that has a stored entry first gets a row for each of its
positions. A window adds floats in an order that the engine chooses. Where there are kernels, the
values are therefore gathered in a list in the order of the axis, so that every plan adds them like
NumPy. Matrices are gathered, too, as no SQL exists for their functions.
"""

from __future__ import annotations

import math

from sqlglot import exp

from ucle.ir.axis_functions import MatrixMap
from ucle.plan import relation_nodes as plan
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.scalar_operators import reduce_sql
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    cast,
    column,
    either,
    function,
    group_by_keys,
    integer,
    integers_below,
    join,
    key_columns,
    key_type,
    number,
    select_from,
    subquery,
)

FIBRES = "fibres"


def scan_prefixes(
    node: plan.PrefixScan, source: exp.Expr, alias: str, kernels: KernelCalls
) -> exp.Select:
    """Return the SELECT that aggregates along an axis.

    Args:
        node: the relation.
        source: the relation in FROM for its input, under `alias`.
        alias: of the input.
        kernels: how kernels are called.
    """
    axis, along = node.axis, node.along
    if node.kernel.name is not None:
        sizes = map(integer, _find_sizes(node))
        value = kernels.scalar(
            node.kernel.name, column(VALUE, alias), *sizes, dtype=node.type.dtype
        )
        keys = [_key(node, other, alias) for other in node.layout.promoted]
        return select_from(source, *keys, add_alias(value, VALUE))
    query, columns, value = _complete_fibres(node, source, alias)
    if isinstance(along, MatrixMap):
        return _by_lists(node, query, columns, value, kernels)
    others = [columns[other] for other in node.layout.promoted if other != axis]
    exact = along.is_exact(node.type.dtype) and along.reduce.has_window
    if kernels.available and not exact:
        return _by_lists(node, query, columns, value, kernels)
    running = reduce_sql(along.reduce, value, node.type.dtype, kernels.dialect)
    running = running.transform(_over, others, columns[axis])
    return query.select(*_outputs(node, columns), add_alias(running, VALUE), copy=False)


def _find_sizes(node: plan.PrefixScan) -> list[int]:
    """The sizes that a kernel within arrays is told: of each axis, or of one and what is inside."""
    shape = node.type.shape
    if isinstance(node.along, MatrixMap):
        return [shape[axis] for axis in node.axes]
    inside = (shape[other] for other in node.layout.dense if other > node.axis)
    return [shape[node.axis], math.prod(inside)]


def _outputs(node: plan.PrefixScan, columns: dict[int, exp.Expr]) -> list[exp.Expr]:
    names = key_columns(node.type)
    return [
        add_alias(cast(columns[other].copy(), key_type(node.type, other)), names[other])
        for other in node.layout.promoted
    ]


def _complete_fibres(
    node: plan.PrefixScan, source: exp.Expr, alias: str
) -> tuple[exp.Select, dict[int, exp.Expr], exp.Expr]:
    """All positions of each fibre that is stored; their keys, and the values."""
    names, axis = key_columns(node.type), node.axis
    stored = key_columns(node.input.type)
    columns: dict[int, exp.Expr] = {n: column(stored[n], alias) for n in node.layout.promoted}
    value: exp.Expr = column(VALUE, alias)
    # That every entry is stored now does not mean that a view will find it stored later.
    if isinstance(node.input, plan.Densify):
        return select_from(source), columns, value
    others = [other for other in node.layout.promoted if other != axis]
    positions = f"{names[axis]}_range"
    everything = integers_below(node.type.shape[axis], positions, names[axis])
    columns[axis] = column(names[axis], positions)
    query = select_from(everything)
    if others:
        distinct = select_from(source.copy(), *(_key(node, n, alias) for n in others)).distinct()
        columns |= {other: column(names[other], FIBRES) for other in others}
        query = join(select_from(subquery(distinct, FIBRES)), everything, "CROSS")
    matches = [
        exp.EQ(this=column(stored[n], alias), expression=columns[n].copy())
        for n in node.layout.promoted
    ]
    query = join(query, source, "LEFT", exp.and_(*matches, copy=False))
    return query, columns, either(value, number(node.input.type.fill, node.input.type.dtype))


def _key(node: plan.PrefixScan, axis: int, alias: str) -> exp.Expr:
    """A key column of the input, named as in the result: others may read it under its labels."""
    stored, name = (key_columns(each)[axis] for each in (node.input.type, node.type))
    return add_alias(column(stored, alias), name)


def _over(node: exp.Expr, others: list[exp.Expr], position: exp.Expr) -> exp.Expr:
    """An aggregate in SQL turned into one over all rows of a fibre up to the current one."""
    named_so = isinstance(node, exp.Anonymous) and node.name.lower() in ("product", "list")
    if not isinstance(node, exp.AggFunc) and not named_so:
        return node
    return exp.Window(
        this=node,
        partition_by=[other.copy() for other in others],
        order=exp.Order(expressions=[exp.Ordered(this=position.copy(), nulls_first=False)]),
        spec=exp.WindowSpec(
            kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"
        ),
    )


def _position(sizes: list[int], place: int) -> exp.Expr:
    """The position along one of several axes for each entry of a list of all entries."""
    numbers: exp.Expr = function("unnest", function("range", integer(math.prod(sizes))))
    if place + 1 < len(sizes):
        inner = max(math.prod(sizes[place + 1 :]), 1)
        numbers = exp.IntDiv(this=numbers, expression=integer(inner))
    if place:
        return exp.Mod(this=numbers, expression=integer(max(sizes[place], 1)))
    return numbers


def _by_lists(
    node: plan.PrefixScan,
    query: exp.Select,
    columns: dict[int, exp.Expr],
    value: exp.Expr,
    kernels: KernelCalls,
) -> exp.Select:
    """Gather each fibre in a list, in order, apply the kernel, and unnest the result."""
    type_, names, axes = node.type, key_columns(node.type), node.axes
    sizes, dtype = [type_.shape[axis] for axis in axes], type_.dtype
    order = exp.Order(
        this=value,
        expressions=[exp.Ordered(this=columns[axis].copy(), nulls_first=False) for axis in axes],
    )
    fibre = kernels.scalar("pack", exp.ArrayAgg(this=order), dtype=dtype)
    shape = map(integer, sizes if len(sizes) > 1 else (*sizes, 1))
    run = kernels.scalar(node.along.kernel, fibre, *shape, dtype=dtype)
    listed = kernels.scalar("vec_to_list", run, dtype=dtype)
    others = [other for other in node.layout.promoted if other not in axes]
    keys = [columns[other] for other in others]
    fibres = query.select(
        *(add_alias(columns[other].copy(), names[other]) for other in others),
        add_alias(listed, VALUE),
        copy=False,
    )
    fibres = group_by_keys(fibres, keys)
    outputs: dict[int, exp.Expr] = {n: column(names[n], FIBRES) for n in others}
    for place, axis in enumerate(axes):
        position = _position(sizes, place)
        outputs[axis] = add_alias(cast(position, key_type(type_, axis)), names[axis])
    return select_from(
        subquery(fibres, FIBRES),
        *(outputs[other] for other in node.layout.promoted),
        add_alias(function("unnest", column(VALUE, FIBRES)), VALUE),
    )
