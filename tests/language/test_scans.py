"""Running aggregations: every program on every decomposition and both routes, against NumPy."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.errors import LabelError, NameResolutionError, ProgramSyntaxError, UcleError
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case
from ucle.testing.oracle_operators import STEPS
from ucle.testing.random_inputs import make_input, random_array

RNG = np.random.default_rng(23)
ARRAYS: dict[str, Any] = {
    "A": random_array(RNG, (4, 5), 0.5),
    "D": random_array(RNG, (3, 4), 1.0),
    "T": random_array(RNG, (3, 4, 2), 0.4),
    "x": random_array(RNG, (7,), 0.6),
    "f": random_array(RNG, (4, 5), 0.6, "float32"),
    "n": random_array(RNG, (4, 5), 0.6, "int64"),
    "b": random_array(RNG, (4, 5), 0.5, "bool"),
    "c": random_array(RNG, (3, 4), 0.6, "complex128"),
    "e": np.zeros((0,)),
    "E": np.zeros((3, 0)),
    "o": np.full((1, 1), 2.0),
    "z": np.zeros((3, 4)),
}
A, D, T, x, n, b = (ARRAYS[name] for name in "ADTxnb")

BY_HAND: dict[str, Callable[[], Any]] = {
    "Z[i,j] = cumsum[j](A[i,j])": lambda: np.cumsum(A, axis=1),
    "Z[i,j] = cumsum[i](A[i,j])": lambda: np.cumsum(A, axis=0),
    "Z[j,i] = cumsum[j](A[i,j])": lambda: np.cumsum(A, axis=1).T,
    "Z[i,j] = cumprod[j](A[i,j])": lambda: np.cumprod(A, axis=1),
    "Z[i,j] = cummax[j](A[i,j])": lambda: np.maximum.accumulate(A, axis=1),
    "Z[i,j] = cummin[i](A[i,j])": lambda: np.minimum.accumulate(A, axis=0),
    "Z[i] = cumsum[i](x[i])": lambda: np.cumsum(x),
    "Z[i] = cumsum[i](2 * x[i] + 1) / 3": lambda: np.cumsum(2 * x + 1) / 3,
    "Z[i,j] = cumsum[j](b[i,j])": lambda: np.cumsum(b, axis=1),
    "Z[i] = cumsum[j](A[i,j])": lambda: np.cumsum(A, axis=1).sum(axis=1),
    "Z[i] max= cumsum[j](A[i,j])": lambda: np.cumsum(A, axis=1).max(axis=1),
    "Z[i] = cumsum[i](A[i,j])": lambda: np.cumsum(A.sum(axis=1)),
    "Z[i] += cumsum[i](A[i,j])": lambda: np.cumsum(A, axis=0).sum(axis=1),
    "Z[i,j] = cumsum[i](cumsum[j](A[i,j]))": lambda: A.cumsum(1).cumsum(0),
    "Z[i] = cumsum[i](sum[j](A[i,j]) * 2)": lambda: np.cumsum(2 * A.sum(axis=1)),
    "Z[i] = cumsum[i](x[i+1] - x[i])": lambda: np.cumsum(np.diff(x)),
    "Z[i,j] = cumsum[j](A[i,j]) * (i < j)": lambda: np.triu(np.cumsum(A, axis=1), 1),
    "Z[i,i] = cumsum[i](x[i])": lambda: np.diag(np.cumsum(x)),
}

PROGRAMS = [
    *BY_HAND,
    "Z[i,j] = cumsum[i](D[i,j])",
    "Z[i,j] = cumprod[i](D[i,j])",
    "Z[i,j,k] = cumsum[j](T[i,j,k])",
    "Z[i,j,k] = cummax[i](T[i,j,k])",
    "Z[k,i,j] = cumprod[k](T[i,j,k] + 1)",
    "Z[i,j] = cumsum[j](exp(A[i,j]))",
    "Z[i,j] = cumprod[j](exp(A[i,j]))",
    "Z[i,j] = cummax[j](exp(A[i,j]))",
    "Z[i,j] = cummin[j](A[i,j] - 1)",
    "Z[i,j] = cumsum[j](n[i,j])",
    "Z[i,j] = cumprod[j](n[i,j])",
    "Z[i,j] = cumprod[j](n[i,j] + 1)",
    "Z[i,j] = cummax[i](n[i,j] - 1)",
    "Z[i,j] = cummax[j](b[i,j])",
    "Z[i,j] = cummin[j](b[i,j])",
    "Z[i,j] = cumprod[j](b[i,j])",
    "Z[i,j] = cumsum[j](c[i,j])",
    "Z[i,j] = cumprod[i](c[i,j])",
    "Z[i,j] = cumsum[j](f[i,j])",
    "Z[i,j] = cumprod[j](f[i,j] + 1)",
    "Z[i] = cumsum[i](e[i])",
    "Z[i] = cummax[i](e[i])",
    "Z[i,j] = cumsum[j](E[i,j])",
    "Z[i,j] = cumsum[i](E[i,j])",
    "Z[i,j] = cumsum[i](o[i,j])",
    "Z[i,j] = cumprod[i](z[i,j])",
    "Z[i,j] = cumsum[j](A[i,j]) + cummax[i](A[i,j])",
    "Z[i,k] += cumsum[j](A[i,j]) * A[k,j]",
    "Y[i,j] = cumsum[j](A[i,j]); Z[i,j] = cummax[i](Y[i,j])",
    "Y[i,j] = exp(A[i,j]); Z[l,m] = cumsum[l](Y[l,m]); V[k,p] = cummax[p](Z[k,p])",
    "Y[i,j] = A[i,j] - 1; Z[k] = cumprod[k](Y[k,l])",
    "Y[i,j] = n[i,j] - 1; Z[l,k] = cumsum[k](Y[l,k])",
    "Z[i] = cumsum[i](i * x[i])",
    "Z[i] = sum[j](cumsum[j](A[i,j])) + mean[j](A[i,j])",
]


def case_of(text: str, *, plain: bool = False) -> Case:
    """The program over inputs of many kinds, drawn by its text."""
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    names = [name for name in ARRAYS if re.search(rf"\b{name}\[", text)]
    arrays = {name: ARRAYS[name] for name in names}
    if plain:
        return Case(text, arrays, dict(arrays), {})
    passed = {name: make_input(rng, name, array) for name, array in arrays.items()}
    inputs = {name: value for name, (value, _) in passed.items()}
    tables = {name: table for name, (_, table) in passed.items() if table is not None}
    bounds = {"i": 4, "j": 5} if set(names) <= set("Afnb") else {}
    bounds = {} if "+1]" in text or "[k,j]" in text or "[i+1" in text else bounds
    return Case(text, arrays, inputs, bounds, None, tables)


@pytest.mark.sample(None)
@pytest.mark.parametrize("text", BY_HAND)
def test_the_oracle_agrees_with_numpy(text: str) -> None:
    (found,) = case_of(text, plain=True).expected().values()
    np.testing.assert_allclose(found, BY_HAND[text]())


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", PROGRAMS)
def test_everywhere(text: str, routes: Routes) -> None:
    """On both routes over NumPy arrays, and on one of them over inputs of other kinds."""
    assert check_everywhere(case_of(text, plain=True), routes, seed=1, sample=6)
    name = ("native", "arrow")[len(text) % 2]
    one = {name: routes[name]}
    assert check_everywhere(case_of(text, plain=False), one, seed=1, sample=3)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_the_order_is_that_of_the_axis(name: str, dtype: str, routes: Routes) -> None:
    """Bit by bit what NumPy says, on every plan that calls kernels: not the sum of a tree."""
    if dtype == "complex128" and name in ("cummax", "cummin"):
        return
    rng = np.random.default_rng(5)
    array = (rng.normal(size=(3, 400)) * 10.0 ** rng.integers(-6, 6, (3, 400))).astype(dtype)
    array[rng.random(array.shape) < 0.3] = 1 if name == "cumprod" else 0
    if name == "cumprod":
        array = (1 + array / 1e6).astype(dtype)
    expected = STEPS[name](array, axis=1)
    text = f"Z[i,j] = {name}[j](X[i,j])"
    for connection in routes.values():
        program = ucle.einsum_program(text, X=array, database=connection)
        for keys in ([], ["i"], ["i", "j"]):
            with program.with_decomposition({"Z": keys}).execute(connection) as result:
                found = result["Z"].to_numpy()
            plain = program.with_decomposition({"Z": keys}).compiled.decomposed.relational
            if plain and name in ("cumsum", "cumprod"):
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-2)
            else:
                np.testing.assert_array_equal(found, expected)


def test_a_key_among_kernels_is_added_in_order(routes: Routes) -> None:
    """A window of the engine adds floats in an order of its own; among kernels there is none."""
    rng = np.random.default_rng(6)
    array = rng.normal(size=(2, 500)) * 10.0 ** rng.integers(-8, 8, (2, 500))
    text = "Z[i,j] = cumsum[j](X[i,j]); M[i] max= Z[i,j]"
    expected = np.cumsum(array, axis=1)
    for connection in routes.values():
        program = ucle.einsum_program(text, X=array, outputs=("Z", "M"), database=connection)
        program = program.with_decomposition({"Z": ["i", "j"], "M": ["i"]})
        with program.execute(connection) as result:
            np.testing.assert_array_equal(result["Z"].to_numpy(), expected)


SPECIAL = ["Z[i,j] = cumsum[j](S[i,j])", "Z[i,j] = cumprod[j](S[i,j])",
           "Z[i,j] = cummax[j](S[i,j])", "Z[i,j] = cummin[i](S[i,j])"]  # fmt: skip


@pytest.mark.parametrize("text", SPECIAL)
def test_not_finite(text: str, routes: Routes) -> None:
    """NaN goes on to the end, and infinity is one like others."""
    special = A.copy()
    special[0, 2], special[1, 1], special[1, 3], special[2, 4] = np.nan, np.inf, -np.inf, np.nan
    arrays = {"S": special}
    assert check_everywhere(Case(text, arrays, dict(arrays), {}), routes, seed=1, sample=6)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_integers_that_outgrow_64_bits(name: str, routes: Routes) -> None:
    array = np.array([[2**62, 1, 0, 2**62, 5]])
    array[0, 1:3] += name == "cumprod"
    for connection in routes.values():
        program = ucle.einsum_program(f"Z[i,j] = {name}[j](X[i,j])", X=array, database=connection)
        for keys in ([], ["i"], ["i", "j"]):
            with pytest.raises(UcleError, match=r"(?i)overflow|range|64 bits"):
                program.with_decomposition({"Z": keys}).execute(connection)


def test_fills(routes: Routes) -> None:
    """Unstored entries count: as a fill of 1, of infinity, and as 0 among negative numbers."""
    for fill in (1.0, np.inf, -2.0):
        array = np.where(A == 0, fill, A)
        for name, step in STEPS.items():
            text = f"Z[i,j] = {name}[j](X[i,j])"
            given = ucle.table(array, fill=fill)
            for connection in routes.values():
                program = ucle.einsum_program(text, X=given, database=connection)
                for way in ({"Z": []}, {"Z": ["i"]}, {"Z": ["i", "j"]}, "relational"):
                    with program.with_decomposition(way).execute(connection) as result:
                        with np.errstate(all="ignore"):
                            expected = step(array, axis=1)
                        np.testing.assert_allclose(result["Z"].to_numpy(), expected)


def test_only_fibres_that_are_stored_become_longer() -> None:
    """A fibre of nothing has no rows, and one of few entries all of them."""
    table = pa.table({"i": [0, 7, 7], "j": [3, 1, 9], "v": [1.0, 2.0, 3.0]})
    program = ucle.einsum_program("Z[i,j] = cumsum[j](X[i,j])", X=table, decomposition="relational")
    sql = program.to_sql()
    assert "PARTITION BY" in sql
    assert "DISTINCT" in sql
    with program.execute() as result:
        assert result["Z"].to_arrow().num_rows == 7 + 9
        assert len(result["Z"].stored.fetchall()) == 20


def test_gaps_follow_the_data() -> None:
    """A program that ran, and its views, are right when a table that was full has got gaps."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT i, i + 1.0 AS v FROM range(5) r(i)")
        program = ucle.einsum_program("C[i] = cumsum[i](t[i])", t="t", database=connection)
        program.create_views(connection)
        values = np.arange(5) + 1.0
        for gap in (1, 3, 3):
            with program.execute(connection) as result:
                np.testing.assert_array_equal(result["C"].to_numpy(), np.cumsum(values))
            shown = connection.sql('SELECT val FROM "C" ORDER BY i').fetchnumpy()["val"]
            np.testing.assert_array_equal(shown, np.cumsum(values))
            connection.execute(f"DELETE FROM t WHERE i = {gap}")
            values[gap] = 0


