"""Inputs that read the same table share its scan only where that gives the same tensor."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ucle
from ucle.testing.check_matrix import Routes


@pytest.mark.parametrize("route", ["native", "arrow"])
def test_inputs_of_other_sizes(route: str, routes: Routes) -> None:
    """The labels of the axes have the size of one input or of both."""
    connection = routes[route]
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE e AS SELECT i, i + 1 AS j, 1 AS val FROM range(5) r(i)"
    )
    program = ucle.einsum_program("C[i,k] += A[i,j] * B[j,k]", A="e", B="e", database=connection)
    with program.execute() as result:
        np.testing.assert_array_equal(result["C"].to_numpy()[:, :6], np.eye(5, 6, 2))


@pytest.mark.parametrize("route", ["native", "arrow"])
def test_inputs_with_other_fills(route: str, routes: Routes) -> None:
    """A row that holds the fill of one input is an entry of the other."""
    connection = routes[route]
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE f AS SELECT i, j, ((i + j) % 3)::DOUBLE AS val "
        "FROM range(5) a(i), range(5) b(j) WHERE i <> j"
    )
    inputs = {"A": "f", "B": ucle.table("f", fill=math.inf)}
    text = "y[i,j] = A[i,j] + exp(-B[i,j]); s[i] += A[i,j]; m[i] min= B[i,j]"
    program = ucle.einsum_program(text, inputs=inputs, database=connection)
    n = np.arange(5)
    a = np.where(n[:, None] == n, 0, (n[:, None] + n) % 3.0)
    b = np.where(n[:, None] == n, np.inf, a)
    with program.execute() as result:
        np.testing.assert_allclose(result["y"].to_numpy(), a + np.exp(-b), rtol=1e-14)
        np.testing.assert_array_equal(result["s"].to_numpy(), a.sum(axis=1))
        np.testing.assert_array_equal(result["m"].to_numpy(), b.min(axis=1))
