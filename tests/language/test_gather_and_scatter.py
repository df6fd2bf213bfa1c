"""Tensors that are read and written at the entries of others: gathers and scatters.

Every program runs on every decomposition and both routes, against the oracle, over inputs of all
kinds. What the oracle says of each form is checked against NumPy by hand, too.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from random_programs.gathers import gathered_case

import ucle
from ucle.errors import (
    BoundError,
    LabelError,
    PositionError,
    ProgramSyntaxError,
    UnsupportedError,
    ValueTypeError,
)
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case
from ucle.testing.random_inputs import make_input, random_array

RNG = np.random.default_rng(190)
ARRAYS: dict[str, Any] = {
    "W": random_array(RNG, (5, 3), 0.7),
    "A": random_array(RNG, (5, 4), 0.5),
    "T": random_array(RNG, (5, 4, 3), 0.6),
    "I": random_array(RNG, (5, 3), 0.6, "int64") * 2**60,
    "B": random_array(RNG, (5, 3), 0.5, "bool"),
    "C": random_array(RNG, (5, 3), 0.5, "complex128"),
    "F": random_array(RNG, (5, 3), 0.5, "float32"),
    "x": random_array(RNG, (5,), 0.8),
    "v": random_array(RNG, (7,), 0.8),
    "u": random_array(RNG, (3,), 1.0),
    "n": random_array(RNG, (7,), 0.7, "int64"),
    "b": random_array(RNG, (7,), 0.5, "bool"),
    "c": random_array(RNG, (7,), 0.7, "complex128"),
    "f": random_array(RNG, (7,), 0.7, "float32"),
    "s": np.array(2),
    "e": np.zeros((0,)),
    "idx": np.array([3, 0, 0, 4, 1, 3, 0]),
    "p": np.array([0, 4, 2, 2]),
    "q": np.array([3, 3, 0, 1]),
    "r": np.array([[1, 0, 4], [0, 0, 2]]),
    "far": np.array([-1, 0, 9, 4, 5, 1, -(2**40)]),
    "no": np.zeros((0,), np.int64),
}
W, A, x, v, u, idx, p, q, r, n, b = (
    ARRAYS[name] for name in ("W", "A", "x", "v", "u", "idx", "p", "q", "r", "n", "b")
)


def put(at: Any, start: Any, indices: Any, values: Any) -> Any:
    """Apply a ufunc's `at` to a copy of an array."""
    start = np.array(start)
    at(start, indices, values)
    return start


