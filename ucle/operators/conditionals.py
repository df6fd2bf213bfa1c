"""Selections: a value where a condition holds, and a constant elsewhere.

``where(c, x, y)`` is ``when(c, x) + unless(c, y)``: one of the two is 0, whatever the other is. The
others give what an aggregation makes of nothing, so that it leaves out what does not meet the
condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.foundation.dtypes import DType, Scalar
from ucle.operators.algebra import (
    HIGHEST,
    LOWEST,
    highest,
    is_end,
    is_not,
    is_one_of,
    lowest,
)
from ucle.operators.duckdb_formulas import of_reals
from ucle.operators.rows import (
    NONE,
    Combine,
    CombineRule,
    Exactness,
    Typing,
)
from ucle.operators.values import (
    Values,
    hull,
    interval,
    point,
)


def _when(c: Any, x: Any) -> Any:
    return np.where(c != 0, x, np.zeros_like(x))


def _unless(c: Any, x: Any) -> Any:
    return np.where(c != 0, np.zeros_like(x), x)


def _when_one(c: Any, x: Any) -> Any:
    return np.where(c != 0, x, np.ones_like(x))


def _when_lowest(c: Any, x: Any) -> Any:
    kind = np.asarray(x).dtype.kind
    return np.where(c != 0, x, np.full_like(x, LOWEST.get(kind, -math.inf)))


def _when_highest(c: Any, x: Any) -> Any:
    kind = np.asarray(x).dtype.kind
    return np.where(c != 0, x, np.full_like(x, HIGHEST.get(kind, math.inf)))


def _selected_values(condition: Values, value: Values, dtype: DType) -> Values:
    """The value or 0; what the condition is, is not among them."""
    selected = interval(min(value.low, 0), max(value.high, 0), dtype, rounding=0)
    return replace(selected, overflows=value.overflows)


def _selected_or_values(otherwise: Callable[[DType], Scalar]) -> CombineRule:
    """The rule of a selection that gives another value where the condition does not hold."""

    def rule(condition: Values, value: Values, dtype: DType) -> Values:
        value = replace(value, full=False)
        if condition.excludes_zero:
            return value
        return hull(value, point(otherwise(dtype), dtype))

    return rule


# where(c, x, y) is when(c, x) + unless(c, y): one of the two is 0, whatever the other is.
WHEN = Combine(
    "when",
    "when",
    "bifc",
    _when,
    Typing.SELECTION,
    absorbs_left=is_one_of(0),
    absorbs_right=is_one_of(0),
    absorbs_all=True,
    infix=False,
    rule=_selected_values,
    exactness=Exactness.EXACT,
    sparse_by_one=True,
    texts=of_reals("CASE WHEN x <> 0 THEN y ELSE zero END")
    | {"b": "x AND y", "c": "CASE WHEN x.re <> 0 OR x.im <> 0 THEN y ELSE zero END"},
    keeps_where=True,
    derivatives=(NONE, "when(x, g)"),
)

# As `when`, for an aggregation that leaves out what does not meet the condition.
WHEN_ONE = Combine(
    "when_one",
    "when_one",
    "bifc",
    _when_one,
    Typing.SELECTION,
    absorbs_left=is_one_of(0),
    absorbs_right=is_one_of(1),
    absorbs_all=True,
    infix=False,
    rule=_selected_or_values(lambda dtype: dtype.scalar(1)),
    exactness=Exactness.EXACT,
    texts=of_reals("CASE WHEN x <> 0 THEN y ELSE one END")
    | {"b": "y OR NOT x", "c": "CASE WHEN x.re <> 0 OR x.im <> 0 THEN y ELSE one END"},
    derivatives=(NONE, "when(x, g)"),
)

WHEN_LOWEST = Combine(
    "when_lowest",
    "when_lowest",
    "bif",
    _when_lowest,
    Typing.SELECTION,
    absorbs_left=is_one_of(0),
    absorbs_right=is_end(-math.inf, -(2**63)),
    absorbs_all=True,
    infix=False,
    rule=_selected_or_values(lambda dtype: dtype.scalar(lowest(dtype))),
    exactness=Exactness.EXACT,
    texts={
        "f": "CASE WHEN x <> 0 THEN y ELSE -'inf'::DOUBLE END",
        "i": "CASE WHEN x <> 0 THEN y ELSE -9223372036854775808 END",
        "b": "x AND y",
    },
    derivatives=(NONE, "when(x, g)"),
)

WHEN_HIGHEST = Combine(
    "when_highest",
    "when_highest",
    "bif",
    _when_highest,
    Typing.SELECTION,
    absorbs_left=is_one_of(0),
    absorbs_right=is_end(math.inf, 2**63 - 1),
    absorbs_all=True,
    infix=False,
    rule=_selected_or_values(lambda dtype: dtype.scalar(highest(dtype))),
    exactness=Exactness.EXACT,
    texts={
        "f": "CASE WHEN x <> 0 THEN y ELSE 'inf'::DOUBLE END",
        "i": "CASE WHEN x <> 0 THEN y ELSE 9223372036854775807 END",
        "b": "y OR NOT x",
    },
    derivatives=(NONE, "when(x, g)"),
)

UNLESS = Combine(
    "unless",
    "unless",
    "bifc",
    _unless,
    Typing.SELECTION,
    absorbs_left=is_not(0),
    absorbs_right=is_one_of(0),
    absorbs_all=True,
    infix=False,
    rule=_selected_values,
    exactness=Exactness.EXACT,
    texts=of_reals("CASE WHEN x <> 0 THEN zero ELSE y END")
    | {"b": "y AND NOT x", "c": "CASE WHEN x.re <> 0 OR x.im <> 0 THEN zero ELSE y END"},
    keeps_where=False,
    derivatives=(NONE, "unless(x, g)"),
)

COMBINES: tuple[Combine, ...] = (
    WHEN,
    WHEN_ONE,
    WHEN_LOWEST,
    WHEN_HIGHEST,
    UNLESS,
)
