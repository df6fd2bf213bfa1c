"""Tables of runs of one value: a row for each position of a run, and what is known of all runs.

A run begins at the last key of its row, and ends before the position in another column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp, select

from ucle.plan.sources import TableSource
from ucle.sqlgen.sql_trees import add_alias, cast, column, function, integer

LENGTH, NEXT = "a length", "the next one"  # labels have no blanks


def run_rows(source: TableSource, relation: exp.Expr) -> exp.Query:
    """Select the keys and the value of each position of all runs of a relation."""
    *keys, begin = source.keys
    place = function("unnest", function("range", _whole(begin), _whole(_end(source))))
    values = [] if source.value is None else [column(source.value)]
    return select(*map(column, keys), add_alias(place, begin), *values).from_(relation)


def without_ends(source: TableSource) -> TableSource:
    """The rows of a table of runs: the first position of each run."""
    return replace(source, ends=None)


def run_length(source: TableSource) -> exp.Expr:
    """The number of positions of a run."""
    begin = source.keys[-1]
    return exp.paren(exp.Sub(this=_whole(_end(source)), expression=_whole(begin)), copy=False)


def wrong_end(source: TableSource) -> exp.Expr:
    """Condition: a run has no end, or ends before it begins."""
    end = _end(source)
    before = exp.LT(this=column(end), expression=column(source.keys[-1]))
    return exp.or_(exp.Is(this=column(end), expression=exp.Null()), before)


def totals_of_runs(source: TableSource, relation: exp.Expr, stored: exp.Expr) -> exp.Select:
    """One row: runs with a wrong end, the positions of all, those that are stored, the last end."""
    length = exp.Sum(this=run_length(source))
    wrong = exp.Filter(
        this=exp.Count(this=exp.Star()), expression=exp.Where(this=wrong_end(source))
    )
    kept = exp.Filter(this=length.copy(), expression=exp.Where(this=stored))
    numbers: list[exp.Expr] = [length, kept, exp.Max(this=column(_end(source)))]
    return select(wrong, *(exp.func("coalesce", x, integer(0)) for x in numbers)).from_(relation)


def overlapping_run(source: TableSource, relation: exp.Expr) -> exp.Select:
    """The keys of a run that begins before the one before it ends; no row if there is none."""
    *keys, begin = source.keys
    order = exp.Order(expressions=[exp.Ordered(this=column(begin), nulls_first=False)])
    following = exp.Window(
        this=function("lead", column(begin)),
        partition_by=[column(key) for key in keys],
        order=order,
    )
    rows = select(*map(column, source.keys), column(_end(source)), add_alias(following, NEXT))
    has_columns = exp.GT(this=column(_end(source)), expression=column(begin))
    runs = rows.from_(relation).where(has_columns).subquery("runs")
    overlaps = exp.LT(this=column(NEXT), expression=column(_end(source)))
    return select(*map(column, keys), column(NEXT)).from_(runs).where(overlaps).limit(1)


def degrees_of_runs(
    source: TableSource, relation: exp.Expr, stored: exp.Expr, keys: Sequence[str]
) -> exp.Select:
    """One row: for each of some keys the most positions that share a coordinate."""
    length = add_alias(run_length(source), LENGTH)
    lengths = select(*map(column, keys), length).from_(relation).where(stored)
    found = []
    for key in keys:
        total = add_alias(exp.Sum(this=column(LENGTH)), LENGTH)
        sums = select(total).from_(lengths.copy().subquery("runs")).group_by(column(key))
        found.append(select(exp.Max(this=column(LENGTH))).from_(sums.subquery("sums")).subquery())
    return select(*found)


def _end(source: TableSource) -> str:
    assert source.ends is not None
    return source.ends


def _whole(name: str) -> exp.Expr:
    return cast(column(name), "BIGINT")
