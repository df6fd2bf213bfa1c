"""Sums of products in other forms: the same values, where it is allowed, and cheaper ones."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from draw_polynomials import drawn_case
from known import check_known, known
from logical_meaning import meaning

import ucle
from ucle.errors import UcleError
from ucle.lowering.contract import KnownContractions
from ucle.lowering.logical import LogicalProgram
from ucle.lowering.rewrites import MULTIPLY_OUT, Rewriter, Rewritten
from ucle.lowering.syntax_to_logical import syntax_to_logical
from ucle.lowering.write_polynomials import write_polynomials
from ucle.optimiser.rewriting import candidates
from ucle.options import Optimisations
from ucle.program import EinsumProgram
from ucle.stats.estimate import MeasuredInputs
from ucle.stats.estimators import DEFAULT, ESTIMATORS
from ucle.testing.check_matrix import Routes, check_everywhere, recompiled
from ucle.testing.generate import Case

ALWAYS = Optimisations(rewrite_gain=-math.inf, rewrite_effort=math.inf, association_work=math.inf)
"""The form of the fewest tuples is taken, however small the program is."""

FUZZ = int(os.environ.get("UCLE_FUZZ_PROGRAMS", "0"))
PART = 100


RNG = np.random.default_rng(176)
N, M, F = 6, 7, 2
DATA: dict[str, Any] = {
    "X": np.where(RNG.random((N, M)) < 0.2, RNG.random((N, M)) + 0.5, 0.0),
    "U": RNG.random((N, F)) + 0.5,
    "V": RNG.random((M, F)) + 0.5,
    "W": RNG.normal(size=(M, F)),
    "p": RNG.random(N),
    "q": RNG.normal(size=N),
    "d": RNG.random(M) + 0.5,
}


def logical_of(text: str, **data: Any) -> LogicalProgram:
    given = {**DATA, **data}
    read = {name: given[name] for name in given if f"{name}[" in text}
    program = ucle.einsum_program(text, inputs=read, rewrite="none")
    return syntax_to_logical(program.compiled.front.source)


def forms(rewriter: Rewriter, seed: int, walks: int = 3) -> Iterator[Rewritten]:
    """Forms of a program: as it is written, multiplied out, and random walks from both."""
    rng = random.Random(seed)
    starts = [rewriter.written, rewriter.normal_form()]
    yield from starts
    for _ in range(walks):
        now = rng.choice(starts)
        for _ in range(4):
            neighbours = list(rewriter.neighbours(now))
            if not neighbours:
                break
            now = rng.choice(neighbours)
            yield now


def check_forms(case: Case, seed: int, *, algebraic: bool) -> int:
    """Compare all forms of a program, of exact numbers, with NumPy; how many there were."""
    try:
        program = ucle.einsum_program(case.text, inputs=case.inputs, rewrite="none")
    except UcleError:  # NumPy has no negative of yes and no
        return 0
    logical = syntax_to_logical(program.compiled.front.source)
    expected = case.expected()
    rewriter = Rewriter(logical, algebraic=algebraic)
    compared = 0
    for form in forms(rewriter, seed):
        written = write_polynomials(rewriter, form)
        if written is None:
            continue
        found = meaning(written, case.arrays)
        for name in logical.outputs:
            message = f"{case}\n{written}\n{form.rewrites}"
            np.testing.assert_array_equal(found[name], expected[name], err_msg=message)
        again = rewriter.again(form.rewrites)
        assert again is not None
        assert str(write_polynomials(rewriter, again)) == str(written)
        compared += 1
    return compared


@pytest.mark.sample(1)
@pytest.mark.parametrize("algebraic", [True, False])
def test_all_forms_of_random_programs(algebraic: bool) -> None:
    compared = sum(check_forms(drawn_case(seed), seed, algebraic=algebraic) for seed in range(25))
    assert compared > 80


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "text",
    [
        "T = sum[k](sum[i,j](A[i,j] * B[j,k])) ^ 2",
        "T[i] = sum[k](sum[j](A[i,j] * B[j,k])) ^ 3",
        "T[k] = square(sum[i](sum[j](A[i,j] * B[j,k]) - 1))",
        "T = square(sum[i,k](sum[j](A[i,j] * B[j,k]) * 2 + A[i,k]))",
        "T[i] = sum[k](sum[j](A[i,j] * B[j,k]) * sum[j](A[i,j] * B[j,k]) - B[i,k])",
    ],
)
def test_powers_of_sums_of_sums(text: str) -> None:
    """The second time that a bracket is opened, all that is in it has other labels."""
    rng = np.random.default_rng(5)
    arrays = {name: rng.integers(-3, 4, size=(3, 3)).astype(float) for name in "AB"}
    case = Case(text, arrays, arrays, {})
    assert sum(check_forms(case, seed, algebraic=True) for seed in range(10)) >= 20


@pytest.mark.fuzz
@pytest.mark.skipif(not FUZZ, reason="UCLE_FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("start", range(0, FUZZ, PART))
def test_all_forms_of_many_programs(start: int) -> None:
    for seed in range(start, min(start + PART, FUZZ)):
        check_forms(drawn_case(1000 + seed), seed, algebraic=seed % 3 > 0)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_are_run_in_other_forms(seed: int, routes: Routes) -> None:
    check_run(seed, routes)


@pytest.mark.fuzz
@pytest.mark.skipif(not FUZZ, reason="UCLE_FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("start", range(0, FUZZ, PART))
def test_many_programs_are_run_in_other_forms(start: int, routes: Routes) -> None:
    for seed in range(start, min(start + PART, FUZZ)):
        check_run(1000 + seed, routes)


class Algebraic(Case):
    """A case whose brackets are all multiplied out."""

    def compile(self, connection: Any, **options: Any) -> Any:
        return super().compile(connection, **{"rewrite": "algebraic", **options})


def check_run(seed: int, routes: Routes) -> None:
    drawn = drawn_case(seed)
    case = Algebraic(drawn.text, drawn.arrays, drawn.inputs, {})
    try:
        case.compile(routes["native"])
    except UcleError:
        return
    check_everywhere(case, routes, seed, sample=2, optimisations=ALWAYS)


# ---- Which forms are found ----

FORMS = {
    # SPORES, section 4.2
    "G[i,f] += (sum[g](U[i,g] * V[j,g]) - X[i,j]) * V[j,f]": (
        "safe",
        "sum[g,j](V[j,f] * U[i,g] * V[j,g]) - sum[j](V[j,f] * X[i,j])",
    ),
    "L += sum[f](U[i,f] * V[j,f]) - X[i,j] * log(sum[f](U[i,f] * V[j,f]))": (
        "safe",
        "sum[f,i,j](U[i,f] * V[j,f]) - sum[i,j](X[i,j] * log(sum[f_1](U[i,f_1] * V[j,f_1])))",
    ),
    "Q[i,j] = p[i] * X[i,j] - p[i] * (p[i] * X[i,j])": ("safe", "X[i,j] * (p[i] * (1 - p[i]))"),
    "L += square(X[i,j] - sum[f](U[i,f] * V[j,f]))": (
        "algebraic",
        "max((sum[i,j](square(X[i,j])) + sum[f_1,f_2,i,j](U[i,f_1] * V[j,f_1] * U[i,f_2] * "
        "V[j,f_2])) - (sum[f,i,j](X[i,j] * U[i,f] * V[j,f]) * 2), 0)",
    ),
    # sums inside of a difference
    "P[i,j] += U[i,f] * V[j,f]; L += sum[i,j](P[i,j]) - sum[j](d[j])": (
        "safe",
        "sum[f,i,j](U[i,f] * V[j,f]) - sum[j_1](d[j_1])",
    ),
    # a sum in a divisor, and one in a function among factors
    "P[k,l] += U[k,f] * V[l,f]; Q[i,j] = X[i,j] / sum[k,l](P[k,l])": (
        "safe",
        "X[i,j] / sum[f,k,l](U[k,f] * V[l,f])",
    ),
    "P[k,l] += U[k,f] * V[l,f]; Q[i,j] = X[i,j] * exp(-sum[k,l](P[k,l]))": (
        "safe",
        "X[i,j] * exp(neg(sum[f,k,l](U[k,f] * V[l,f])))",
    ),
    # sums of products that stand apart
    "Q[i,f] += X[i,j] * V[j,f]; Z[f] += Q[i,f]": ("safe", "sum[j,i](X[i,j] * V[j,f])"),
    # quotients: modularity (up to its norm), and columns that are scaled
    "k[i] += X[i,j]; m += k[i]; Q[f,g] += (X[i,j] - k[i] * p[i] / m[]) * U[i,f] * V[j,g]": (
        "safe",
        "sum[i](U[i,f] * (sum[j](V[j,g] * X[i,j]) - (sum[j_1,j](V[j,g] * p[i] * X[i,j_1]) / m[])))",
    ),
    "G[i] += (X[i,j] - mean[k](X[k,j])) / d[j] * W[j,f]": (
        "safe",
        "sum[j,f](W[j,f] * (1 / d[j]) * X[i,j]) - (sum[k,j,f](W[j,f] * (1 / d[j]) * X[k,j]) / 6)",
    ),
    # across statements; one that is read twice
    "P[i,j] += U[i,f] * V[j,f]; R[i,j] = P[i,j] - X[i,j]; G[i,f] += R[i,j] * V[j,f]": (
        "safe",
        "sum[f_1,j](V[j,f] * U[i,f_1] * V[j,f_1]) - sum[j](V[j,f] * X[i,j])",
    ),
    "P[i,j] += U[i,f] * V[j,f]; C[i,k] += P[i,j] * P[k,j]": (
        "safe",
        "sum[f,f_1,j](U[i,f] * V[j,f] * U[k,f_1] * V[j,f_1])",
    ),
}


def rewriting_of(program: EinsumProgram) -> Any:
    return program.compiled.front.lowering.rewrite("rewritten")


def case_of(text: str, **data: Any) -> Case:
    given = {**DATA, **data}
    arrays = {name: given[name] for name in given if f"{name}[" in text}
    return Case(text, arrays, dict(arrays), {})


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", FORMS)
def test_forms(text: str, routes: Routes) -> None:
    law, expected = FORMS[text]
    case = case_of(text)
    program = recompiled(case.compile(routes["native"], rewrite=law), ALWAYS)
    _, _, found = rewriting_of(program).lines[-1].partition(" = ")
    assert found == expected
    assert "rewritten: " in program.explain()
    kind = Algebraic if law == "algebraic" else Case
    check_everywhere(
        kind(case.text, case.arrays, case.inputs, {}), routes, 1, 4, optimisations=ALWAYS
    )


@pytest.mark.sample(None)
@pytest.mark.parametrize("text", FORMS)
def test_none_keeps_the_text(text: str, routes: Routes) -> None:
    program = recompiled(case_of(text).compile(routes["native"], rewrite="none"), ALWAYS)
    assert rewriting_of(program) is None


@pytest.mark.parametrize(
    "text",
    [
        "Z[i,j] = X[i,j] * p[i]",
        "Z[i,k] += X[i,j] * X[k,j]",
        "Z[i,j] = X[i,j] + q[i]",
        "Z[i,f] = tanh(X[i,j] * V[j,f] * U[i,g])",
    ],
)
def test_nothing_to_rewrite(text: str) -> None:
    rewriter = Rewriter(logical_of(text), algebraic=True)
    assert not list(rewriter.neighbours(rewriter.written))


def test_a_factor_that_two_statements_have_is_taken_out() -> None:
    D, x, y = np.ones((800, 600)), np.ones(800), np.ones(600)
    apart = "P[a,b] = D[a,b] * x[a]; Q[a,b] = D[a,b] * y[b]; Z[a,b] = P[a,b] + Q[a,b]"
    programs = [
        ucle.einsum_program(text, D=D, x=x, y=y)
        for text in (apart, "Z[a,b] = D[a,b] * (x[a] + y[b])")
    ]
    costs = [program.compiled.decomposed.total_cost for program in programs]
    assert costs[0] == pytest.approx(costs[1])
    assert rewriting_of(programs[0]) is not None


def test_a_large_program_takes_the_cheaper_form() -> None:
    """Nothing is switched: sparse X makes it pay, and a dense one does not."""
    n = 1500
    X = scipy.sparse.random(n, n, 0.002, random_state=1)
    U, V = RNG.random((n, 8)), RNG.random((n, 8))
    loss = "L += square(X[i,j] - sum[f](U[i,f] * V[j,f]))"
    expected = np.square(X.toarray() - U @ V.T).sum()
    program = ucle.einsum_program(loss, X=X, U=U, V=V, rewrite="algebraic")
    assert rewriting_of(program) is not None
    np.testing.assert_allclose(program.execute()["L"].to_numpy(), expected, rtol=1e-9)
    assert rewriting_of(ucle.einsum_program(loss, X=X, U=U, V=V, rewrite="safe")) is None
    residual = "G[i,f] += (sum[g](U[i,g] * V[j,g]) - X[i,j]) * V[j,f]"
    program = ucle.einsum_program(residual, X=X, U=U, V=V)
    assert rewriting_of(program) is not None
    expected = (U @ V.T - X.toarray()) @ V
    np.testing.assert_allclose(program.execute()["G"].to_numpy(), expected, rtol=1e-9)


def test_equal_terms_meet_whatever_their_labels_are_called() -> None:
    text = "Z += sum[i,j](X[i,j] * p[i]) + sum[a,b](p[a] * X[a,b]) - sum[i,j](X[i,j] * p[i])"
    rewriter = Rewriter(logical_of(text), algebraic=True)
    written = write_polynomials(rewriter, rewriter.normal_form())
    assert written is not None
    (statement,) = written.statements
    assert statement.expression(statement.result) == "sum[i,j](X[i,j] * p[i])"


SQUARE: dict[str, Any] = {
    "S": np.arange(-4, 5).reshape(3, 3),
    "x": np.array([2, -1, 3]),
    "y": np.array([1, 4, -2]),
    "z": np.array([-3, 0, 1]),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "text",
    [
        # A diagonal is no factor of what has the whole, nor the other way round.
        "Z += sum[i](S[i,i] * y[i]) + sum[i,j](S[i,j] * x[j])",
        "Z += sum[i,j](S[i,j] * x[j]) + sum[i](S[i,i] * y[i])",
        "Z += sum[i](S[i,i] * y[i]) + sum[i](S[i,i] * x[i])",
        # Taken out under labels that have another meaning in the other term.
        "Z += sum[i,j,k](y[i] * S[i,j] * S[j,k] * x[k]) + sum[j,k](S[j,k] * z[j])",
        "Z += sum[j,k](S[j,k] * z[j]) + sum[i,j,k](y[i] * S[i,j] * S[j,k] * x[k])",
        "Z[i] += sum[j,k](S[i,j] * S[j,k] * x[k]) + sum[j](S[i,j] * sum[i](S[j,i] * z[i]))",
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_what_is_taken_out_keeps_its_labels(text: str, dtype: str, routes: Routes) -> None:
    data = {name: array.astype(dtype) for name, array in SQUARE.items()}
    case = case_of(text, **data)
    for algebraic in (True, False):
        assert check_forms(case, 1, algebraic=algebraic)
    case = Algebraic(case.text, case.arrays, case.inputs, {})
    check_everywhere(case, routes, 1, 2, optimisations=ALWAYS)


# ---- What loses no digits ----


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    "text",
    [
        "Z[i] += (q[i] - p[i]) * X[i,j]",  # the difference of inputs is exact
        "Z += q[i] - p[i]",
        "Z += square(X[i,j] - sum[f](U[i,f] * V[j,f]))",
        "Z[i] += (sum[f](U[i,f] * V[j,f]) - X[i,j]) * (q[i] - p[i])",
        "Z[i] += X[i,j] * (1 - p[i])",
        "Z[i] += (abs(q[i]) - p[i]) * X[i,j]",  # what is picked from inputs has not rounded
        "Z[i] += (2 * q[i] - p[i]) * X[i,j]",
        "Z[i] += (q[i] / 4 - relu(-p[i])) * X[i,j]",
        "Z[i] += (max(q[i], p[i]) - p[i]) * X[i,j]",
        "Z[i] += (q[i] * (p[i] > 1) - p[i]) * X[i,j]",
        "M[i] max= X[i,j]; Z[i] += (M[i] - p[i]) * X[i,j]",
        "Z += abs(q[i]) - p[i]",
    ],
)
def test_brackets_that_may_cancel_stay(text: str) -> None:
    rewriter = Rewriter(logical_of(text))
    for form in forms(rewriter, 0, walks=20):
        assert all(x.law != MULTIPLY_OUT for x in form.rewrites)
    algebraic = Rewriter(logical_of(text), algebraic=True)
    assert algebraic.normal_form().rewrites


def test_a_small_difference_keeps_its_digits() -> None:
    """Squares of 1e8 have no digits left for a residual of 1e-4."""
    n = 1200
    U, V = np.full((n, 1), 1e4), np.full((n, 1), 1e4)
    X = U @ V.T + 1e-4
    loss = "L += square(X[i,j] - sum[f](U[i,f] * V[j,f]))"
    found = ucle.einsum_program(loss, X=X, U=U, V=V).execute()["L"].to_numpy()
    np.testing.assert_allclose(found, np.square(X - U @ V.T).sum(), rtol=1e-9)


@pytest.mark.parametrize("picked", ["abs(x[i])", "0.5 * (4 * x[i])", "max(x[i], -9)"])
def test_what_is_picked_from_inputs_keeps_its_digits(picked: str) -> None:
    x, z = RNG.random(30) + 1, RNG.random((30, 40))
    data = {"x": x, "y": np.nextafter(x, 9) * (2 if "4" in picked else 1), "z": z}
    text = f"Z[i] += ({picked} - y[i]) * z[i,j]"
    with recompiled(ucle.einsum_program(text, inputs=data), ALWAYS).execute() as result:
        left = x * (2 if "4" in picked else 1) - data["y"]
        np.testing.assert_allclose(result["Z"].to_numpy(), left * z.sum(1), rtol=1e-9)


def test_a_long_chain_of_names_is_not_looked_at() -> None:
    """Each statement is the last one under another name, with no step that counts."""
    names = "; ".join(f"P{n}[i] = -P{n - 1}[i]" for n in range(1, 100))
    text = f"{names}; Z[i] += (sum[f](U[i,f]) - p[i]) * P99[i] * X[i,j]"
    logical = logical_of(text.replace("P0[", "q["))
    found = candidates(
        logical,
        KnownContractions(MeasuredInputs({}, ESTIMATORS[DEFAULT])),
        lambda x: x,
        (),
        algebraic=False,
        cost=math.inf,
    )
    assert found == []


@pytest.mark.parametrize("seed", range(8))
def test_errors_stay_below_the_stated_bound(seed: int) -> None:
    """Terms that cancel: the error is at most a few roundings of the terms' absolute values."""
    rng = np.random.default_rng(seed)
    n, m, f = 40, 50, 6
    U, V = rng.normal(size=(n, f)), rng.normal(size=(m, f))
    X = U @ V.T + 1e-9 * rng.normal(size=(n, m))
    text = "G[i,g] += (sum[f](U[i,f] * V[j,f]) - X[i,j]) * V[j,g]"
    program = recompiled(ucle.einsum_program(text, X=X, U=U, V=V), ALWAYS)
    exact = (U.astype(np.longdouble) @ V.T - X) @ V
    terms = (np.abs(U) @ np.abs(V.T) + np.abs(X)) @ np.abs(V)
    error = np.abs(program.execute()["G"].to_numpy() - exact)
    assert (error <= 2 * (f + m) * np.finfo(float).eps * terms).all()


