"""First entries along a label: values, positions, members; on every decomposition and route."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.errors import BoundError, LabelError, ProgramSyntaxError, UcleError, ValueTypeError
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case
from ucle.testing.oracle import evaluate
from ucle.testing.random_inputs import make_input, random_array

Array = np.ndarray[Any, Any]

RNG = np.random.default_rng(21)


def ties(shape: tuple[int, ...], density: float, dtype: str = "float64") -> Array:
    """Few different numbers, so that many are equal, and some equal the fill."""
    array = random_array(RNG, shape, density, dtype)
    if np.dtype(dtype).kind in "fi":
        array = np.round(array).astype(dtype)
    return array


ARRAYS: dict[str, Array] = {
    "S": ties((4, 7), 0.5),
    "D": ties((4, 7), 1.0),
    "T": ties((2, 5, 3), 0.6),
    "x": ties((9,), 0.4),
    "n": ties((4, 7), 0.5, "int64"),
    "b": ties((4, 7), 0.5, "bool"),
    "f": random_array(RNG, (4, 7), 0.5, "float32"),
    "Q": ties((3, 2), 1.0),
    "E": ties((8, 2), 0.7),
    "N": np.zeros((4, 7)),
}


def down(array: Array, axis: int = -1) -> Array:
    """The positions in descending order; of equal entries the one at the smaller position first."""
    turned = np.argsort(np.flip(array, axis), axis=axis, kind="stable")
    return array.shape[axis] - 1 - np.flip(turned, axis)


def up(array: Array, axis: int = -1) -> Array:
    return np.argsort(array, axis=axis, kind="stable")


def members(array: Array, places: Array) -> Array:
    found = np.zeros(array.shape, bool)
    np.put_along_axis(found, places, values=True, axis=-1)
    return found


S, D, T, x, n, b, f, Q, E, N = (ARRAYS[name] for name in "SDTxnbfQEN")
BOUNDS = {"r": 3, "p": 2}

BY_HAND: dict[str, Callable[[], Any]] = {
    "Z[i,r] = top_k[j,r](S[i,j])": lambda: -np.sort(-S, axis=1)[:, :3],
    "Z[i,r] = arg_top_k[j,r](S[i,j])": lambda: down(S)[:, :3],
    "Z[i,r] = bottom_k[j,r](D[i,j])": lambda: np.sort(D, axis=1)[:, :3],
    "Z[r,i] = arg_bottom_k[j,r](S[i,j])": lambda: up(S)[:, :3].T,
    "Z[r,j] = arg_top_k[i,r](n[i,j])": lambda: down(n, 0)[:3],
    "Z[r,j] = top_k[i,r](b[i,j])": lambda: -np.sort(-b.astype(int), axis=0)[:3] != 0,
    "Z[i,r] = top_k[j,r](f[i,j])": lambda: -np.sort(-f, axis=1)[:, :3],
    "Z[a,r,c] = arg_top_k[h,r](T[a,h,c])": lambda: down(T, 1)[:, :3],
    "Z[h,c,p] = arg_bottom_k[a,p](T[a,h,c])": lambda: np.moveaxis(up(T, 0), 0, -1),
    "Z[i] = argmax[j](S[i,j])": lambda: S.argmax(axis=1),
    "Z[j] = argmin[i](D[i,j])": lambda: D.argmin(axis=0),
    "Z = argmin[i](x[i])": lambda: np.argmin(x),
    "Z[i] = argmax[j](b[i,j])": lambda: b.argmax(axis=1),
    "Z[j] = argmin[i](b[i,j])": lambda: b.argmin(axis=0),
    "Z[i] = argmax[j](b[i,j] and S[i,j] > 0)": lambda: (b & (S > 0)).argmax(axis=1),
    "Z[r] = top_k[i,r](x[i] * 2 - 1)": lambda: np.sort(2 * x - 1)[::-1][:3],
    "Z[i] = top_k[j](S[i,j]) + bottom_k[j](S[i,j])": lambda: S.max(axis=1) + S.min(axis=1),
    "Z[i] = mean[r](top_k[j,r](S[i,j]))": lambda: -np.sort(-S, axis=1)[:, :3].mean(axis=1),
    "Z[i,j] = among_top_k[j,r](S[i,j])": lambda: members(S, down(S)[:, :3]),
    "Z[i,j] = among_bottom_k[j,r](S[i,j]) * S[i,j]": lambda: members(S, up(S)[:, :3]) * S,
    "Z[j] += among_top_k[j](n[i,j])": lambda: np.bincount(n.argmax(axis=1), minlength=7),
    "Z[i] = top_k[j,r](S[i,j])": lambda: -np.sort(-S, axis=1)[:, :3].sum(axis=1),
    "Z[r] = top_k[j,r](S[i,j])": lambda: np.sort(S.sum(axis=0))[::-1][:3],
    "Z[q,r] = arg_top_k[e,r](Q[q,d] * E[e,d])": lambda: down(Q @ E.T)[:, :3],
    "W[q,e] += Q[q,d] * E[e,d]; Z[q,r] = arg_top_k[e,r](W[q,e]) + top_k[e,r](W[q,e])": lambda: (
        down(Q @ E.T)[:, :3] - np.sort(-(Q @ E.T), axis=1)[:, :3]
    ),
    "Z[i,r] = arg_top_k[j,r](N[i,j])": lambda: np.tile(np.arange(3), (4, 1)),
    "Z[i,j] = among_bottom_k[j,r](N[i,j])": lambda: members(N, up(N)[:, :3]),
    "Z[r] = top_k[i,j,r](S[i,j])": lambda: np.sort(S.ravel())[::-1][:3],
    "Z[r] = arg_bottom_k[j,i,r](S[i,j])": lambda: up(S.T.ravel())[:3],
    "Z = argmax[i,j](S[i,j])": lambda: np.argmax(S),
    "Z[h] = argmin[c,a](T[a,h,c])": lambda: T.transpose(1, 2, 0).reshape(5, -1).argmin(axis=1),
    "Z[c,r] = bottom_k[a,h,r](2 * T[a,h,c] + 1)": lambda: (
        2 * np.sort(T.reshape(10, 3), axis=0)[:3].T + 1
    ),
    "Z[r] = top_k[i,j,r](n[i,j] * x[k])": lambda: np.sort((n * x.sum()).ravel())[::-1][:3],
    "Z[i,r] = arg_top_k[j,r](cumsum[j](S[i,j]))": lambda: down(S.cumsum(axis=1))[:, :3],
}
"""Each as NumPy says it."""


def case_of(text: str) -> Case:
    """A program over the arrays that it reads, passed as inputs of all kinds."""
    arrays = {name: ARRAYS[name] for name in ARRAYS if re.search(rf"\b{name}\[", text)}
    made = {name: make_input(RNG, name, array) for name, array in arrays.items()}
    inputs = {name: value for name, (value, _) in made.items()}
    tables = {name: table for name, (_, table) in made.items() if table is not None}
    bounds = {name: BOUNDS[name] for name in BOUNDS if re.search(rf"\b{name}\b", text)}
    return Case(text, arrays, inputs, bounds, ("Z",), tables, indexed=True)


@pytest.mark.sample(None)
@pytest.mark.parametrize("text", BY_HAND)
def test_the_oracle_is_numpy(text: str) -> None:
    case, expected = case_of(text), np.asarray(BY_HAND[text]())
    found = evaluate(text, case.arrays, bounds=case.bounds)["Z"]
    np.testing.assert_array_equal(found, expected)
    assert found.dtype.kind == expected.dtype.kind


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", BY_HAND)
def test_on_every_decomposition(text: str, routes: Routes) -> None:
    assert check_everywhere(case_of(text), routes, seed=len(text), sample=12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nan_is_the_greatest(dtype: str, routes: Routes) -> None:
    array = np.array([[1, np.nan, -np.inf, np.nan], [0, -0.0, np.inf, 2], [-1, -2, -3, 0]], dtype)
    text = """
        P[i,r] = arg_top_k[j,r](A[i,j]); B[i,r] = arg_bottom_k[j,r](A[i,j])
        M[i] = argmax[j](A[i,j]); N[i] = argmin[j](A[i,j])
    """
    expected = {
        "P": [[1, 3, 0], [2, 3, 0], [3, 0, 1]],
        "B": [[2, 0, 1], [0, 1, 3], [2, 1, 0]],
        "M": array.argmax(axis=1),
        "N": array.argmin(axis=1),
    }
    for connection in routes.values():
        for decomposition in ("auto", "relational"):
            program = ucle.einsum_program(
                text, A=array, bounds={"r": 3}, decomposition=decomposition, database=connection
            )
            with program.execute() as result:
                for name, places in expected.items():
                    np.testing.assert_array_equal(result[name].to_numpy(), places)


def test_values_and_positions_are_found_together() -> None:
    text = """
        S[q,e] += Q[q,d] * E[e,d]
        V[q,r] = top_k[e,r](S[q,e]); P[q,r] = arg_top_k[e,r](S[q,e])
    """
    apart = "V[q,r] = top_k[e,r](Q[q,d] * E[e,d]); P[q,r] = arg_top_k[e,r](Q[q,d] * E[e,d])"
    for each in (text, apart):
        program = ucle.einsum_program(each, Q=Q, E=E, bounds={"r": 3}, outputs=["V", "P"])
        assert sum(v.top is not None for v in program.compiled.program.vertices) == 1


def test_few_entries_of_many_positions() -> None:
    """Unstored entries are visited only as far as they come first."""
    size = 10**9
    rows = pa.table({"i": [0, 0, 2], "j": [5, 0, size - 1], "v": [1.5, -2.0, -1.0]})
    table = ucle.table(rows, ["i", "j"], "v", bounds=[3, size])
    text = "V[i,r] = top_k[j,r](A[i,j]); P[i,r] = arg_top_k[j,r](A[i,j]); N[i] = argmin[j](A[i,j])"
    program = ucle.einsum_program(text, A=table, bounds={"r": 3})
    with program.execute() as result:
        assert result["V"].to_numpy().tolist() == [[1.5, 0, 0], [0, 0, 0], [0, 0, 0]]
        assert result["P"].to_numpy().tolist() == [[5, 1, 2], [0, 1, 2], [0, 1, 2]]
        assert result["N"].to_numpy().tolist() == [0, 0, size - 1]


@pytest.mark.sample(1)
@pytest.mark.parametrize("decomposition", ["auto", "relational"])
def test_without_a_bound_all_entries_are_ranked(routes: Routes, decomposition: str) -> None:
    text = "Z[i,r] = top_k[j,r](A[i,j]); L[r] = max[i](Z[i,r] + r)"
    for route in routes.values():
        route.execute(
            "CREATE OR REPLACE TABLE ranked AS SELECT 'n' || (i % 3) AS i, 'm' || i AS j,"
            " i * 7 % 5 AS v FROM range(20) t(i)"
        ).fetchall()
        table = ucle.table("ranked", ["i", "j"], "v")
        program = ucle.einsum_program(
            text, A=table, outputs=["Z", "L"], decomposition=decomposition, database=route
        )
        for change in (
            "SELECT 1",
            "DELETE FROM ranked WHERE j = 'm3'",
            "INSERT INTO ranked SELECT 'n7', 'new' || i, i FROM range(40) t(i)",
        ):
            route.execute(change).fetchall()
            rows = route.execute("FROM ranked").df()
            dense = rows.pivot(index="i", columns="j", values="v").fillna(0).to_numpy()
            sorted_ = -np.sort(-dense, axis=1)
            result = program.execute()
            np.testing.assert_array_equal(result["Z"].to_numpy(), sorted_)
            expected = (sorted_ + np.arange(dense.shape[1])).max(axis=0)
            np.testing.assert_array_equal(result["L"].to_numpy(), expected)


def test_a_view_finds_what_has_been_deleted() -> None:
    """A view, made when every entry was stored, takes missing ones for the fill."""
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i, j, -1.0 - j AS v FROM range(2) a(i), range(4) b(j)"
        )
        text = "P[i] = argmax[j](t[i,j]); M[j] = argmax[i](t[i,j])"
        program = ucle.einsum_program(text, t="t", database=connection)
        program.create_views(connection, rows="all")
        connection.execute("DELETE FROM t WHERE (i, j) IN ((1, 2), (0, 1))")

        def shown(name: str, key: str) -> list[int]:
            rows = connection.sql(f'SELECT val FROM "{name}" ORDER BY {key}').fetchall()
            return [value for (value,) in rows]

        assert shown("P", "i") == [1, 2]
        assert shown("M", "j") == [0, 0, 1, 0]


def test_members_keep_their_coordinates() -> None:
    rows = pa.table(
        {"who": ["ann", "ann", "bob"], "what": ["tea", "cake", "tea"], "v": [1.0, 2, 3]}
    )
    table = ucle.table(rows, ["who", "what"], "v")
    program = ucle.einsum_program("Z[a,b] = among_top_k[b](T[a,b])", T=table)
    with program.execute() as result:
        found = result["Z"].to_pandas()
    assert sorted(found.itertuples(index=False, name=None)) == [
        ("ann", "cake", True),
        ("bob", "tea", True),
    ]


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    ("text", "bounds", "error", "match"),
    [
        ("Z[i,r] = top_k[j,r](S[i,j])", {"r": 8}, BoundError, "r from 1 to 7"),
        ("Z[i,r] = top_k[j,r](S[i,j])", {"r": 0}, BoundError, "r from 1 to 7"),
        ("Z[i,r] = top_k[k,r](S[i,j])", {"r": 1}, LabelError, "not there"),
        ("Z[i] = top_k[j,i](S[i,j])", {}, LabelError, "a label of its argument"),
        ("Z[i] = top_k[j,r,k](S[i,j])", {}, LabelError, "'r', which is not there"),
        ("Z[i] = argmax[j,r](S[i,j])", {}, LabelError, "'r', which is not there"),
        ("Z[r] = top_k[i,i,r](S[i,j])", {}, ProgramSyntaxError, "a label twice"),
        ("Z[i,j] = among_top_k[i,j,r](S[i,j])", {}, ProgramSyntaxError, "along one label"),
        ("Z[i] argmax= S[i,j]", {}, ProgramSyntaxError, r"after =, write argmax\[j\]"),
        ("Z[i] = argmax(S[i,j])", {}, UcleError, "argmax"),
        ("Z[i] = argmax[j](S[i,j] * 1j)", {}, ValueTypeError, "no order"),
    ],
)
def test_refusals(text: str, bounds: dict[str, int], error: type[UcleError], match: str) -> None:
    with pytest.raises(error, match=match):
        ucle.einsum_program(text, S=S, bounds=bounds).execute()


GRADIENTS = (
    "L += w[r] * top_k[j,r](x[i,j]^2)",
    "L += top_k[j,r](x[i,j]^2)^2",
    "L += bottom_k[j](x[i,j])^2",
    "L += top_k[i,r](sum[j](x[i,j]^3))",
    "L += bottom_k[j,r](x[i,j]) * arg_bottom_k[j,r](x[i,j])",
    "L += among_top_k[j,r](x[i,j]) * x[i,j]^2",
)


@pytest.mark.parametrize("text", GRADIENTS)
def test_gradients_go_to_where_the_values_stand(text: str) -> None:
    rng = np.random.default_rng(3)
    inputs = {"x": rng.standard_normal((3, 6)), "w": np.array([3.0, 2.0, -1.0])}
    used = {name: array for name, array in inputs.items() if f"{name}[" in text}
    bounds = {"r": 3} if "r]" in text else None

    def loss(array: Array) -> float:
        found = evaluate(text, used | {"x": array}, bounds=bounds or {})
        return float(found["L"])

    program = ucle.einsum_program(text, bounds=bounds, outputs=["L"], **used).gradient("L", ["x"])
    with program.execute() as result:
        found = result["d_x"].to_numpy()
    expected = np.zeros_like(found)
    for place in np.ndindex(*found.shape):
        step = np.zeros_like(found)
        step[place] = 1e-6
        expected[place] = (loss(inputs["x"] + step) - loss(inputs["x"] - step)) / 2e-6
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("order", ["bottom_k", "top_k"])
def test_an_infinite_fill_that_comes_last(order: str, nan: bool, routes: Routes) -> None:
    """Only what is stored is ranked, unless NaN follows the fill, or a position is read."""
    fill = np.inf if order == "bottom_k" else -np.inf
    dense = np.where(RNG.random((4, 7)) < 0.5, RNG.normal(size=(4, 7)).round(1), fill)
    dense[2], dense[3, 1] = fill, np.nan if nan else 0.0
    i, j = np.nonzero(dense != fill)
    rows = pa.table({"i": i, "j": j, "v": dense[i, j]})
    x = ucle.table(rows, ["i", "j"], "v", fill=fill, bounds=(4, 7))
    for text in (
        f"Z[i,r] = {order}[j,r](x[i,j])",
        f"Z[r,j] = {order}[i,r](x[i,j]); Y[j,r] = Z[r,j] + 1",
        f"Z[i,r] = {order}[j,r](x[i,j]); P[i,r] = arg_{order}[j,r](x[i,j])",
    ):
        check_everywhere(Case(text, {"x": dense}, {"x": x}, {"r": 3}), routes, seed=0, sample=8)
    program = ucle.einsum_program(f"Z[i,r] = {order}[j,r](x[i,j])", x=x, bounds={"r": 7})
    ranked = np.sort(dense, axis=1) if order == "bottom_k" else np.sort(dense, axis=1)[:, ::-1]
    np.testing.assert_array_equal(program.execute()["Z"].to_numpy(), ranked)
    pairs = next(v.tensor.type for v in program.compiled.program.vertices if v.top is not None)
    assert pairs.fill == (0 if nan else fill)