def test_one_array_is_not_read_again_for_each_key() -> None:
    """A key for each place of an array that is read elsewhere is a call of a kernel for each."""
    for text in ("Z[i] = X[i//300,i%300]", "Z[i] = X[i%200,7]"):
        bounds = {"i": 60_000}
        program = ucle.einsum_program(text, X=np.ones((200, 300)), bounds=bounds)
        assert not program.compiled.decomposed.decompositions["Z"].promoted


def test_the_search_prices_both() -> None:
    """A dense array goes through the kernel, long sparse fibres of keys through the window."""
    dense = ucle.einsum_program("Z[i,j] = cumsum[j](X[i,j])", X=np.ones((200, 300)))
    assert "cumsum" in dense.to_sql()
    assert "cumsum[j]" in str(dense.compiled.program)
    assert "cumsum" in dense.explain()
    rows = pa.table({"i": range(50_000), "v": [1] * 50_000})
    long = ucle.einsum_program("Z[i] = cumsum[i](X[i])", X=rows)
    costs = [
        long.with_decomposition({"Z": keys}).compiled.decomposed.total_cost for keys in ([], ["i"])
    ]
    assert long.compiled.decomposed.total_cost <= min(costs) * 1.0001


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("Z[i] = cumsum[k](x[i])", LabelError, "which is not there"),
        ("Z[i,j] = cumsum[i,j](A[i,j])", ProgramSyntaxError, "along one label"),
        ("Z[i,j] = cumsum[](A[i,j])", ProgramSyntaxError, "along one label"),
        ("Z[i] = cumsum(x[i])", NameResolutionError, "over which labels"),
        ("Z[i] = cumsun[i](x[i])", NameResolutionError, "cumsum"),
        ("Z[i,j] = cummax[j](c[i,j])", UcleError, "complex"),
    ],
)
def test_errors(text: str, error: type[UcleError], message: str) -> None:
    inputs = {name: ARRAYS[name] for name in "Axc" if f"({name}[" in text}
    with pytest.raises(error, match=message):
        ucle.einsum_program(text, inputs=inputs)


def test_coordinates_of_dictionaries_have_no_order() -> None:
    table = pa.table({"who": ["bob", "ann"], "v": [1.0, 2.0]})
    with pytest.raises(LabelError, match="no order to run along"):
        ucle.einsum_program("Z[i] = cumsum[i](x[i])", x=table)
