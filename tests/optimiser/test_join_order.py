"""Products whose factors are joined in another order than the text has, also across statements."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from random_programs.product_chains import chain_case

import ucle
from ucle.errors import InputError, NameResolutionError, ValueTypeError
from ucle.ir.contraction_trees import every_tree, in_order, leaves, rotations, tree_of, tree_text
from ucle.lowering.contract import contract
from ucle.lowering.products import equal_products
from ucle.lowering.syntax_to_logical import syntax_to_logical
from ucle.optimiser import join_order
from ucle.options import ASSOCIATIONS, Optimisations
from ucle.testing.check_matrix import Routes, check_everywhere, recompiled
from ucle.testing.generate import Case, random_case
from ucle.testing.oracle import assert_equal, evaluate

CHAINS = (*range(10), 98, 102, 132)
"""Seeds of chains; in each of the last ones three statements or more are merged."""

RANDOM_PROGRAMS = range(5, 30)
"""Seeds of programs; by either profile some cost less in another order."""

LAYER = "P[i,m] += N[i,j] * H[j,m]\nQ[i,n] += P[i,m] * W[m,n]"
RNG = np.random.default_rng(0)
N = sp.random_array((600, 600), density=0.05, rng=RNG, format="coo")
H, W = RNG.random((600, 200)), RNG.random((200, 4))
ARRAYS: dict[str, Any] = {"N": N, "H": H, "W": W}

Merges = Callable[..., dict[str, str]]


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> Merges:
    """The merges that are possible in a program, whether they pay or not."""
    found: list[dict[str, str]] = []

    def noted(*arguments: Any) -> dict[str, str]:
        found.append(real(*arguments))
        return found[-1]

    real = join_order.find_merges
    monkeypatch.setattr(join_order, "find_merges", noted)

    def compiled(text: str, **options: Any) -> dict[str, str]:
        found.clear()
        ucle.clear_caches()
        ucle.einsum_program(text, **options)
        return found[-1] if found else {}

    return compiled


ANY = Optimisations(association_gain=-np.inf, association_work=np.inf)
"""Whatever order comes first is taken, whether it gains anything or not."""


def vertices(program: ucle.EinsumProgram) -> list[str]:
    return [vertex.name for vertex in program.compiled.program.vertices]


# What is chosen


def test_a_narrow_product_comes_first() -> None:
    program = ucle.einsum_program(LAYER, **ARRAYS)
    written = ucle.einsum_program(LAYER, **ARRAYS, association="as-written")
    assert "P" not in vertices(program)
    assert vertices(written) == ["P", "Q"]
    first, last = program.compiled.program.vertices
    assert {operand.tensor for operand in first.inputs} == {"H", "W"}
    assert {operand.tensor for operand in last.inputs} == {"N", first.name}
    assert program.cost < written.cost * 0.6
    for each in (program, written):
        with each.execute() as result:
            assert list(result) == ["Q"]
            np.testing.assert_allclose(result["Q"].to_numpy(), N @ (H @ W))


@pytest.mark.parametrize("text", [LAYER, "Q[i,n] = relu(N[i,j] * H[j,m] * W[m,n] + b[n])"])
def test_parameters_are_joined_in_the_cheapest_order(text: str) -> None:
    """Nobody knows what takes their place, and it is not taken to be near the end of its type."""
    given = {**ARRAYS, "W": ucle.parameter(np.zeros_like(W)), "b": ucle.parameter(np.zeros(4))}
    given = {name: value for name, value in given.items() if f"{name}[" in text}
    program = ucle.einsum_program(text, inputs=given)
    assert "N * (H * W)" in program.explain()
    with program.execute(W=W - 0.5) as result:
        expected = N @ H @ (W - 0.5)
        found = result["Q"].to_numpy()
    np.testing.assert_allclose(found, np.maximum(expected, 0) if "relu" in text else expected)
    huge = {**given, "W": np.full_like(W, 1e307)}
    assert "N * (H * W)" not in ucle.einsum_program(text, inputs=huge).explain()


def test_quotients_and_inverses_are_joined_in_the_cheapest_order() -> None:
    """As far as their ranges tell, they might be huge, which says nothing about the data."""
    dense = N.toarray()
    G = dense @ dense.T + np.eye(len(dense))
    unit = dense / np.sqrt((dense**2).sum(0))
    for left, expected in (
        ("N[i,j] / max(sqrt(sum[k](square(N[k,j]))), 1e-300)", unit),
        ("inv[i,j](G[i,j])", np.linalg.inv(G)),
    ):
        text = f"U[i,j] = {left}\n{LAYER.replace('N', 'U')}"
        given = {"G": G, **ARRAYS}
        program = ucle.einsum_program(
            text, inputs={name: given[name] for name in given if f"{name}[" in text}
        )
        cheapest = recompiled(program, ANY)
        assert "U * (H * W)" in cheapest.explain()
        with cheapest.execute() as result:
            np.testing.assert_allclose(result["Q"].to_numpy(), expected @ H @ W, rtol=1e-6)


def test_numbers_that_are_large_in_the_data_keep_the_written_order() -> None:
    program = ucle.einsum_program(LAYER, **{**ARRAYS, "N": N * 1e306})
    assert "N * (H * W)" not in recompiled(program, ANY).explain()


def test_explain_says_what_was_chosen() -> None:
    program = ucle.einsum_program(LAYER, **ARRAYS)
    written = ucle.einsum_program(LAYER, **ARRAYS, association="as-written")
    (line,) = (x for x in program.explain().splitlines() if x.startswith("association"))
    assert "Q = N * (H * W)" in line
    for each in (program, written):
        total = each.explain().split("total ")[1].splitlines()[0]
        assert f"cost {total}" in line or f"costs {total}" in line
    assert "association" not in written.explain()
    again = program.with_decomposition("relational")
    assert "Q = N * (H * W)" in again.explain()


def test_the_written_order_stays_where_it_is_the_cheapest() -> None:
    wide = RNG.random((200, 900))
    program = ucle.einsum_program(LAYER, N=N, H=H, W=wide)
    assert vertices(program) == ["P", "Q"]
    assert "association" not in program.explain()


def test_diagonals_around_a_matrix() -> None:
    """D A D H: two diagonal matrices scale the vector, or the matrix once."""
    d = sp.dia_array((np.arange(1.0, 601)[None], [0]), shape=(600, 600)).tocoo()
    text = "S[i,k] += D[i,j] * N[j,k]\nT[i,l] += S[i,k] * D[k,l]\ny[i] += T[i,l] * x[l]"
    x = RNG.random(600)
    program = ucle.einsum_program(text, D=d, N=N, x=x)
    with program.execute() as result:
        np.testing.assert_allclose(result["y"].to_numpy(), d @ (N @ (d @ x)))
    assert program.cost <= ucle.einsum_program(text, D=d, N=N, x=x, association="as-written").cost


def test_products_within_a_statement_as_they_are_written() -> None:
    text = "T[i] += A[i,j] * B[j,k] * c[k]"
    bracketed = "T[i] += A[i,j] * (B[j,k] * c[k])"
    arrays = {"A": np.ones((3, 4)), "B": np.ones((4, 5)), "c": np.ones(5)}
    firsts = []
    for each in (text, bracketed):
        program = ucle.einsum_program(each, **arrays, association="as-written")
        firsts.append(str(program.compiled.program).splitlines()[0].partition("= ")[2])
        with program.execute() as result:
            np.testing.assert_array_equal(result["T"].to_numpy(), [20, 20, 20])
    assert firsts == ["A[i,j] * B[j,k]", "B[j,k] * c[k]"]


def test_a_path_wins() -> None:
    text = "T[i,l] += A[i,j] * B[j,k] * C[k,l]"
    arrays = {"A": np.ones((3, 4)), "B": np.ones((4, 5)), "C": np.ones((5, 2))}
    for choice in ASSOCIATIONS:
        program = ucle.einsum_program(text, **arrays, path=[(0, 2), (0, 1)], association=choice)
        assert str(program.compiled.program).splitlines()[0].endswith("= A[i,j] * C[k,l]")


def test_an_unknown_association() -> None:
    with pytest.raises(InputError, match="association"):
        ucle.einsum_program(LAYER, **ARRAYS, association="left")


def test_plans_and_pins_are_those_of_the_program_as_chosen() -> None:
    program = ucle.einsum_program(LAYER, **ARRAYS)
    (inner, _) = vertices(program)
    assert inner not in ("P", "Q")
    for plan in program.plans(4):
        assert vertices(plan) == [inner, "Q"]
        with plan.execute() as result:
            np.testing.assert_allclose(result["Q"].to_numpy(), N @ (H @ W))
    pinned = ucle.einsum_program(LAYER, **ARRAYS, decomposition={inner: ["j"]})
    assert vertices(pinned) == [inner, "Q"]
    assert pinned.compiled.decomposed.promoted[inner] == {"j"}
    with pytest.raises(NameResolutionError, match="unknown tensor P") as info:
        program.with_decomposition({"P": ["i"]})
    assert "as-written" in str(info.value.hint)


def test_a_chain_that_memory_is_enough_for_in_one_order_only() -> None:
    """u v' would fill a matrix of 80 GB; the other order never makes it."""
    u, v = RNG.random((100_000, 1)), RNG.random((1, 100_000))
    text = "P[i,j] += U[i,r] * V[r,j]\ny[i] += P[i,j] * X[j]"
    inputs = {"U": u, "V": v, "X": RNG.random(100_000)}
    options = {"memory_limit": "100MB", "decomposition": "auto"}
    program = ucle.einsum_program(text, **inputs, **options)
    with program.execute() as result:
        expected = u @ (v @ inputs["X"])
        np.testing.assert_allclose(result["y"].to_numpy(), expected)


