"""Powers, roots, exponentials and logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ucle.foundation.normal_quantile import normal_quantile
from ucle.operators.algebra import (
    is_one_of,
    unsigned,
)
from ucle.operators.rows import (
    Combine,
    PointwiseMap,
)


def _pow(x: Any, y: Any) -> Any:
    return np.power(unsigned(x), y)


POW = Combine(
    "pow",
    "^",
    "ifc",
    _pow,
    absorbs_left=is_one_of(1),
    absorbs_right=is_one_of(0),
    absorbs_all=True,
    derivatives=(
        "when(y != 0, g * y * x ^ (y - 1))",
        "unless(x == 0 and y >= 0, g * z * log(x))",
    ),
)

COMBINES: tuple[Combine, ...] = (
    POW,
    Combine(
        "logaddexp",
        "logaddexp",
        "f",
        np.logaddexp,
        absorbs_left=is_one_of(math.inf),
        absorbs_right=is_one_of(math.inf),
        commutative=True,
        infix=False,
        derivatives=("g * sigmoid(x - y)", "g * sigmoid(y - x)"),
    ),
)

MAPS: tuple[PointwiseMap, ...] = (
    PointwiseMap(
        "exp",
        "fc",
        np.exp,
        derivative="g * z",
    ),
    PointwiseMap(
        "log",
        "fc",
        np.log,
        derivative="g / x",
    ),
    PointwiseMap(
        "log1p",
        "f",
        np.log1p,
        derivative="g / (1 + x)",
    ),
    PointwiseMap(
        "expm1",
        "f",
        np.expm1,
        derivative="g * (1 + z)",
    ),
    PointwiseMap(
        "log2",
        "f",
        np.log2,
        derivative="g / (0.6931471805599453 * x)",
    ),
    PointwiseMap(
        "log10",
        "f",
        np.log10,
        derivative="g / (2.302585092994046 * x)",
    ),
    PointwiseMap(
        "sqrt",
        "fc",
        np.sqrt,
        derivative="0.5 * g / z",
    ),
    PointwiseMap(
        "normal_quantile",
        "f",
        normal_quantile,
        derivative="2.5066282746310002 * g * exp(0.5 * z * z)",
    ),
)
