"""Aggregates over times without pairs of them: by windows of SQL, or by the steps of entries.

A window sees each time of each fibre; steps see the entries that are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlglot import exp, select

from ucle.foundation.dtypes import DType
from ucle.foundation.names import fold_name, unique_names
from ucle.plan.relation_nodes import (
    COUNTED,
    ColumnOfTimes,
    Relation,
    TableScan,
    WindowOfTimes,
)
from ucle.plan.sources import TimePairs
from ucle.sqlgen.input_tables import scalar_value, source_table, stored_table
from ucle.sqlgen.kernel_calls import KernelCalls
from ucle.sqlgen.pairs_of_times import PERIOD, TIME, distinct_times, step_start, window_frame
from ucle.sqlgen.scalar_operators import reduce_sql
from ucle.sqlgen.sql_trees import (
    VALUE,
    add_alias,
    ascending,
    cast,
    column,
    differs,
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
        entries: the relation of its input in FROM, under `alias`; None to count times, alone or
            beside the entries of the table of times itself.
        alias: of the input.
        kernels: how kernels are called.
        prefix: of the tables of dictionaries.
    """
    source, names = node.times.source, key_columns(node.type)
    assert source.times is not None
    times, period, time, moment = _read_times(node, source.times, prefix)
    query, order = select_from(subquery(times, TIMES)), column(moment, TIMES)
    keys, others = {node.place: period}, list[exp.Expr]()
    count = cast(_over(exp.Count(this=exp.Star()), source.times, order, others), DType.INT64)
    values = {VALUE: count}
    if node.input is not None:
        own = TIMES
        if entries is not None:
            query, keys = _join_entries(node.input, node.place, query, entries, alias, time)
            others, own = [key for axis, key in keys.items() if axis != node.place], alias
            keys[node.place] = period
        type_ = node.input.type
        stored = either(column(VALUE, own), number(type_.fill, type_.dtype))
        value = reduce_sql(node.operation, stored, node.type.dtype, kernels.dialect)
        turn = partial(_turn, times=source.times, order=order, others=others)
        values = {VALUE: value.transform(turn)} | ({COUNTED: count} if node.counted else {})
    outputs = [add_alias(keys[axis].copy(), names[n]) for n, axis in enumerate(node.axes)]
    columns = (add_alias(value, name) for name, value in values.items())
    return query.select(*outputs, *columns, copy=False)


def aggregate_steps(
    node: WindowOfTimes, entries: exp.Expr | None, alias: str, kernels: KernelCalls, prefix: str
) -> exp.Select:
    """Return the query that aggregates the entries of steps; arguments as `aggregate_windows`."""
    source, names = node.times.source, key_columns(node.type)
    assert source.times is not None
    others: dict[int, exp.Expr] = {}
    counts: list[exp.Expr] = []
    time: exp.Expr
    value: exp.Expr
    if node.counted:
        query, time = select_from(subquery(_read_entries(node, prefix), TIMES)), column(TIME, TIMES)
        value = column(VALUE, TIMES)
        value = reduce_sql(node.operation, value, node.type.dtype, kernels.dialect)
        counts = [cast(exp.Count(this=exp.Star()), DType.INT64)]
    elif entries is None:
        stored = stored_table(source.keys_alone, prefix)
        query = select_from(subquery(distinct_times(source.times, stored), TIMES))
        time = column(TIME, TIMES)
        value = cast(exp.Count(this=exp.Star()), DType.INT64)
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
        *(add_alias(each, COUNTED) for each in counts),
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
    columns = (VALUE, COUNTED) if counts else (VALUE,)
    return query.select(*outputs, *(column(x, "steps") for x in columns), copy=False)


def column_of_times(node: ColumnOfTimes, rows: exp.Expr, alias: str) -> exp.Select:
    """Return the query that reads the values, or the counts, of an aggregate that has both."""
    keys = [column(name, alias) for name in key_columns(node.type)]
    value = column(node.column or VALUE, alias)
    query = select_from(rows).select(*keys, add_alias(value, VALUE), copy=False)
    there = exp.Is(this=value.copy(), expression=exp.Null()).not_()
    return query.where(there, copy=False) if node.column is None else query


def _read_entries(node: WindowOfTimes, prefix: str) -> exp.Select:
    """The times of a table and its entries, which are NULL where they are not stored."""
    times = node.times.source.times
    assert times is not None
    assert isinstance(node.input, TableScan)
    value = scalar_value(node.input.source)
    there = exp.If(this=differs(value, node.input.type), true=value)
    own = column(times.column)
    query = select(add_alias(own, TIME), add_alias(exp.Case(ifs=[there]), VALUE))
    query = query.from_(source_table(node.input.source, prefix))
    return query.where(exp.Is(this=own.copy(), expression=exp.Null()).not_())


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
    read = _read_entries(node, prefix) if node.counted else distinct_times(times, stored)
    own = column(TIME)
    rows = select(add_alias(own, PERIOD), column(TIME)).from_(subquery(read, "distinct"))
    if node.counted:
        rows = rows.select(column(VALUE))
    query, keys = scan_keys(node.times, subquery(rows, "T"), "T", prefix)
    aliases = [key.alias_or_name for key in keys]
    (moment,) = unique_names(["moment"], set(map(fold_name, aliases)))
    query = query.select(
        *keys, add_alias(function("epoch_us", column(TIME, "T")), moment), copy=False
    )
    if node.counted:
        query = query.select(column(VALUE, "T"), copy=False)
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
