"""Prepared programs call kernels where a later plan needs them, whatever the first one did."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import ucle


@pytest.mark.parametrize("text", ["s[i] * x[i]", "s[i] / x[i]", "s[i] + x[i]", "log(x[i]) * s[i]"])
def test_another_array_for_an_input(text: str) -> None:
    dense, x = np.array([0.0, 2, 0, 4]), np.array([1.0, 2, 3, 4])
    program = ucle.einsum_program(f"T[i] = {text}", s=scipy.sparse.coo_array(dense), x=x)
    with program.prepare() as prepared:
        for array in (x, x + 1, x + 2):
            found = prepared.run({"x": array})["T"].to_numpy()
            meaning = text.replace("[i]", "")
            expected = eval(meaning, {"s": dense, "x": array, "log": np.log})
            np.testing.assert_allclose(found, expected)