# What may be merged


def test_what_may_be_merged(merges: Merges) -> None:
    ones = {"N": np.eye(3), "H": np.eye(3), "W": np.eye(3)}
    assert merges(LAYER, **ones) == {"P": "Q"}
    assert merges("Q[i,n] += P[i,m] * W[m,n]\nP[i,m] += N[i,j] * H[j,m]", **ones) == {"P": "Q"}
    assert merges("P[i,m] = N[i,m] * H[i,m]\nq[i] += P[i,m] * W[m,i]", **ones) == {"P": "q"}
    assert merges("P[i,m] += N[i,j] * H[j,m]\nq[i] = relu(P[i,m] * W[m,i])", **ones) == {"P": "q"}
    three = "P[i,m] += N[i,j] * H[j,m]\nQ[i,n] += P[i,m] * W[m,n]\nR[i] += Q[i,n] * N[n,n]"
    assert merges(three, **ones) == {"P": "Q", "Q": "R"}
    truth = {name: value.astype(bool) for name, value in ones.items()}
    text = "P[i,m] any= N[i,j] and H[j,m]\nQ[i,n] any= P[i,m] and W[m,n]"
    assert merges(text, **truth) == {"P": "Q"}


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "text",
    [
        "P[i,m] += N[i,j] * H[j,m]\nQ[i,n] += P[i,m] * P[m,n]",  # used twice
        f"{LAYER}\nR[i] += P[i,m]",
        "P[i,m] max= N[i,j] * H[j,m]\nQ[i,n] += P[i,m] * W[m,n]",  # other algebras
        "P[i,m] += N[i,j] * H[j,m]\nQ[i,n] max= P[i,m] * W[m,n]",
        "P[i,m] += N[i,j] * H[j,m]\nQ[i,n] += P[i,m] + W[m,n]",
        "P[i,m] min= N[i,j] + H[j,m]\nQ[i,n] max= P[i,m] + W[m,n]",
        "P[i,m] any= N[i,j] * H[j,m]\nQ[i,n] += P[i,m] * W[m,n]",
        "P[i,m] += N[i,j] * H[j,m]\nQ[i,n] += relu(P[i,m]) * W[m,n]",  # something between
        "P[i,m] = relu(N[i,j] * H[j,m])\nQ[i,n] += P[i,m] * W[m,n]",
        "P[i,m] = float32(N[i,j] * H[j,m])\nQ[i,n] += P[i,m] * W[m,n]",
        "P[i,m] += N[i,j] * H[j,m]\nQ[i,n] += int64(P[i,m]) * W[m,n]",
        "P[i,m] = N[i,m] - H[i,m]\nQ[i,n] += P[i,m] * W[m,n]",
        "P[i] += N[i,j]\nQ[i,n] += P[i] * W[i,n]",  # no product
    ],
)
def test_what_may_not_be_merged(text: str, merges: Merges) -> None:
    rng = np.random.default_rng(1)
    arrays = {x: rng.integers(-2, 3, size=(3, 3)) * 1.0 for x in "NHW" if x in text}
    fill = np.inf if "min=" in text else 0.0  # so that fills are not what stands in the way
    inputs = {name: ucle.table(array, fill=fill) for name, array in arrays.items()}
    assert merges(text, inputs=inputs) == {}
    expected = evaluate(text, arrays)
    with ucle.einsum_program(text, inputs=inputs).execute() as result:
        for name in result:
            assert_equal(result[name].to_numpy(), expected[name], text)


