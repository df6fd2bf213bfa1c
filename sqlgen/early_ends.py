"""Aggregations of truth values that end at the entry that decides them (`ucle.plan.early_ends`)."""

from __future__ import annotations

from sqlglot import exp

from ucle.ir.fills import Missing
from ucle.operators import Reduce
from ucle.plan.early_ends import deciding_value
from ucle.sqlgen.sql_trees import VALUE, add_alias, integer, select_from, subquery


def end_early(
    query: exp.Select, value: exp.Expr, operation: Reduce, missing: Missing | None
) -> exp.Select:
    """Return a query of one row: whether any or all of some values are true.

    Args:
        query: the tuples, without columns.
        value: the truth value of each.
        operation: the aggregation.
        missing: the value of the tuples that are not stored; None if it does not decide. If it
            does, the others are counted, as all of them have to be there.
    """
    deciding = deciding_value(operation)
    count, no = exp.Count(this=exp.Star()), exp.Not(this=exp.Paren(this=value.copy()))
    decides, does_not = (value, no) if deciding else (no, value)
    if missing is None or missing.value != deciding:
        rows = query.select(integer(1), copy=False).where(decides, copy=False)
        found = subquery(rows.limit(1, copy=False), "T")
        some = (exp.GT if deciding else exp.EQ)(this=count, expression=integer(0))
        return select_from(found, add_alias(some, VALUE))
    complete = (exp.NEQ if deciding else exp.EQ)(this=count, expression=integer(missing.cells))
    return query.select(add_alias(complete, VALUE), copy=False).where(does_not, copy=False)
