"""Aggregations, and the combinations that join their partial results."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.foundation.dtypes import DType, Scalar, is_finite
from ucle.operators import duckdb_formulas as formulas
from ucle.operators.algebra import (
    highest,
    lowest,
)
from ucle.operators.arithmetic import ADD, GREATEST, LEAST, MULT
from ucle.operators.comparisons import AND, OR
from ucle.operators.conditionals import WHEN, WHEN_HIGHEST, WHEN_LOWEST, WHEN_ONE
from ucle.operators.duckdb_formulas import NAN, of_reals, pair
from ucle.operators.powers import POW
from ucle.operators.rows import (
    NONE,
    Exactness,
    Extreme,
    Reduce,
    Typing,
)
from ucle.operators.values import (
    ROUNDING,
    Values,
    anything,
    interval,
    of_operands,
    times,
    with_fill,
)

OTHERS = """
    g * where(x == 0,
              when(sum(x == 0) == 1, prod(where(x == 0, 1, x)))
              + when(sum(x == 0) == 2,
                     sparse_mult(sum(when(x == 0, x)) - x, prod(where(x == 0, 1, x)))),
              when(sum(x == 0) == 0, prod(where(x == 0, 1, x)) / x)
              + when(sum(x == 0) == 1,
                     sparse_mult(sum(when(x == 0, x)), prod(where(x == 0, 1, x)) / x)))
"""
"""The gradient of a factor: g times the product of all others, also where some are 0.

