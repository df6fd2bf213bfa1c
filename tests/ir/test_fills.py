"""Entries that are not stored, in the corners that planted mistakes found untested."""

from __future__ import annotations

import numpy as np
import pytest
from known import check_known, known

import ucle
from ucle.testing.check_matrix import Routes

INF = np.inf
RNG = np.random.default_rng(20)
CUBE = np.where(RNG.random((3, 4, 3)) < 0.2, RNG.normal(size=(3, 4, 3)), 0.0)
CUBE[1] = 0.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T[i] += X[i,j,k] + 1", (CUBE + 1).sum((1, 2))),
        ("T[j] *= X[i,j,k] + 2", (CUBE + 2).prod((0, 2))),
        ("T[i] mean= exp(X[i,j,k])", np.exp(CUBE).mean((1, 2))),
    ],
)
def test_arrays_that_are_not_stored(text: str, expected: np.ndarray, routes: Routes) -> None:
    """Whole arrays count if one reduced label is in the keys and one in the arrays."""
    check_known(known(text, {"T": expected}, X=CUBE), routes, sample=16)


def test_an_infinite_fill_beside_one_that_absorbs(routes: Routes) -> None:
    """0 * inf is NaN where neither side is stored, and 0 where the right one stores a number."""
    x = np.array([0.0, 2.0, 0.0, 3.0])
    y = np.array([1.5, 2.0, INF, INF])
    with np.errstate(invalid="ignore"):
        case = known("T[i] = X[i] * Y[i]", {"T": x * y}, X=ucle.table(x), Y=ucle.table(y, fill=INF))
    check_known(case, routes)