BY_HAND: dict[str, Callable[[], Any]] = {
    "Z[i,k] = W[idx[i],k]": lambda: W[idx],
    "Z[k,i] = W[idx[i],k]": lambda: W[idx].T,
    "Z[i] = x[idx[i]]": lambda: x[idx],
    "Z[i,j] = x[r[i,j]]": lambda: x[r],
    "Z[i,j] = A[p[i],q[j]]": lambda: A[np.ix_(p, q)],
    "Z[i] = A[p[i],q[i]]": lambda: A[p, q],
    "Z[i] = x[p[q[i]]]": lambda: x[p[q]],
    "Z[i] = x[p[i]] * x[p[i]]": lambda: x[p] ** 2,
    "Z[k] = W[idx[i],k]": lambda: W[idx].sum(axis=0),
    "Z[k] += W[idx[i],k] * v[i]": lambda: v @ W[idx],
    "Z[i] = x[4-p[i]]": lambda: x[4 - p],
    "Z[i] = x[(p[i]+1)*(q[i]-q[i])]": lambda: x[0 * p],
    "Z[k] = W[s[],k]": lambda: W[2],
    "Z[k] = W[~s[],k] + W[~(s[]+9),k]": lambda: W[2],
    "Z[i,k] = W[s[],k] * W[i,k]": lambda: W[2] * W,
    "Z[i,k] = T[p[i],q[i],k]": lambda: ARRAYS["T"][p, q],
    "Z[i,k] = T[p[i],k+1,2]": lambda: ARRAYS["T"][p][:, 1:, 2],
    "Z[i] = x[~far[i]]": lambda: np.where(
        (ARRAYS["far"] >= 0) & (ARRAYS["far"] < 5), x[np.clip(ARRAYS["far"], 0, 4)], 0
    ),
    "H[idx[i]] += v[i]": lambda: np.bincount(idx, v),
    "N[idx[i]] += 1": lambda: np.bincount(idx),
    "H[idx[i],k] += v[i] * u[k]": lambda: put(np.add.at, np.zeros((5, 3)), idx, np.outer(v, u)),
    "H[p[i],q[i]] += A[p[i],q[i]]": lambda: put(np.add.at, np.zeros((5, 4)), (p, q), A[p, q]),
    "H[p[i],q[j]] += p[i] * q[j]": lambda: put(
        np.add.at, np.zeros((5, 4), int), np.ix_(p, q), np.outer(p, q)
    ),
    "H[r[i,j]] += u[j]": lambda: put(np.add.at, np.zeros(5), r, np.tile(u, (2, 1))),
    "H[idx[i]] max= v[i]": lambda: put(np.maximum.at, np.full(5, -np.inf), idx, v),
    "H[idx[i]] min= v[i]": lambda: put(np.minimum.at, np.full(5, np.inf), idx, v),
    "H[idx[i]] logsumexp= v[i]": lambda: put(np.logaddexp.at, np.full(5, -np.inf), idx, v),
    "H[idx[i]] *= v[i]": lambda: put(np.multiply.at, np.ones(5), idx, v),
    "H[idx[i]] any= b[i]": lambda: put(np.logical_or.at, np.zeros(5, bool), idx, b),
    "H[idx[i]] all= b[i]": lambda: put(np.logical_and.at, np.ones(5, bool), idx, b),
    "H[idx[i]] max= n[i]": lambda: put(np.maximum.at, np.full(5, np.iinfo(np.int64).min), idx, n),
    "H[idx[i]] count= n[i]": lambda: put(np.add.at, np.zeros(5, int), idx, n != 0),
    "H[idx[i]] += b[i]": lambda: put(np.add.at, np.zeros(5, int), idx, b),
    "H[idx[i],k] += W[idx[i],k]": lambda: put(np.add.at, np.zeros((5, 3)), idx, W[idx]),
    "H[k,idx[i]] += W[idx[i],k]": lambda: put(np.add.at, np.zeros((5, 3)), idx, W[idx]).T,
    "H[2*p[i]+1] += x[p[i]]": lambda: put(np.add.at, np.zeros(10), 2 * p + 1, x[p]),
    "H[p[i]+j] += u[j]": lambda: put(
        np.add.at, np.zeros(7), p[:, None] + np.arange(3), np.tile(u, (4, 1))
    ),
}
"""Programs, and what NumPy says of them."""

BOUNDS = {
    "H[2*p[i]+1] += x[p[i]]": {"p": 10},
    "H[p[i]+j] += u[j]": {"p": 7},
    "H[idx[i]] += v[i] + 0": {"idx": 8},
    "H[p[q[i]]] += x[p[i]]": {"p": 5},
}
"""Sizes of axes that are written at what is computed, or longer than the data asks for."""

