"""Joins of a relation with itself: tuples that meet themselves alone are read once."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import ucle


@pytest.fixture
def rows(connection: duckdb.DuckDBPyConnection) -> Any:
    """A sparse matrix, as an array and as a table."""
    rng = np.random.default_rng(4)
    matrix = rng.integers(-3, 4, (9, 9)) * (rng.random((9, 9)) < 0.5)
    i, j = matrix.nonzero()
    frame = pd.DataFrame({"i": i, "j": j, "v": matrix[i, j].astype(float)})
    connection.register("given", frame)
    connection.execute("CREATE OR REPLACE TABLE entries AS FROM given")
    connection.unregister("given")
    return connection, matrix


CASES = {
    "gram": ("G[j,k] += A[i,j] * A[i,k]", {"G": ["i"]}, "ij,ik->jk", True),
    "square": ("G[i,j] = A[i,j] * A[i,j]", {"G": ["i", "j"]}, "ij,ij->ij", True),
    "sum of rows": ("G += A[i,j] * A[i,j]", {"G": ["i"]}, "ij,ij->", True),
    "sum": ("G += A[i,j] * A[i,j]", {"G": ["i", "j"]}, "ij,ij->", True),
    "transpose": ("G[i,j] = A[i,j] * A[j,i]", {"G": ["i", "j"]}, "ij,ji->ij", False),
    "rows": ("G[i,k] += A[i,j] * A[k,j]", {"G": ["i", "k"]}, "ij,kj->ik", False),
    "power": ("G[i,k] += A[i,j] * A[j,k]", {"G": ["i", "j", "k"]}, "ij,jk->ik", False),
    "gram of entries": ("G[j,k] += A[i,j] * A[i,k]", {"G": ["i", "j", "k"]}, "ij,ik->jk", False),
}
"""Products, their decompositions, what they are in NumPy, and whether nothing is joined."""


@pytest.mark.parametrize("case", CASES)
def test_products_with_itself(rows: Any, case: str) -> None:
    text, decomposition, numpy, once = CASES[case]
    connection, matrix = rows
    program = ucle.einsum_program(
        text, A="entries", bounds={"i": 9, "j": 9}, decomposition=decomposition, database=connection
    )
    with program.execute() as result:
        np.testing.assert_array_equal(result["G"].to_numpy(), np.einsum(numpy, matrix, matrix))
    assert ("JOIN" not in program.to_sql()) is once


@pytest.mark.sample(1)
def test_outer_joins(rows: Any) -> None:
    """What is not stored on one side is not on the other: fills meet fills."""
    connection, matrix = rows
    for text, expected in (
        ("G[i,j] = A[i,j] + A[i,j]", 2 * matrix),
        ("G[i,j] = A[i,j] - A[i,j]", 0 * matrix),
        ("G[i,j] = max(A[i,j], A[i,j])", matrix),
        ("G[i,j] = A[i,j] < A[i,j]", np.zeros((9, 9), bool)),
        ("G[i,j] = A[i,j] <= A[i,j]", np.ones((9, 9), bool)),
    ):
        for promoted in (["i", "j"], ["i"], []):
            program = ucle.einsum_program(
                text,
                A="entries",
                bounds={"i": 9, "j": 9},
                decomposition={"G": promoted},
                database=connection,
            )
            with program.execute() as result:
                np.testing.assert_array_equal(result["G"].to_numpy(), expected)


def test_diagonal_meets_itself(rows: Any) -> None:
    """Labels that occur twice are no keys by which tuples are all different."""
    connection, matrix = rows
    program = ucle.einsum_program(
        "G[i] = A[i,i] * A[i,i]",
        A="entries",
        bounds={"i": 9},
        decomposition={"G": ["i"]},
        database=connection,
    )
    with program.execute() as result:
        np.testing.assert_array_equal(result["G"].to_numpy(), matrix.diagonal() ** 2)