def test_outputs_pins_and_paths_stay(merges: Merges) -> None:
    ones = {"N": np.eye(3), "H": np.eye(3), "W": np.eye(3)}
    assert merges(LAYER, **ones, outputs=["P", "Q"]) == {}
    assert merges(LAYER, **ones, outputs=["Q"]) == {"P": "Q"}
    for name in "PQ":
        assert merges(LAYER, **ones, decomposition={name: ["i"]}) == {}
        assert merges(LAYER, **ones, path={name: [(0, 1)]}) == {}
    assert merges(LAYER.upper(), **ones, decomposition="as-written") == {}
    assert merges(LAYER, **ones, decomposition="relational") == {"P": "Q"}
    assert merges(LAYER, **ones, association="as-written") == {}


@pytest.mark.parametrize("dtypes", ["iff", "iii", "bbb", "eff", "fff", "ccc", "ffe", "ffc"])
def test_element_types(dtypes: str, merges: Merges) -> None:
    """An intermediate cast rounds; integers that overflow are computed as written."""
    names = {"i": "int64", "b": "bool", "e": "float32", "f": "float64", "c": "complex128"}
    rng = np.random.default_rng(2)
    arrays = {
        name: rng.integers(0, 3, size=(3, 3)).astype(names[dtype])
        for name, dtype in zip("NHW", dtypes, strict=True)
    }
    assert merges(LAYER, **arrays) == ({} if dtypes == "ffc" else {"P": "Q"})
    with ucle.einsum_program(LAYER, **arrays).execute() as result:
        assert_equal(result["Q"].to_numpy(), evaluate(LAYER, arrays)["Q"], dtypes)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite(number: float, merges: Merges) -> None:
    text = "P[i,m] += N[i,j] * H[j,m]\nQ[i,n] += P[i,m] * W[m,n]"
    n, h, w = np.eye(3), np.array([[1.0, 0, 0], [-1, 0, 0], [0, 0, 1]]), np.eye(3)
    w[0, 0] = number
    arrays = {"N": n, "H": h, "W": w}
    assert merges(text, **arrays) == {}
    with ucle.einsum_program(text, **arrays).execute() as result:
        assert_equal(result["Q"].to_numpy(), evaluate(text, arrays)["Q"], str(number))
    assert merges(text, **arrays, nonfinite="sparse") == {"P": "Q"}