PROGRAMS = [
    *BY_HAND,
    "Z[i,k] = I[idx[i],k]",
    "Z[i,k] = B[idx[i],k]",
    "Z[i,k] = C[idx[i],k]",
    "Z[i,k] = F[idx[i],k]",
    "Z[i,k] = exp(W[idx[i],k]) + u[k]",
    "Z[i] = sum[k](W[idx[i],k] * u[k]) * v[i]",
    "Z[i] = W[idx[i],k] * u[k]",
    "Z[i,j] = W[p[i],k] * W[p[j],k]",
    "Z[i] = A[p[i],i]",
    "Z[i,k] = W[~far[i],k] + 1",
    "Z[i,k] = I[~far[i],k]",
    "Z[i,k] = B[~far[i],k]",
    "Z[i] = A[~p[i],~q[i]] - A[~(p[i]-1),q[i]]",
    "Y[i] = idx[i] * (idx[i] < 2); Z[i,k] = W[Y[i],k]",
    "Y[i] = q[i] + 1; Z[i] = x[Y[i]] + x[int64(x[i+1] > 0)]",
    "H[idx[i]] += n[i]",
    "H[idx[i]] += c[i]",
    "H[idx[i]] *= c[i]",
    "H[idx[i]] += f[i]",
    "H[idx[i]] max= f[i]",
    "H[idx[i]] min= n[i]",
    "H[idx[i]] *= n[i]",
    "H[idx[i]] max= b[i]",
    "H[idx[i]] logsumexp= n[i]",
    "H[idx[i],k] max= v[i] * u[k] + 1",
    "H[idx[i],k] min= when(v[i] > 0, u[k])",
    "H[idx[i]] += v[i] * u[k] * W[j,k]",
    "H[idx[i]] += v[i] + 0",
    "H[idx[i]] += when(i < 3, v[i])",
    "H[idx[i]] += i * v[i]",
    "H[idx[i]] += sum[k](W[idx[i],k])",
    "H[idx[i]] += v[i]; Z[i] = H[idx[i]] - v[i]",
    "H[idx[i]] += v[i]; Z[j] = H[j] * x[j]",
    "H[p[q[i]]] += x[p[i]]",
    "Z[i] = e[no[i]]",
    "Z[i,k] = W[no[i],k]",
    "H[no[i]] += e[i]",
]


def case_of(text: str, *, plain: bool = False) -> Case:
    """The program over inputs of many kinds, drawn by its text."""
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    names = [x for x in ARRAYS if re.search(rf"\b{x}\[", text)]
    arrays = {name: ARRAYS[name] for name in names}
    bounds = BOUNDS.get(text, {})
    if plain:
        return Case(text, arrays, dict(arrays), bounds)
    passed = {name: make_input(rng, name, array) for name, array in arrays.items()}
    inputs = {name: value for name, (value, _) in passed.items()}
    tables = {name: table for name, (_, table) in passed.items() if table is not None}
    return Case(text, arrays, inputs, bounds, None, tables)


@pytest.mark.sample(None)
@pytest.mark.parametrize("text", BY_HAND)
def test_the_oracle_agrees_with_numpy(text: str) -> None:
    (found,) = case_of(text, plain=True).expected().values()
    expected = np.asarray(BY_HAND[text]())
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected)


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", PROGRAMS)
def test_everywhere(text: str, routes: Routes) -> None:
    """On both routes over NumPy arrays, and on one of them over inputs of other kinds."""
    assert check_everywhere(case_of(text, plain=True), routes, seed=1, sample=3)
    name = ("native", "arrow")[len(text) % 2]
    one = {name: routes[name]}
    assert check_everywhere(case_of(text, plain=False), one, seed=1, sample=2)


@pytest.mark.parametrize(
    "text",
    ["Z[i,k] = W[idx[i],k]", "Z[i,k] = W[~far[i],k]", "Z[i] = W[idx[i],k] * u[k]",
     "H[idx[i],k] += W[idx[i],k]", "H[idx[i],k] max= W[idx[i],k]",
     "H[idx[i]] *= W[idx[i],k]", "Z[k] = W[s[],k]", "Z[k] = W[s[],k] * u[k]"],
)  # fmt: skip
def test_not_finite(text: str, routes: Routes) -> None:
    """Entries that are not picked are left out, whatever their value."""
    infinite = W.copy()
    infinite[0, 1], infinite[3, 0], infinite[4, 2], infinite[2, 1] = np.inf, -np.inf, np.nan, np.nan
    names = [name for name in ARRAYS if re.search(rf"\b{name}\[", text)]
    arrays = {name: ARRAYS[name] for name in names} | {"W": infinite}
    assert check_everywhere(Case(text, arrays, dict(arrays), {}), routes, seed=1, sample=4)


