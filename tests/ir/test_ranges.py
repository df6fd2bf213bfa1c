"""Tests of ranges of entries, of absorption, and of numbers that outgrow their type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from known import check_known, known

import ucle
from ucle.errors import OperatorError
from ucle.foundation.dtypes import same_value
from ucle.ir.annihilation import checked_tensors
from ucle.operators import COMBINES, MAPS
from ucle.testing import (
    Routes,
    UndefinedError,
    check_everywhere,
    outgrowing_case,
    random_case,
)
from ucle.testing.generate import Case

NAN, INF = np.nan, np.inf


def test_every_operator_has_a_rule() -> None:
    for table in (COMBINES, MAPS):
        assert all(row.rule is not None for row in table.values() if row.compiled)


@pytest.mark.parametrize("seed", range(40))
def test_entries_lie_in_their_intervals(seed: int) -> None:
    """NumPy's results for random programs have no entry that the derived facts rule out."""
    case = random_case(seed)
    connection = ucle.connect()
    case.create_tables(connection)
    program = case.compile(connection)
    check_entries(program, case)
    connection.close()


def check_entries(program: ucle.EinsumProgram, case: Case) -> None:
    types, expected = program.compiled.program.types, case.expected()
    for name in program.outputs:
        type_, array = types[name], expected[name]
        values = type_.entries
        others = [x for x in array.reshape(-1).tolist() if not same_value(x, type_.fill)]
        checked = array.reshape(-1).tolist() if values.full else others
        for entry in checked:
            context = f"{name}: {entry} is not in {values}, fill {type_.fill}\n{case}"
            if values.finite and not values.overflows:
                assert np.isfinite(entry), context
            if array.dtype.kind != "c" and not np.isnan(entry):
                assert values.low <= entry <= values.high, context
            assert not (values.excludes_zero and entry == 0), context


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("ends", [(-9, 9), (1, 9), (-9, -1), (0, 1), (-1, 0), (-1, 1), (300, 900)])
def test_every_operator_stays_in_its_interval(ends: tuple[int, int], dtype: str) -> None:
    """On values at both ends and between, some of them 0; rows that are stored say how they lie."""
    rng = np.random.default_rng(3)
    steps = rng.integers(ends[0] * 4, ends[1] * 4 + 1, (2, 6)) / 4
    x, y = (np.array([*ends, *row]).astype(dtype) for row in steps)
    unary = [name for name, row in MAPS.items() if row.compiled and set(row.kinds) & {"f", "i"}]
    pairs = [name for name, row in COMBINES.items() if row.compiled and set(row.kinds) & {"f", "i"}]
    texts = [f"{name}(X[i])" for name in unary] + [f"{name}(X[i], Y[i])" for name in pairs]
    for text in texts:
        given = {"X": x, "Y": y} if "Y" in text else {"X": x}
        case = Case(f"T[i] = {text}", given, dict(given), {})
        try:
            with np.errstate(all="ignore"):
                expected = case.expected()["T"]
        except (UndefinedError, TypeError, ValueError, OverflowError):
            continue
        if expected.dtype.kind == "i" and np.abs(expected.astype(float)).max() > 2**62:
            continue
        with np.errstate(all="ignore"):
            check_entries(ucle.einsum_program(case.text, inputs=given), case)


@pytest.mark.parametrize("ends", [(INF, INF), (-INF, -INF), (INF, -INF), (INF, 1), (-INF, 1)])
def test_the_one_infinity_is_that_of_numpy(ends: tuple[float, float]) -> None:
    """Of operands that hold at most one infinity each, the same one or two different ones."""
    x, y = np.array([ends[0], 0, -2, 3, 3]), np.array([1, ends[1], 2, 0, ends[1]])
    pairs = [name for name, row in COMBINES.items() if row.compiled and "f" in row.kinds]
    unary = [name for name, row in MAPS.items() if row.compiled and "f" in row.kinds]
    texts = [f"{name}(X[i])" for name in unary] + [f"{name}(X[i], Y[i])" for name in pairs]
    reduced = [f"{name}[i]({x})" for name in ("min", "max", "sum") for x in ("X[i]", "X[i] + Y[i]")]
    statements = [f"T[i] = {text}" for text in texts] + [f"T[] = {text}" for text in reduced]
    for text in statements:
        given = {"X": x, "Y": y} if "Y" in text else {"X": x}
        case = Case(text, given, dict(given), {})
        try:
            with np.errstate(all="ignore"):
                expected = case.expected()["T"]
        except (UndefinedError, TypeError, ValueError, OverflowError):
            continue
        with np.errstate(all="ignore"):
            type_ = ucle.einsum_program(text, inputs=given).compiled.program.types["T"]
        if not (one := type_.every).finite and one.infinity is not None:
            assert (np.isfinite(expected) | (expected == one.infinity)).all(), (text, one)
    program = ucle.einsum_program("T[i] = min(X[i] + Y[i], Y[i])", X=x, Y=y)
    kept = program.compiled.program.types["T"].entries.infinity
    assert kept == (None if ends[1] not in (ends[0], 1) else ends[0])