@pytest.mark.parametrize("fill", [0.0, 2.0])
def test_fills(fill: float, merges: Merges) -> None:
    arrays = {name: np.where(np.eye(3) > 0, 3.0, fill) for name in "NHW"}
    inputs = {name: ucle.table(array, fill=fill) for name, array in arrays.items()}
    assert merges(LAYER, **inputs) == ({} if fill else {"P": "Q"})
    with ucle.einsum_program(LAYER, **inputs).execute() as result:
        assert_equal(result["Q"].to_numpy(), evaluate(LAYER, arrays)["Q"], str(fill))


def test_shortest_paths(merges: Merges) -> None:
    """Min-plus: what is not stored is infinitely far away."""
    rng = np.random.default_rng(3)
    far = np.where(rng.random((5, 5)) < 0.4, rng.integers(1, 9, size=(5, 5)), np.inf)
    text = "two[i,k] min= A[i,j] + A[j,k]\nthree[i,l] min= two[i,k] + A[k,l]"
    hops = ucle.table(far, fill=np.inf)
    assert merges(text, A=hops) == {"two": "three"}
    with ucle.einsum_program(text, A=hops).execute() as result:
        assert_equal(result["three"].to_numpy(), evaluate(text, {"A": far})["three"], text)


@pytest.mark.usefixtures("any_order")
@pytest.mark.parametrize(
    "text",
    [
        "P[a,b] += N[a,j] * H[j,b]\nQ[i,n] += P[i,j] * W[j,n]",  # an inner label is an outer one
        "P[j,m] += N[i,j] * H[i,m]\nQ[m,i] += P[m,j] * W[j,i]",
        "P[i,m] += N[i,j] * H[j,m]\nq[] += P[i,i] * W[i,i]",
        "P[i,m] += N[i,j] * H[j,m]\nQ[i] += P[j,m] * W[m,i]",
        "P[i,m] = mean[j](N[i,j]) * H[i,m]\nQ[i] += P[i,j] * W[j,i] * mean[k](N[i,k])",
        "s[i] += N[i,j] * H[j,i]\nQ[i,j] = s[i] * W[i,j]",
    ],
)
def test_labels_are_kept_apart(text: str, routes: Routes) -> None:
    rng = np.random.default_rng(4)
    arrays = {name: rng.integers(-2, 3, size=(4, 4)) * 1.0 for name in "NHW"}
    expected = evaluate(text, arrays)
    program = recompiled(ucle.einsum_program(text, inputs=arrays), ANY)
    assert program.compiled.association is not None
    for connection in routes.values():
        with program.execute(connection) as result:
            for name in result:
                assert_equal(result[name].to_numpy(), expected[name], text)


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.usefixtures("any_order")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_masks_of_factors(dtype: str, routes: Routes) -> None:
    """Products of a factor and its mask, some of which are left out where statements merge."""
    rng = np.random.default_rng(9)
    arrays = {x: rng.integers(-1, 2, (4, 4)).astype(dtype) for x in "NHW"}
    arrays["N"][0] = 0 * -arrays["N"][0] if dtype != "bool" else False
    for factor, mask in (
        ("N[i,j]", "(N[i,j] != 0)"),
        ("N[i,j]", "(N[i,j] != 1)"),
        ("(N[i,j] - 1)", "(N[i,j] != 1)"),
        ("relu(N[i,j])", "(N[i,j] != 0)"),
        ("2 * N[i,j]", "(N[j,i] != 0)"),
        ("N[i,j]", "bool(N[i,j])"),
    ):
        text = f"P[i,j] += {mask} * H[i,k] * W[k,j]\nQ[i] += {factor} * P[i,j]"
        case = Case(text, arrays, dict(arrays), {})
        try:
            check_everywhere(case, routes, 3, sample=4, optimisations=ANY)
        except ValueTypeError:  # as in NumPy, there is no difference of booleans
            assert dtype == "bool"


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.usefixtures("any_order")
@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_sums_of_sums(dtype: str, routes: Routes) -> None:
    """They are one sum, whose labels are aggregated in any order."""
    rng = np.random.default_rng(9)
    arrays = {x: rng.integers(0 if dtype == "bool" else -2, 2, (4, 4)).astype(dtype) for x in "NHW"}
    for text in (
        "Q[j] = sum[k](sum[i](N[i,j] * H[i,k] * W[k,j])) + 1",
        "Q[i] = sum[k](sum[j](N[i,j] * H[j,k])) * sum[k](sum[j](W[k,j] * N[j,i]))",
        "Q = sum[k](sum[k](N[j,k] * H[j,k]) * sum[j](W[j,k] * N[j,k]))",
        "Q[i] = any[k](any[j](N[i,j] != 0 and H[j,k] != 0 and W[k,i] != 0))",
        "Q[i] = max[k](max[j](N[i,j] + H[j,k] + W[k,i]))",
        "Q[i] = max[k](min[j](N[i,j] + H[j,k] + W[k,i]))",
    ):
        case = Case(text, arrays, dict(arrays), {})
        check_everywhere(case, routes, 4, sample=4, optimisations=ANY)


