"""Sums in forms that may lose digits: errors within the bound, and the safe form where they do."""

from __future__ import annotations

import json
import math
import os
import warnings
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from draw_polynomials import drawn_case
from logical_meaning import aligned, known_tensors

import ucle
from ucle.errors import ArgumentError, UcleError
from ucle.ir.rounding_bounds import TOLERANCES
from ucle.lowering.logical import LogicalProgram
from ucle.lowering.syntax_to_logical import syntax_to_logical
from ucle.options import Optimisations
from ucle.program import EinsumProgram
from ucle.testing.check_matrix import Routes, check_everywhere, recompiled, some_decompositions
from ucle.testing.generate import Case

ALWAYS = Optimisations(
    rewrite_gain=math.inf, rewrite_saving=1e-12, rewrite_effort=math.inf, association_work=math.inf
)
"""No form is taken but those that are measured, however small the program is."""

FUZZ = int(os.environ.get("UCLE_FUZZ_PROGRAMS", "0"))
PART = 100

LOSS = "L += square(X[i,j] - sum[f](U[i,f] * V[j,f]))"


def lost_digits(program: EinsumProgram) -> bool:
    return any(x._lost_digits for x in program._preparations._met.values())


def loss_of(X: np.ndarray, U: np.ndarray, V: np.ndarray) -> float:
    return float(np.square(X - U @ V.T).sum())


# ---- Forms and answers ----


@pytest.mark.filterwarnings("ignore::ucle.CancellationWarning")
@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(60))
def test_random_programs_of_exact_numbers(seed: int, routes: Routes) -> None:
    """Numbers that do not round are equal in all forms, zeros that cancel among them."""
    drawn = drawn_case(seed)
    case = Case(drawn.text, drawn.arrays, drawn.inputs, {})
    try:
        case.compile(routes["native"])
    except UcleError:  # complex numbers have no order
        return
    check_everywhere(case, routes, seed, sample=2, optimisations=ALWAYS)