@pytest.mark.sample(1)
@pytest.mark.parametrize("sign", "+-*/")
def test_fills_and_infinities(sign: str, routes: Routes) -> None:
    """A fill absorbs the one infinity that it meets, or gives NaN with it, as in NumPy."""
    stored = np.array([[3.0, 1], [2, 4]])
    for fill in (INF, -INF, 0.0):
        A = np.where(np.eye(2, dtype=bool), stored, fill)
        for infinity in (INF, -INF):
            x = np.array([1.0, infinity])
            given = {"A": ucle.table(A, fill=fill), "x": x}
            for text in (f"A[i,j] {sign} x[j]", f"x[j] {sign} A[i,j]"):
                case = Case(f"T[i,j] = {text}", {"A": A, "x": x}, given, {})
                with np.errstate(all="ignore"):
                    check_everywhere(case, routes, 0, sample=2)


LOG = np.array([1.0, 0.0])
DEGREES = np.array([3.0, 0.0, 1.0])
GRAPH = np.array([[1.0, 0, 2], [0, 0, 0], [0, 1, 0]])
LARGE = GRAPH * 1e300


@pytest.mark.parametrize(
    ("text", "expected", "inputs"),
    [
        ("T[i] = log(a[i]) * b[i]", [0, NAN], {"a": ucle.table(LOG, fill=1.0), "b": [3.0, 0]}),
        ("T[i,j] = A[i,j] / max(d[i], 1)", GRAPH / [[3], [1], [1]], {"A": GRAPH, "d": DEGREES}),
        ("T[i,j] = A[i,j] / (1 + d[j])", GRAPH / [4, 1, 2], {"A": GRAPH, "d": DEGREES}),
        ("T[i,j] = A[i,j] / exp(d[j])", GRAPH / np.exp(DEGREES), {"A": GRAPH, "d": DEGREES}),
        ("T[i,j] = A[i,j] / d[j]", GRAPH / [2, 4, 5], {"A": GRAPH, "d": [2.0, 4, 5]}),
        (
            "T[i,j] = A[i,j] / d[j]",
            [[1 / 3, NAN, 2], [0, NAN, 0], [0, INF, 0]],
            {"A": GRAPH, "d": DEGREES},
        ),
        ("T[i] = 1 / a[i]", [INF, 0.5], {"a": [-0.0, 2.0]}),
        ("T[i] = a[i] ^ -3", [INF, 0.125], {"a": [-0.0, 2.0]}),
        ("T[i] = reciprocal(a[i])", [INF, 0.5], {"a": [-0.0, 2.0]}),
        ("T[i] = b[i] / a[i]", [INF, 0.5], {"a": [-0.0, 2.0], "b": [1.0, 1.0]}),
        ("T[i] = sparse_mult(a[i], b[i])", [0, INF], {"a": [0.0, 2.0], "b": [NAN, INF]}),
    ],
)
def test_what_can_be_made(text: str, expected: Any, inputs: dict[str, Any], routes: Routes) -> None:
    with np.errstate(all="ignore"):
        check_known(known(text, {"T": expected}, **inputs), routes)


def test_a_division_by_what_is_not_0_joins_sparsely() -> None:
    program = ucle.einsum_program("T[i,j] = A[i,j] / max(sum[k](A[i,k]), 1)", A=GRAPH)
    program = program.with_decomposition("relational")
    assert "CROSS" not in program.to_sql()
    assert "range(" not in program.to_sql().lower()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("text", "arrays"),
    [
        ("T[i] = exp(1000 * a[i]) * b[i]", {"a": [1.0, 0, 1], "b": [3.0, 0, 0]}),
        ("T[i] = exp(1000 * a[i]) * b[i] < 1", {"a": [1.0, 0, 1], "b": [3.0, 0, 0]}),
        ("T[i] = A[i,j] * B[i,j] * c[i]", {"A": LARGE, "B": LARGE, "c": [1.0, 2, 0]}),
        ("S[i] += A[i,j] * A[i,j]; T[i] = S[i] * c[i] > 0", {"A": LARGE, "c": [0.0, 2, 0]}),
        ("T[i] = c[i] / exp(a[i])", {"a": [-900.0, 1, -900], "c": [0.0, 2, 3]}),
    ],
)  # fmt: skip
def test_what_outgrows_its_type(text: str, arrays: dict[str, Any], routes: Routes) -> None:
    """NumPy divides 0 and 3 by a power that is too small in the last case."""
    given = {name: np.asarray(array) for name, array in arrays.items()}
    case = Case(text, given, dict(given), {}, None, annihilates=True)
    assert check_everywhere(case, routes, 0, 12)


