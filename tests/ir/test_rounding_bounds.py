"""The roundings of sums of products, counted along the longest path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import ucle
from ucle.foundation.dtypes import DType
from ucle.ir.rounding_bounds import Entries, count_roundings, relative_error

A, B, x = np.ones((7, 5)), np.ones((5, 3)), np.ones(5)
SPARSE = scipy.sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 4], [1, 2, 2])), shape=(7, 5))


def roundings_of(text: str, entries: dict[str, Entries] | None = None, **inputs: Any) -> float:
    """The roundings of the output as the text orders them."""
    program = ucle.einsum_program(text, inputs=inputs, association="as-written", rewrite="none")
    sizes = {name: Entries(float(np.prod(np.shape(y)))) for name, y in inputs.items()}
    counted = count_roundings(program.compiled.program, (sizes | (entries or {})).__getitem__)
    (output,) = program.outputs
    return counted[output]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("y[i] += A[i,j] * x[j]", 1 + 4),
        ("y[i] = 2 * A[i,j] * x[j]", 2 + 1 + 4),  # 2 may be rounded
        ("y += sum[i,k](sum[j](A[i,j] * B[j,k]))", 1 + 4 + 20),  # sums within sums are added
        ("y[i,k] = square(sum[j](A[i,j] * B[j,k]))", 2 * 5 + 1),
        ("y[k] = sum[j](x[j] * B[j,k]) * sum[j](x[j] * B[j,k])", 5 + 5 + 1),  # of both factors
        ("y[k] = sum[j](x[j] * B[j,k]) / sum[j](x[j])", 5 + 2 * 4 + 1),
        ("y[k] = sum[j](x[j] * B[j,k]) - sum[j](B[j,k])", 5 + 1),  # of the longer one
        ("y[i] max= A[i,j] * x[j]", 1),
        ("y[i] = sum[j](exp(A[i,j]))", 4),  # all forms read the same exponentials
        ("y[i] = -sum[j](abs(A[i,j]))", 4),
        ("y[i] = sum[j](A[i,j]) ^ 3", 3 * 5),
    ],
)
def test_counts(text: str, count: int) -> None:
    inputs = {"A": A, "B": B, "x": x}
    read = {name: value for name, value in inputs.items() if f"{name}[" in text}
    assert roundings_of(text, **read) == count


def test_sums_of_few_entries() -> None:
    """Terms that are 0 do not round."""
    by_degree = {"S": Entries(3, (2, 2))}
    assert roundings_of("y[i] += S[i,j] * x[j]", by_degree, S=SPARSE, x=x) == 1 + 1
    assert roundings_of("y += S[i,j]", by_degree, S=SPARSE) == 2
    assert roundings_of("y += S[i,j] * B[j,k]", by_degree, S=SPARSE, B=B) == 1 + 2 + 1 + 2
    assert roundings_of("y += S[i,j] + x[j]", by_degree, S=SPARSE, x=x) == 1 + 34
    assert roundings_of("y += S[i,j] + 1", by_degree, S=SPARSE) == 2 + 34


def test_relative_errors() -> None:
    assert relative_error(1, DType.FLOAT64) == pytest.approx(2.0**-53)
    assert relative_error(1, DType.FLOAT32) == pytest.approx(2.0**-24)
    assert relative_error(2.0**53, DType.FLOAT64) == np.inf