def test_what_is_no_square_root_of_a_negative_number() -> None:
    """A sum of squares that is multiplied out may come out below 0: it is taken for 0."""
    V = RNG.random((M, F)) * 1e6
    text = "D[i] = sqrt(sum[j](square(X[i,j] - sum[f](U[i,f] * V[j,f]))))"
    U, V = RNG.random((N, F)) * 1e6, RNG.random((M, F))
    data = {"U": U, "V": V, "X": U @ V.T}
    rewriter = Rewriter(logical_of(text, **data), algebraic=True)
    written = write_polynomials(rewriter, rewriter.normal_form())
    assert written is not None
    assert "sqrt(max((" in written.statements[0].expression(written.statements[0].result)
    assert np.isfinite(meaning(written, data)["D"]).all()


# ---- When nothing is rewritten ----


@pytest.mark.sample(1)
@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("name", ["X", "U", "V"])
def test_what_is_not_finite_meets_what_it_met(name: str, bad: float, routes: Routes) -> None:
    array = DATA[name].copy()
    array[1, 1] = bad
    for text in FORMS:
        if f"{name}[" in text:
            case = case_of(text, **{name: array})
            check_everywhere(
                Algebraic(case.text, case.arrays, case.inputs, {}), routes, 2, 2, ALWAYS
            )