@pytest.mark.parametrize("fill", [np.inf, -np.inf, 2.5, np.nan, 0.0])
@pytest.mark.parametrize("index", ["idx", "~far"])
def test_fills(fill: float, index: str, routes: Routes) -> None:
    """An entry that is not stored is worth the fill, and so is what lies outside, after ~."""
    dense = np.where(W == 0, fill, W)
    arrays = {"idx": idx, "far": ARRAYS["far"]}
    name = index.strip("~")
    at = arrays[name]
    inside = (at >= 0) & (at < 5)
    expected = np.where(inside[:, None], dense[np.where(inside, at, 0)], fill)
    for connection in routes.values():
        inputs = {name: at, "W": ucle.table(dense, fill=fill)}
        for decomposition in ("auto", "relational"):
            program = ucle.einsum_program(
                f"Z[i,k] = W[{index}[i],k]",
                inputs=inputs,
                database=connection,
                decomposition=decomposition,
            )
            with program.execute(connection) as result:
                np.testing.assert_array_equal(result["Z"].to_numpy(), expected)
                kept = fill if np.isinf(fill) or index == "~far" else 0.0
                np.testing.assert_equal(result["Z"].fill, kept)


@pytest.mark.sample(3)
@pytest.mark.parametrize("fill", [np.inf, -np.inf, 2.5, np.nan])
@pytest.mark.parametrize(
    "text",
    [
        "Z[i,j] = W[idx[i],~c[j]]",
        "Z[i,j] = W[~far[i],u[j]]",
        "Z[i,j] = W[~far[i],~c[j]]",
        "Z[i,j] = W[idx[i],~(j - 1)]",
    ],
)
def test_the_fill_outside_of_one_of_two_indices(text: str, fill: float, routes: Routes) -> None:
    arrays = {
        "W": np.where(W == 0, fill, W),
        "idx": idx,
        "far": ARRAYS["far"],
        "c": np.array([2, 9, 0, -1]),
        "u": np.array([2, 0]),
    }
    used = {name: array for name, array in arrays.items() if f"{name}[" in text}
    inputs = {**used, "W": ucle.table(arrays["W"], fill=fill)}
    bounds = {} if "c[j]" in text or "u[j]" in text else {"j": 5}
    assert check_everywhere(Case(text, used, inputs, bounds), routes, seed=2, sample=6)


def test_large_integers_are_exact() -> None:
    large = np.array([2**62 + 1, -(2**63), 2**63 - 1, 0])
    with ucle.einsum_program("Z[i] = L[p[i]]", L=large, p=[2, 1, 0, 2]).execute() as result:
        np.testing.assert_array_equal(result["Z"].to_numpy(), large[[2, 1, 0, 2]])


def test_both_together_are_a_sum_by_key(routes: Routes) -> None:
    """Messages along edges: a gather of what the sources hold, and a scatter to the targets."""
    source, target = np.array([0, 1, 1, 3, 2]), np.array([1, 0, 2, 2, 3])
    text = "H[target[e],k] += w[e] * X[source[e],k]"
    arrays = {"source": source, "target": target, "w": x, "X": W[:4]}
    expected = put(np.add.at, np.zeros((4, 3)), target, x[:, None] * W[source])
    case = Case(text, arrays, dict(arrays), {})
    np.testing.assert_allclose(case.expected()["H"], expected)
    assert check_everywhere(case, routes, seed=2, sample=6)


# ---- How it runs ----


def test_a_gather_is_a_join() -> None:
    program = ucle.einsum_program("Z[i,k] = W[idx[i],k]", W=W, idx=idx, decomposition="relational")
    assert "idx_hits[i,at] = idx[i] == at" in str(program.compiled.program)
    assert "JOIN" in program.to_sql()
    assert "range(5)" not in program.to_sql()