def test_bounds_of_what_is_merged() -> None:
    """A bound that is given for a label of the inner statement, and dictionaries of both."""
    import pyarrow as pa

    edges = pa.table({"a": ["x", "y"], "b": ["y", "z"], "v": [2.0, 3.0]})
    text = "P[i,k] += A[i,j] * A[j,k]\nQ[i,l] += P[i,k] * A[k,l]\nr[i] += Q[i,l] * w[i,l]"
    more = pa.table({"a": ["x"], "b": ["z"], "v": [1.0]})
    with ucle.einsum_program(text, A=edges, w=more).execute() as result:
        assert result["r"].to_numpy().sum() == 0
        assert sorted(result["r"].coordinates("i").to_pylist()) == ["x", "y", "z"]
    counted = pa.table({"i": [0], "j": [1], "v": [2.0]})
    text = "P[a,c] += A[a,b] * B[b,c]\nQ[i,n] += P[i,m] * C[m,n]"
    program = ucle.einsum_program(
        text, A=counted, B=counted, C=counted, bounds={"a": 7, "b": 9, "n": 11}
    )
    with program.execute() as result:
        assert result["Q"].to_numpy().shape == (7, 11)


# Random programs


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", CHAINS)
@pytest.mark.usefixtures("any_order")
def test_random_chains_in_any_order(seed: int, routes: Routes) -> None:
    check_everywhere(chain_case(seed), routes, seed, sample=6, optimisations=ANY)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", CHAINS)
def test_random_chains(seed: int, routes: Routes) -> None:
    check_everywhere(chain_case(seed), routes, seed, sample=2)