def cancelling(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Numbers of all sizes, many of which are nearly those of others."""
    few = rng.normal(size=3) * 2.0 ** rng.integers(-12, 13, 3)
    near = 1 + rng.normal(size=shape) * 2.0 ** rng.integers(-48, 0, shape)
    return rng.choice(few, shape) * near


SHAPES = {"A": (5, 4), "C": (5, 4), "x": (5,), "y": (4,), "U": (5, 3), "V": (4, 3)}
TERMS = ("A[i,j]", "C[i,j]", "x[i] * y[j]", "sum[f](U[i,f] * V[j,f])", "2 * A[i,j]", "x[i]")
FACTORS = ("y[j]", "x[i]", "A[i,j]", "(x[i] + y[j])")


def measured_case(seed: int) -> Case:
    """Sums of products of brackets, over floats that cancel."""
    rng = np.random.default_rng(seed)
    brackets = [_bracket(rng) for _ in range(2)]
    product = rng.choice(
        [
            f"square({brackets[0]})",
            f"{brackets[0]} * {brackets[1]}",
            f"{brackets[0]} * {rng.choice(FACTORS)}",
            f"square({brackets[0]}) * {rng.choice(FACTORS)}",
            f"({brackets[0]} * {rng.choice(FACTORS)} + {brackets[1]})",
        ]
    )
    target = rng.choice(["Z[i,j] =", "Z[i] +=", "Z[j] +=", "Z[] +="])
    text = f"{target} {product}"
    dtype = np.float32 if seed % 5 == 0 else np.float64
    arrays = {x: cancelling(y, rng).astype(dtype) for x, y in SHAPES.items() if f"{x}[" in text}
    return Case(text, arrays, dict(arrays), {})


def _bracket(rng: np.random.Generator) -> str:
    signs, terms = rng.choice(["+", "-"], 3), rng.choice(TERMS, rng.integers(2, 4), replace=False)
    parts = [f"{sign} {term}" for sign, term in zip(signs, terms, strict=False)]
    return f"({' '.join(parts).removeprefix('+ ')})"


def rewritten_form(program: EinsumProgram) -> LogicalProgram:
    compiled = program.compiled
    rewrite = compiled.front.lowering.rewrite("rewritten")
    written = rewrite.replay(syntax_to_logical(compiled.front.source))
    assert written is not None
    return written


def check_errors(case: Case, routes: Routes, seed: int) -> int:
    """Compare errors with their bounds in several plans; return how many were compared."""
    loose = case.compile(routes["native"], rewrite_tolerance=0.9)
    program = recompiled(loose, ALWAYS)
    (name,) = program.outputs
    if program.compiled.program.condition_numbers != (f"{name}.condition1",):
        return 0
    form = rewritten_form(program)
    exact = known_tensors(form, {x: fractions(y) for x, y in case.arrays.items()})
    if f"{name}.sum1" in exact:
        return 0  # a function is applied to the sum
    terms = [x for x in form.statements if x.target.startswith(f"{name}.condition1.term")]
    every = form.by_name[name].labels
    total = sum(aligned((x.labels, exact[x.target]), every) for x in terms)
    compared = 0
    for decomposition in ("auto", *some_decompositions(program, seed, 3)):
        plan = program.with_decomposition(decomposition)
        error = largest_error(plan)
        for connection in routes.values():
            found = plan.execute(connection)[name].to_numpy()
            if lost_digits(plan):
                break
            off = np.abs(fractions(found) - exact[name])
            assert np.all(off <= error * total), f"{case}\n{form}"
            compared += 1
    return compared


def fractions(array: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda number: Fraction(float(number)), otypes=[object])(array)


def largest_error(program: EinsumProgram) -> Fraction:
    """The share of the absolute terms by which the sum of a program may be off."""
    (check,) = (x for x in program.compiled.plan.checked if x.largest is not None)
    assert check.largest is not None
    tolerance = Fraction(program.options.rewrite_tolerance or TOLERANCES[check.read.type.dtype])
    return tolerance / (Fraction(check.largest) * (1 + tolerance) + tolerance)


@pytest.mark.filterwarnings("ignore::ucle.CancellationWarning")
@pytest.mark.sample(1)
@pytest.mark.parametrize("start", range(0, 200, 10))
def test_errors_are_within_their_bounds(start: int, routes: Routes) -> None:
    found = [check_errors(measured_case(seed), routes, seed) for seed in range(start, start + 10)]
    assert sum(found)


@pytest.mark.filterwarnings("ignore::ucle.CancellationWarning")
def test_sums_inside_of_others_are_measured_too(routes: Routes) -> None:
    """The sum of the statement reads what the inner one came to, and computes it once."""
    text = "L += square(X[i,j] - tanh(sum[k](square(X[i,k] - x[i]))) * y[j])"
    rng = np.random.default_rng(1)
    arrays = {"x": rng.normal(size=20), "y": rng.normal(size=30)}
    arrays["X"] = np.where(rng.random((20, 30)) < 0.1, rng.normal(size=(20, 30)), 0)
    case = Case(text, arrays, dict(arrays), {})
    program = recompiled(case.compile(routes["native"]), ALWAYS)
    assert program.compiled.program.condition_numbers == ("L.condition1", "L.condition2")
    form = rewritten_form(program)
    (inner,) = (x for x in form.statements if x.target == "L.sum1")
    readers = [x.target for x in form.statements if inner.target in x.reads]
    assert readers == ["L", "L.condition1", "L.condition2.term2", "L.condition2.term3"]
    check_everywhere(case, routes, 1, sample=3, optimisations=ALWAYS)


@pytest.mark.fuzz
@pytest.mark.skipif(not FUZZ, reason="UCLE_FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("start", range(0, FUZZ, PART))
def test_errors_of_many_programs(start: int, routes: Routes) -> None:
    for seed in range(1000 + start, 1000 + min(start + PART, FUZZ)):
        check_errors(measured_case(seed), routes, seed)


# ---- The choice between forms ----


def graph(n: int, rng: np.random.Generator) -> Any:
    return scipy.sparse.random_array((n, n), density=0.01, rng=rng)


def loss_inputs(n: int = 1500, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"X": graph(n, rng), "U": rng.random((n, 8)), "V": rng.random((n, 8))}


def test_the_cheaper_form_by_default() -> None:
    """Well-conditioned sums keep the form that is many times cheaper."""
    data = loss_inputs()
    program = ucle.einsum_program(LOSS, inputs=data)
    safe = ucle.einsum_program(LOSS, inputs=data, rewrite="safe")
    assert program.compiled.program.condition_numbers == ("L.condition1",)
    assert safe.compiled.program.condition_numbers == ()
    assert program.cost < safe.cost / 4
    assert program.outputs == ("L",)
    found = program.execute()["L"].to_numpy()
    assert not lost_digits(program)
    expected = loss_of(data["X"].toarray(), data["U"], data["V"])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_plans_of_ten_milliseconds_are_worth_a_measurement(routes: Routes) -> None:
    """Its form by hand reads each matrix once; no other form is looked at then."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((1600, 1200), density=0.03, rng=rng)
    data = {"X": X, "U": rng.random((1600, 10)), "V": rng.random((1200, 10))}
    expected = loss_of(X.toarray(), data["U"], data["V"])
    by_hand = (
        "p[f,g] += U[i,f] * U[i,g]; q[f,g] += V[j,f] * V[j,g]; r += p[f,g] * q[f,g];"
        "Q[i,f] += X[i,j] * V[j,f]; t += Q[i,f] * U[i,f]; x += square(X[i,j]);"
        "L = x - 2 * t + r"
    )
    for connection in routes.values():
        program, hand = (
            ucle.einsum_program(text, inputs=data, outputs=["L"], database=connection)
            for text in (LOSS, by_hand)
        )
        with program.execute(connection) as result:
            np.testing.assert_allclose(result["L"].to_numpy(), expected, rtol=1e-9)
        if connection is routes["native"]:
            rewritten = program.compiled.front.lowering.rewrite("rewritten")
            assert rewritten is not None
            assert rewritten.costs is not None
            assert rewritten.costs.others == ()
            assert program.cost < 2 * hand.cost


def test_differences_that_are_0_on_a_diagonal_are_not_measured(routes: Routes) -> None:
    """Distances between rows of one matrix lose all digits there, and would be computed twice."""
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(2, 300, 600))
    for other, numbers in (("A", ()), ("B", ("D.condition1",))):
        text = f"D[i,j] = sum[k](square(A[i,k] - {other}[j,k]))"
        inputs = {"A": A} if other == "A" else {"A": A, "B": B}
        program = ucle.einsum_program(text, inputs=inputs, database=routes["native"])
        assert program.compiled.program.condition_numbers == numbers
        expected = np.square(A[:, None] - inputs[other][None]).sum(axis=-1)
        for connection in routes.values():
            with warnings.catch_warnings(action="error"), program.execute(connection) as result:
                np.testing.assert_allclose(result["D"].to_numpy(), expected, rtol=1e-9)
    weighted = "D[i,j] = sum[k](square(A[i,k] - A[j,k])); s = sum[i,j](D[i,j] * D[i,j])"
    program = ucle.einsum_program(weighted, A=A, outputs=["s"])
    assert all(name.startswith("s.") for name in program.compiled.program.condition_numbers)


