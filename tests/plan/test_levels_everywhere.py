"""Tiled and compressed tensors, and products behind masks, in every combination on both routes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_programs.levels import ALGEBRAS, KINDS, levelled_case

import ucle
from ucle.inputs.table_input import TableInput
from ucle.testing.check_matrix import Routes, check_everywhere, some_decompositions
from ucle.testing.generate import Case
from ucle.testing.oracle import assert_equal

TYPES = ("float64", "float32", "int64", "bool", "complex128")


def _array(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, density: float
) -> NDArray[Any]:
    values = rng.integers(1, 5, shape)
    return np.where(rng.random(shape) < density, values, 0).astype(dtype)


@pytest.mark.sample(1)
@pytest.mark.parametrize("shape", [(5, 4), (4, 5), (1, 3), (2, 2), (7, 1)])
def test_from_any_layout_to_any_other(shape: tuple[int, int], routes: Routes) -> None:
    x = _array(np.random.default_rng(sum(shape)), shape, "float64", 0.5)
    case = Case("P[i,j] = 1 - X[i,j]; Z[i,j] = 1 - P[i,j]", {"X": x}, {"X": x}, {})
    assert check_everywhere(case, routes, seed=0, sample=140) > 50


def test_tiles_of_any_axis(routes: Routes) -> None:
    x = _array(np.random.default_rng(0), (3, 5, 4), "float64", 0.7)
    text = "P[i,j,k] = X[i,j,k] + 1; Z[k,i] += P[i,j,k] * P[i,j,k]"
    check_everywhere(Case(text, {"X": x}, {"X": x}, {}), routes, seed=1, sample=30)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "text",
    [
        "Z[i,k] += A[i,j] * B[j,k]",
        "y[i] += A[i,j] * b[j]",
        "y[j] += A[i,j] * a[i]",
        "Z[i,j] = A[i,j] * b[j]",
        "Z[i,j] = a[i] * A[i,j]",
        "Z[i,j] = A[i,j] * C[i,j]",
        "Z[i,j] = A[i,j] * D[j,i]",
        "z[] += A[i,j] * C[i,j]",
        "y[j] += A[i,j] * C[i,j]",
    ],
)
def test_products(dtype: str, text: str, routes: Routes) -> None:
    if dtype == "bool":
        text = text.replace("+=", "any=").replace("*", "and")
    rng = np.random.default_rng(len(text))
    shapes = {"A": (5, 4), "B": (4, 3), "C": (5, 4), "D": (4, 5), "a": (5,), "b": (4,)}
    used = {x: shape for x, shape in shapes.items() if f"{x}[" in text}
    arrays = {name: _array(rng, shape, dtype, 0.5) for name, shape in used.items()}
    check_everywhere(Case(text, arrays, arrays, {}), routes, seed=0, sample=16)


@pytest.mark.parametrize(
    "text",
    [
        "Z[i,j] = when(A[i,j], C[i,j])",
        "Z[i,j] = when(C[i,j], A[i,j])",
        "Z[i,j] = A[i,j] / b[j]",
        "Z[i,j] = A[i,j] / (C[i,j] + 1)",
        "y[i] max= abs(A[i,j])",
        "y[j] += exp(A[i,j]) - 1",
        "Z[i,j] = exp(A[i,j])",
    ],
)
def test_maps_and_other_functions(text: str, routes: Routes) -> None:
    rng = np.random.default_rng(len(text))
    shapes = {"A": (5, 4), "C": (5, 4), "b": (4,)}
    used = {x: shape for x, shape in shapes.items() if f"{x}[" in text}
    arrays = {x: _array(rng, shape, "float64", 0.6) for x, shape in used.items()}
    if "b" in arrays:
        arrays["b"] += 1
    check_everywhere(Case(text, arrays, arrays, {}), routes, seed=0, sample=16)


def test_shortest_paths(routes: Routes) -> None:
    rng = np.random.default_rng(3)
    arrays = {
        name: np.where(rng.random(shape) < 0.5, rng.integers(1, 9, shape), np.inf)
        for name, shape in (("A", (5, 4)), ("B", (4, 3)))
    }
    inputs = {name: ucle.table(array, fill=np.inf) for name, array in arrays.items()}
    text = "Z[i,k] min= A[i,j] + B[j,k]"
    check_everywhere(Case(text, arrays, inputs, {}), routes, seed=0, sample=16)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_meets_zeros(value: float, routes: Routes) -> None:
    rng = np.random.default_rng(4)
    arrays = {"A": _array(rng, (5, 4), "float64", 0.5), "B": rng.random((4, 3))}
    arrays["B"][1, 2] = value
    case = Case("Z[i,k] += A[i,j] * B[j,k]", arrays, arrays, {})
    check_everywhere(case, routes, seed=0, sample=16)


ONE_SIDED = {
    "P[i,j] = exp(C[i,j]); {target} A[i,j] * P[i,j]": "float64",
    "P[i,j] = exp(C[i,j]); {target} P[i,j] * A[i,j]": "float64",
    "P[i,j] = C[i,j] + 2; {target} A[i,j] / P[i,j]": "float64",
    "P[i,j] = C[i,j] - 3; {target} when(A[i,j], P[i,j])": "float64",
    "P[i,j] = C[i,j] + 1; {target} A[i,j] * P[i,j]": "int64",
    "P[i,j] = 2 - C[i,j]; {target} P[i,j] * A[i,j]": "complex128",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("rows", [5, 700])
@pytest.mark.parametrize("target", ["Z[i,j] =", "z[i] +=", "z[j] +=", "z[] +="])
@pytest.mark.parametrize("text", ONE_SIDED)
def test_entries_that_one_side_lacks(text: str, target: str, rows: int, routes: Routes) -> None:
    """The fill of one side absorbs, that of the other does not; whole tiles of either are empty."""
    rng = np.random.default_rng(len(text) + rows)
    arrays = {name: _array(rng, (rows, 4), ONE_SIDED[text], 0.4) for name in "AC"}
    arrays["A"][256:512] = arrays["C"][512:] = 0
    case = Case(text.format(target=target), arrays, arrays, {})
    program, expected = case.compile(routes["native"]), case.expected()
    (name,) = program.outputs
    ways = [
        way
        for way in some_decompositions(program, 0, 10_000)
        if {"0{j}", "1{j}"} <= way[name] or {"0{i}", "1{i}"} <= way[name]
    ]
    assert ways
    for way in ways[:: max(len(ways) // 4, 1)]:
        chosen = program.with_decomposition(way)
        assert "csr_csr_filled" in chosen.to_sql()
        for connection in routes.values():
            with chosen.execute(connection) as result:
                assert_equal(result[name].to_numpy(), expected[name], f"{case.text}, {way}")


UNITED = {
    "{target} A[i,j] + C[i,j]": "float64",
    "{target} A[i,j] - C[i,j]": "int64",
    "{target} max(A[i,j], C[i,j])": "float32",
    "P[i,j] = A[i,j] + 1; R[i,j] = exp(C[i,j]); {target} P[i,j] - R[i,j]": "float64",
    "{target} A[i,j] + C[i,j] * 2j": "complex128",
    "{target} A[i,j] or C[i,j]": "bool",
    "{target} A[i,j] + D[j,i]": "float64",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("rows", [5, 700])
@pytest.mark.parametrize("target", ["Z[i,j] =", "z[i] max=", "z[j] +=", "z[] +="])
@pytest.mark.parametrize("text", UNITED)
def test_entries_of_either_side(text: str, target: str, rows: int, routes: Routes) -> None:
    """No fill absorbs: entries of one side meet the fill of the other, in whole tiles, too."""
    dtype = UNITED[text]
    if dtype == "complex128":
        target = target.replace("max", "+")
    if dtype == "bool":
        target = target.replace("max=", "any=").replace("+=", "any=")
    rng = np.random.default_rng(len(text) + rows)
    arrays = {name: _array(rng, (rows, 4), dtype, 0.4) for name in "AC"}
    arrays["A"][256:512] = arrays["C"][512:] = 0
    arrays["D"] = np.ascontiguousarray(arrays["C"].T)
    arrays = {name: array for name, array in arrays.items() if f"{name}[" in text}
    case = Case(text.format(target=target), arrays, arrays, {})
    program, expected = case.compile(routes["native"]), case.expected()
    (name,) = program.outputs
    ways = [
        way
        for way in some_decompositions(program, 0, 10_000)
        if {"0{j}", "1{j}"} <= way[name] or {"0{i}", "1{i}"} <= way[name]
    ]
    for way in ways[:: max(len(ways) // 4, 1)]:
        chosen = program.with_decomposition(way)
        assert "csr_csr_union" in chosen.to_sql()
        for connection in routes.values():
            with chosen.execute(connection) as result:
                assert_equal(result[name].to_numpy(), expected[name], f"{case.text}, {way}")
    # Sums and maxima of what is not stored are those of the fill, which lists do not have.
    assert ways or "max=" in target or "P[" in text


MASKED = [
    "S[i,j] += Q[i,k] * K[j,k]; {target} M[i,j] * S[i,j]",
    "S[i,j] += Q[i,k] * K[j,k]; {target} S[i,j] * M[i,j]",
    "S[i,j] += Q[i,k] * L[k,j]; {target} M[i,j] * S[i,j]",
    "T[i,j,k] = Q[i,k] * M[i,j]; {target} T[i,j,k] * K[j,k]",
    "T[i,j,k] = M[i,j] * K[j,k]; {target} T[i,j,k] * Q[i,k]",
    "T[i,j,k] = M[i,j] * L[k,j]; {target} Q[i,k] * T[i,j,k]",
]


@pytest.mark.parametrize("target", ["Z[i,j]", "z[i]", "z[]"])
@pytest.mark.parametrize("text", MASKED)
def test_masked_products(text: str, target: str, routes: Routes) -> None:
    density = 0.4 if "L" in text else 1.0
    rng = np.random.default_rng(len(text))
    sums = "+=" if "T[" in text or target != "Z[i,j]" else "="
    text = text.format(target=f"{target} {sums}")
    shapes = {"M": (5, 4), "Q": (5, 3), "K": (4, 3), "L": (3, 4)}
    arrays = {
        x: _array(rng, shape, "float64", 0.5 if x == "M" else density)
        for x, shape in shapes.items()
        if f"{x}[" in text
    }
    program = ucle.einsum_program(text, inputs=arrays, database=routes["native"])
    expected = Case(text, arrays, arrays, {}).expected()
    ways = [
        way
        for way in some_decompositions(program, 0, 10_000)
        if any(x.endswith("{}") for each in way.values() for x in each)
    ]
    for way in ways[:: max(len(ways) // 6, 1)]:
        for connection in routes.values():
            with program.with_decomposition(way).execute(connection) as result:
                for name, tensor in result.items():
                    assert_equal(tensor.to_numpy(), expected[name], f"{text}, {way}")


PROGRAMS = 12


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed: int, routes: Routes) -> None:
    assert check_everywhere(levelled_case(seed), routes, seed, sample=4)


@pytest.mark.slow
def test_the_generator_draws_everything() -> None:
    """Were it to lose a kind, the programs would be right for the wrong reason."""
    cases = [levelled_case(seed) for seed in range(150)]
    text = "\n".join(case.text for case in cases)
    for word in ("S0[", "relu(", "[~(", "(i ", "[at", "cumsum[", "cummin[", "when(", "% 2", "abs("):
        assert word in text, word
    for _, sums, dtype in ALGEBRAS:
        assert any(
            f" {sums} " in case.text and any(array.dtype == dtype for array in case.arrays.values())
            for case in cases
        ), (sums, dtype)
    assert len(KINDS) == 9
    floats = [a for case in cases for a in case.arrays.values() if a.dtype.kind == "f"]
    assert any(np.isnan(array).any() for array in floats)
    given = [value for case in cases for value in case.inputs.values()]
    assert {"csr", "csc", "bsr", "coo"} <= {getattr(value, "format", None) for value in given}
    tables = [value for value in given if isinstance(value, TableInput)]
    assert any(value.tiles for value in tables)
    assert any(value.symmetric for value in tables)
    assert {np.inf, -np.inf} <= {value.fill for value in tables}