@pytest.mark.parametrize(
    "text",
    [
        "Z[i] = (q[i] - q[i]) + p[i]",
        "Z[i] = (q[i] - q[i]) + p[i] * p[i] + p[i]",
        "Z[i] = (2 * q[i] - p[i]) - q[i] + 3 * p[i]",
        "D[i] = (q[i] - q[i]) + p[i]; Z[i] = D[i] * p[i] + p[i]",
        "Z += (p[i] + (q[i] - q[i])) * X[i,j] + X[i,j]",
    ],
)
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_is_not_finite_does_not_cancel(text: str, bad: float, routes: Routes) -> None:
    case = case_of(text, q=np.where(np.arange(N) == 1, bad, DATA["q"]))
    check_everywhere(Algebraic(case.text, case.arrays, case.inputs, {}), routes, 2, 2, ALWAYS)


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        *((x, "float64") for x in ("1e-200", "1e-160", "1e200")),
        *((x, "float32") for x in ("1e-30", "1e30")),
        ("1099511627776", "int64"),
    ],
)
def test_numbers_of_terms_that_are_beyond_their_type(number: str, dtype: str) -> None:
    """Their product is no number any more: the text multiplies by one after the other."""
    large = 0 if dtype == "int64" else 1 / float(number)
    data = {
        "a": (np.array([1, 0, 2]) * large).astype(dtype),
        "b": (np.array([3, 0, 5]) * large).astype(dtype),
    }
    logical = logical_of(f"Z[i] = {number} * ({number} * (a[i] + b[i]))", **data)
    expected = meaning(logical, data)["Z"]
    rewriter = Rewriter(logical, algebraic=True)
    for form in forms(rewriter, 0):
        written = write_polynomials(rewriter, form)
        if written is not None:
            np.testing.assert_allclose(meaning(written, data)["Z"], expected, rtol=1e-6)