def test_explain_says_which_form_was_declined() -> None:
    """Of rows of ten numbers, measuring costs as much as the differences themselves."""
    rng = np.random.default_rng(3)
    inputs = {"U": rng.random((4000, 10)), "N": rng.random((500, 10))}
    text = "Z[i,k] += square(U[i,f] - N[k,f])"
    program = ucle.einsum_program(text, inputs=inputs)
    declined = json.loads(program.explain("json"))["declined"]
    assert declined["most"] == pytest.approx(program.cost / 4)
    assert declined["cost"] > declined["most"]
    assert [x for x in declined["lines"] if x.startswith("Z[i,k] = max((sum[f](square(U[i,f]))")]
    assert "declined: it may lose digits" in program.explain()
    unmeasured = ucle.einsum_program(text, inputs=inputs, rewrite="algebraic")
    assert unmeasured.cost < program.cost
    for each in (unmeasured, ucle.einsum_program(text, inputs=inputs, rewrite="safe")):
        assert json.loads(each.explain("json"))["declined"] is None


def test_statements_without_readers_are_not_measured() -> None:
    """The residual is opened where it is read, and needs no number of its own."""
    text = "R[i,j] = X[i,j] - sum[f](U[i,f] * V[j,f]); S[i,j] = R[i,j] * R[i,j]; L += S[i,j]"
    program = ucle.einsum_program(text, inputs=loss_inputs(), outputs=["L"])
    assert program.compiled.program.condition_numbers == ("L.condition1",)


def nearly_exact(n: int = 1500) -> dict[str, Any]:
    """A loss of which the expanded form has no right digit."""
    rng = np.random.default_rng(1)
    U, V = rng.random((n, 8)), rng.random((n, 8))
    U[3:] *= 1e-9
    V[3:] *= 1e-9
    rows, columns = np.indices((3, 3)).reshape(2, -1)
    X = scipy.sparse.coo_array(((U @ V.T)[rows, columns], (rows, columns)), shape=(n, n))
    return {"X": X, "U": U, "V": V}