@pytest.mark.sample(4)
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("last", ["int64(y[i])", "v[int64(y[i])] - 10", "y[i]"])
def test_what_is_made_of_nan_by_the_size_of_numbers(last: str, inside: bool) -> None:
    """A statement after it may fail at the NaN: the program runs by the other rule all the same,
    in a transaction, too, which an error would end."""
    given = {"a": ucle.parameter([1.0, 0, 2]), "b": ucle.parameter([0.0, 3, 0])}
    text = f"y[i] = exp(1000 * a[i]) * b[i]; n[i] = {last}"
    given |= {"v": np.arange(10, 20)} if "v[" in last else {}
    with ucle.connect() as connection:
        program = ucle.einsum_program(text, inputs=given, outputs=["y", "n"], database=connection)
        if inside:
            connection.execute("BEGIN").fetchall()
        with program.execute() as result:
            assert result["y"].to_numpy().tolist() == [0, 3, 0]
            assert result["n"].to_numpy().tolist() == [0, 3, 0]
        with program.prepare() as run:
            assert run(a=[0.0, 0, 0])["n"].to_numpy().tolist() == [0, 3, 0]
            assert run(a=[0.0, 0, 3])["n"].to_numpy().tolist() == [0, 3, 0]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_products_that_outgrow_their_type(dtype: type, routes: Routes) -> None:
    """In compressed arrays, too, which list what is not 0."""
    rng = np.random.default_rng(3)
    given = {
        name: np.where(rng.random((5, 5)) < 0.4, scale, 0).astype(dtype)
        for name, scale in {"A": 1e200, "B": 1e200, "M": 1.0}.items()
    }
    text = "T[i,k] += A[i,j] * B[j,k]; U[i,k] = T[i,k] * M[i,k]"
    assert check_everywhere(Case(text, given, given, {}, None, annihilates=True), routes, 0, 40)


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(6))
def test_random_programs_that_outgrow_their_type(seed: int, routes: Routes) -> None:
    check_everywhere(outgrowing_case(seed), routes, seed, 8)


def test_many_iterations_stay_sparse() -> None:
    """Sums of 200 products may outgrow any type, as far as is known, and absorb all the same."""
    lines = [f"r{n}[j] = 0.5 + 0.5 * A[i,j] * r{n - 1}[i]" for n in range(1, 101)]
    program = ucle.einsum_program("\n".join(lines), A=GRAPH * 1e6, r0=[1.0, 1, 1])
    last = program.compiled.program.types["r100"].entries
    assert last.finite
    assert last.overflows
    assert checked_tensors(program.compiled.program) == {"r100"}
    assert "CROSS" not in program.with_decomposition("relational").to_sql()


def test_facts_follow_the_data() -> None:
    """A divisor that has no 0 when the program is compiled, and has one later."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE A AS SELECT 0 AS i, 2.0::DOUBLE AS v")
        connection.execute("CREATE TABLE d AS SELECT range AS i, 1.0::DOUBLE AS v FROM range(2)")
        a, d = ucle.table("A", bounds=(2,)), ucle.table("d", bounds=(2,))
        program = ucle.einsum_program("T[i] = A[i] / d[i]", A=a, d=d, database=connection)
        with program.execute() as result:
            np.testing.assert_array_equal(result["T"].to_numpy(), [2, 0])
        connection.execute("DELETE FROM d WHERE i = 1")
        with program.execute() as result:
            np.testing.assert_array_equal(result["T"].to_numpy(), [2, NAN])


def test_ranges_of_registered_operators() -> None:
    def half(x: Any) -> Any:
        return x / (1 + abs(x))

    def compiled(**options: Any) -> bool:
        sql = "x / (1 + abs(x))"
        ucle.register_operator("softsign", "map", sql=sql, numpy=half, replace=True, **options)
        program = ucle.einsum_program("T[i] = softsign(x[i])", x=[1.0, 2.0])
        return program.compiled.program.types["T"].entries.finite

    assert compiled(range=(-1, 1))
    assert not compiled()
    with pytest.raises(OperatorError, match="not a valid range"):
        compiled(range=(1, -1))
