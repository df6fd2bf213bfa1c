"""Aggregates over times without pairs of them: by windows of SQL, or by the steps of entries.

A window sees each time of each fibre; steps see the entries that are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlglot import exp, select

from ucle.foundation.dtypes import DType
from ucle.foundation.names import fold_name, unique_names
from ucle.plan.relation_nodes import Relation, WindowOfTimes
from ucle.plan.sources import TimePairs
from ucle.sqlgen.input_tables import stored_table
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.pairs_of_times import PERIOD, TIME, distinct_times, step_start, window_frame
from ucle.sqlgen.scalar_operators import reduce_sql
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    ascending,
    cast,
    column,
    either,
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
from ucle.sqlgen.table_scans import scan_keys

TIMES, FIBRES = "times", "fibres"


def aggregate_windows(
    node: WindowOfTimes, entries: exp.Expr | None, alias: str, kernels: KernelCalls, prefix: str
) -> exp.Select:
    """Return the query that aggregates over windows.

    Args:
        node: the relation.
        entries: the relation of its input in FROM, under `alias`; None to count times.
        alias: of the input.
        kernels: how kernels are called.
        prefix: of the tables of dictionaries.
    """
    source, names = node.times.source, key_columns(node.type)
    assert source.times is not None
    times, period, time, moment = _read_times(node, source.times, prefix)
    query = select_from(subquery(times, TIMES))
    others: list[exp.Expr] = []
    if entries is None:
        value: exp.Expr = exp.Count(this=exp.Star())
        value = cast(_over(value, source.times, column(moment, TIMES), others), DType.INT64)
        keys = {0: period}
    else:
        assert node.input is not None
        query, keys = _join_entries(node.input, node.place, query, entries, alias, time)
        others = [key for axis, key in keys.items() if axis != node.place]
        keys[node.place] = period
        type_ = node.input.type
        stored = either(column(VALUE, alias), number(type_.fill, type_.dtype))
        value = reduce_sql(node.operation, stored, node.type.dtype, kernels.dialect)
        turn = partial(_turn, times=source.times, order=column(moment, TIMES), others=others)
        value = value.transform(turn)
    outputs = [add_alias(keys[axis].copy(), names[n]) for n, axis in enumerate(node.axes)]
    return query.select(*outputs, add_alias(value, VALUE), copy=False)


def aggregate_steps(
    node: WindowOfTimes, entries: exp.Expr | None, alias: str, kernels: KernelCalls, prefix: str
) -> exp.Select:
    """Return the query that aggregates the entries of steps; arguments as `aggregate_windows`."""
    source, names = node.times.source, key_columns(node.type)
    assert source.times is not None
    others: dict[int, exp.Expr] = {}
    if entries is None:
        stored = stored_table(source.keys_alone, prefix)
        query = select_from(subquery(distinct_times(source.times, stored), TIMES))
        time: exp.Expr = column(TIME, TIMES)
        value: exp.Expr = cast(exp.Count(this=exp.Star()), DType.INT64)
    else:
        assert node.input is not None
        keys = key_columns(node.input.type)
        others = {
            axis: column(keys[axis], alias)
            for axis in node.input.layout.promoted
            if axis != node.place
        }
        query, time = select_from(entries), column(keys[node.place], alias)
        if 1 not in node.times.unnumbered:
            ids = f"{keys[node.place]}_ids"
            match = exp.EQ(this=column("id", ids), expression=time)
            query = join(query, _dictionary(node, 1, prefix, ids), on=match)
            time = column("value", ids)
        if source.key_as(TIME) is not None:
            time = cast(time, source.times.type)
        value = column(VALUE, alias)
        value = reduce_sql(node.operation, value, node.type.dtype, kernels.dialect)
    start = step_start(source.times, time)
    aliases = {axis: f"axis {axis}" for axis in others}  # labels have no blanks
    grouped = query.select(
        *(add_alias(key, aliases[axis]) for axis, key in others.items()),
        add_alias(start, PERIOD),
        add_alias(value, VALUE),
        copy=False,
    )
    grouped = group_by_keys(grouped, [integer(n + 1) for n in range(len(others) + 1)])
    query = select_from(subquery(grouped, "steps"))
    period: exp.Expr = column(PERIOD, "steps")
    if (read_as := source.key_as(PERIOD)) is not None:
        period = cast(period, read_as)
    if 0 not in node.times.unnumbered:
        match = exp.EQ(this=column("value", "ids"), expression=period)
        query = join(query, _dictionary(node, 0, prefix, "ids"), on=match)
        place = 0 if node.input is None else node.axes.index(node.place)
        period = cast(column("id", "ids"), key_type(node.type, place))
    own = {axis: column(name, "steps") for axis, name in aliases.items()}
    made: dict[int, exp.Expr] = {**own, node.place: period}
    outputs = [add_alias(made[axis], names[n]) for n, axis in enumerate(node.axes)]
    return query.select(*outputs, column(VALUE, "steps"), copy=False)


def _dictionary(node: WindowOfTimes, axis: int, prefix: str, alias: str) -> exp.Expr:
    """The dictionary of one side of the pairs in a FROM clause."""
    dictionary = node.times.type.axes[axis].dictionary
    assert dictionary is not None, "times are numbered by a dictionary"
    return table(prefix + dictionary, alias=alias)


def _read_times(
    node: WindowOfTimes, times: TimePairs, prefix: str
) -> tuple[exp.Select, exp.Expr, exp.Expr, str]:
    """The times with their keys on either side of the pairs, and what they are ordered by."""
    stored = stored_table(node.times.source.keys_alone, prefix)
    each = subquery(distinct_times(times, stored), "distinct")
    own = column(TIME)
    rows = select(add_alias(own, PERIOD), column(TIME)).from_(each)
    query, keys = scan_keys(node.times, subquery(rows, "T"), "T", prefix)
    aliases = [key.alias_or_name for key in keys]
    (moment,) = unique_names(["moment"], set(map(fold_name, aliases)))
    query = query.select(
        *keys, add_alias(function("epoch_us", column(TIME, "T")), moment), copy=False
    )
    period, time = (column(name, TIMES) for name in aliases)
    return query, period, time, moment


def _join_entries(
    relation: Relation,
    place: int,
    query: exp.Select,
    entries: exp.Expr,
    alias: str,
    time: exp.Expr,
) -> tuple[exp.Select, dict[int, exp.Expr]]:
    """Add the entries of each fibre at each time, and return the keys by axis."""
    stored = key_columns(relation.type)
    keys: dict[int, exp.Expr] = {place: time}
    others = [axis for axis in range(relation.type.rank) if axis != place]
    if others:
        distinct = select_from(entries.copy(), *(column(stored[n], alias) for n in others))
        query = join(query, subquery(distinct.distinct(), FIBRES), "CROSS")
        keys |= {axis: column(stored[axis], FIBRES) for axis in others}
    matches = [
        exp.EQ(this=column(stored[axis], alias), expression=key.copy())
        for axis, key in keys.items()
    ]
    return join(query, entries, "LEFT", exp.and_(*matches, copy=False)), keys


def _turn(
    node: exp.Expr, times: TimePairs, order: exp.Expr, others: Sequence[exp.Expr]
) -> exp.Expr:
    """An aggregate in SQL turned into one over the windows of each fibre."""
    named_so = isinstance(node, exp.Anonymous) and node.name.lower() in ("product", "list")
    if not isinstance(node, exp.AggFunc) and not named_so:
        return node
    return _over(node, times, order, others)


def _over(
    node: exp.Expr, times: TimePairs, order: exp.Expr, others: Sequence[exp.Expr]
) -> exp.Expr:
    return exp.Window(
        this=node,
        partition_by=[other.copy() for other in others],
        order=ascending(order.copy()),
        spec=window_frame(times),
    )
