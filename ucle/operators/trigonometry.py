"""Trigonometric and hyperbolic functions, and the length and the angle of two coordinates."""

from __future__ import annotations

import math

import numpy as np

from ucle.foundation.dtypes import DType
from ucle.operators import duckdb_formulas as formulas
from ucle.operators.algebra import (
    drop_zero_signs,
    is_one_of,
)
from ucle.operators.interval_rules import (
    absolute_values,
    ends,
    rising,
    unless_complex,
    within_domain,
)
from ucle.operators.rows import (
    Combine,
    PointwiseMap,
)
from ucle.operators.values import (
    Values,
    anything,
    interval,
)


def _hypot_values(a: Values, b: Values, dtype: DType) -> Values:
    one, other = absolute_values(a, dtype), absolute_values(b, dtype)
    nonzero = a.excludes_zero or b.excludes_zero
    low = np.hypot(float(one.low), float(other.low))
    high = np.hypot(float(one.high), float(other.high))
    return interval(low, high, dtype, nonzero=nonzero)


def _cosh_values(a: Values, dtype: DType) -> Values:
    low, high = (float(np.cosh(float(x))) for x in ends(absolute_values(a, dtype)))
    return interval(low, high, dtype, rounding=2**6)


# A zero has no sign, nor has NaN.
ATAN2 = Combine(
    "atan2",
    "atan2",
    "f",
    lambda x, y: np.arctan2(drop_zero_signs(x), drop_zero_signs(y)),
    infix=False,
    rule=lambda left, right, dtype: interval(-math.pi, math.pi, dtype),
    keeps_nan=True,
    texts={"f": formulas.ANGLE_OF},
    derivatives=(
        "when(x != 0 or y != 0, g * y / (x * x + y * y))",
        "when(x != 0 or y != 0, -g * x / (x * x + y * y))",
    ),
)

HYPOT = Combine(
    "hypot",
    "hypot",
    "f",
    np.hypot,
    absorbs_left=is_one_of(math.inf, -math.inf),
    absorbs_right=is_one_of(math.inf, -math.inf),
    absorbs_all=True,
    commutative=True,
    infix=False,
    rule=_hypot_values,
    texts={"f": formulas.HYPOTENUSE},
    derivatives=("g * x / z", "g * y / z"),
)

TANH = PointwiseMap(
    "tanh",
    "fc",
    np.tanh,
    rule=unless_complex(rising(lambda x: np.tanh(float(x)), -1.0, 1.0)),
    keeps_nan=True,
    texts={
        "f": "tanh(x)",
        "c": formulas.COMPLEX_TANH,
    },
    derivative="g * (1 - square(z))",
)

SIN = PointwiseMap(
    "sin",
    "f",
    np.sin,
    rule=lambda a, dtype: Values(-1.0, 1.0),
    keeps_nan=True,
    texts={"f": formulas.of_finite("sin", "x")},
    derivative="g * cos(x)",
)

COS = PointwiseMap(
    "cos",
    "f",
    np.cos,
    rule=lambda a, dtype: Values(-1.0, 1.0),
    keeps_nan=True,
    texts={"f": formulas.of_finite("cos", "x")},
    derivative="-g * sin(x)",
)

TAN = PointwiseMap(
    "tan",
    "f",
    np.tan,
    rule=lambda a, dtype: anything(dtype),
    keeps_nan=True,
    texts={"f": formulas.of_finite("tan", "x")},
    derivative="g * (1 + square(z))",
)

ASIN = PointwiseMap(
    "asin",
    "f",
    np.arcsin,
    rule=within_domain(np.arcsin, -1, 1),
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": formulas.within("asin", "abs(x) <= 1")},
    derivative="g / sqrt(1 - square(x))",
)

ACOS = PointwiseMap(
    "acos",
    "f",
    np.arccos,
    rule=within_domain(np.arccos, -1, 1),
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": formulas.within("acos", "abs(x) <= 1")},
    derivative="-g / sqrt(1 - square(x))",
)

ATAN = PointwiseMap(
    "atan",
    "f",
    np.arctan,
    rule=rising(lambda x: np.arctan(float(x))),
    keeps_nan=True,
    texts={"f": "atan(x)"},
    derivative="g / (1 + square(x))",
)

SINH = PointwiseMap(
    "sinh",
    "f",
    np.sinh,
    rule=rising(lambda x: np.sinh(float(x)), rounding=2**6),
    keeps_nan=True,
    texts={"f": "sinh(x)"},
    derivative="g * cosh(x)",
)

COSH = PointwiseMap(
    "cosh",
    "f",
    np.cosh,
    rule=_cosh_values,
    keeps_nan=True,
    texts={"f": "cosh(x)"},
    derivative="g * sinh(x)",
)

ASINH = PointwiseMap(
    "asinh",
    "f",
    np.arcsinh,
    rule=rising(lambda x: np.arcsinh(float(x))),
    keeps_nan=True,
    texts={"f": "asinh(x)"},
    derivative="g / hypot(x, 1)",
)

ACOSH = PointwiseMap(
    "acosh",
    "f",
    np.arccosh,
    rule=within_domain(np.arccosh, 1, math.inf),
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": formulas.within("acosh", "x >= 1")},
    derivative="g / sqrt(square(x) - 1)",
)

ATANH = PointwiseMap(
    "atanh",
    "f",
    np.arctanh,
    rule=within_domain(np.arctanh, math.nextafter(-1, 0), math.nextafter(1, 0)),
    keeps_nan=True,
    undefined_somewhere=True,
    texts={"f": formulas.ARTANH},
    derivative="g / (1 - square(x))",
)

COMBINES: tuple[Combine, ...] = (
    ATAN2,
    HYPOT,
)

MAPS: tuple[PointwiseMap, ...] = (
    TANH,
    SIN,
    COS,
    TAN,
    ASIN,
    ACOS,
    ATAN,
    SINH,
    COSH,
    ASINH,
    ACOSH,
    ATANH,
)