def test_functions_of_a_whole_statement_do_not_outgrow_its_type() -> None:
    a = np.array([1.2e308, 1, 2])
    text = "Z[i] = (a[i] + b[i] * a[i]) / 3 * 2"
    program = ucle.einsum_program(text, a=a, b=np.array([0, 2, 3.0]), rewrite="algebraic")
    with recompiled(program, ALWAYS).execute() as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), [8e307, 2, 16 / 3])


def refused(text: str, **data: Any) -> bool:
    """True if a program's brackets are multiplied out, but the result is not written."""
    rewriter = Rewriter(logical_of(text, **data), algebraic=True)
    form = rewriter.normal_form()
    assert any(x.law == MULTIPLY_OUT for x in form.rewrites)
    return write_polynomials(rewriter, form) is None


def test_large_numbers_do_not_outgrow_their_type() -> None:
    """The square of a difference is finite here, the difference of squares is NaN."""
    text = "L += square(X[i,j] - sum[f](U[i,f] * V[j,f]))"
    large = {"X": np.full((3, 4), 1e200), "U": np.full((3, 1), 1e100), "V": np.full((4, 1), 1e100)}
    assert refused(text, **large)
    assert not refused(text)
    program = ucle.einsum_program(text, inputs=large, rewrite="algebraic")
    assert recompiled(program, ALWAYS).execute()["L"].to_numpy() == 0


