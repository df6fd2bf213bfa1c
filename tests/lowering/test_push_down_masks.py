"""Mask push-down: factors are computed only behind a mask, and nothing else changes."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from known import check_known, known

import ucle
from ucle.errors import UcleError, ValueTypeError
from ucle.options import Optimisations
from ucle.program import EinsumProgram
from ucle.testing.check_matrix import Routes, check_everywhere, recompiled
from ucle.testing.generate import Case, random_case, special_case
from ucle.testing.oracle import evaluate

ALWAYS = Optimisations(mask_gain=-math.inf, mask_share=0.7, rewrite_effort=0)
"""Masks are passed down wherever they may be, however little that gains."""

N, F = 5, 3
RNG = np.random.default_rng(17)


def sparse(*shape: int, dtype: str = "float64", share: float = 0.3) -> np.ndarray:
    made = np.where(RNG.random(shape) < share, RNG.integers(1, 4, shape) * 0.5 + 0.5, 0.0)
    return made.astype(dtype)


DATA: dict[str, np.ndarray] = {
    "A": sparse(N, N),
    "M": sparse(N, N, share=0.5),
    "K": sparse(N, N, dtype="int64"),
    "Y": sparse(N, N, dtype="bool"),
    "Z": sparse(N, N, dtype="complex128"),
    "T": sparse(N, N, F),
    "m": np.array([0.0, 1.5, 0.0, 0.0, 2.0]),
    "x": RNG.normal(size=N),
    "y": RNG.normal(size=N),
    "n": RNG.integers(-3, 4, N),
    "b": RNG.random(N) < 0.5,
    "z": RNG.normal(size=N) + 1j * RNG.normal(size=N),
    "U": RNG.normal(size=(N, F)),
    "V": RNG.normal(size=(N, F)),
    "w": RNG.normal(size=F),
}

FORMS = [
    "E += A[i,j] * abs(x[i] - y[j])",
    "E[i,j] = A[i,j] * sigmoid(sum[f](U[i,f] * V[j,f]))",
    "E[i,j] = where(A[i,j] > 0, sum[f](U[i,f] * V[j,f]), 0)",
    "E[i,j] = when(A[i,j], exp(x[i] + y[j]))",
    "E[i] += A[i,j] / max(abs(x[i] - y[j]), 0.25)",
    "E += A[i,j] * (x[i] < y[j])",
    "E[i] += A[i,j] * (b[i] or b[j])",
    "E[i] any= Y[i,j] and (x[i] < y[j])",
    "E[i,j] = K[i,j] * (n[i] - n[j])",
    "E[i,j] = K[i,j] * sigmoid(n[i] + x[j])",
    "E += Z[i,j] * (z[i] - conj(z[j]))",
    "E[i,j] = A[i,j] * M[i,j] * tanh(x[i] + y[j])",
    "E[i] += 2 * A[i,j] * M[i,j] * cos_like(x[i] - y[j])",
    "E[i,j] = A[i,j] * log(exp(x[i]) + exp(y[j]))",
    "E[i,j] = A[i,j] / (exp(x[i]) + exp(y[j]))",
    "E[i,j] = A[i,j] * reciprocal(exp(x[i]) + exp(y[j]) + exp(x[i]))",
    "L[i,j] = A[i,j] / sqrt(exp(x[i]) * exp(y[j])); E[i] += L[i,j] * relu(sum[k](L[j,k] * y[k]))",
    "L[i,j] = A[i,j] / -(exp(x[i]) + exp(y[j])); E[i] += L[i,j] * relu(sum[k](L[j,k] * y[k]))",
    "E[i,j] = A[i,j] * -reciprocal(exp(x[i]) + exp(y[j]))",
    "E[i,j] = floor_divide(A[i,j], 0.25 + abs(x[i] - y[j]))",
    "E[i,j] = remainder(A[i,j], 0.25 + abs(x[i] - y[j]))",
    "E[i,j] = float32(A[i,j]) / float32(exp(x[i]) + exp(y[j]))",
    "E[i,j] = A[i,j] * sqrt(sum[f](square(U[i,f] - V[j,f])))",
    "E[i,j] = A[i,j] * max[f](U[i,f] + V[j,f])",
    "E[i,j] = A[i,j] * min[f](U[i,f] * V[j,f])",
    "E[i] += A[i,j] * prod[f](exp(U[i,f] - V[j,f]))",
    "E[i,j] = A[i,j] * (x[i] - 1) * (y[j] - M[i,j])",
    "E[i,j] = A[i,j] * abs(M[i,j] - x[j])",
    "E[i,f] += A[i,j] * tanh(x[i] - y[j]) * V[j,f]",
    "E[f] += T[i,j,f] * abs(x[i] - y[j]) * exp(w[f])",
    "E[i] += m[i] * sigmoid(sum[f](U[i,f] * w[f]))",
    "E += A[i,i] * abs(x[i] - y[i])",
    "E[i,j] = A[j,i] * abs(x[i] - y[j])",
    "E[i,k] += A[i,j] * M[j,k] * abs(x[i] - y[k])",
    "E[i,k] += A[i,j] * abs(x[i] - y[j] - w[k])",
    "E += (A[i,j] - M[i,j]) * abs(x[i] - y[j])",
    "E += relu(A[i,j] - 1) * abs(x[i] - y[j])",
    "P[i,j] += U[i,f] * V[j,f]; E[i,j] = A[i,j] * tanh(P[i,j])",
    "P[i,j] = abs(x[i] - y[j]); E += A[j,i] * P[i,j] * P[j,i]",
    "P[i,j] = x[i] - y[j]; Q[i,j] = exp(P[i,j]); E[i] += A[i,j] * Q[i,j]",
    "B[i,j] = A[i,j] * M[i,j]; E += B[i,j] * abs(x[i] - y[j])",
    "P[i,j] = A[i,j] * exp(x[i] - y[j]); S[i] += P[i,j]; E[i,j] = P[i,j] / max(S[i], 1)",
    "E[i,j] = where(x[i] < y[j], A[i,j] * abs(x[i] - y[j]), 0)",
    "E[i,j] = unless(A[i,j] == 0, x[i] + y[j])",
    "E[i,j] = A[i,j] * M[i,j] ^ 2 * float32(x[i] - y[j])",
    "E[i] max= A[i,j] * exp(x[i] - y[j])",
    "E[i,j] = (A[i,j] + (i == j)) / sqrt(exp(x[i]) * exp(y[j]))",
    "E[i,j] = (A[i,j] + (i == j)) * abs(x[i] - y[j])",
    "P[i,j] = exp(x[i] - y[j]); E[i,f] += A[i,j] * P[i,j] * V[j,f]; S[i] += A[i,j] * P[i,j]",
    "P[i,j] = abs(x[i] - y[j]); E[i] += A[j,i] * P[j,i]; S[i] += when(A[i,j], tanh(P[i,j]))",
    "P[i,j] = when(Y[i,j], x[i] + y[j]); S[i] max= when_lowest(Y[i,j], P[i,j]); "
    "E[i,j] = when(Y[i,j], exp(P[i,j] - S[i]))",
    "S[i] max= when_lowest(Y[i,j], x[j]); E[i,j] = when(Y[j,i], exp(y[j] - S[i])) * A[i,j]",
]  # fmt: skip
FORMS = [text.replace("cos_like", "tanh") for text in FORMS]


def case_of(text: str, **data: Any) -> Case:
    arrays = {name: a for name, a in {**DATA, **data}.items() if re.search(rf"\b{name}\[", text)}
    targets = {statement.split("[")[0].split()[0] for statement in text.split("; ")}
    arrays = {name: array for name, array in arrays.items() if name not in targets}
    return Case(text, arrays, dict(arrays), {})


def pushed(program: EinsumProgram) -> tuple[str, ...]:
    rewritten = program.compiled.front.lowering.rewrite("masks")
    return () if rewritten is None else rewritten.lines


def always(case: Case, connection: Any) -> EinsumProgram:
    return recompiled(case.compile(connection), ALWAYS)


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", FORMS)
def test_forms(text: str, routes: Routes) -> None:
    case = case_of(text)
    if text not in NOTHING_TO_GAIN:
        assert pushed(always(case, routes["native"]))
    check_everywhere(case, routes, seed=1, sample=3, optimisations=ALWAYS)


def test_a_mask_is_drawn_where_there_are_entries(routes: Routes) -> None:
    """Whatever the seed is: it is only chosen, and no number is computed of it but bits."""
    text = "E[i,j] = when(random_uniform(seed[], 5 * i + j) >= 0.5, A[i,j]) / 0.5"
    seed = np.array(2**62 + 5)
    inputs = {"A": scipy.sparse.coo_array(DATA["A"]), "seed": ucle.parameter(seed)}
    case = Case(text, {"A": DATA["A"], "seed": seed}, inputs, {})
    assert pushed(always(case, routes["native"]))
    check_everywhere(case, routes, seed=1, sample=3, optimisations=ALWAYS)


NOTHING_TO_GAIN = {
    "E += A[i,i] * abs(x[i] - y[i])",  # both sides have the label
    "E[i,k] += A[i,j] * abs(x[i] - y[j] - w[k])",  # all w for each pair
    "E[i,k] += A[i,j] * M[j,k] * abs(x[i] - y[k])",  # no mask has both labels
    "P[i,j] = abs(x[i] - y[j]); E += A[j,i] * P[i,j] * P[j,i]",  # read twice
}


@pytest.mark.parametrize("seed", range(10))
def test_programs_of_all_kinds(seed: int, routes: Routes) -> None:
    check_everywhere(random_case(seed, size=8), routes, seed, sample=2, optimisations=ALWAYS)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(6))
def test_programs_with_nan_and_infinities(seed: int, routes: Routes) -> None:
    check_everywhere(special_case(seed), routes, seed, sample=2, optimisations=ALWAYS)


# ---- Conditions ----


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    "text",
    [
        "E += A[i,j] * abs(x[i] - y[j])",
        "E[i,j] = A[i,j] * tanh(x[i] - y[j])",
        "E[i] += A[i,j] / (1 + abs(x[i] - y[j]))",
    ],
)
def test_what_is_not_finite_is_seen_everywhere(text: str, bad: float, routes: Routes) -> None:
    """0 * inf is NaN: the mask hides nothing."""
    x = DATA["x"].copy()
    x[2] = bad
    case = case_of(text, x=x)
    assert not pushed(always(case, routes["native"]))
    check_everywhere(case, routes, seed=2, sample=4, optimisations=ALWAYS)


@pytest.mark.sample(2)
@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize(
    "text", ["E[i,j] = when(A[i,j], x[i] - y[j])", "E[i,j] = where(A[i,j] > 0, x[i] - y[j], 0)"]
)
def test_a_choice_hides_what_is_not_finite(text: str, bad: float, routes: Routes) -> None:
    x = DATA["x"].copy()
    x[2] = bad
    case = case_of(text, x=x)
    assert pushed(always(case, routes["native"]))
    check_everywhere(case, routes, seed=2, sample=4, optimisations=ALWAYS)


def test_an_infinite_fill_is_seen_everywhere(routes: Routes) -> None:
    """All that is stored is finite here, and log 0 is not: 0 * -inf is NaN."""
    text = "E[i,j] = A[i,j] * log(max(m[i], y[j]))"
    y = np.array([1.0, 0.0, 2.0, 0.0, 0.0])
    case = case_of(text, m=np.array([0.0, 1.5, 0.0, 0.0, 2.0]), y=y)
    assert not pushed(always(case, routes["native"]))
    check_everywhere(case, routes, seed=10, sample=4, optimisations=ALWAYS)


def test_an_infinite_mask(routes: Routes) -> None:
    """inf * 0 is NaN where the mask is stored, whatever is made of what it hides."""
    A = DATA["A"].copy()
    A[1, 2] = np.inf
    for inner in ("tanh(x[i] - y[j])", "log(exp(x[i]) + exp(y[j]))", "(x[i] - x[j])"):
        case = case_of(f"E[i,j] = A[i,j] * {inner}", A=A)
        check_everywhere(case, routes, seed=3, sample=4, optimisations=ALWAYS)


def test_a_fill_that_absorbs_by_being_infinite(routes: Routes) -> None:
    """In min-plus, inf is the mask."""
    D = np.where(DATA["A"] > 0, DATA["A"], np.inf)
    x, y = DATA["x"], DATA["y"]
    expected = (D + np.abs(x[:, None] - y)).min(1)
    case = known(
        "E[i] min= D[i,j] + abs(x[i] - y[j])",
        {"E": expected},
        D=ucle.table(D, fill=np.inf),
        x=x,
        y=y,
    )
    assert pushed(always(case, routes["native"]))
    check_everywhere(case, routes, seed=4, sample=8, optimisations=ALWAYS)


def test_a_fill_that_does_not_absorb(routes: Routes) -> None:
    ones = np.where(DATA["A"] > 0, DATA["A"], 1.0)
    x, y = DATA["x"], DATA["y"]
    expected = ones * np.abs(x[:, None] - y)
    inputs = {"A": ucle.table(ones, fill=1.0), "x": x, "y": y}
    case = known("E[i,j] = A[i,j] * abs(x[i] - y[j])", {"E": expected}, **inputs)
    assert not pushed(always(case, routes["native"]))
    check_known(case, routes)


def test_sides_with_other_fills(routes: Routes) -> None:
    u = np.array([2.0, 2.0, 5.0, 2.0, 1.0])
    x, A = DATA["x"], DATA["A"]
    expected = A * np.abs(u[:, None] - x)
    case = known(
        "E[i,j] = A[i,j] * abs(u[i] - x[j])", {"E": expected}, A=A, u=ucle.table(u, fill=2.0), x=x
    )
    assert pushed(always(case, routes["native"]))
    check_everywhere(case, routes, seed=5, sample=8, optimisations=ALWAYS)


def test_integers_that_may_overflow_stay_as_they_are(routes: Routes) -> None:
    """The written program raises for pairs that nobody looks at, and so does every plan of it."""
    big = np.full(N, 2**40)
    case = case_of("E[i,j] = K[i,j] * (n[i] * n[j] + n[i])", n=big)
    assert not pushed(always(case, routes["native"]))
    small = case_of("E[i,j] = K[i,j] * (n[i] * n[j] + n[i])")
    assert pushed(always(small, routes["native"]))
    check_everywhere(small, routes, seed=6, sample=6, optimisations=ALWAYS)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "text",
    [
        "P[i,j] = exp(x[i] - y[j]); E[i,j] = A[i,j] * P[i,j]; F[i] += P[i,j]",
        "P[i,j] = x[i] * y[j]; E[i,j] = A[i,j] * abs(P[i,j]) * P[j,i]",
        "P[i,j] = x[i] - y[j]; E[i] += when(A[i,j], P[i,j]); F[i] += M[i,j] * P[i,j]",
        "P[i,j] = x[i] - y[j]; E[i] += A[i,j] * P[i,j]; F[i] += A[j,i] * P[i,j]",
        "P[i,j] = x[i] - y[j]; E[i] += A[i,j] * P[i,j]; Q[i,j] = P[i,j]",
    ],
)
def test_what_is_read_elsewhere_is_computed_everywhere(text: str, routes: Routes) -> None:
    case = case_of(text)
    assert not any("P[" in line for line in pushed(always(case, routes["native"])))
    check_everywhere(case, routes, seed=9, sample=3, optimisations=ALWAYS)


RAISE = [
    "E[i,j] = A[i,j] * int64(3 * tanh(log(2 - M[i,j] + x[j])))",
    "E[i,j] = A[i,j] * int64(1 / (M[i,j] - 3 - x[j]))",
    "E[i,j] = A[i,j] * int64(log(10 + M[i,j] + x[j]))",
    "P[i,j] = M[i,j] - 3 - x[j]; E[i,j] = when(A[i,j], int64(reciprocal(P[i,j])))",
]


@pytest.mark.parametrize("text", RAISE)
def test_nothing_raises_where_nobody_looks(text: str, routes: Routes) -> None:
    """Beside the mask, 0 stands for x: what becomes of it there must have a number, too."""
    M = np.where(DATA["M"] > 0, 3.0, 0.0)
    case = case_of(text, M=M, x=np.full(N, 5.25))
    passed = pushed(always(case, routes["native"]))
    assert bool(passed) == ("log(10" in text)
    check_everywhere(case, routes, seed=7, sample=4, optimisations=ALWAYS)


def test_integers_that_would_overflow_beside_the_mask(routes: Routes) -> None:
    """(n - 2^62) * 4 is small for these n, and beyond 64 bits for the 0 that stands for them."""
    n = 2**62 + np.arange(N)
    case = case_of(f"E[i,j] = K[i,j] * abs((n[i] + b[j] - {2**62}) * 4)", n=n)
    assert not pushed(always(case, routes["native"]))
    check_everywhere(case, routes, seed=8, sample=4, optimisations=ALWAYS)


def test_sparse_treatment_of_what_is_not_finite() -> None:
    """With ``nonfinite="sparse"``, 0 annihilates inf, so that masks hide it."""
    x = DATA["x"].copy()
    x[2] = np.inf
    program = ucle.einsum_program(
        "E[i,j] = A[i,j] * tanh(x[i] - y[j])", A=DATA["A"], x=x, y=DATA["y"], nonfinite="sparse"
    )
    assert pushed(recompiled(program, ALWAYS))


def test_switched_off(routes: Routes) -> None:
    case = case_of(FORMS[0])
    off = Optimisations(push_down_masks=False, mask_gain=-math.inf)
    assert not pushed(recompiled(case.compile(routes["native"]), off))


@pytest.mark.parametrize("given", ["as-written", {"E": ["i", "j"]}])
def test_a_decomposition_that_is_given_is_of_the_written_program(given: Any) -> None:
    data = {name: DATA[name] for name in "Axy"}
    program = ucle.einsum_program("E[i,j] = A[i,j] * abs(x[i] - y[j])", **data, decomposition=given)
    assert not pushed(recompiled(program, ALWAYS))


# ---- What is gained ----


def edges(n: int, count: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    cells = rng.choice(n * n, count, replace=False)
    A = {"i": cells // n, "j": cells % n, "val": rng.random(count) + 0.5}
    return {"A": pa.table(A), "x": rng.normal(size=n), "y": rng.normal(size=n)}


LARGE = [
    "E += A[i,j] * abs(x[i] - y[j])",
    "E += when(A[i,j], x[i] < y[j])",
    "E[i] += A[i,j] / (1 + abs(x[i] - y[j]))",
    "P[i,j] = exp(x[i] - y[j]); E[i] += A[i,j] * P[i,j]",
    "P[i,j] = exp(x[i] - y[j]); E[i] += A[i,j] * P[i,j]; S[j] += A[i,j] * square(P[i,j])",
    "E[i,j] = (A[i,j] + (i == j)) / sqrt(exp(x[i]) * exp(y[j]))",
    # What such a quotient makes is finite, so that a layer behind it stays sparse.
    "L[i,j] = A[i,j] / sqrt(exp(x[i]) * exp(y[j])); h[i] += L[i,j] * y[j]; "
    "E[i] += L[i,j] * relu(h[j])",
    "L[i,j] = A[i,j] / -(exp(x[i]) + exp(y[j])); h[i] += L[i,j] * y[j]; "
    "E[i] += L[i,j] * relu(h[j])",
    "L[i,j] = A[i,j] * reciprocal(exp(x[i]) + exp(y[j])); h[i] += L[i,j] * y[j]; "
    "E[i] += L[i,j] * relu(h[j])",
    # As the textbook has it: each node is its own neighbour, so that no degree is 0.
    "S[i,j] = A[i,j] + (i == j); d[i] = sum[j](S[i,j]); "
    "E[i,k] = d[i]^-0.5 * S[i,k] * sigmoid(x[i] - y[k]) * d[k]^-0.5",
    # A softmax along edges that cannot overflow: the largest of no entries is infinite.
    "P[i,j] = when(A[i,j], x[i] + y[j]); S[i] max= when_lowest(A[i,j], P[i,j]); "
    "W[i,j] = when(A[i,j], exp(P[i,j] - S[i])); E[i] = sum[j](W[i,j] * y[j])",
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", LARGE)
def test_nothing_is_made_dense(text: str) -> None:
    """No tensor has more entries than the mask, by the predicted cost alone.

    Nor is a quotient infinite where nobody looks, as what is made of it would be made whole.
    """
    data = edges(2000, 4000)
    program = ucle.einsum_program(text, **data, bounds={"i": 2000, "j": 2000})
    statistics = program.compiled.statistics
    assert pushed(program)
    assert (
        max(statistics.tensor(v.name).entries for v in program.compiled.program.vertices) <= 12_000
    )
    if " / " in text:
        types = program.compiled.program.types
        assert all(types[name].every.finite for name in program.outputs)
    assert f"masks: {pushed(program)[0][:16]}" in program.explain()


def test_what_does_not_fit_as_it_is_written() -> None:
    """40,000,000,000 pairs are out of the question, 3,000 are not."""
    data = edges(200_000, 3000)
    text, sizes = "E += A[i,j] * abs(x[i] - y[j])", {"i": 200_000, "j": 200_000}
    program = ucle.einsum_program(text, **data, bounds=sizes)
    i, j, values = (data["A"][name].to_numpy() for name in ("i", "j", "val"))
    expected = (values * np.abs(data["x"][i] - data["y"][j])).sum()
    with program.execute() as result:
        assert np.isclose(result["E"].to_numpy(), expected)
    explained = program.explain()
    assert "as written it" in explained


# ---- What comes after ----


def test_data_that_changes(native: Any) -> None:
    """An infinity that comes later is seen; numbers and sizes that change keep the plan."""
    n, text = 40, "E[i,j] = A[i,j] * log(exp(x[i]) + exp(y[j]))"
    rng = np.random.default_rng(3)
    A = np.where(rng.random((n, n)) < 0.1, 1.0, 0.0)
    data = {"A": A, "x": rng.normal(size=n), "y": rng.normal(size=n)}
    for name, array in data.items():
        labels = ("i", "j")[: array.ndim]
        coordinates = np.nonzero(np.ones_like(array)) if array.ndim == 1 else np.nonzero(array)
        table = pa.table({**dict(zip(labels, coordinates, strict=True)), "val": array[coordinates]})
        native.register("made", table)
        native.execute(f"CREATE OR REPLACE TABLE masked_{name} AS SELECT * FROM made")
        native.unregister("made")
    try:
        program = ucle.einsum_program(
            text, inputs={name: f"masked_{name}" for name in data}, bounds={"i": n, "j": n},
            database=native,
        )  # fmt: skip
        program = recompiled(program, ALWAYS)
        assert pushed(program)

        def check() -> None:
            with program.execute(database=native) as result:
                found = result["E"].to_numpy()
            with np.errstate(invalid="ignore"):
                inner = np.log(np.exp(data["x"])[:, None] + np.exp(data["y"]))
                assert np.allclose(found, A * inner, equal_nan=True)

        check()
        data["x"][3] = 2.5
        native.execute("UPDATE masked_x SET val = 2.5 WHERE i = 3")
        check()
        native.execute("UPDATE masked_x SET val = 'inf' WHERE i = 3")
        with pytest.raises(ValueTypeError):
            program.execute(database=native)
        data["x"][3] = np.inf
        program = program.recompile()
        assert not pushed(program)
        check()
    finally:
        for name in data:
            native.execute(f"DROP TABLE masked_{name}")


def test_integers_that_come_near_overflow(native: Any) -> None:
    """Pairs that nobody looks at overflow in new data: then the written program runs."""
    native.execute("CREATE OR REPLACE TABLE masked_k AS SELECT 0 i, 1 j, 1::BIGINT val")
    native.execute(
        "CREATE OR REPLACE TABLE masked_n AS SELECT range i, range + 1 val FROM range(9)"
    )
    try:
        program = ucle.einsum_program(
            "E[i,j] = K[i,j] * (n[i] * n[j] + n[i])",
            K="masked_k", n="masked_n", bounds={"i": 9, "j": 9}, database=native,
        )  # fmt: skip
        program = recompiled(program, ALWAYS)
        assert pushed(program)
        with program.execute(database=native) as result:
            assert result["E"].to_numpy()[0, 1] == 3
        native.execute("UPDATE masked_n SET val = 4000000000 WHERE i = 8")
        with pytest.raises(UcleError):
            program.execute(database=native)
        plain = recompiled(program, Optimisations(push_down_masks=False))
        with pytest.raises(UcleError):
            plain.execute(database=native)
    finally:
        native.execute("DROP TABLE masked_k")
        native.execute("DROP TABLE masked_n")


def test_labels_that_grow(native: Any) -> None:
    """The masks stay where they are when sizes change, in the program and in its views."""
    create = "CREATE OR REPLACE TABLE"
    native.execute(f"{create} masked_e AS SELECT range i, 3 * range j, 0.5 val FROM range(9)")
    native.execute(f"{create} masked_v AS SELECT range i, range + 0.25 val FROM range(30)")
    try:
        program = ucle.einsum_program(
            "E[i] += A[i,j] * abs(x[i] - x[j])", A="masked_e", x="masked_v", database=native
        )
        program = recompiled(program, ALWAYS)
        assert pushed(program)

        def check(count: int) -> None:
            i = np.arange(count)
            with program.execute(database=native) as result:
                assert np.allclose(result["E"].to_numpy()[:count], 0.5 * np.abs(i - 3 * i))

        check(9)
        native.execute("INSERT INTO masked_v SELECT range, range + 0.25 FROM range(30, 60)")
        native.execute("INSERT INTO masked_e SELECT range, 3 * range, 0.5 FROM range(9, 19)")
        check(19)
    finally:
        native.execute("DROP TABLE masked_e")
        native.execute("DROP TABLE masked_v")


VIEWED = [
    "E[i] += A[i,j] * abs(x[i] - y[j])",
    "E[i,j] = when(A[i,j], sigmoid(x[i] + y[j]))",
    "P[i,j] = x[i] < y[j]; E[i] += A[i,j] * P[i,j]",
    "E[i] += A[i,j] / (1 + abs(x[i] - y[j]))",
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", VIEWED)
def test_views_follow_their_tables(text: str, native: Any) -> None:
    """Entries come and go after the view was made, of the mask and of what is behind it."""
    tables = {
        "A": "SELECT (7 * range) % 30 i, (11 * range) % 30 j, 1.0 + range val FROM range(30)",
        "x": "SELECT range i, range * 0.25 val FROM range(30)",
        "y": "SELECT range j, 4 - range * 0.125 val FROM range(20)",
    }
    changes = [
        "INSERT INTO masked_A VALUES (1, 25, 3.5), (2, 3, -1.0)",
        "UPDATE masked_x SET val = -2.5 WHERE i % 3 = 1",
        "INSERT INTO masked_y VALUES (25, 7.5)",
        "DELETE FROM masked_y WHERE j < 4",
        "DELETE FROM masked_A",
    ]
    names = {name: f"masked_{name}" for name in tables}
    for name, query in tables.items():
        native.execute(f"CREATE OR REPLACE TABLE {names[name]} AS {query}")
    try:
        sizes = {"i": 30, "j": 30}
        program = ucle.einsum_program(text, inputs=names, bounds=sizes, database=native)
        program = recompiled(program, ALWAYS).with_decomposition("relational")
        assert pushed(program)
        (view,) = program.create_views(native, replace=True)
        for change in ["SELECT 1", *changes]:
            native.execute(change)
            arrays = {name: np.zeros((30,) * (2 if name == "A" else 1)) for name in tables}
            for name, table in names.items():
                *keys, values = native.execute(f"FROM {table}").fetchnumpy().values()
                arrays[name][tuple(keys)] = values
            found = np.zeros((30, 30) if "E[i,j]" in text else 30)
            *keys, values = native.execute(f"FROM {view}").fetchnumpy().values()
            found[tuple(keys)] = values
            assert np.allclose(found, evaluate(text, arrays)["E"])
    finally:
        native.execute("DROP VIEW IF EXISTS E")
        for table in names.values():
            native.execute(f"DROP TABLE {table}")


# ---- What is said of it ----


def unbroken(program: ucle.EinsumProgram) -> str:
    """The output of `explain`, without its breaks of long lines."""
    return " ".join(program.explain().split())


def test_what_is_made_dense_is_named(caplog: pytest.LogCaptureFixture) -> None:
    data = edges(300, 600)
    text, sizes = "E[i] += exp(A[i,j] - x[i] * y[j])", {"i": 300, "j": 300}
    program = ucle.einsum_program(text, **data, bounds=sizes)
    told = "made dense: A[i,j], 600 of 90,000 entries, for E_2: 0 - E_1[i,j] is not one value"
    assert told in unbroken(program)
    with caplog.at_level("INFO", "ucle.execute"), program.execute():
        assert told in caplog.messages
    data["x"][3] = np.inf
    program = ucle.einsum_program(LARGE[0], **data, bounds=sizes)
    assert "may hold NaN or infinities, so that 0 * " in unbroken(program)


def test_nothing_is_named_where_nothing_is_made_dense() -> None:
    program = ucle.einsum_program(LARGE[0], **edges(2000, 4000), bounds={"i": 2000, "j": 2000})
    assert "made dense" not in program.explain()
    assert "as 0 * x is 0" in program.explain()
