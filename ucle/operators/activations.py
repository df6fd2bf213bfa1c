"""Activations of neural networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ucle.operators.rows import (
    PointwiseMap,
)

GELU = """
    0.5 * g * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
               + x * (1 - square(tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))
               * (0.7978845608028654 + 0.1070322244089004 * x * x))
"""


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def _softplus(x: Any) -> Any:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


MAPS: tuple[PointwiseMap, ...] = (
    PointwiseMap(
        "relu",
        "if",
        lambda x: np.maximum(x, 0),
        derivative="when(x > 0, g)",
    ),
    PointwiseMap(
        "leaky_relu",
        "f",
        lambda x: np.where(x < 0, 0.01 * x, x),
        derivative="where(x > 0, g, 0.01 * g)",
    ),
    PointwiseMap(
        "sigmoid",
        "f",
        _sigmoid,
        derivative="g * z * (1 - z)",
    ),
    PointwiseMap(
        "gelu",
        "f",
        _gelu,
        derivative=GELU,
    ),
    PointwiseMap(
        "silu",
        "f",
        lambda x: x * _sigmoid(x),
        derivative="g * sigmoid(x) * (1 + x * (1 - sigmoid(x)))",
    ),
    PointwiseMap(
        "softplus",
        "f",
        _softplus,
        derivative="g * sigmoid(x)",
    ),
)
