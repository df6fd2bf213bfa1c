"""Conditions keep operands where functions are defined, and change no answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ucle
from ucle.errors import MemoryLimitError
from ucle.language.guard_operands import guard_operands
from ucle.language.parse import parse_program
from ucle.language.resolve import resolve
from ucle.language.syntax_to_text import expression_text
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case

NUMBERS = np.array([
    0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, 1e-12, -1e-12, 5e-324, 1e308, np.inf, -np.inf, np.nan,
])  # fmt: skip

GUARDED = {
    "when(d[i] > 0, 1 / sqrt(d[i]))": "1 / sqrt(one_if_zero(max(d[i], 0)))",
    "when(0 < d[i], x[i] / d[i])": "x[i] / one_if_zero(max(d[i], 0))",
    "when(d[i] != 0, x[i] / d[i])": "x[i] / one_if_zero(d[i])",
    "when(d[i], x[i] / d[i])": "x[i] / one_if_zero(d[i])",
    "when(d[i] >= 0, sqrt(d[i]))": "sqrt(max(d[i], 0))",
    "when(d[i] >= 2, log(d[i]))": "log(max(d[i], 2))",
    "when(d[i] < 0, 1 / d[i])": "1 / one_if_zero(min(d[i], 0))",
    "when(d[i] > 1e-12, x[i] / d[i])": "x[i] / max(d[i], 1e-12)",
    "when(not (d[i] <= 0), log(d[i]))": "log(one_if_zero(max(d[i], 0)))",
    "unless(d[i] == 0, x[i] / d[i])": "x[i] / one_if_zero(d[i])",
    "when(x[i] > 0 and d[i] != 0, log(x[i]) / d[i])": (
        "log(one_if_zero(max(x[i], 0))) / one_if_zero(d[i])"
    ),
    "when((x[i] > 0) & (d[i] != 0), log(x[i]) / d[i])": (
        "log(one_if_zero(max(x[i], 0))) / one_if_zero(d[i])"
    ),
    "unless((x[i] <= 0) | (d[i] == 0), log(x[i]) / d[i])": (
        "log(one_if_zero(max(x[i], 0))) / one_if_zero(d[i])"
    ),
    "when(0 < d[i] <= 1, 1 / sqrt(d[i]))": "1 / sqrt(one_if_zero(max(min(d[i], 1), 0)))",
    "when(d[i] > -1 and d[i] < 1, acos(d[i]))": "acos(max(min(d[i], 1), -1))",
    "when(2 * d[i] > 0, 1 / (2 * d[i]))": "1 / one_if_zero(max(2 * d[i], 0))",
    "where(d[i] > 0, 1 / d[i], x[i])": "1 / one_if_zero(max(d[i], 0))",
}
LEFT_ALONE = (
    "when(d[i] > 0, d[i])",
    "when(d[i] > 0, exp(d[i]))",
    "when(d[i] > 0 or x[i] > 0, 1 / d[i])",
    "when(d[i] > 0, 1 / x[i])",
    "when(d[i] == 0, 1 / d[i])",
    "unless(d[i] > 0 and x[i] > 0, 1 / d[i])",
    "1 / d[i]",
)


def spell(expression: str) -> str:
    (statement,) = parse_program(f"s[i] = {expression}")
    return expression_text(guard_operands(resolve(statement)).expression)


@pytest.mark.parametrize("expression", GUARDED)
def test_operands_are_guarded(expression: str) -> None:
    assert GUARDED[expression] in spell(expression)


@pytest.mark.parametrize("expression", LEFT_ALONE)
def test_other_operands_are_left_alone(expression: str) -> None:
    (statement,) = parse_program(f"s[i] = {expression}")
    assert spell(expression) == expression_text(resolve(statement).expression)


def test_sums_are_compared_whatever_they_call_their_labels() -> None:
    same = spell("when(sum[j](A[i,j]) > 0, x[i] / sum[k](A[i,k]))")
    assert "one_if_zero(max(sum[k](A[i,k]), 0))" in same
    other = spell("when(sum[j](A[i,j]) > 0, x[i] / sum[k](A[k,i]))")
    assert "one_if_zero" not in other


@pytest.mark.sample(2)
@pytest.mark.parametrize("expression", [*GUARDED, *LEFT_ALONE])
def test_answers_are_those_of_the_text(expression: str, routes: Routes) -> None:
    """Numbers of all kinds: the oracle reads the statement as it is written."""
    count = len(NUMBERS)
    arrays = {"d": NUMBERS, "x": np.random.default_rng(0).permutation(NUMBERS)}
    arrays = {name: array for name, array in arrays.items() if f"{name}[" in expression}
    case = Case(f"s[i] = {expression}", arrays, dict(arrays), {"i": count})
    assert check_everywhere(case, routes, 0)


@pytest.mark.parametrize(
    "expression", ["when(n[i] > 0.5, floor_divide(7, n[i]))", "when(n[i], remainder(7, n[i]))"]
)
def test_integers_stay_integers(expression: str, routes: Routes) -> None:
    arrays = {"n": np.array([0, 1, 2, -3, 2**60 + 1])}
    case = Case(f"s[i] = {expression}", arrays, dict(arrays), {"i": 5})
    assert check_everywhere(case, routes, 0)
    with ucle.einsum_program(f"s[i] = {expression}", **arrays).execute() as result:
        assert result["s"].to_numpy().dtype == np.int64


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "expression",
    [
        "when(m[i], m[i] / x[i])",
        "when(m[i], x[i] / m[i])",
        "one_if_zero(m[i])",
        "when(m[i] > 0, x[i] / m[i])",
        "when(m[i] > 0.5, x[i] / m[i])",
        "when(m[i] >= 1, x[i] / m[i])",
        "when(m[i] > -1, x[i] / m[i])",
        "when(m[i] < 1, x[i] / m[i])",
        "when(not (m[i] <= 0), x[i] / m[i])",
    ],
)
def test_truth_values_stay_truth_values(expression: str, routes: Routes) -> None:
    """A boolean beside a float32 makes a float32, which an integer does not."""
    arrays = {"m": np.array([True, False, True]), "x": np.array([2, 4, 8], np.float32)}
    arrays = {name: array for name, array in arrays.items() if f"{name}[" in expression}
    case = Case(f"s[i] = {expression}", arrays, dict(arrays), {"i": 3})
    assert check_everywhere(case, routes, 0)
    with ucle.einsum_program(f"s[i] = {expression}", **arrays).execute() as result:
        expected = np.float32 if "x" in arrays else np.bool_
        assert result["s"].to_numpy().dtype == expected


OPERATORS = (
    *(f"a[i] {x} b[i]" for x in ("+", "-", "*", "/", "//", "%", "**", "==", "<", "&", "|")),
    *(f"{x}(a[i], b[i])" for x in ("min", "max", "arctan2", "xor")),
    *(f"{x}(a[i])" for x in ("log", "sqrt", "exp", "abs", "relu", "reciprocal", "-")),
    *("1 / a[i]", "a[i] / 2", "a[i] / (b[i] + a[i])", "a[i] / b[i] * a[i]"),
)
PAIRS = (
    ("bool", "float32"),
    ("float32", "bool"),
    ("bool", "bool"),
    ("int64", "float32"),
    ("complex64", "float32"),
)

BOUNDS = ("> 0", ">= 1", "< 1", "> 0.5")


@pytest.mark.sample(3)
@pytest.mark.parametrize("expression", OPERATORS)
def test_an_operator_has_its_type_in_a_guard(expression: str) -> None:
    """Or its error: a guard replaces operands that it would not need, by ones of their type."""
    for pair in PAIRS:
        arrays = {name: np.ones(3, dtype) for name, dtype in zip("ab", pair, strict=True)}
        arrays = {name: array for name, array in arrays.items() if f"{name}[" in expression}
        alone = _type_of(expression, arrays)
        for name in arrays:
            has_order = arrays[name].dtype.kind != "c"
            for condition in ("", "!= 0", *(BOUNDS if has_order else ())):
                guarded = f"when({name}[i] {condition}, {expression})"
                assert _type_of(guarded, arrays) == alone, (pair, condition)


def _type_of(expression: str, arrays: dict[str, np.ndarray[Any, Any]]) -> object:
    try:
        program = ucle.einsum_program(f"s[i] = {expression}", inputs=arrays)
    except ucle.UcleError as error:
        return type(error)
    return program.compiled.program.types["s"].dtype


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "expression",
    [
        "when(c[i] != 0, x[i] / c[i])",
        "when(c[i], x[i] / c[i])",
        "unless(c[i] == 0, log(c[i]))",
        "one_if_zero(c[i])",
    ],
)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers(expression: str, dtype: type, routes: Routes) -> None:
    """A condition keeps divisors from 0, which has no sides in the complex plane."""
    arrays = {"c": np.array([1 + 2j, 0, 2j], dtype), "x": np.array([2, 4, 8], np.float32)}
    arrays = {name: array for name, array in arrays.items() if f"{name}[" in expression}
    case = Case(f"s[i] = {expression}", arrays, dict(arrays), {"i": 3})
    assert check_everywhere(case, routes, 0)
    with ucle.einsum_program(f"s[i] = {expression}", **arrays).execute() as result:
        assert result["s"].to_numpy().dtype == dtype


@pytest.mark.parametrize(
    "scale",
    [
        "s[i] = when(D[i] > 0, 1 / sqrt(D[i]))",
        "s[i] = where(D[i] != 0, 1 / sqrt(D[i]), 0)",
        "s[i] = when(D[i], D[i] ^ -0.5)",
    ],
)
def test_a_graph_normalised_by_its_degrees_stays_sparse(scale: str) -> None:
    """Isolated nodes have no degree; the matrix that the program multiplies by has no NaN."""
    rng = np.random.default_rng(1)
    graph = sp.random_array((600, 600), density=0.003, rng=rng, format="coo")
    features = rng.random((600, 4))
    text = f"D[i] += A[i,j]; {scale}; N[i,j] = s[i]*A[i,j]*s[j]; Z[i,k] += N[i,j]*N[j,l]*X[l,k]"
    program = ucle.einsum_program(text, A=graph, X=features)
    assert not program.compiled.made_dense
    assert program.compiled.program.types["N"].entries.finite
    with np.errstate(divide="ignore"):
        degrees = graph.sum(axis=1)
        by = np.where(degrees > 0, 1 / np.sqrt(degrees), 0.0)
    assert (degrees == 0).any()
    normalised = sp.diags_array(by) @ graph.tocsr() @ sp.diags_array(by)
    with program.execute() as result:
        np.testing.assert_allclose(
            result["Z"].to_numpy(), normalised @ (normalised @ features), rtol=1e-12
        )


def test_numbers_some_of_which_are_zero() -> None:
    rng = np.random.default_rng(3)
    graph = sp.random_array((600, 600), density=0.003, rng=rng, format="coo")
    numbers = rng.integers(0, 3, size=600) * 0.5
    text = "e[i] = d[i] - 0.5; N[i,j] = when(e[i] > 0, 1 / e[i]) * A[i,j]"
    program = ucle.einsum_program(text, A=graph, d=numbers)
    assert not program.compiled.made_dense
    by = np.divide(1.0, numbers - 0.5, where=numbers > 0.5, out=np.zeros(600))
    with program.execute() as result:
        np.testing.assert_allclose(result["N"].to_numpy(), graph.toarray() * by[:, None])


def test_lazy_tensors_are_guarded_too() -> None:
    rng = np.random.default_rng(2)
    graph = sp.random_array((300, 300), density=0.004, rng=rng, format="coo")
    edges = ucle.tensor(graph)
    degrees = edges.sum(axis=1)
    scale = ucle.where(degrees > 0, 1 / ucle.sqrt(degrees), 0.0)
    made: Any = (edges * scale[:, None]).sum(axis=0)
    dense = graph.toarray()
    sums = dense.sum(axis=1)
    by = np.divide(1.0, np.sqrt(sums), where=sums > 0, out=np.zeros(300))
    np.testing.assert_allclose(np.asarray(made), (dense * by[:, None]).sum(axis=0), rtol=1e-12)


def test_the_error_names_the_operand_to_guard() -> None:
    graph = sp.random_array((4000, 4000), density=0.0005, rng=np.random.default_rng(4))
    text = "D[i] += A[i,j]; N[i,j] = A[i,j] / D[i]; Z[i,k] += N[i,j] * N[j,l] * X[l,k]"
    with pytest.raises(MemoryLimitError) as raised:
        ucle.einsum_program(text, A=graph, X=np.ones((4000, 64)), memory_limit="20GB")
    hint = str(raised.value.hint)
    assert "N[i,j] = A[i,j] / D[i] may hold NaN or infinities" in hint
    assert "when(d > 0, 1 / d)" in hint
    assert "nonfinite='sparse'" in hint