def test_an_infinity_meets_no_other_factors() -> None:
    """Infinity times a difference is infinite, and infinity minus infinity is NaN."""
    text = "Z[i] = log(m[i]) * (q[i] - p[i])"
    zero = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert refused(text, m=zero)
    assert not refused(text, m=zero + 1)


OUTGROWN = ("exp({})", 1000.0), ("1 / {}", 0.0), ("1 / {}", 1e-320), ("({} + p[i])", np.inf)


@pytest.mark.parametrize(("term", "d"), OUTGROWN)
def test_equal_terms_that_outgrow_do_not_cancel(term: str, d: float) -> None:
    """Infinity minus infinity is NaN, where finite terms would be gone."""
    outgrown = term.format("d[i]")
    text = f"Z += p[i] * {outgrown} - square(q[i]) + q[i] * p[i] - {outgrown} * p[i]"
    data = {"p": DATA["p"], "q": DATA["q"], "d": np.array([d, 1.0, 2.0, 3.0, 4.0, 5.0])}
    for law in ("safe", "algebraic"):
        program = ucle.einsum_program(text, inputs=data, rewrite=law)
        assert np.isnan(recompiled(program, ALWAYS).execute()["Z"].to_numpy()), law
        usual = {**data, "d": np.arange(1.0, 7.0)}
        program = ucle.einsum_program(text, inputs=usual, rewrite=law)
        _, _, found = rewriting_of(recompiled(program, ALWAYS)).lines[-1].partition(" = ")
        assert "d" not in found, law


