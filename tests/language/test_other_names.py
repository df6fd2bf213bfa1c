"""Names of NumPy for operators that have other names here, and quotients of values."""

from __future__ import annotations

import numpy as np
import pytest

import ucle
from ucle.language.functions import OTHER_NAMES
from ucle.language.parse import parse_program
from ucle.language.syntax_to_text import expression_text
from ucle.operators import MAPS
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case

X = np.array([[0.0, -0.5, 0.25], [1.0, 0.0, 0.75]])
N = np.array([[0, -7, 5], [12, 0, 64]])
M = np.array([2, 5, -3])


@pytest.mark.sample(None)
@pytest.mark.parametrize("name", OTHER_NAMES)
def test_both_names_are_one_operator(name: str) -> None:
    own = OTHER_NAMES[name]
    arguments = "x[i]" if own in MAPS else "x[i], y[i]"
    other, usual = (
        expression_text(parse_program(f"z[i] = {each}({arguments})")[0].expression)
        for each in (name, own)
    )
    assert other == usual
    assert name not in other


@pytest.mark.parametrize(
    "function",
    ["arcsin", "arctan", "absolute", "negative", "rint", "fabs", "arcsinh", "conjugate"],
)
def test_functions_are_those_of_numpy(function: str) -> None:
    with ucle.einsum_program(f"Z[i,j] = {function}(X[i,j])", X=X).execute() as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), getattr(np, function)(X))


@pytest.mark.parametrize(
    "function",
    ["maximum", "minimum", "power", "arctan2", "mod", "true_divide", "subtract", "hypot"],
)
def test_functions_of_two_are_those_of_numpy(function: str) -> None:
    y = np.array([1.5, 2.0, 3.0])
    text = f"Z[i,j] = {function}(abs(X[i,j]), y[j])"
    with ucle.einsum_program(text, X=X, y=y).execute() as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), getattr(np, function)(abs(X), y))


def test_an_operator_of_the_user_has_the_name() -> None:
    ucle.register_operator("fabs", "map", sql="abs(x) + 1", numpy=lambda x: abs(x) + 1)
    try:
        with ucle.einsum_program("Z[i,j] = fabs(X[i,j])", X=X).execute() as result:
            np.testing.assert_allclose(result["Z"].to_numpy(), abs(X) + 1)
    finally:
        ucle.unregister_operator("fabs")


QUOTIENTS = {
    "Z[i,j] = X[i,j] // 2": X // 2,
    "Z[i,j] = X[i,j] % 2": X % 2,
    "Z[i,j] = N[i,j] // 3 + N[i,j] % 3": N // 3 + N % 3,
    "Z[i,j] = N[i,j] // M[j]": N // M,
    "Z[i,j] = N[i,j] % M[j] % 2": N % M % 2,
    "Z[i,j] = N[i,j] // 0.5": N // 0.5,
    "Z[i,j] = j % M[j] + N[i,j] % -3": np.arange(3) % M + N % -3,
    "Z[i,j] = (N[i,j] + j // 2) % 5": (N + np.arange(3) // 2) % 5,
    "Z[i] = N[i,N[i,0] // 6]": N[[0, 1], N[:, 0] // 6],
    "Z[i] = (i * 7) // 2 + sum[j](N[i,j]) % 4": np.arange(2) * 7 // 2 + N.sum(axis=1) % 4,
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", QUOTIENTS)
def test_quotients_of_values(text: str, routes: Routes) -> None:
    arrays = {name: x for name, x in {"X": X, "N": N, "M": M}.items() if f"{name}[" in text}
    case = Case(text, arrays, arrays, {})
    np.testing.assert_allclose(case.expected()["Z"], QUOTIENTS[text])
    check_everywhere(case, routes, seed=0, sample=10)
