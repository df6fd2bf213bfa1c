"""Gradients against PyTorch's, against finite differences, and in every decomposition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse
from gradient_cases import CASES, inputs_of

import ucle
from ucle.errors import (
    ArgumentTypeError,
    LabelError,
    NameResolutionError,
    OperatorError,
    UnsupportedError,
    ValueTypeError,
)
from ucle.language.parse import parse_program
from ucle.operators import COMBINES, MAPS, REDUCES
from ucle.testing.check_matrix import Routes, some_decompositions

VECTORS: dict[str, Any] = json.loads(Path(__file__).with_name("vectors.json").read_text())


def compiled(name: str, connection: duckdb.DuckDBPyConnection) -> ucle.EinsumProgram:
    """The gradient of a case as a program."""
    case = CASES[name]
    program = ucle.einsum_program(
        case.text, inputs=inputs_of(name), bounds=case.bounds, database=connection, outputs=["loss"]
    )
    return program.gradient("loss", case.by)


def check(program: ucle.EinsumProgram, name: str, connection: Any, context: object = "") -> None:
    with program.execute(connection) as result:
        for tensor, expected in VECTORS[name].items():
            got = result[tensor].to_numpy()
            assert got.shape == np.shape(expected)
            np.testing.assert_allclose(
                got, expected, rtol=1e-9, atol=1e-9, err_msg=f"{tensor} {context}"
            )


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_pytorch(name: str, routes: Routes) -> None:
    program = compiled(name, routes["native"])
    for connection in routes.values():
        check(program, name, connection)


def test_gradients_have_the_labels_of_their_tensors() -> None:
    text = """
    p[i,c] += A[i,j] * W[j,c]
    loss = sum[i,c](square(p[i,c])) + sum[c,j](abs(W[j,c])) + sum[i](A[i,i])
    """
    given = {"A": np.eye(3), "W": np.ones((3, 2), np.float32)}
    program = ucle.einsum_program(text, inputs=given).gradient("loss", ["A", "W", "p"])
    with program.execute() as result:
        axes = {name: "".join(result[name].to_arrow().column_names[:-1]) for name in result}
    assert axes == {"loss": "", "d_A": "ij", "d_W": "jc", "d_p": "ic"}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CASES)
def test_every_decomposition_of_a_backward_pass(name: str, routes: Routes) -> None:
    program = compiled(name, routes["native"])
    for n, way in enumerate(["relational", *some_decompositions(program, 0, 4)]):
        route = ("native", "arrow")[n % 2]
        check(program.with_decomposition(way), name, routes[route], (route, way))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(
    "factor",
    ["((E[v,k] and E[v,u]) * (v != k + 1))", "sum[n](N[k,n] * N[v,n])"],
    ids=["a mask", "a sum"],
)
def test_an_extreme_is_one_of_the_numbers_that_it_was_taken_of(
    name: str, factor: str, routes: Routes
) -> None:
    """If their factors were multiplied in another order than before, none might equal it."""
    rng = np.random.default_rng(5)
    given = {
        "s": rng.normal(size=9),
        "g": rng.normal(size=4),
        "E": rng.normal(size=(9, 9)),
        "f": rng.normal(size=3),
        "N": rng.normal(size=(9, 5)),
        "w": rng.normal(size=(9, 4, 9)),
    }
    s, g, large, f, n, w = given.values()
    mask = np.arange(9)[:, None] != np.arange(9) + 1 if "and" in factor else n @ n.T
    every = np.einsum("v,r,vu,vk,i->vruki", s, g, large, mask, f)
    weighed = w * getattr(every, name)(axis=(3, 4))
    # The extremes of multiples are multiples: each factor has the same share of them.
    expected = {"d_s": weighed.sum(axis=(1, 2)) / s, "d_g": weighed.sum(axis=(0, 2)) / g}
    text = f"t[v,r,u] = {name}[k,i](s[v] * g[r] * E[v,u] * {factor} * f[i])"
    program = ucle.einsum_program(
        f"{text}; loss = sum[v,r,u](t[v,r,u] * w[v,r,u])",
        inputs={x: array for x, array in given.items() if x != "N" or "N" in factor},
        database=routes["native"],
    ).gradient("loss", ["s", "g"])
    for way in ["relational", *some_decompositions(program, 1, 4)]:
        for route, connection in routes.items():
            with program.with_decomposition(way).execute(connection) as result:
                for tensor, slopes in expected.items():
                    np.testing.assert_allclose(
                        result[tensor].to_numpy(), slopes, 1e-9, err_msg=f"{route} {way}"
                    )


def test_every_operator_has_a_derivative() -> None:
    rows = [*MAPS.values(), *REDUCES.values()]
    assert [row.name for row in rows if row.derivative is None] == []
    assert [row.name for row in COMBINES.values() if row.derivatives is None] == []


def test_every_operator_with_a_slope_is_compared() -> None:
    texts = " ".join(case.text for case in CASES.values())
    sloped = [x.name for x in (*MAPS.values(), *REDUCES.values()) if x.derivative != "0"]
    written = {"neg", "sum"}  # as a sign, and implied
    assert [name for name in sloped if f"{name}" not in texts and name not in written] == []


def test_products_of_a_backward_pass_in_the_cheapest_order(native: Any) -> None:
    """The gradient of the last factor is made of the others, which the loss needs in no order."""
    rng = np.random.default_rng(0)
    N = scipy.sparse.random_array((600, 600), density=0.05, rng=rng)
    H = scipy.sparse.random_array((600, 3000), density=0.02, rng=rng)
    W = rng.normal(size=(3000, 4))
    text = "Z[i,k] = tanh(N[i,j] * H[j,m] * W[m,k]); loss = sum[i,k](Z[i,k])"
    program = ucle.einsum_program(text, N=N, H=H, W=ucle.parameter(W), database=native)
    gradient = program.gradient("loss", ["W"])
    wide = [
        v for v in gradient.compiled.program.vertices if {x.bound for x in v.labels} == {600, 3000}
    ]
    assert not wide
    with gradient.execute() as result:
        adjoint = 1 - np.tanh(N @ (H @ W)) ** 2
        np.testing.assert_allclose(result["d_W"].to_numpy(), H.T @ (N.T @ adjoint), atol=1e-12)


def test_a_second_derivative() -> None:
    x = np.array([0.5, -1.0, 2.0])
    v = ucle.array(x, name="v")
    slope = ucle.grad((ucle.exp(v) * v**2).sum(), v)
    curve = ucle.grad((slope * np.array([1.0, 2.0, 3.0])).sum(), v)
    first = np.exp(x) * (x**2 + 2 * x)
    second = np.exp(x) * (x**2 + 4 * x + 2)
    np.testing.assert_allclose(slope.to_numpy(), first, rtol=1e-12)
    np.testing.assert_allclose(curve.to_numpy(), second * [1, 2, 3], rtol=1e-12)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [x for x in CASES if x.startswith(("program", "read"))])
def test_second_derivatives_against_differences(name: str, native: Any) -> None:
    """The gradient of a gradient, weighed, along one direction."""
    case, inputs = CASES[name], inputs_of(name)
    by, rng = case.by[0], np.random.default_rng(0)
    program = compiled(name, native)
    statements = program._build.request.statements
    labels = [f"a{n}" for n in range(inputs[by].ndim)]
    axes = ",".join(labels)
    weights, direction = (rng.normal(size=inputs[by].shape) for _ in range(2))
    direction = np.where(inputs[by] != 0, direction, 0)  # at 0 relu has no slope
    weighed = parse_program(f"slope = sum[{axes}](d_{by}[{axes}] * weights_[{axes}])")
    options = {"bounds": case.bounds, "database": native}
    step = 1e-5

    def moved(scale: float) -> ucle.EinsumProgram:
        given = {**inputs, by: inputs[by] + scale * direction, "weights_": weights}
        every = (*statements, *weighed)
        return ucle.einsum_program(every, inputs=given, outputs=["slope"], **options)

    def slope(scale: float) -> Any:
        with moved(scale).execute() as result:
            return result["slope"].to_numpy()

    with moved(0).gradient("slope", [by]).execute() as result:
        (gradient,) = (result[x].to_numpy() for x in result if x != "slope")
    expected = (slope(step) - slope(-step)) / (2 * step)
    np.testing.assert_allclose((gradient * direction).sum(), expected, rtol=1e-6, atol=1e-7)


def test_the_gradient_of_what_is_stored(connection: Any) -> None:
    entries = scipy.sparse.random_array((30, 30), density=0.1, rng=0)
    right, left = np.random.default_rng(0).normal(size=(2, 30, 4))
    text = "y[i,k] += A[i,j] * B[j,k]; loss = sum[i,k](y[i,k] * C[i,k])"
    program = ucle.einsum_program(text, A=entries, B=right, C=left, database=connection)
    expected = np.where(entries.toarray() != 0, left @ right.T, 0)
    with program.gradient("loss", ["A"], stored=["A"]).execute() as result:
        np.testing.assert_allclose(result["d_A"].to_numpy(), expected, rtol=1e-12)
        assert result["d_A"].to_arrow(rows="nonfill").num_rows == entries.nnz
    with program.gradient("loss", ["A"]).execute() as result:
        np.testing.assert_allclose(result["d_A"].to_numpy(), left @ right.T, rtol=1e-12)


def test_the_gradient_of_stored_entries_that_are_zero(fresh: Any) -> None:
    fresh.execute("CREATE TABLE a AS SELECT * FROM (VALUES (0, 1, 0.0), (2, 0, 3.0)) t(i, j, v)")
    program = ucle.einsum_program(
        "loss = sum[i,j](A[i,j] * w[j])",
        A=ucle.table("a", bounds=(3, 2)), w=[2.0, 5.0], database=fresh,
    )  # fmt: skip
    with program.gradient("loss", ["A"], stored=["A"]).execute() as result:
        assert result["d_A"].to_numpy().tolist() == [[0, 5], [0, 0], [2, 0]]


def test_gradients_have_the_axes_of_tables_by_dictionaries(fresh: Any) -> None:
    fresh.execute("CREATE TABLE r AS SELECT * FROM (VALUES ('ann', 'x', 2.0), ('bob', 'y', 3.0),"
                  " ('ann', 'y', 1.0)) t(user, item, stars)")  # fmt: skip
    fresh.execute("CREATE TABLE p AS SELECT * FROM (VALUES ('ann', 1.0), ('bob', 2.0)) t(user, v)")
    program = ucle.einsum_program(
        "e[user,item] = when(R[user,item] != 0, R[user,item] - p[user]);"
        "loss = sum[user,item](e[user,item] ^ 2)",
        R=ucle.table("r"), p=ucle.table("p"), database=fresh,
    )  # fmt: skip
    with program.gradient("loss", ["p"]).execute() as result:
        rows = result["d_p"].to_arrow(rows="all").to_pylist()
    assert sorted((row["user"], row["d_p"] if "d_p" in row else row["val"]) for row in rows) == [
        ("ann", -2.0), ("bob", -2.0),
    ]  # fmt: skip


def test_gradients_have_the_type_of_what_they_are_taken_by() -> None:
    w = np.ones(3, np.float32)
    program = ucle.einsum_program("loss = sum[i](w[i] ^ 2 * x[i])", w=w, x=np.arange(3.0))
    with program.gradient("loss", ["w"]).execute() as result:
        assert result["d_w"].to_numpy().dtype == np.float32
    lazy = ucle.array(w)
    assert ucle.grad((lazy * lazy).sum(), lazy).to_numpy().dtype == np.float32


def test_what_has_no_gradient_is_an_error() -> None:
    program = ucle.einsum_program("y[i] = x[i] * k[i]; loss = sum[i](y[i])", x=[1.0, 2.0], k=[1, 2])
    with pytest.raises(LabelError, match="only a single number"):
        program.gradient("y", ["x"])
    with pytest.raises(NameResolutionError, match="no tensor z"):
        program.gradient("loss", ["z"])
    with pytest.raises(UnsupportedError, match="real numbers"):
        program.gradient("loss", ["k"])
    with pytest.raises(UnsupportedError, match="derivative of cummax"):
        ucle.einsum_program("loss = sum[i](cummax[i](x[i]))", x=[1.0, 2.0]).gradient("loss", ["x"])
    with pytest.raises(UnsupportedError, match="real numbers"):
        ucle.einsum_program("loss = real(sum[i](x[i] * 1j))", x=[1.0]).gradient("loss", ["x"])
    x, y, k = ucle.array([1.0, 2.0]), ucle.array([1.0]), ucle.array([1, 2])
    with pytest.raises(LabelError, match="only a single number"):
        ucle.grad(x, x)
    with pytest.raises(ArgumentTypeError, match="does not depend on this tensor"):
        ucle.grad(x.sum(), y)
    with pytest.raises(ValueTypeError, match="real numbers"):
        ucle.grad(k.sum(), k)


def test_complex_numbers_that_pass_nothing_back() -> None:
    program = ucle.einsum_program(
        "n = any[i](x[i] * 1j); loss = sum[i](x[i] ^ 2) * n[]", x=[1.0, 2.0]
    )
    with program.gradient("loss", ["x"]).execute() as result:
        assert result["d_x"].to_numpy().tolist() == [2.0, 4.0]


def test_an_operator_of_the_users_own() -> None:
    ucle.register_operator(
        "cube", "map", sql="x * x * x", numpy=lambda x: x**3, derivative="3 * g * square(x)"
    )
    ucle.register_operator(
        "halfway", "combine", sql="(x + y) / 2", numpy=lambda x, y: (x + y) / 2,
        derivative=("g / 2", "g / 2"),
    )  # fmt: skip
    program = ucle.einsum_program("loss = sum[i](halfway(cube(x[i]), x[i]))", x=[1.0, 2.0])
    with program.gradient("loss", ["x"]).execute() as result:
        assert result["d_x"].to_numpy().tolist() == [2.0, 6.5]


@pytest.mark.parametrize(
    ("kind", "derivative", "message"),
    [
        ("map", "g *", "not an expression of the language"),
        ("map", "g * y", "not one of its arguments"),
        ("combine", "g", "a derivative for each argument"),
        ("combine", ("g", "g[i]"), "not one of its arguments"),
    ],
)
def test_derivatives_that_make_no_sense(kind: str, derivative: Any, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        ucle.register_operator(
            "odd", kind, sql="x", numpy=lambda x, y=0: x + y, derivative=derivative
        )


def test_names_that_are_taken() -> None:
    program = ucle.einsum_program("d_x[i] = x[i] * 2; loss = sum[i](d_x[i] ^ 2)", x=[1.0, 2.0])
    gradient = program.gradient("loss", ["x"])
    assert gradient.outputs == ("loss", "d_x_2")
    assert gradient.execute()["d_x_2"].to_numpy().tolist() == [8.0, 16.0]


def test_columns_go_by_the_labels_of_the_text(fresh: Any) -> None:
    fresh.execute(
        "CREATE TABLE a AS SELECT i AS col, i + 1.0 AS v, 1 - i AS row FROM range(2) t(i)"
    )
    program = ucle.einsum_program(
        "s[row] = sum[col](B[row,col]) * sum[col](A[row,col]); loss = sum[row](s[row])",
        A=ucle.table("a", {"col": "col", "row": "row"}, "v"), B=np.ones((2, 2)), database=fresh,
    )  # fmt: skip
    with program.gradient("loss", ["A"]).execute() as result:
        assert result["d_A"].to_numpy().tolist() == [[2, 2], [2, 2]]
