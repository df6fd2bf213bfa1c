"""Pairs of coordinates in SQL: of steps and windows of time, and of ranges.

They are steps and the times in them, times and those in a window before, or the coordinates of a
range, each with itself. The coordinates on either side of the pairs are read without the pairs.
"""

from __future__ import annotations

import datetime

from sqlglot import exp, select

from ucle.plan.sources import TimePairs
from ucle.sqlgen.sql_trees import (
    add_alias,
    ascending,
    cast,
    column,
    function,
    integer,
    subquery,
    text,
)

PERIOD, TIME = "period", "time"


def time_pairs(times: TimePairs, relation: exp.Expr) -> exp.Select:
    """Select the pairs of a description from a relation with its column of times."""
    if times.kind == "window":
        return _windows(times, distinct_times(times, relation))
    if times.kind == "range":
        return _range(times, relation)
    distinct = _distinct(times, relation)
    start = step_start(times, column(TIME))
    steps = select(add_alias(start, PERIOD), column(TIME)).from_(distinct.subquery("distinct"))
    if times.kind == "step":
        return steps
    pick = {"first": exp.Min, "last": exp.Max}[times.kind]
    ends = select(column(PERIOD), add_alias(pick(this=column(TIME)), TIME))
    return ends.from_(steps.subquery("steps")).group_by(column(PERIOD))


def _range(times: TimePairs, relation: exp.Expr) -> exp.Select:
    """Each coordinate of a range, with itself."""
    own = column(times.column)
    every = select(add_alias(own, PERIOD), add_alias(own.copy(), TIME)).from_(relation)
    if times.low is not None:
        every = every.where(exp.GTE(this=own.copy(), expression=_end(times.low)))
    if times.high is not None:
        every = every.where(exp.LTE(this=own.copy(), expression=_end(times.high)))
    return every if times.unique else every.distinct()


def _end(value: int | str | datetime.date | datetime.time) -> exp.Expr:
    """An end of a range as a literal of its own type."""
    match value:
        case int():
            return integer(value)
        case str():
            return text(value)
        case datetime.datetime():
            zoned = value.tzinfo is not None
            return cast(text(str(value)), "TIMESTAMPTZ" if zoned else "TIMESTAMP")
        case datetime.date():
            return cast(text(str(value)), "DATE")
    return cast(text(str(value)), "TIME")


def _distinct(times: TimePairs, relation: exp.Expr) -> exp.Select:
    every = select(add_alias(column(times.column), TIME)).from_(relation)
    return every if times.unique else every.distinct()


def distinct_times(times: TimePairs, relation: exp.Expr) -> exp.Select:
    """Select the times of a relation, each once; NULL is refused as the coordinate of an entry."""
    return _distinct(times, relation).where(
        exp.Is(this=column(times.column), expression=exp.Null()).not_()
    )


def window_frame(times: TimePairs) -> exp.WindowSpec:
    """The frame of the window before each time, over the microseconds of times."""
    length = integer(times.microseconds - 1)
    return exp.WindowSpec(kind="RANGE", start=length, start_side="PRECEDING", end="CURRENT ROW")


def count_windows(times: TimePairs, relation: exp.Expr) -> exp.Select:
    """Count the times, and the times in all windows together, in one, and the windows of a time.

    The counts are those of pairs that nothing makes. The windows that have a time are those of the
    times behind it, which come before it from the last one on: DuckDB takes twenty times as long
    for frames that follow a row.
    """
    moments = select(add_alias(function("epoch_us", column(TIME)), "moment")).from_(
        subquery(distinct_times(times, relation), "distinct")
    )
    counts = [
        add_alias(
            exp.Window(
                this=exp.Count(this=exp.Star()),
                order=exp.Order(expressions=[exp.Ordered(this=column("moment"), desc=behind)]),
                spec=window_frame(times),
            ),
            name,
        )
        for name, behind in (("met", False), ("meeting", True))
    ]
    counted = select(*counts).from_(subquery(moments, "moments"))
    total = exp.Coalesce(this=exp.Sum(this=column("met")), expressions=[integer(0)])
    most = [exp.Max(this=column(name)) for name in ("met", "meeting")]
    return select(exp.Count(this=exp.Star()), cast(total, "BIGINT"), *most).from_(
        subquery(counted, "counted")
    )


def _windows(times: TimePairs, distinct: exp.Select) -> exp.Select:
    """Each time, with itself and those before it that are less than a step older.

    A join of inequalities takes 200 times as long.
    """
    order = ascending(function("epoch_us", column(TIME)))
    frame = window_frame(times)
    entries = exp.Window(this=function("list", column(TIME)), order=order, spec=frame)
    windows = select(add_alias(column(TIME), PERIOD), add_alias(entries, TIME)).from_(
        subquery(distinct, "distinct")
    )
    return select(column(PERIOD), add_alias(function("unnest", column(TIME)), TIME)).from_(
        subquery(windows, "windows")
    )


def is_the_column(times: TimePairs, side: str) -> bool:
    """True if the coordinates on one side of the pairs are the values of the column of times.

    The sides are `PERIOD` and `TIME`.
    """
    return times.kind == "window" or (times.kind in ("step", "range") and side == TIME)


def results_of_pairs(times: TimePairs, relation: exp.Expr) -> exp.Select:
    """Select the coordinates of results, each once, in a column of the name of the key column."""
    if times.kind == "window":
        rows: exp.Query = select(add_alias(column(times.column), PERIOD)).from_(relation)
    elif times.kind == "range":
        rows = _range(times, relation)
    else:
        rows = periods(times, relation)
    results = select(add_alias(column(PERIOD), times.column)).from_(subquery(rows, "pairs"))
    return results.distinct()


def periods(times: TimePairs, relation: exp.Expr) -> exp.Query:
    """Select the starts of steps, which may recur, from a relation with the column of times.

    These are all from the first to the last, unless steps without a time are left out.
    """
    time = column(times.column)
    own = select(add_alias(step_start(times, time), PERIOD)).from_(relation)
    if not times.every:
        return own
    finite = function("isfinite", _counted(times, time.copy()))
    low, high = (
        step_start(times, exp.Filter(this=end(this=time.copy()), expression=exp.Where(this=finite)))
        for end in (exp.Min, exp.Max)
    )
    ends = select(add_alias(low, "low"), add_alias(high, "high")).from_(relation.copy())
    between = [cast(column(name), "TIMESTAMP") for name in ("low", "high")]
    series = function("unnest", function("generate_series", *between, _length(times)))
    every = select(add_alias(cast(series, times.type), PERIOD)).from_(subquery(ends, "ends"))
    return exp.union(every, own.where(exp.not_(finite.copy())), distinct=False)


def step_start(times: TimePairs, time: exp.Expr) -> exp.Expr:
    """The start of the step that holds a time."""
    return cast(function("time_bucket", _length(times), _counted(times, time)), times.type)


def _counted(times: TimePairs, time: exp.Expr) -> exp.Expr:
    """A time as it is counted: in microseconds, whatever the type of the column is."""
    return time if times.type == "DATE" else cast(time, "TIMESTAMP")


def _length(times: TimePairs) -> exp.Expr:
    """The length of a step."""
    if times.months:
        return function("to_months", integer(times.months))
    return function("to_microseconds", integer(times.microseconds))
