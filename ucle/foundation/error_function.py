"""The error function, in the four operations and exp: one formula for NumPy and SQL.

NumPy has no error function, and DuckDB has none. Near 0, erf(x) / x is a polynomial in the square
of x. Farther out, erf(x) is 1 - exp(-x^2) r(x), where r is a polynomial in a quotient that maps the
interval to [-1, 1]. Both interpolate the exact values at Chebyshev's points, at 60 digits; the
error is below 2e-16. From 6 on, the nearest float64 is 1. Kernels call the function of C.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.random_numbers import horner

NEAR, FAR = 1.0, 6.0
"""Where the second formula begins, and where the function is 1."""
CENTRE = (
    -3.80659122412214e-13, 9.21125018742823e-12, -2.035231956483527e-10, 4.115751500265885e-09,
    -7.51156925108609e-08, 1.2233827638093572e-06, -1.75371694412802e-05, 0.00021751715603563488,
    -0.0022854855611440855, 0.019852496688984218, -0.1405360890227171, 0.9654687386698673,
)  # fmt: skip
"""Coefficients over 2 x^2 - 1, the highest power first."""
TAIL = (
    6.045731534600506e-12, -2.3584037253219613e-10, -2.6380950871008083e-10, 1.1310218672783174e-08,
    -4.526707950217438e-09, -5.541074433626894e-07, 2.4255574763708175e-06, 1.9563576238573082e-05,
    -0.0003316029605777715, 0.0024793146982473643, -0.012713147695692019, 0.04969844540332147,
    -0.15436117429436919, 0.2079832913334296,
)  # fmt: skip
"""Coefficients over 2.4 (x - 3) / (x + 3) + 0.2, the highest power first."""


def erf(x: Any) -> NDArray[Any]:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    >>> erf(np.array([-np.inf, 0.0, 0.5, 9.0])).round(4)
    array([-1.    ,  0.    ,  0.5205,  1.    ])
    """
    given = np.asarray(x)
    value = given.astype(np.float64)
    size = np.minimum(np.abs(value), FAR)
    centre = size * horner(CENTRE, 2.0 * size * size - 1.0)
    tail = 1.0 - np.exp(-size * size) * horner(TAIL, 2.4 * (size - 3.0) / (size + 3.0) + 0.2)
    size = np.where(size < NEAR, centre, np.where(size < FAR, tail, np.minimum(size, 1.0)))
    result = np.where(np.isnan(value), value, np.copysign(size, value))
    return result.astype(given.dtype if given.dtype.kind == "f" else np.float64)