The sums of zeros are 0, but grow with them: so the derivative of this is that of the product of all
others, too."""


def _same(value: Any, count: int) -> Any:
    """Return the aggregate of equal values under an idempotent ⊕."""
    return value


def _power(value: Any, count: int) -> Any:
    if not isinstance(value, int):
        return np.power(value, count)
    if abs(value) > 1 and count > 64:
        raise OverflowError(f"{value} ^ {count} does not fit 64 bits")
    return value**count


def _entries_or_fill(values: Values, fill: Scalar, dtype: DType) -> Values:
    """Return the values of the entries of a fibre whose aggregate is not that of fills alone.

    An infinite fill makes a sum infinite, which is then the fill of the sums.
    """
    return with_fill(values, fill, dtype) if is_finite(fill) else values


def _sum_values(values: Values, fill: Scalar, count: int, dtype: DType) -> Values:
    every = _entries_or_fill(values, fill, dtype)
    total = interval(
        times(count, every.low), times(count, every.high), dtype, rounding=ROUNDING + count
    )
    some = fill == 0 or values.full
    nonzero = some and values.excludes_zero and (values.low >= 0 or values.high <= 0)
    low, high = total.low, total.high
    if some and values.low >= 0:  # one entry is there, and no other makes the sum smaller
        low = max(low, values.low)
    if some and values.high <= 0:
        high = min(high, values.high)
    total = replace(total, low=low, high=high, nonzero=total.nonzero or nonzero)
    return of_operands(total, (values,), dtype)


def _product_of_entries(values: Values, fill: Scalar, count: int, dtype: DType) -> Values:
    every = with_fill(values, fill, dtype)
    if dtype.kind in "bi":
        return anything(dtype)
    sizes = [abs(float(every.low)), abs(float(every.high))]
    try:
        least, most = min(sizes) ** count, max(sizes) ** count
    except OverflowError:
        least, most = 0.0, math.inf
    low = least if every.low >= 0 else -most
    product = interval(low, most, dtype, rounding=ROUNDING + count, nonzero=every.excludes_zero)
    return of_operands(product, (every,), dtype)


def _picked_entry(values: Values, fill: Scalar, count: int, dtype: DType) -> Values:
    """The rule of min and max, which pick an entry."""
    return values


SUM = Reduce(
    "sum",
    "ifc",
    np.sum,
    identity=lambda dtype: dtype.scalar(0),
    repeat=lambda value, n: value * n if n else 0,
    repeat_by=MULT,
    merge=ADD,
    symbol="+=",
    rule=_sum_values,
    keeps_nan=True,
    select=WHEN,
    texts=of_reals("sum(x)") | {"c": pair("sum(x.re)", "sum(x.im)")},
    has_scan=True,
    derivative="g",
)

PROD = Reduce(
    "prod",
    "ifc",
    np.prod,
    identity=lambda dtype: dtype.scalar(1),
    repeat=_power,
    repeat_by=POW,
    merge=MULT,
    symbol="*=",
    rule=_product_of_entries,
    keeps_nan=True,
    select=WHEN_ONE,
    texts={"f": "product(x)", "i": formulas.INTEGER_PRODUCT, "c": formulas.REPEATED_PRODUCT},
    has_scan=True,
    may_alternate=True,
    has_window=False,
    derivative=OTHERS,
)

MIN = Reduce(
    "min",
    "bif",
    np.min,
    identity=highest,
    repeat=_same,
    merge=LEAST,
    needs_one=True,
    rule=_picked_entry,
    extreme=Extreme.LEAST,
    keeps_nan=True,
    exactness=Exactness.EXACT,
    select=WHEN_HIGHEST,
    texts={
        "f": f"CASE WHEN bool_or(isnan(x)) THEN {NAN} ELSE min(x) END",
        "i": "min(x)",
        "b": "bool_and(x)",
    },
    uncast_kinds="i",
    has_scan=True,
    derivative="when(x == z, g / sum(x == z))",
)

MAX = Reduce(
    "max",
    "bif",
    np.max,
    identity=lowest,
    repeat=_same,
    merge=GREATEST,
    needs_one=True,
    rule=_picked_entry,
    extreme=Extreme.GREATEST,
    keeps_nan=True,
    exactness=Exactness.EXACT,
    select=WHEN_LOWEST,
    texts=of_reals("max(x)") | {"b": "bool_or(x)"},
    uncast_kinds="fi",
    has_scan=True,
    derivative="when(x == z, g / sum(x == z))",
)

ANY = Reduce(
    "any",
    "b",
    np.any,
    Typing.LOGICAL,
    identity=lambda _: False,
    repeat=_same,
    merge=OR,
    kernel="max",
    rule=_picked_entry,
    extreme=Extreme.GREATEST,
    exactness=Exactness.EXACT,
    select=WHEN,
    texts={"b": "bool_or(x)"},
    derivative=NONE,
)

ALL = Reduce(
    "all",
    "b",
    np.all,
    Typing.LOGICAL,
    identity=lambda _: True,
    repeat=_same,
    merge=AND,
    kernel="min",
    rule=_picked_entry,
    extreme=Extreme.LEAST,
    exactness=Exactness.EXACT,
    select=WHEN_HIGHEST,
    texts={"b": "bool_and(x)"},
    derivative=NONE,
)

COUNT = Reduce(
    "count",
    "",
    np.count_nonzero,
    exactness=Exactness.EXACT,
    select=WHEN,
    definition="sum(int64(bool(x)))",
    derivative=NONE,
)

MEAN = Reduce(
    "mean",
    "",
    np.mean,
    # As floats, which a sum of integers may not fit (`ucle.lowering.simplify_products`).
    definition="sum(x * 1.0) / size",
    derivative="g / size",
)

LOGSUMEXP = Reduce(
    "logsumexp",
    "",
    np.logaddexp.reduce,
    identity=lambda _: -math.inf,
    undefined_somewhere=True,
    select=WHEN_LOWEST,
    # The greatest term is taken out, so that no power overflows; where it is infinite, nothing is.
    # It is a float, as booleans have no difference.
    definition="log(sum(exp(x - finite(max(x)) * 1.0))) + finite(max(x))",
    derivative="g * exp(min(x - finite(z), 0))",
)

REDUCES: tuple[Reduce, ...] = (
    SUM,
    PROD,
    MIN,
    MAX,
    ANY,
    ALL,
    COUNT,
    MEAN,
    LOGSUMEXP,
)

PICK = Reduce("pick", "bifc", np.sum, undefined_somewhere=True, picks=True, derivative="g")
PICK_OR_FILL = Reduce(
    "pick_or_fill", "bifc", np.sum, undefined_somewhere=True, picks=True, derivative="g"
)
"""The one entry that a condition selects, as it is; the fill where there may be none. Which ⊕ and
which ⊗ that is, is up to the type of the tensor (`ucle.lowering.syntax_to_logical`)."""
