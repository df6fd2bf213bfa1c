"""Conditions that no row of an input may meet: values that are no numbers, arrays of other shapes.

Each is an expression over the columns of a source; `ucle.stats.measure` shows an example of a row
that meets it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from sqlglot import exp

from ucle.plan.sources import TableSource
from ucle.sqlgen.dialects import DUCKDB_SQL
from ucle.sqlgen.input_tables import (
    flatten_lists,
    is_null,
    list_value,
)
from ucle.sqlgen.sql_trees import (
    cast,
    column,
    function,
    integer,
    is_infinite,
)


def list_parts(pair: exp.Expr) -> list[exp.Expr]:
    """The real and the imaginary part of a complex number."""
    return [exp.Dot(this=pair.copy(), expression=exp.to_identifier(x)) for x in ("re", "im")]


def is_incomplete(pair: exp.Expr) -> exp.Expr:
    """Condition: a complex number or a part of it is NULL."""
    return exp.or_(*(exp.Is(this=part, expression=exp.Null()) for part in list_parts(pair)))


def no_value(source: TableSource) -> exp.Expr:
    """Condition: a number, or a part of it, is NULL."""
    assert source.value is not None
    return is_incomplete(column(source.value)) if source.pairs else is_null(source.value)


def is_lost_by_narrowing(source: TableSource) -> exp.Expr:
    """Condition: a value, or one in an array, is not a number of the tensor's element type."""
    assert source.value is not None
    assert source.narrowed is not None
    value = column(source.value)
    if not source.nesting:
        return _no_number_of(value, source)
    flat = flatten_lists(cast(value, source.narrowed, source.nesting), source.nesting)
    return _any_element(flat, lambda element: _no_number_of(element, source))


def _no_number_of(value: exp.Expr, source: TableSource) -> exp.Expr:
    type_ = DUCKDB_SQL.types[source.dtype.real]
    parts = list_parts(value) if source.pairs else [value]
    lost = [exp.TryCast(this=part.copy(), to=exp.DataType.build(type_)) for part in parts]
    if source.dtype.kind in "fc":
        pairs = zip(lost, parts, strict=True)
        return exp.or_(*(_beyond_range(narrow, part) for narrow, part in pairs))
    back = exp.TryCast(
        this=lost[0], to=exp.DataType.build(source.narrowed or "", dialect=DUCKDB_SQL.sqlglot)
    )
    return exp.NullSafeNEQ(this=back, expression=value.copy())


def _beyond_range(narrow: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Condition: the cast of a value to floats has failed, or has turned it into an infinity."""
    wide = cast(value.copy(), "DOUBLE")
    infinite = exp.and_(is_infinite(narrow), exp.not_(is_infinite(wide)))
    missing = exp.and_(
        exp.Is(this=narrow.copy(), expression=exp.Null()),
        exp.not_(exp.Is(this=value.copy(), expression=exp.Null())),
    )
    return exp.or_(missing, infinite)


def _any_element(flat: exp.Expr, condition: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Condition: an element of a list meets a condition."""
    element = exp.to_identifier("element")
    matching = function(
        "list_filter",
        flat,
        exp.Lambda(this=condition(exp.column(element)), expressions=[element], colon=True),
    )
    return exp.GT(this=function("len", matching), expression=integer(0))


def outside(name: str, low: int, high: int) -> exp.Expr:
    """Condition: a column lies outside [low, high)."""
    return exp.or_(
        exp.LT(this=column(name), expression=integer(low)),
        exp.GTE(this=column(name), expression=integer(high)),
    )


def wrong_length(source: TableSource) -> exp.Expr:
    """Condition: an array is NULL, holds a NULL, or has another shape than the first one."""
    assert source.value is not None
    value = column(source.value)
    conditions: list[exp.Expr] = [is_null(source.value)]
    conditions += _wrong_levels(value, source)
    flat = list_value(value.copy(), source)
    length = function("list_count", flat)  # NULL elements do not count
    size = 1
    for bound in source.dense:
        size *= bound
    conditions.append(exp.NEQ(this=length, expression=integer(size)))
    if source.pairs:
        conditions.append(_any_element(flat.copy(), is_incomplete))
    return exp.or_(*conditions)


def wrong_shape(source: TableSource) -> exp.Expr:
    """Condition: an array is NULL or has another shape; NULL elements are not detected."""
    assert source.value is not None
    return exp.or_(is_null(source.value), *_wrong_levels(column(source.value), source))


def _wrong_levels(value: exp.Expr, source: TableSource) -> list[exp.Expr]:
    """One condition per level of nesting: a list there does not have the length of the shape."""
    sizes = source.dense if source.nesting > 1 else (math.prod(source.dense),)
    conditions: list[exp.Expr] = []
    element = source.dtype if source.pairs else source.dtype.real
    levels: exp.Expr = cast(value.copy(), element, source.nesting)
    for depth, size in enumerate(sizes):
        if depth == 0:
            conditions.append(
                exp.NEQ(this=function("len", levels.copy()), expression=integer(size))
            )
            continue
        # After flattening depth - 1 times, the elements are the lists of this level.
        conditions.append(_any_element(levels.copy(), partial(_not_long, size)))
        levels = function("flatten", levels)
    return conditions


def _not_long(size: int, array: exp.Expr) -> exp.Expr:
    return exp.NEQ(this=function("len", array), expression=integer(size))