@pytest.mark.fuzz
@pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="`make fuzz` runs it")
@pytest.mark.parametrize("seed", range(200, 200 + int(os.environ.get("UCLE_FUZZ_PROGRAMS", "1"))))
@pytest.mark.usefixtures("any_order")
def test_more_random_chains(seed: int, routes: Routes) -> None:
    check_everywhere(chain_case(seed), routes, seed, sample=4, optimisations=ANY)


@pytest.mark.slow
def test_the_chains_are_merged(merges: Merges, native: Any) -> None:
    """Were none of them merged, the tests above would be green for the wrong reason."""
    found = []
    for seed in CHAINS:
        case = chain_case(seed)
        case.create_tables(native)
        found.append(
            len(merges(case.text, inputs=case.inputs, bounds=case.stated, database=native))
        )
        case.drop_tables(native)
    assert sum(count > 0 for count in found) > len(CHAINS) / 4
    assert max(found) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("draw", [chain_case, random_case])
@pytest.mark.parametrize("profile", ["duckdb", "paper"])
def test_no_program_costs_more_than_as_written(draw: Any, profile: str, native: Any) -> None:
    less = 0
    for seed in RANDOM_PROGRAMS:
        case = draw(seed)
        case.create_tables(native)
        costs = [
            case.compile(native, association=choice, profile=profile).cost
            for choice in ASSOCIATIONS
        ]
        case.drop_tables(native)
        assert costs[0] <= costs[1], case
        less += costs[0] < costs[1]
    assert less > 0


def test_orders_and_merges_can_be_switched_off() -> None:
    text = f"{LAYER}\nr[i] += N[i,j] * M[j,m] * x[m]"
    arrays = {**ARRAYS, "M": H, "x": np.ones(200)}
    program = ucle.einsum_program(text, **arrays)
    apart = recompiled(program, Optimisations(merge=False))
    written = recompiled(program, Optimisations(association=False))
    assert program.compiled.association is not None
    assert len(program.compiled.association.products) == 2
    assert apart.compiled.association is not None
    assert apart.compiled.association.products == ("r = N * (M * x)",)
    assert "P" in vertices(apart)
    assert written.compiled.association is None
    assert program.cost < apart.cost < written.cost
    expected = program.execute()
    for other in (apart, written):
        with other.execute() as result:
            for name in result:
                np.testing.assert_allclose(result[name].to_numpy(), expected[name].to_numpy())


def test_orders_are_chosen_for_what_products_share() -> None:
    """A (B C) alone costs more than (A B) C; beside a product with B C, it is cheaper."""
    rng = np.random.default_rng(3)
    matrices = {
        name: sp.random_array((1000, 1000), density=0.003, rng=rng, format="coo") for name in "BCAD"
    }
    abc = {name: matrices[name] for name in "ABC"}
    alone = ucle.einsum_program("Y[i,l] += A[i,j] * B[j,k] * C[k,l]", inputs=abc)
    text = "Y[i,l] += A[i,j] * B[j,k] * C[k,l]\nZ[i,l] += B[i,j] * C[j,k] * D[k,l]"
    both = ucle.einsum_program(text, inputs=matrices)
    assert alone.compiled.association is None
    assert both.compiled.association is not None
    assert both.compiled.association.products == ("Y = A * (B * C)",)
    assert len(vertices(both)) == 3
    B, C, A, D = matrices.values()
    with both.execute() as result:
        for name, expected in ("Y", A @ B @ C), ("Z", B @ C @ D):
            np.testing.assert_allclose(result[name].to_numpy(), expected.toarray())


def test_merges_are_made_again_only_where_they_are_allowed() -> None:
    """With numbers that may be infinite, the order of products decides where NaN comes out."""
    front = ucle.einsum_program(LAYER, **ARRAYS).compiled.front
    assert front.lowering.merges == {"P": "Q"}
    matrix = front.source.types["N"]
    for finite in (True, False):
        values = replace(matrix.entries, finite=finite)
        types = {**front.source.types, "N": replace(matrix, values=values)}
        logical = syntax_to_logical(replace(front.source, types=types))
        program = front.lowering.contract(logical).program
        assert ("P" in program.by_name) == (not finite)


