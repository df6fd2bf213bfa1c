"""Activations of neural networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ucle.foundation.dtypes import DType
from ucle.foundation.error_function import erf
from ucle.operators import duckdb_formulas as formulas
from ucle.operators import duckdb_random as random_texts
from ucle.operators.duckdb_formulas import of_reals
from ucle.operators.interval_rules import (
    rising,
    unless_complex,
)
from ucle.operators.rows import (
    Exactness,
    MapRule,
    PointwiseMap,
)
from ucle.operators.values import (
    Real,
    Values,
    interval,
)

GELU_DERIVATIVE = """
    0.5 * g * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
               + x * (1 - square(tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))
               * (0.7978845608028654 + 0.1070322244089004 * x * x))
"""


CUBIC = "0.7978845608028654 * (x + 0.044715 * x * x * x)"


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def _softplus(x: Any) -> Any:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def _bent_values(least: float) -> MapRule:
    """The rule of gelu and silu: near x for large x, near 0 for small ones, a dip between."""

    def rule(a: Values, dtype: DType) -> Values:
        low = 0.0 if a.low >= 0 else least
        return interval(low, max(a.high, 0), dtype)

    return rule


def _softplus_of(x: Real) -> float:
    return float(np.logaddexp(float(x), 0.0))


def _sigmoid_of(x: Real) -> float:
    return float(1 / (1 + np.exp(-float(x))))


def _leaky_of(x: Real) -> Real:
    return x if x >= 0 else 0.01 * x


RELU = PointwiseMap(
    "relu",
    "if",
    lambda x: np.maximum(x, 0),
    rule=rising(lambda x: max(x, 0), rounding=0),
    keeps_nan=True,
    exactness=Exactness.EXACT,
    texts=of_reals("greatest(x, zero)"),
    uncast_kinds="fi",
    derivative="when(x > 0, g)",
)

LEAKY_RELU = PointwiseMap(
    "leaky_relu",
    "f",
    lambda x: np.where(x < 0, 0.01 * x, x),
    rule=rising(_leaky_of),
    keeps_nan=True,
    texts={"f": "CASE WHEN x < 0 THEN 0.01 * x ELSE x END"},
    derivative="where(x > 0, g, 0.01 * g)",
)

SIGMOID = PointwiseMap(
    "sigmoid",
    "f",
    _sigmoid,
    rule=unless_complex(rising(_sigmoid_of, 0.0, 1.0)),
    keeps_nan=True,
    kernel_kinds="fc",
    bounded=True,
    texts={"f": "1.0 / (1.0 + exp(-x))"},
    derivative="g * z * (1 - z)",
)

GELU = PointwiseMap(
    "gelu",
    "f",
    _gelu,
    rule=_bent_values(-0.18),
    keeps_nan=True,
    texts={"f": f"0.5 * x * (1.0 + tanh({CUBIC}))"},
    derivative=GELU_DERIVATIVE,
)

SILU = PointwiseMap(
    "silu",
    "f",
    lambda x: x * _sigmoid(x),
    rule=_bent_values(-0.28),
    keeps_nan=True,
    bounded=True,
    texts={"f": "x / (1.0 + exp(-x))"},
    derivative="g * sigmoid(x) * (1 + x * (1 - sigmoid(x)))",
)

SOFTPLUS = PointwiseMap(
    "softplus",
    "f",
    _softplus,
    rule=rising(_softplus_of, 0.0),
    keeps_nan=True,
    bounded=True,
    texts={"f": formulas.SOFTPLUS},
    derivative="g * sigmoid(x)",
)

ERF = PointwiseMap(
    "erf",
    "f",
    erf,
    rule=rising(lambda x: float(erf(float(x))), -1.0, 1.0),
    keeps_nan=True,
    bounded=True,
    texts={"f": random_texts.ERROR_FUNCTION},
    derivative="1.1283791670955126 * g * exp(-x * x)",
)

MAPS: tuple[PointwiseMap, ...] = (
    RELU,
    LEAKY_RELU,
    SIGMOID,
    GELU,
    SILU,
    SOFTPLUS,
    ERF,
)
