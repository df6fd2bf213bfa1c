"""Along which axes there is an entry everywhere, and what follows from that."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import ucle
from ucle.foundation.dtypes import same_value
from ucle.ir.tensor_types import TensorType
from ucle.stats import measure
from ucle.testing import Routes, check_everywhere, random_case
from ucle.testing.generate import Case

RING = np.roll(np.diag([2.0, 1.0, 0.5, 3.0]), 1, axis=1)
"""Each node has an edge; of 16 pairs, 12 have none."""
HOLES = RING * [[1], [0], [1], [1]]
VALUES = np.arange(8.0).reshape(4, 2) - 3


def held(type_: TensorType, array: np.ndarray) -> np.ndarray:
    """The positions of entries that a tensor's type allows."""
    values = type_.entries
    if array.dtype.kind == "c":
        return (array != 0) | (not values.excludes_zero)
    inside = (array >= values.low) & (array <= values.high) | np.isnan(array)
    return inside & ((array != 0) | (not values.excludes_zero))


def check_coverage(case: Case) -> int:
    """Compare what is derived of all tensors of a program with what NumPy computes."""
    with ucle.connect() as connection:
        case.create_tables(connection)
        types = case.compile(connection).compiled.program.types
    expected, checked = case.expected(), 0
    for name, type_ in types.items():
        if name not in expected:
            continue
        there = held(type_, expected[name])
        for axis in type_.covered:
            others = tuple(x for x in range(there.ndim) if x != axis)
            assert there.any(axis=others).all(), f"{name}, axis {axis}: {type_}\n{case}"
            checked += 1
        assert there.any() or not type_.occupied, f"{name}: {type_}\n{case}"
        if type_.entries.full:
            assert there.all(), f"{name}: {type_}\n{case}"
            checked += 1
    return checked


@pytest.mark.slow
def test_what_is_covered_has_entries() -> None:
    assert sum(check_coverage(random_case(seed)) for seed in range(25)) > 15


@pytest.mark.fuzz
@pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="`make fuzz` runs it")
def test_what_is_covered_has_entries_in_many_programs() -> None:
    seeds = range(25, 25 + int(os.environ["UCLE_FUZZ_PROGRAMS"]))
    assert sum(check_coverage(random_case(seed)) for seed in seeds) > len(seeds) // 2


SUMS = (
    "sum[k](A[i,k])",
    "count[k](A[i,k])",
    "sum[k](A[k,i])",
    "sum[k](A[i,k] * A[k,i])",
    "sum[k,l](A[k,l] + 0 * A[i,k])",
    "max[k](A[i,k])",
)

