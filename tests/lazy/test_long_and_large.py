"""Einsums of long chains, of sparse operands with very many positions, and of a summed ellipsis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import ucle
from ucle.errors import LabelError


def test_a_chain_of_31_matrices() -> None:
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(8, 8)) / 3 for _ in range(31)]
    operands: list[Any] = [x for n, m in enumerate(matrices) for x in (m, [n, n + 1])]
    expected = np.linalg.multi_dot(matrices)
    for order in ("K", "F"):
        found = ucle.einsum(*operands, [0, 31], order=order)
        np.testing.assert_allclose(found, expected, 1e-9, 1e-12)
    assert found.flags.f_contiguous


def test_rows_that_are_far_apart() -> None:
    entries = (np.array([1.0, 2, 3]), (np.array([0, 7, 2**33]), np.array([0, 1, 1])))
    coo = scipy.sparse.coo_array(entries, shape=(2**33 + 1, 2))
    assert ucle.einsum("ij->j", coo).tolist() == [1, 5]
    assert ucle.einsum("ij->i", coo.T).tolist() == [1, 5]
    program = ucle.einsum_program("c[j] count= A[i,j]; m[j] max= A[i,j]", A=coo)
    with program.execute() as result:
        assert result["c"].to_numpy().tolist() == [1, 2]
        assert result["m"].to_numpy().tolist() == [1, 3]


def test_an_ellipsis_that_the_result_lacks() -> None:
    x = np.arange(27.0).reshape(3, 3, 3)
    for optimize in (True, "greedy", "optimal"):
        expected = np.einsum("i...->i", x, optimize=optimize)
        np.testing.assert_allclose(ucle.einsum("i...->i", x, optimize=optimize), expected)
        found = ucle.einsum(x, [0, ...], x, [0, ...], [0], optimize=optimize)
        np.testing.assert_allclose(found, np.einsum("i...,i...->i", x, x, optimize=optimize))
    with pytest.raises(LabelError, match="lacks the ellipsis"):
        ucle.einsum("i...->i", x)