@pytest.mark.parametrize("inside", [False, True])
def test_the_safe_form_where_digits_are_lost(inside: bool) -> None:
    data = nearly_exact()
    with duckdb.connect() as connection:
        safe = ucle.einsum_program(LOSS, inputs=data, rewrite="safe", database=connection)
        expected = safe.execute()["L"].to_numpy()
        program = ucle.einsum_program(LOSS, inputs=data, database=connection)
        assert program.compiled.program.condition_numbers
        if inside:
            connection.begin()
        with pytest.warns(ucle.CancellationWarning, match="sums in L lose digits"):
            np.testing.assert_array_equal(program.execute()["L"].to_numpy(), expected)
        assert lost_digits(program)
        with warnings.catch_warnings(action="error"):  # once for each version of the data
            np.testing.assert_array_equal(program.execute()["L"].to_numpy(), expected)
        if inside:
            connection.commit()
        assert not connection.sql("SHOW TABLES").fetchall()
    assert 0 < expected < 1e-9


@pytest.mark.filterwarnings("ignore::ucle.CancellationWarning")
def test_other_data_for_the_same_program() -> None:
    """Each version of the data is judged by itself."""
    good, bad = loss_inputs(), nearly_exact()
    with duckdb.connect() as connection:
        store_loss(connection, good)
        program = ucle.einsum_program(LOSS, X="X", U="U", V="V", database=connection)
        assert program.compiled.program.condition_numbers
        for data in (good, bad, good):
            store_loss(connection, data)
            found = program.execute()["L"].to_numpy()
            expected = loss_of(data["X"].toarray(), data["U"], data["V"])
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def store_loss(connection: duckdb.DuckDBPyConnection, data: dict[str, Any]) -> None:
    for name, value in data.items():
        coo = scipy.sparse.coo_array(value)
        table = {"a": coo.coords[0], "b": coo.coords[1], "v": coo.data}
        frame = connection.from_arrow(pa.table(table))  # noqa: F841  # read by name
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM frame")


def test_loops_take_the_safe_form_from_where_digits_are_lost() -> None:
    """A step whose sums cancel is computed again, and those after it in the safe form."""
    data = loss_inputs(600)
    text = f"{LOSS}; U_next[i,f] = U[i,f] * 0.5; V_next[j,f] = V[j,f] * 0.5"
    results = [
        ucle.einsum_program(text, inputs=data, outputs=["L", "U_next", "V_next"], rewrite=rewrite)
        .iterate({"U": "U_next", "V": "V_next"}, max_steps=12)
        .history["L"]
        for rewrite in ("safe", "auto")
    ]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_sums_of_integers_in_sums_of_floats_lose_no_digits(seed: int, routes: Routes) -> None:
    """Only sums of floats are measured; the counts of a window are integers."""
    rng = np.random.default_rng(seed)
    a, x = rng.integers(-5, 6, (3, 4)), rng.integers(-4, 5, (3, 4)) / 4
    there, values = (ucle.array(each, axes=("i", "j")) for each in (a, x))
    counts = there.rolling(3, "i", center=True, where=there > 0).count()
    apart = values - values.max("j")
    expected = np.array([(a[max(i - 1, 0) : i + 2] > 0).sum(axis=0) for i in range(3)])
    expected = expected + x - x.max(axis=1, keepdims=True)
    for route in routes.values():
        for decomposition in ("auto", "relational"):
            found = counts.astype("float64") + apart
            values_found = found.to_numpy(route, decomposition=decomposition)
            np.testing.assert_allclose(values_found, expected)


def test_views_and_scripts_for_others_have_the_safe_form() -> None:
    data = nearly_exact()
    with duckdb.connect() as connection:
        store_loss(connection, data)
        program = ucle.einsum_program(LOSS, X="X", U="U", V="V", database=connection)
        assert program.compiled.program.condition_numbers
        assert "runs again in a safe form" in program.to_sql()
        assert "runs again in a safe form" in program.explain()
        program.create_views(connection, kernels=False)
        ((found,),) = connection.sql("SELECT * FROM L").fetchall()
        expected = loss_of(data["X"].toarray(), data["U"], data["V"])
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        relational = program.with_decomposition("relational")
        assert "condition" not in relational.to_sql(dialect="postgres")


@pytest.mark.turns(3)
@pytest.mark.filterwarnings("ignore::ucle.CancellationWarning")
def test_tolerance() -> None:
    data = loss_inputs()
    data["X"] = data["X"] * 20  # no term is much larger than the others
    for tolerance, lost in ((1e-9, False), (1e-15, True)):
        program = ucle.einsum_program(LOSS, inputs=data, rewrite_tolerance=tolerance)
        program.execute()
        assert lost_digits(program) is lost
    with pytest.raises(ArgumentError, match="rewrite_tolerance"):
        ucle.einsum_program(LOSS, inputs=data, rewrite_tolerance=0)