FORMS = (
    "T[i,j] = A[i,j] / {0}",
    "T[i,j] = A[i,j] / ({0} * {2})",
    "T[i,f] += A[i,j] * X[j,f] / sqrt({0} * {2})",
    "T[i,j] = A[i,j] * log({0})",
    "D[i] = {0}; T[i,j] = when(A[i,j], 1 / D[j]); S[j] += A[i,j] / D[j]",
    "D[i,j] = A[i,j] * {0}; T[j] += D[i,j] / {0}; S[i] = 1 / sum[j](D[i,j])",
    "T[i] = sum[j](A[i,j]) / ({0} - {1})",
    "D[j,i] = A[i,j] + A[j,i]; T[i] = 1 / sum[j](D[i,j]); S[i,j] = D[i,j] / T[j]",
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(25))
def test_programs_over_covered_inputs(
    seed: int, routes: Routes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quotients, roots and logarithms of sums that are never empty, and of some that are."""
    if seed % 2:  # as if the tables were large ones
        monkeypatch.setattr(measure, "EXACT_ENTRIES", 0)
        monkeypatch.setattr(measure, "EXACT_DEGREES", 0)
    rng = np.random.default_rng([16, seed])
    n = int(rng.integers(2, 5))
    edges = rng.integers(0, 4, size=(n, n)) * (rng.random((n, n)) < 0.5)
    if rng.random() < 0.7:
        edges[np.arange(n), rng.permutation(n)] = rng.integers(1, 4, size=n)
    if rng.random() < 0.2:
        edges = -edges
    arrays = {
        "A": edges.astype(rng.choice(["float64", "float32", "int64"])),
        "X": rng.integers(-3, 4, size=(n, 2)).astype(float),
    }
    one, other = (str(x) for x in rng.choice(SUMS, size=2))
    text = str(rng.choice(FORMS)).format(one, other, other.replace("[i", "[j").replace("i]", "j]"))
    used = {name: array for name, array in arrays.items() if f"{name}[" in text}
    case = Case(text, used, used, {})
    check_coverage(case)
    check_everywhere(case, routes, seed, 2)


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    ("text", "covered", "full"),
    [
        ("T[i] += A[i,j]", {0}, True),
        ("T[j] += A[i,j]", {0}, True),
        ("T += A[i,j]", set(), True),
        ("T[j,i] = A[i,j]", {0, 1}, False),
        ("T[j,i] = exp(A[i,j])", {0, 1}, False),
        ("T[i] = A[i,i]", set(), False),
        ("T[i,j,f] = A[i,j] * X[j,f]", {0, 1, 2}, False),
        ("T[i,k] += A[i,j] * A[j,k]", set(), False),
        ("T[i,j,k] = A[i,j] + A[j,k]", {0, 1, 2}, False),
        ("T[i] += B[i,j]", set(), False),
        ("T[j] += B[i,j]", set(), False),
        ("T[i] += A[i,j] * B[i,j]", set(), False),
        ("T[i] += A[i,j] + B[i,j]", {0}, True),
    ],
)
def test_what_covers(text: str, covered: set[int], full: bool) -> None:
    given = {"A": RING, "B": HOLES, "X": np.ones((4, 2))}
    inputs = {name: array for name, array in given.items() if f"{name}[" in text}
    program = ucle.einsum_program(text, inputs=inputs).compiled.program
    assert program.types["T"].entries.full == full
    assert program.types["T"].covered == covered


@pytest.mark.parametrize(
    "text",
    [
        "k[i] += A[i,j]; T[i,j] = A[i,j] / k[i]",
        "k[i] += A[i,j]; T[i,f] += A[i,j] * X[j,f] / sqrt(k[i] * k[j])",
        "k[i] count= A[i,j]; T[i,j] = A[i,j] * log(9 / k[i])",
        "u[i] = 1 / sum[j](A[i,j] * c[j]); T[j] += A[i,j] * u[i]",
        "m += A[i,j]; T[i,j] = A[i,j] / m",
    ],
)
def test_divisors_that_nobody_lacks_join_sparsely(text: str, routes: Routes) -> None:
    given = {"A": RING, "X": VALUES, "c": np.arange(4.0) + 1}
    inputs = {name: array for name, array in given.items() if f"{name}[" in text}
    for edges, fill in (RING, 0.0), (HOLES, 0.0 if "m +=" in text else np.nan):
        arrays = {**inputs, "A": edges}
        program = ucle.einsum_program(text, inputs=arrays).compiled.program
        assert same_value(program.types["T"].fill, fill)
        check_everywhere(Case(text, arrays, arrays, {}), routes, 3, 2)


def relational(text: str, edges: np.ndarray) -> str:
    return ucle.einsum_program(text, A=edges, decomposition="relational").to_sql()


@pytest.mark.parametrize("operator", ["min", "max"])
def test_bounds_absorb(operator: str, routes: Routes) -> None:
    """The smaller of 0 and what is not negative is 0: widest paths stay sparse."""
    edges = RING if operator == "min" else -RING
    opposite = "max" if operator == "min" else "min"
    text = f"T[i,k] {opposite}= {operator}(A[i,j], A[j,k])"
    assert "CROSS" not in relational(text, edges)
    sign = np.where(np.arange(4) == 2, -1.0, 1.0)
    assert "CROSS" in relational(text, edges * sign[:, None])
    for array in (edges, edges * sign[:, None]):
        check_everywhere(Case(text, {"A": array}, {"A": array}, {}), routes, 5, 4)


def test_coverage_follows_the_data(native: Any) -> None:
    """A node that loses its last edge has a degree of 0 again."""
    native.sql("create or replace table covering (i integer, j integer, v double)")
    native.sql("insert into covering values (0, 1, 2), (1, 2, 1), (2, 0, 4), (2, 1, 1)")
    edges = ucle.table("covering", bounds=(3, 3))
    text = "k[i] += A[i,j]; T[i,j] = A[i,j] / k[i]"
    program = ucle.einsum_program(text, A=edges, database=native)
    dense = np.array([[0, 2, 0], [0, 0, 1], [4, 1, 0.0]])
    for _ in range(2):
        with program.execute(native) as result, np.errstate(all="ignore"):
            expected = dense / dense.sum(1, keepdims=True)
            np.testing.assert_allclose(result["T"].to_numpy(), expected)
        native.sql("delete from covering where i = 1")
        dense[1] = 0
    native.sql("drop table covering")


def test_duplicates_that_cancel_cover_nothing() -> None:
    with ucle.connect() as connection:
        connection.sql("create table twice as select * from (values (0, 1.0), (0, -1.0)) t(i, v)")
        a = ucle.table("twice", duplicates="sum")
        with ucle.einsum_program("T = 1 / sum[i](a[i])", a=a, database=connection).execute() as r:
            assert same_value(r["T"].to_numpy().item(), np.inf)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "divisor",
    [
        "sum[k](square(A[i,k]))",
        "sum[k](float32(A[i,k]))",
        "sum[k](sign(float32(A[i,k])))",
        "count[k](square(A[i,k]))",
        "any[k](bool(square(A[i,k])))",
        "sum[k](B[i,k] * c[k])",
        "sum[k](square(B[i,k]))",
        "sum[k](B[i,k] / (1 / c[k]))",
    ],
)
def test_divisors_too_small_for_their_type(divisor: str, routes: Routes) -> None:
    """0 / 0 is 0 then, whether the pair is made or not."""
    given = {
        "A": RING * 1e-200,
        "B": (RING * 1e-30).astype(np.float32),
        "c": np.full(4, 1e-30, np.float32),
    }
    text = f"k[i] = {divisor}; T[i,j] = A[i,j] / k[i]"
    arrays = {name: array for name, array in given.items() if f"{name}[" in text}
    check_everywhere(Case(text, arrays, arrays, {}, annihilates=True), routes, 3, 6)


@pytest.mark.parametrize("factor", ["log(k[i])", "k[i] ^ -1", "reciprocal(k[i])"])
def test_what_grows_where_others_are_too_small(factor: str, routes: Routes) -> None:
    """0 annihilates it on every plan: what is nowhere worth its fill has none that is infinite."""
    text = f"k[i] = sum[j](square(A[i,j])); T[i,j] = A[i,j] * {factor}"
    arrays = {"A": RING * 1e-200}
    check_everywhere(Case(text, arrays, arrays, {}, annihilates=True), routes, 3, 6)