@pytest.mark.turns(3)
def test_no_longer_search_than_a_program_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that takes no time in the order of fewest tuples is not searched for long."""
    looked_at = []
    price = join_order._Search._price

    def counted(*arguments: Any) -> Any:
        looked_at.append(arguments)
        return price(*arguments)

    monkeypatch.setattr(join_order._Search, "_price", counted)
    graph = np.roll(np.eye(50), 1, axis=1)
    text = "\n".join(f"y{n + 1}[i] += A[i,j] * y{n}[j]" for n in range(80))
    hurried = ucle.einsum_program(text, A=graph, y0=np.ones(50))
    assert len(looked_at) <= 2
    assert "others take longer to price" in " ".join(hurried.explain().split())
    looked_at.clear()
    searched = recompiled(hurried, Optimisations(association_work=math.inf))
    assert len(looked_at) > 3
    assert re.search(r" in \d orders", " ".join(searched.explain().split()))


DEAR = "Z[i,l] += A[i,j] * B[j,k] * C[k,l]"


def test_the_dearest_statement_is_searched_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget for one order is spent where most can be saved, wherever that is in the text."""
    tried = []
    price = join_order._Search._price

    def noted(search: Any, order: join_order.JoinOrder, *rest: Any) -> Any:
        tried.append({tensor for tensor, _ in order.trees})
        return price(search, order, *rest)

    monkeypatch.setattr(join_order._Search, "_price", noted)
    monkeypatch.setattr(join_order, "CONTRACTING", 1.0)
    rng = np.random.default_rng(0)
    arrays = {name: rng.random((400, 400)) for name in "ABC"}
    small = {f"s{name}": rng.random((2, 2)) for name in "ABC"}
    little = DEAR.replace("Z", "z").replace("A", "sA").replace("B", "sB").replace("C", "sC")
    for lines in ((little, DEAR), (DEAR, little)):
        tried.clear()
        ucle.clear_caches()
        ucle.einsum_program("\n".join(lines), **arrays, **small)
        (first, *_) = [trees for trees in tried if trees]
        assert first == {"Z"}


LOSS = "L += square(X[i,j] - sum[f](U[i,f] * V[j,f]))"
LOSS_BY_HAND = """
a += square(X[i,j]); b += X[i,j] * U[i,f] * V[j,f]
C[f,g] += U[i,f] * U[i,g]; D[f,g] += V[j,f] * V[j,g]; d += C[f,g] * D[f,g]; L = a - 2 * b + d
"""


def test_products_that_rewriting_makes_are_ordered(routes: Routes) -> None:
    """All of them are at one place in the text, and what measures the loss repeats them."""
    rng = np.random.default_rng(1)
    X = sp.random_array((3200, 1600), density=0.03, rng=rng, format="csr")
    arrays = {"X": X, "U": rng.random((3200, 10)), "V": rng.random((1600, 10))}
    programs = [
        ucle.einsum_program(text, inputs=arrays, outputs=["L"], rewrite=rewrite)
        for text, rewrite in ((LOSS, "auto"), (LOSS, "algebraic"), (LOSS_BY_HAND, "auto"))
    ]
    assert programs[0].compiled.program.condition_numbers
    *costs, by_hand = [program.cost for program in programs]
    assert max(costs) <= 1.2 * by_hand
    expected = np.square(X.toarray() - arrays["U"] @ arrays["V"].T).sum()
    for connection in routes.values():
        for program in programs[:2]:
            with program.execute(connection) as result:
                assert_equal(result["L"].to_numpy(), expected, LOSS)


def test_equal_products_change_together(routes: Routes) -> None:
    """A product that two outputs read is computed once in the cheapest order, too."""
    product = "X[i,j] * U[i,f] * V[j,f]"
    lines = [f"a += {product}", f"b = 1 + sum[f,i,j]({product})"]
    rng = np.random.default_rng(2)
    X = sp.random_array((1600, 1200), density=0.03, rng=rng, format="csr")
    arrays = {"X": X, "U": rng.random((1600, 10)), "V": rng.random((1200, 10))}
    one, two = (ucle.einsum_program("\n".join(x), inputs=arrays) for x in (lines[:1], lines))
    assert two.cost <= 1.2 * one.cost
    a = np.einsum("ij,if,jf->", X.toarray(), arrays["U"], arrays["V"], optimize=True)
    for connection in routes.values():
        with two.execute(connection) as result:
            assert_equal(result["a"].to_numpy(), a, lines[0])
            assert_equal(result["b"].to_numpy(), a + 1, lines[1])