def test_statistics_follow_from_the_index() -> None:
    program = ucle.einsum_program("Z[i,k] = W[idx[i],k]", W=W, idx=idx)
    hits = program.compiled.statistics.tensor("idx_hits")
    assert hits.entries == 7
    assert hits.distinct[0] == 7
    assert 1 < hits.distinct[1] <= 5


# ---- Errors ----

BAD = [
    ("Z[i] = x[bad[i]]", [0, 7], "x[bad[i]] is at 7, for i = 1", "0 to 4"),
    ("Z[i] = x[bad[i]]", [-1, 1], "x[bad[i]] is at -1, for i = 0", "0 to 4"),
    ("Z[i] = x[bad[i]] * s[i]", [1, 1, -(2**62)], "at -4611686018427387904, for i = 2", "0 to 4"),
    ("Z[i] = A[1,bad[i]+1]", [1, 3], "A[1,bad[i] + 1] is at 4, for i = 1", "0 to 3"),
    ("Z[i,j] = A[~bad[i],bad[j]]", [1, 4], "at 4, for j = 1", "0 to 3"),
    ("H[bad[i]] += 1", [2, -3], "H[bad[i]] is at -3, for i = 1", "0 to 2"),
    ("H[bad[i]+1] += 1", [1, 3], "H[bad[i] + 1] is at 4, for i = 1", "0 to 2"),
    ("Z[i,j] = W[bad[i,j],0]", [[0, 0], [0, 5]], "at 5, for i = 1, j = 1", "0 to 4"),
    ("Z[k] = W[bad[],k]", 5, "W[bad[],k] is at 5", "0 to 4"),
    ("Z[k] = W[bad[],k]", -1, "W[bad[],k] is at -1", "0 to 4"),
]


@pytest.mark.sample(12)
@pytest.mark.parametrize(("text", "bad", "found", "expected"), BAD)
@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_an_index_outside(
    text: str, bad: Any, found: str, expected: str, decomposition: str, routes: Routes
) -> None:
    """Also where what it is multiplied with is not stored, so that nobody would miss it."""
    arrays = {name: ARRAYS[name] for name in "xAW" if f"{name}[" in text} | {"bad": np.array(bad)}
    arrays |= {"s": np.array([1.0, 0.0, 0.0])} if "s[" in text else {}
    bounds = {"bad": 3} if "+1] +=" in text else None
    for connection in routes.values():
        program = ucle.einsum_program(
            text, inputs=arrays, database=connection, bounds=bounds, decomposition=decomposition
        )
        with pytest.raises(PositionError) as raised:
            program.execute(connection)
        assert found in str(raised.value)
        assert expected in str(raised.value)
        assert "negative indices" in str(raised.value)


def test_each_index_is_looked_at() -> None:
    """Also those that DuckDB would not ask for: a table of them is made first."""
    program = ucle.einsum_program(
        "Z[i] = x[idx[i]] * v[i]", x=x, idx=idx, v=v, decomposition="relational"
    )
    assert 'CREATE TEMPORARY TABLE "idx_hits"' in program.to_sql()


def test_an_index_into_nothing() -> None:
    program = ucle.einsum_program("Z[i] = e[idx[i]]", e=ARRAYS["e"], idx=idx)
    with pytest.raises(PositionError, match="axis is empty"):
        program.execute()


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("H[idx[i]] = v[i]", ProgramSyntaxError, "meet at one place"),
        ("H[~idx[i]] += v[i]", ProgramSyntaxError, "left side"),
        ("H[idx[i],k+1] += v[i] * u[k]", ProgramSyntaxError, "left side"),
        ("H[idx[i]] mean= v[i]", UnsupportedError, "N[idx[i]] += 1"),
        ("Z[i] = x[v[i]]", ValueTypeError, "no integer"),
        ("Z[i] = x[b[i]]", ValueTypeError, "no integer"),
        ("Z[i] = x[idx]", LabelError, ""),
        ("H[idx[i]+1] += v[i]", BoundError, "bounds={'idx'"),
        ("H[idx[i]] += v[i]; Z[j] = H[j] * u[j]", BoundError, "coordinate 4"),
        ("Z[i,k] = W[idx[i]]", LabelError, ""),
    ],
)
def test_refusals(text: str, error: type[Exception], message: str) -> None:
    arrays = {name: ARRAYS[name] for name in ARRAYS if re.search(rf"\b{name}\b", text)}
    with pytest.raises(error) as raised:
        ucle.einsum_program(text, inputs=arrays)
    assert message in str(raised.value)


