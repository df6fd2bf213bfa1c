"""Trigonometric and hyperbolic functions, and the length and the angle of two coordinates."""

from __future__ import annotations

import math

import numpy as np

from ucle.operators.algebra import (
    is_one_of,
    unsigned,
)
from ucle.operators.rows import (
    Combine,
    PointwiseMap,
)

COMBINES: tuple[Combine, ...] = (
    # A zero has no sign, nor has NaN.
    Combine(
        "atan2",
        "atan2",
        "f",
        lambda x, y: np.arctan2(unsigned(x), unsigned(y)),
        infix=False,
        derivatives=(
            "when(x != 0 or y != 0, g * y / (x * x + y * y))",
            "when(x != 0 or y != 0, -g * x / (x * x + y * y))",
        ),
    ),
    Combine(
        "hypot",
        "hypot",
        "f",
        np.hypot,
        absorbs_left=is_one_of(math.inf, -math.inf),
        absorbs_right=is_one_of(math.inf, -math.inf),
        absorbs_all=True,
        commutative=True,
        infix=False,
        derivatives=("g * x / z", "g * y / z"),
    ),
)

MAPS: tuple[PointwiseMap, ...] = (
    PointwiseMap(
        "tanh",
        "fc",
        np.tanh,
        derivative="g * (1 - square(z))",
    ),
    PointwiseMap(
        "sin",
        "f",
        np.sin,
        derivative="g * cos(x)",
    ),
    PointwiseMap(
        "cos",
        "f",
        np.cos,
        derivative="-g * sin(x)",
    ),
    PointwiseMap(
        "tan",
        "f",
        np.tan,
        derivative="g * (1 + square(z))",
    ),
    PointwiseMap(
        "asin",
        "f",
        np.arcsin,
        derivative="g / sqrt(1 - square(x))",
    ),
    PointwiseMap(
        "acos",
        "f",
        np.arccos,
        derivative="-g / sqrt(1 - square(x))",
    ),
    PointwiseMap(
        "atan",
        "f",
        np.arctan,
        derivative="g / (1 + square(x))",
    ),
    PointwiseMap(
        "sinh",
        "f",
        np.sinh,
        derivative="g * cosh(x)",
    ),
    PointwiseMap(
        "cosh",
        "f",
        np.cosh,
        derivative="g * sinh(x)",
    ),
    PointwiseMap(
        "asinh",
        "f",
        np.arcsinh,
        derivative="g / hypot(x, 1)",
    ),
    PointwiseMap(
        "acosh",
        "f",
        np.arccosh,
        derivative="g / sqrt(square(x) - 1)",
    ),
    PointwiseMap(
        "atanh",
        "f",
        np.arctanh,
        derivative="g / (1 - square(x))",
    ),
)