def test_equal_products_have_equal_sums() -> None:
    """Names of labels do not matter, but what is summed does."""
    text = "a += X[i,j] * U[i,f] * V[j,f]; b += X[k,l] * U[k,g] * V[l,g]"
    text += "; c[i] += X[i,j] * U[i,f] * V[j,f]"
    arrays = {"X": np.ones((4, 3)), "U": np.ones((4, 2)), "V": np.ones((3, 2))}
    source = ucle.einsum_program(text, inputs=arrays).compiled.front.source
    equal = equal_products(contract(syntax_to_logical(source)).products)
    found = {name: {x.key[0] for x in others} for (name, _), others in equal.items()}
    assert found == {"a": {"a", "b"}, "b": {"a", "b"}, "c": {"c"}}


def test_statements_that_cost_nothing_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    priced = []
    price = join_order._Search._price

    def noted(search: Any, order: join_order.JoinOrder, *rest: Any) -> Any:
        priced.append(order)
        return price(search, order, *rest)

    monkeypatch.setattr(join_order._Search, "_price", noted)
    arrays = {name: np.eye(3) for name in "ABC"}
    hurried = ucle.einsum_program(DEAR, inputs=arrays)
    assert not any(order.trees for order in priced)
    assert "others take longer to price" in " ".join(hurried.explain().split())


def test_a_program_of_many_vertices_keeps_its_statements() -> None:
    """A search of all would take too long; products within statements are ordered all the same."""
    text = f"{LAYER}\nr[i] += N[i,j] * M[j,m] * x[m]"
    arrays = {**ARRAYS, "M": H, "x": np.ones(200)}
    searched = ucle.einsum_program(text, **arrays)
    assert "P" not in vertices(searched)
    program = recompiled(searched, Optimisations(association_effort=10))
    assert "P" in vertices(program)
    assert program.compiled.association is not None
    assert program.compiled.association.products == ("r = N * (M * x)",)
    assert program.cost < ucle.einsum_program(text, **arrays, association="as-written").cost


# Trees


def test_trees() -> None:
    trees = list(every_tree(5))
    assert len(set(trees)) == len(trees) == 105
    assert trees[0] == ((((0, 1), 2), 3), 4)
    for tree in trees:
        assert in_order(tree) == tree
        assert sorted(leaves(tree)) == list(range(5))
        near = {in_order(x) for x in rotations(tree)}
        assert len(near) == 6
        assert near < set(trees) - {tree}
    assert tree_of([(0, 1), (0, 1), (0, 1)], 4) == ((0, 1), (2, 3))
    assert tree_text(((0, 2), 1), "abc", "{} + {}".format) == "(a + c) + b"


AGGREGATED: dict[str, tuple[bool, Any]] = {
    "P[i,j] = X[i,j] * u[i]; Z[j] += P[i,j]": (True, lambda X, Y, u, v: X.T @ u),
    "P[i,j] = X[i,j] * u[i] * 2; Z[j] += P[i,j]": (True, lambda X, Y, u, v: 2 * (X.T @ u)),
    "P[i,j] = X[i,j] * v[j] * u[i]; Z += P[i,j]": (True, lambda X, Y, u, v: u @ X @ v),
    "P[i,j] = X[i,j] * Y[j,i]; Z = sum[i](P[i,i])": (
        False,
        lambda X, Y, u, v: (X.diagonal() * Y.diagonal()).sum(),
    ),
    "P[i,j] = X[i,j] * u[i]; Z[j] max= P[i,j]": (
        False,
        lambda X, Y, u, v: (X.toarray() * u[:, None]).max(axis=0),
    ),
    "P[i,k] += X[i,j] * Y[j,k]; Z[i] max= P[i,k]": (
        False,
        lambda X, Y, u, v: (X @ Y).toarray().max(axis=1),
    ),
}


@pytest.mark.parametrize("text", AGGREGATED)
def test_products_that_are_only_aggregated(text: str, routes: Routes) -> None:
    """They are one product with a sum; a diagonal and a maximum are something else."""
    merged, expected = AGGREGATED[text]
    rng = np.random.default_rng(5)
    X, Y = (sp.random_array((3000, 3000), density=0.005, rng=rng, format="csr") for _ in range(2))
    X.setdiag(1.0)
    Y.setdiag(2.0)
    u, v = rng.normal(size=(2, 3000))
    known = {"X": X, "Y": Y, "u": u, "v": v}
    inputs = {name: value for name, value in known.items() if f"{name}[" in text}
    program = ucle.einsum_program(text.replace(";", "\n"), database=routes["native"], inputs=inputs)
    assert bool(program.compiled.front.lowering.merges) is merged
    for connection in routes.values():
        with program.execute(connection) as result:
            found = result["Z"].to_numpy()
        np.testing.assert_allclose(found, expected(X, Y, u, v), rtol=1e-9, atol=1e-12)
