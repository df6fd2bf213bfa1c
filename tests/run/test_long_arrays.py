"""Results in a few long arrays, whose elements are written one row each with their positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ucle
from ucle.sqlgen.written_form import LONG_CONSTANT


@pytest.mark.parametrize("keys", ["", "i"])
@pytest.mark.parametrize("fill", [0, 1])
def test_elements_of_long_arrays(keys: str, fill: int, routes: dict[str, Any]) -> None:
    rng = np.random.default_rng(7)
    shape = (3, 40, LONG_CONSTANT // 30)
    values = rng.integers(0, 3, shape) + 0.0
    text = "Z[i,j,k] = A[i,j,k] * 1" if not fill else "Z[i,j,k] = A[i,j,k] + 1"
    expected = values + fill
    for route in routes.values():
        program = ucle.einsum_program(text, A=values, decomposition={"Z": set(keys)})
        with program.execute(route) as result:
            for rows in ("nonfill", "all"):
                frame = result["Z"].to_pandas(rows=rows)
                found = np.full(shape, float(fill))
                found[frame["i"], frame["j"], frame["k"]] = frame["val"]
                np.testing.assert_array_equal(found, expected)
                count = (expected != fill).sum() if rows == "nonfill" else expected.size
                assert len(frame) == count