def test_coordinates_of_dictionaries_are_no_positions() -> None:
    table = {"who": ["ann", "bob", "eve"], "v": [1.0, 2.0, 3.0]}
    for text in ("Z[i] = t[p[i]]", "H[p[i]] += 1; Z[j] = H[j] * t[j]"):
        with pytest.raises(LabelError, match="coordinates are no positions"):
            ucle.einsum_program(text, t=pa.table(table), p=[0, 1])


# ---- Data that changes ----


def test_sizes_and_checks_follow_the_data() -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT i, (i * 2) % 5 AS v FROM range(5) r(i)")
        text = "H[t[i]] += 1; Z[i] = x[t[i]]"
        program = ucle.einsum_program(text, t="t", x=x, database=connection)
        for _ in range(2):
            values = np.array(connection.execute("SELECT v FROM t ORDER BY i").fetchall()).ravel()
            with program.execute(connection) as result:
                np.testing.assert_array_equal(result["H"].to_numpy(), np.bincount(values))
                np.testing.assert_array_equal(result["Z"].to_numpy(), x[values])
            connection.execute("UPDATE t SET v = 2 WHERE v > 2")
        connection.execute("UPDATE t SET v = 6 WHERE i = 3")
        with pytest.raises(PositionError, match=r"x\[t\[i\]\] is at 6, for i = 3"):
            program.execute(connection)


def test_views_raise_where_the_data_has_gone_outside() -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT i, (i * 2) % 5 AS v FROM range(5) r(i)")
        connection.execute("CREATE TABLE x AS SELECT i, i + 1.0 AS v FROM range(5) r(i)")
        text = "H[t[i]] += 1; Z[i] = x[t[i]]"
        program = ucle.einsum_program(text, t="t", x="x", database=connection)
        program.create_views(connection)
        assert connection.sql('SELECT val FROM "Z" ORDER BY i').fetchall() == [
            (1.0,), (3.0,), (5.0,), (2.0,), (4.0,)
        ]  # fmt: skip
        assert connection.sql('SELECT sum(val) FROM "H"').fetchall() == [(5,)]
        connection.execute("UPDATE t SET v = 6 WHERE i = 3")
        for name in "HZ":
            with pytest.raises(duckdb.Error, match="an index is outside of its axis"):
                connection.sql(f'SELECT * FROM "{name}"').fetchall()


def test_the_script_of_a_gather_runs_by_hand() -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT i, (i * 2) % 5 AS v FROM range(5) r(i)")
        connection.execute("CREATE TABLE x AS SELECT i, i + 1.0 AS v FROM range(5) r(i)")
        program = ucle.einsum_program("Z[i] = x[t[i]]", t="t", x="x", database=connection)
        for statement in connection.extract_statements(program.to_sql()):
            rows = connection.execute(statement)
        assert sorted(rows.fetchall()) == [(0, 1.0), (1, 3.0), (2, 5.0), (3, 2.0), (4, 4.0)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed: int, routes: Routes) -> None:
    assert check_everywhere(gathered_case(seed), routes, seed=seed, sample=3)


def test_hits_of_which_there_are_none_in_compressed_arrays(routes: Routes) -> None:
    """An index that reads outside of everything: the list of hits is empty, and no array of 0."""
    case = gathered_case(1_000_045)
    assert check_everywhere(case, routes, 45, 6)