def test_integers_that_may_overflow_stay() -> None:
    text = "Z += (a[i] - b[i]) * c[i]"
    large = np.array([2**40, 3, 5])
    data = {"a": large, "b": large - 1, "c": np.array([2**30, 1, 1])}
    assert refused(text, **data)
    assert not refused(text, **{**data, "c": np.array([2, 1, 1])})
    program = ucle.einsum_program(text, inputs=data, rewrite="algebraic")
    assert recompiled(program, ALWAYS).execute()["Z"].to_numpy() == 2**30 + 2


def test_a_cast_and_other_types_are_walls(routes: Routes) -> None:
    texts = [
        "Z[i] += int64(X[i,j] - 1) * p[i] + X[i,j] * p[i]",
        "Z[i] += (float32(X[i,j]) - p[i]) * q[i]",
        "Z[i] += max(X[i,j] - p[i], 0) * q[i] - q[i] * X[i,j]",
    ]
    for text in texts:
        case = case_of(text)
        check_everywhere(Algebraic(case.text, case.arrays, case.inputs, {}), routes, 3, 3, ALWAYS)


def test_other_fills(routes: Routes) -> None:
    D = np.where(DATA["X"] > 0, DATA["X"], 2.0)
    case = known(
        "Z[i] += (D[i,j] - X[i,j]) * p[i]",
        {"Z": ((D - DATA["X"]) * DATA["p"][:, None]).sum(1)},
        D=ucle.table(D, fill=2.0),
        X=DATA["X"],
        p=DATA["p"],
    )
    check_known(case, routes)


