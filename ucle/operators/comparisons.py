"""Comparisons, logic, and tests of numbers: the operators that say yes or no."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ucle.foundation.dtypes import DType
from ucle.operators.algebra import (
    CONJUNCTIONS,
    DISJUNCTIONS,
    is_one_of,
)
from ucle.operators.duckdb_formulas import indicator, of_reals
from ucle.operators.interval_rules import (
    yes_or_no_values,
)
from ucle.operators.rows import (
    FLAT,
    NONE,
    Combine,
    Exactness,
    PointwiseMap,
    Typing,
)
from ucle.operators.values import (
    Values,
    is_nonzero,
    largest_number,
)


def _not_equal_values(a: Values, b: Values, dtype: DType) -> Values:
    zero = Values(0, 0)
    for one, other in ((a, b), (b, a)):
        if replace(other, full=False) == zero:
            return is_nonzero(one)
    return Values(0, 1)


def _finite_values(a: Values, dtype: DType) -> Values:
    """Numbers as they are, and 0 in the places of those that are none or infinite."""
    largest = largest_number(dtype) if dtype.kind == "f" else math.inf
    low, high = max(a.low, -largest), min(a.high, largest)
    if a.finite and not a.overflows:
        return replace(a, low=low, high=high)
    return Values(min(low, 0.0), max(high, 0.0))


def _nonzero_values(a: Values, dtype: DType) -> Values:
    """Values without 0, and 1 if it may take the place of one."""
    if a.excludes_zero:
        return a
    above = a.low >= 0 and dtype.kind == "f"
    low = float(np.finfo(dtype.numpy).smallest_subnormal) if above else a.low
    if a.low >= 0 and dtype.kind == "i":
        low = 1
    return replace(a, low=min(low, 1), high=max(a.high, 1), nonzero=True)


LESS = Combine(
    "less",
    "<",
    "bif",
    np.less,
    Typing.COMPARISON,
    binding=4,
    rule=yes_or_no_values,
    exactness=Exactness.TRUTH,
    texts={
        "f": indicator("x < y AND NOT isnan(y)"),
        "i": indicator("x < y"),
        "b": "y AND NOT x",
    },
    derivatives=FLAT,
)

LESS_EQUAL = Combine(
    "less_equal",
    "<=",
    "bif",
    np.less_equal,
    Typing.COMPARISON,
    binding=4,
    rule=yes_or_no_values,
    exactness=Exactness.TRUTH,
    texts={
        "f": indicator("x <= y AND NOT isnan(y)"),
        "i": indicator("x <= y"),
        "b": "y OR NOT x",
    },
    derivatives=FLAT,
)

EQUAL = Combine(
    "equal",
    "==",
    "bifc",
    np.equal,
    Typing.COMPARISON,
    commutative=True,
    binding=4,
    rule=yes_or_no_values,
    exactness=Exactness.TRUTH,
    texts={
        "f": indicator("x = y AND NOT isnan(x)"),
        "i": indicator("x = y"),
        "b": "x = y",
        "c": indicator("x = y AND NOT isnan(x.re) AND NOT isnan(x.im)"),
    },
    derivatives=FLAT,
)

NOT_EQUAL = Combine(
    "not_equal",
    "!=",
    "bifc",
    np.not_equal,
    Typing.COMPARISON,
    commutative=True,
    binding=4,
    rule=_not_equal_values,
    exactness=Exactness.TRUTH,
    texts={
        "f": indicator("x <> y OR isnan(x)"),
        "i": indicator("x <> y"),
        "b": "x <> y",
        "c": indicator("x <> y OR isnan(x.re) OR isnan(x.im)"),
    },
    derivatives=FLAT,
)

AND = Combine(
    "and",
    "and",
    "b",
    np.logical_and,
    Typing.LOGICAL,
    absorbs_left=is_one_of(False),
    absorbs_right=is_one_of(False),
    commutative=True,
    associative=True,
    distributes_over=DISJUNCTIONS,
    kernel="mult",
    binding=2,
    rule=yes_or_no_values,
    exactness=Exactness.TRUTH,
    sparse_by_one=True,
    takes_masks=True,
    texts={"b": "x AND y"},
    derivatives=FLAT,
)

OR = Combine(
    "or",
    "or",
    "b",
    np.logical_or,
    Typing.LOGICAL,
    absorbs_left=is_one_of(True),
    absorbs_right=is_one_of(True),
    commutative=True,
    associative=True,
    distributes_over=CONJUNCTIONS,
    kernel="greatest",
    binding=1,
    rule=yes_or_no_values,
    exactness=Exactness.TRUTH,
    texts={"b": "x OR y"},
    derivatives=FLAT,
)

XOR = Combine(
    "xor",
    "xor",
    "b",
    np.logical_xor,
    Typing.LOGICAL,
    commutative=True,
    associative=True,
    kernel="not_equal",
    binding=1,
    rule=yes_or_no_values,
    exactness=Exactness.TRUTH,
    texts={"b": "x <> y"},
    derivatives=FLAT,
)

NOT = PointwiseMap(
    "not",
    "bifc",
    np.logical_not,
    Typing.COMPARISON,
    rule=lambda a, dtype: Values(0, 1),
    exactness=Exactness.TRUTH,
    texts=of_reals(indicator("x = 0")) | {"b": "NOT x", "c": indicator("x.re = 0 AND x.im = 0")},
    derivative=NONE,
)

ISNAN = PointwiseMap(
    "isnan",
    "fc",
    np.isnan,
    Typing.COMPARISON,
    rule=lambda a, dtype: Values(0, 1),
    exactness=Exactness.TRUTH,
    texts={"f": indicator("isnan(x)"), "c": indicator("isnan(x.re) OR isnan(x.im)")},
    derivative=NONE,
)

ISINF = PointwiseMap(
    "isinf",
    "fc",
    np.isinf,
    Typing.COMPARISON,
    rule=lambda a, dtype: Values(0, 1),
    exactness=Exactness.TRUTH,
    texts={"f": indicator("isinf(x)"), "c": indicator("isinf(x.re) OR isinf(x.im)")},
    derivative=NONE,
)

ISFINITE = PointwiseMap(
    "isfinite",
    "fc",
    np.isfinite,
    Typing.COMPARISON,
    rule=lambda a, dtype: Values(0, 1),
    exactness=Exactness.TRUTH,
    texts={
        "f": indicator("isfinite(x)"),
        "c": indicator("isfinite(x.re) AND isfinite(x.im)"),
    },
    derivative=NONE,
)

FINITE = PointwiseMap(
    "finite",
    "f",
    lambda x: np.where(np.isfinite(x), x, 0.0)[()],
    nothing_on="bi",
    always_finite=True,
    rule=_finite_values,
    texts={"f": "CASE WHEN isfinite(x) THEN x ELSE 0e0 END"},
    derivative="when(isfinite(x), g)",
)

ONE_IF_ZERO = PointwiseMap(
    "one_if_zero",
    "bifc",
    lambda x: np.where(x == 0, np.ones_like(x), x)[()],
    keeps_nan=True,
    rule=_nonzero_values,
    exactness=Exactness.EXACT,
    texts=of_reals("CASE WHEN x = 0 THEN one ELSE x END")
    | {
        "b": "x OR NOT x",
        "c": "CASE WHEN x.re = 0 AND x.im = 0 THEN one ELSE x END",
    },
    uncast_kinds="fi",
    derivative="when(x != 0, g)",
)

COMBINES: tuple[Combine, ...] = (
    LESS,
    LESS_EQUAL,
    EQUAL,
    NOT_EQUAL,
    AND,
    OR,
    XOR,
)

MAPS: tuple[PointwiseMap, ...] = (
    NOT,
    ISNAN,
    ISINF,
    ISFINITE,
    FINITE,
    ONE_IF_ZERO,
)
