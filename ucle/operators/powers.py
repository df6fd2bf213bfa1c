"""Powers, roots, exponentials and logarithms."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.foundation.dtypes import DType
from ucle.foundation.random_numbers import normal_quantile
from ucle.operators import duckdb_formulas as formulas
from ucle.operators import duckdb_random as random_texts
from ucle.operators.algebra import (
    drop_zero_signs,
    is_one_of,
)
from ucle.operators.duckdb_formulas import of_reals
from ucle.operators.interval_rules import (
    ends,
    rising,
)
from ucle.operators.rows import (
    Combine,
    MapRule,
    PointwiseMap,
)
from ucle.operators.values import (
    ROUNDING,
    Values,
    anything,
    interval,
)


def _pow(x: Any, y: Any) -> Any:
    return np.power(drop_zero_signs(x), y)


def _power_values(a: Values, b: Values, dtype: DType) -> Values:
    if dtype.kind in "bi":
        return anything(dtype)
    whole = b.low == b.high and math.isfinite(b.low) and b.low == int(b.low)
    if dtype.kind == "c":
        return interval(0, 0, dtype, finite=a.excludes_zero, nonzero=a.excludes_zero)
    if a.low < 0 and not whole:
        return interval(-math.inf, math.inf, dtype, finite=False)
    if not a.excludes_zero and b.low < 0:
        return interval(-math.inf, math.inf, dtype, finite=False)
    if a.low < 0 and b.low < 0:
        return interval(-math.inf, math.inf, dtype, nonzero=True)
    powers = [float(np.power(float(x), float(y))) for x in ends(a) for y in ends(b)]
    if a.touches_zero and b.high > 0:
        powers.append(0.0)  # beside 0 ^ 0, which is 1
    if b.touches_zero:
        powers.append(1.0)
    return interval(min(powers), max(powers), dtype, nonzero=a.excludes_zero)


def _logaddexp_values(a: Values, b: Values, dtype: DType) -> Values:
    low = np.logaddexp(float(a.low), float(b.low))
    high = np.logaddexp(float(a.high), float(b.high))
    # Where terms cancel, what rounds is the greater one.
    most = max(abs(x) for x in (*ends(a), *ends(b)))
    slack = ROUNDING * float(np.finfo(dtype.numpy).eps) * (most if math.isfinite(most) else 0)
    return interval(low - slack, high + slack, dtype)


def _exponential_values(a: Values, dtype: DType) -> Values:
    if dtype.kind == "c":
        return interval(0, 0, dtype, nonzero=True)
    image = interval(
        np.exp(float(a.low)), np.exp(float(a.high)), dtype, rounding=2**6, nonzero=True
    )
    return replace(image, low=max(image.low, 0.0))


def _logarithm_values(a: Values, dtype: DType) -> Values:
    if dtype.kind == "c" or not (a.low >= 0 and a.excludes_zero):
        finite = dtype.kind == "c" and a.excludes_zero
        return interval(-math.inf, math.inf, dtype, finite=finite)
    smallest = float(np.finfo(dtype.numpy).smallest_subnormal)
    low, high = (math.log(max(x, smallest)) if x < math.inf else x for x in (a.low, a.high))
    # What is no 0 by its operands may be too small for its type: log is infinite then.
    return replace(interval(low, high, dtype), overflows=a.touches_zero)


def _logarithm_to(base: float) -> MapRule:
    """The rule of a logarithm to another base than e."""

    def rule(a: Values, dtype: DType) -> Values:
        natural = _logarithm_values(a, dtype)
        low, high = natural.low / math.log(base), natural.high / math.log(base)
        image = interval(low, high, dtype, finite=natural.finite)
        return replace(image, overflows=image.overflows or natural.overflows)

    return rule


def _log1p_values(a: Values, dtype: DType) -> Values:
    if not a.low > -1:
        return interval(-math.inf, math.inf, dtype, finite=False)
    image = interval(np.log1p(float(a.low)), np.log1p(float(a.high)), dtype)
    return replace(image, nonzero=a.excludes_zero)


def _root_values(a: Values, dtype: DType) -> Values:
    if dtype.kind == "c":
        return interval(0, 0, dtype, nonzero=a.excludes_zero)
    if a.low < 0:
        return interval(-math.inf, math.inf, dtype, finite=False)
    return interval(math.sqrt(a.low), math.sqrt(a.high), dtype, nonzero=a.excludes_zero)


def _quantile_values(a: Values, dtype: DType) -> Values:
    if not 0 < a.low <= a.high < 1:
        return interval(-math.inf, math.inf, dtype, finite=False)
    low, high = (float(normal_quantile(x)) for x in (a.low, a.high))
    return interval(low, high, dtype)


POW = Combine(
    "pow",
    "^",
    "ifc",
    _pow,
    absorbs_left=is_one_of(1),
    absorbs_right=is_one_of(0),
    absorbs_all=True,
    binding=11,
    rule=_power_values,
    undefined_somewhere=True,
    texts=of_reals(formulas.POWER, formulas.INTEGER_POWER) | {"c": formulas.COMPLEX_POWER},
    derivatives=(
        "when(y != 0, g * y * x ^ (y - 1))",
        "unless(x == 0 and y >= 0, g * z * log(x))",
    ),
)

LOGADDEXP = Combine(
    "logaddexp",
    "logaddexp",
    "f",
    np.logaddexp,
    absorbs_left=is_one_of(math.inf),
    absorbs_right=is_one_of(math.inf),
    commutative=True,
    infix=False,
    rule=_logaddexp_values,
    keeps_nan=True,
    texts={"f": formulas.LOGADDEXP},
    derivatives=("g * sigmoid(x - y)", "g * sigmoid(y - x)"),
)

EXP = PointwiseMap(
    "exp",
    "fc",
    np.exp,
    rule=_exponential_values,
    keeps_nan=True,
    texts={"f": "exp(x)", "c": formulas.COMPLEX_EXPONENTIAL},
    derivative="g * z",
)

LOG = PointwiseMap(
    "log",
    "fc",
    np.log,
    rule=_logarithm_values,
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": formulas.logarithm("x"), "c": formulas.COMPLEX_LOGARITHM},
    derivative="g / x",
)

LOG1P = PointwiseMap(
    "log1p",
    "f",
    np.log1p,
    rule=_log1p_values,
    keeps_nan=True,
    undefined_somewhere=True,
    bounded=True,
    texts={"f": formulas.LOG1P},
    derivative="g / (1 + x)",
)

EXPM1 = PointwiseMap(
    "expm1",
    "f",
    np.expm1,
    rule=rising(lambda x: np.expm1(float(x)), -1.0, rounding=2**6),
    keeps_nan=True,
    texts={"f": formulas.EXPM1},
    derivative="g * (1 + z)",
)

LOG2 = PointwiseMap(
    "log2",
    "f",
    np.log2,
    rule=_logarithm_to(2),
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": formulas.logarithm("x", "log2")},
    derivative="g / (0.6931471805599453 * x)",
)

LOG10 = PointwiseMap(
    "log10",
    "f",
    np.log10,
    rule=_logarithm_to(10),
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": formulas.logarithm("x", "log10")},
    derivative="g / (2.302585092994046 * x)",
)

SQRT = PointwiseMap(
    "sqrt",
    "fc",
    np.sqrt,
    rule=_root_values,
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": formulas.ROOT, "c": formulas.COMPLEX_ROOT},
    derivative="0.5 * g / z",
)

NORMAL_QUANTILE = PointwiseMap(
    "normal_quantile",
    "f",
    normal_quantile,
    rule=_quantile_values,
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": random_texts.NORMAL_QUANTILE},
    derivative="2.5066282746310002 * g * exp(0.5 * z * z)",
)

COMBINES: tuple[Combine, ...] = (
    POW,
    LOGADDEXP,
)

MAPS: tuple[PointwiseMap, ...] = (
    EXP,
    LOG,
    LOG1P,
    EXPM1,
    LOG2,
    LOG10,
    SQRT,
    NORMAL_QUANTILE,
)