def test_data_that_changes(tmp_path: Any) -> None:
    """Sums that may outgrow their type from now on are computed as written."""
    path = tmp_path / "x.db"
    with ucle.connect(path) as connection:
        connection.execute(
            "CREATE TABLE X AS SELECT i::INTEGER AS i, ((7 * i) % 300)::INTEGER AS j, "
            "1.5::DOUBLE AS v FROM range(300) t(i)"
        )
        U, V = RNG.random((300, 2)), RNG.random((300, 2))
        text = "G[i,f] += (sum[g](U[i,g] * V[j,g]) - X[i,j]) * V[j,f]"
        program = ucle.einsum_program(text, X="X", U=U, V=V, database=connection)
        program = recompiled(program, ALWAYS)
        assert rewriting_of(program) is not None
        program.execute().close()
        connection.execute("UPDATE X SET v = 1e308 WHERE i = 3")
        X = np.zeros((300, 300))
        X[np.arange(300), (7 * np.arange(300)) % 300] = 1.5
        X[3, 21] = 1e308
        with program.execute() as result:
            np.testing.assert_allclose(result["G"].to_numpy(), (U @ V.T - X) @ V, rtol=1e-9)
        assert rewriting_of(recompiled(program.recompile(), ALWAYS)) is None


def test_what_may_be_negative_from_now_on(fresh: Any) -> None:
    """A form that may lose its sign by rounding is no more set to 0 where the text has none."""
    fresh.execute(
        "CREATE TABLE X AS SELECT i // 2 AS i, 7 * i % 20 AS j, 8::DOUBLE AS v FROM range(40) t(i)"
    )
    U, V = np.full((20, 1), 10.0), np.ones((20, 1))
    C = np.where(np.arange(20) % 2, 1.0, 2.0)[:, None]
    text = "G[i,f] = exp(sum[j]((sum[g](U[i,g] * V[j,g]) - X[i,j]) * C[j,f]) / 500)"
    program = ucle.einsum_program(text, X="X", U=U, V=V, C=C, database=fresh, rewrite="algebraic")
    program = recompiled(program, ALWAYS)
    X = np.zeros((20, 20))
    X[np.arange(40) // 2, 7 * np.arange(40) % 20] = 8
    for value in 8.0, 1000.0:
        fresh.execute("UPDATE X SET v = ? WHERE i = 3 AND j = 2", [value])
        X[3, 2] = value
        rewriting = rewriting_of(program)
        assert rewriting is not None
        assert ", 0)" in rewriting.lines[-1]
        with program.execute(fresh) as result:
            expected = np.exp((U @ V.T - X) @ C / 500)
            np.testing.assert_allclose(result["G"].to_numpy(), expected, rtol=1e-9)


def test_pins_of_what_only_rewriting_makes(routes: Routes) -> None:
    text = "G[i,f] += (sum[g](U[i,g] * V[j,g]) - X[i,j]) * V[j,f]"
    case = case_of(text)
    program = recompiled(case.compile(routes["native"]), ALWAYS)
    pins = dict.fromkeys(program.compiled.program.by_name, ())
    pinned = program.with_decomposition(pins)
    expected = case.expected()["G"]
    np.testing.assert_allclose(pinned.execute()["G"].to_numpy(), expected, rtol=1e-9)
