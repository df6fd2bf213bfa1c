"""The error function of NumPy and of SQL beside that of C."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ucle
from ucle.foundation.error_function import FAR, NEAR, erf
from ucle.testing.check_matrix import Routes


def arguments() -> np.ndarray:
    rng = np.random.default_rng(0)
    ends = [NEAR, FAR, *np.nextafter([NEAR, FAR], 0), 0.0, 5e-324, 1e-300, 1e300, np.inf, np.nan]
    x = np.concatenate([rng.normal(size=3000) * 2, 10 ** -rng.uniform(0, 300, 500), ends])
    return np.concatenate([x, -x])


def test_error_functions_are_those_of_c() -> None:
    x = arguments()
    expected = [math.erf(value) for value in x]
    np.testing.assert_allclose(erf(x), expected, rtol=4e-16, atol=0)
    np.testing.assert_allclose(erf(x.astype("f4")), np.float32(expected), rtol=2e-7, atol=1e-45)


@pytest.mark.parametrize("way", ["relational", {"y": []}])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_error_functions_on_every_route(dtype: str, way: object, routes: Routes) -> None:
    x = arguments().astype(dtype)
    expected = np.array([math.erf(value) for value in x])
    for connection in routes.values():
        program = ucle.einsum_program(
            "y[i] = erf(x[i])", x=x, decomposition=way, database=connection
        )
        with program.execute() as result:
            found = result["y"].to_numpy()
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found, expected, rtol=4e-16 if dtype == "float64" else 3e-7, atol=1e-45
        )
