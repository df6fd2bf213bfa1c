"""Functions of matrices against NumPy: on every decomposition, on both routes, and as tensors."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.errors import (
    BoundError,
    ExecutionError,
    KernelsMissingError,
    LabelError,
    NameResolutionError,
    ProgramSyntaxError,
    UnsupportedError,
    ValueTypeError,
)
from ucle.optimiser import choose_decomposition
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case, make_input

RNG = np.random.default_rng(5)
U, N = 3, 4


def positive(*shape: int, size: int = N) -> np.ndarray:
    """Positive definite matrices, whose eigenvalues are apart."""
    turned, _ = np.linalg.qr(RNG.normal(size=(*shape, size, size)))
    return turned * np.arange(1.0, size + 1) @ np.swapaxes(turned, -1, -2)


DATA: dict[str, np.ndarray] = {
    "A": positive(),
    "S": positive(U),
    "F": positive(U).astype(np.float32),
    "K": np.array([[4, 1, 0, 0], [1, 3, 0, 0], [0, 0, 2, 1], [0, 0, 1, 5]]),
    "b": RNG.normal(size=(U, N)),
    "c": RNG.normal(size=N),
    "x": np.array([1.0, 0.0, 2.0]),
    "T": np.swapaxes(positive(U), 0, 1),
    "W": RNG.normal(size=(N, 2)),
    "R": RNG.normal(size=(U, 2, N)),
    "B": RNG.normal(size=(N, U)) < 0.4,
    "G": RNG.normal(size=(U, N, 3)).astype(np.float32),
}

FORMS = [
    "E[i,j] = inv[i,j](A[i,j])",
    "E[i,j] = cholesky[i,j](A[i,j])",
    "E[i,j] = eigenvalues[i,j](A[i,j])",
    "E[i,j] = eigenvectors[i,j](A[i,j])",
    "E[j,i] = inv[i,j](A[i,j])",
    "E[i] = eigenvalues[i,j](A[i,j])",
    "E[u,i,j] = inv[i,j](S[u,i,j])",
    "E[i,u,j] = cholesky[i,j](T[i,u,j])",
    "E[u,i] = inv[i,j](S[u,i,j]) * b[u,j]",
    "E[u,i,j] = inv[i,j](S[u,i,j] + x[u] * (i == j))",
    "E[u] += log(cholesky[i,j](S[u,i,j]) + (i != j))",
    "E[u,i,j] = eigenvectors[i,j](F[u,i,j])",
    "E[i,j] = inv[i,j](K[i,j])",
    "E[i,j] = inv[j,i](K[i,j] + (i < j))",
    "E[i,j] = inv[i,j](inv[i,j](A[i,j]))",
    "E[i,j] = 2 * inv[i,j](2 * A[i,j]) + A[i,j]",
    "L[u,i,j] = cholesky[i,j](S[u,i,j]); E[u,i,j] = sum[k](L[u,i,k] * L[u,j,k])",
    "E[i,j] = pivots[i,j](A[i,j] - 2 * (i == j))",
    "E[u] += log(abs(pivots[i,j](S[u,i,j])) + (i != j))",
    "E[j] = solve[i,j](A[i,j], c[i])",
    "E[j,a] = solve[i,j](A[i,j], W[i,a])",
    "E[a,j] = solve[i,j](A[i,j], W[i,a])",
    "E[u,j] = solve[i,j](S[u,i,j], b[u,i])",
    "E[j,u] = solve[i,j](S[u,i,j], c[i])",
    "E[u,j] = solve[i,j](A[i,j], b[u,i])",
    "E[u,a,j] = solve[i,j](S[u,j,i] * x[u] + 9 * (i == j), W[i,a] + b[u,i])",
    "E[j,u,a] = solve[i,j](T[i,u,j], R[u,a,i])",
    "E[j,u,a] = solve[i,j](A[j,i], R[u,a,i])",
    "E[u,j,a] = solve[i,j](F[u,i,j], W[i,a])",
    "E[j] = solve[i,j](K[i,j], B[i,v])",
    "E[u] = solve[i,j](S[u,i,j], c[i])",
    "E[k] = 2 * solve[i,j](A[i,j], c[i]) * A[j,k]",
    "E[j] = solve[i,j](sum[u](S[u,i,j]), S[u,i,k])",
    "E[i] = solve[k,i](A[k,i], c[k]) + c[i]",
    "E[j] = solve[k,j](solve[i,k](A[i,k], K[i,j]), c[k])",
    "E[i,a] = singular_values[i,a](W[i,a])",
    "E[u] += singular_values[a,i](R[u,a,i])",
    "E[i,a] = qr_q[i,a](W[i,a])",
    "E[a,i] = qr_r[i,a](W[i,a])",
    "E[i,a] = qr_q[a,i](W[i,a])",
    "E[u,i,a] = qr_r[i,a](G[u,i,a])",
    "E[i,v] = qr_r[i,v](B[i,v])",
    "E[u,a,i] = svd_u[a,i](R[u,a,i])",
    "E[a,u,i] = svd_vh[a,i](2 * R[u,a,i])",
    "E[u,i] = sum[a](svd_vh[a,i](R[u,a,i]) * svd_s[a,i](R[u,a,i]))",
    "U[i,j] = svd_u[i,j](A[i,j]); V[j,k] = svd_vh[j,k](A[j,k]); E[i,k] = U[i,j] * V[j,k]",
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", FORMS)
def test_every_decomposition(text: str, routes: Routes) -> None:
    names = [name for name in DATA if re.search(rf"\b{name}\[", text)]
    made = {name: make_input(RNG, name, DATA[name]) for name in names}
    inputs = {name: value for name, (value, _) in made.items()}
    tables = {name: table for name, (_, table) in made.items() if table is not None}
    arrays = {name: DATA[name] for name in names}
    case = Case(text, arrays, inputs, {}, ("E",), tables, indexed="==" in text or "<" in text)
    assert check_everywhere(case, routes, seed=len(text), sample=12)


@pytest.mark.parametrize("gone", [0, 2])
def test_matrices_that_are_not_stored(gone: int, connection: duckdb.DuckDBPyConnection) -> None:
    """They are matrices of fill: of zeros nothing is the inverse, of others there are roots."""
    rows = [(u, i, j, DATA["S"][u, i, j]) for u in range(U) for i in range(N) for j in range(N)]
    rows = [row for row in rows if row[0] != gone]
    table = pa.table(dict(zip("uijv", map(list, zip(*rows, strict=True)), strict=True)))
    S = ucle.table(table, ["u", "i", "j"], "v", bounds=[U, N, N])
    program = ucle.einsum_program("E[u,i,j] = inv[i,j](S[u,i,j])", S=S, database=connection)
    with pytest.raises(ExecutionError, match="singular"):
        program.execute()
    text = "E[u,i,j] = cholesky[i,j](S[u,i,j] + (i == j))"
    whole = ucle.einsum_program(text, S=S, database=connection)
    stored = np.where(np.arange(U)[:, None, None] == gone, 0, DATA["S"])
    with whole.execute() as result:
        found = result["E"].to_numpy()
    np.testing.assert_allclose(found, np.linalg.cholesky(stored + np.eye(N)), atol=1e-12)


def test_views_follow_their_tables() -> None:
    with ucle.connect() as connection:
        connection.execute("""
            CREATE TABLE S AS
            SELECT i, j, 4.0 * (i = j)::INT AS v FROM range(3) a(i), range(3) b(j)
        """)
        program = ucle.einsum_program("E[i,j] = inv[i,j](S[i,j])", S="S", database=connection)
        program.create_views(rows="nonfill")
        assert connection.sql("SELECT sum(val) FROM E").fetchall() == [(0.75,)]
        connection.execute("UPDATE S SET v = 2 WHERE i = 2 AND j = 2")
        assert connection.sql("SELECT sum(val) FROM E").fetchall() == [(1.0,)]


def test_an_inverse_of_names(connection: duckdb.DuckDBPyConnection) -> None:
    """Its rows and columns are in whatever order; a triangle would depend on it."""
    names = ["tall", "old", "rich"]
    G = positive(size=3)
    rows = pa.table(
        {
            "one": [names[i] for i in range(3) for _ in range(3)],
            "other": names * 3,
            "v": G.reshape(-1),
        }
    )
    table = ucle.table(rows, {"a": "one", "b": "other"}, "v", coordinates={"a": "n", "b": "n"})
    program = ucle.einsum_program("M[a,b] = inv[a,b](G[a,b])", G=table, database=connection)
    with program.execute() as result:
        found = {(a, b): v for a, b, v in result["M"].relation.fetchall()}
    for (i, j), value in np.ndenumerate(np.linalg.inv(G)):
        assert found[names[i], names[j]] == pytest.approx(value)
    for name, axes in (("cholesky", "a,b"), ("eigenvectors", "a,b"), ("eigenvalues", "a")):
        text = f"M[{axes}] = {name}[a,b](G[a,b])"
        with pytest.raises(LabelError, match=f"order, on which {name} depends") as caught:
            ucle.einsum_program(text, G=table, database=connection)
        assert "to_numpy()" in str(caught.value)
        assert "dates" not in str(caught.value)


@pytest.mark.parametrize("sides", [1, 2])
def test_systems_of_names(sides: int, connection: duckdb.DuckDBPyConnection) -> None:
    """Equations and unknowns are in whatever order, and may have different names."""
    equations, unknowns = ["so", "for", "and"], ["tall", "old", "rich"]
    A, b = RNG.normal(size=(3, 3)), RNG.normal(size=(3, sides))
    rows = [(equations[i], unknowns[j], A[i, j]) for i in range(3) for j in range(3)]
    matrix = pa.table(dict(zip("ijv", map(list, zip(*rows, strict=True)), strict=True)))
    own = [(equations[i], f"side {k}", b[i, k]) for i in (2, 0, 1) for k in range(sides)]
    right = pa.table(dict(zip("ikv", map(list, zip(*own, strict=True)), strict=True)))
    A_table = ucle.table(matrix, ["i", "j"], "v", coordinates={"i": "equation", "j": "unknown"})
    b_table = ucle.table(right, ["i", "k"], "v", coordinates={"i": "equation", "k": "side"})
    text = "X[j,k] = solve[i,j](A[i,j], b[i,k])"
    program = ucle.einsum_program(text, A=A_table, b=b_table, database=connection)
    with program.execute() as result:
        found = {(j, k): v for j, k, v in result["X"].relation.fetchall()}
    for (j, k), value in np.ndenumerate(np.linalg.solve(A, b)):
        assert found[unknowns[j], f"side {k}"] == pytest.approx(value)


@pytest.mark.parametrize("decomposition", ["auto", {"x": ["u"]}, {"x": []}])
def test_sides_that_are_not_stored(
    decomposition: Any, connection: duckdb.DuckDBPyConnection
) -> None:
    """They are zeros, and so is the solution; a matrix that is not stored is singular."""
    S, b = DATA["S"], DATA["b"].copy()
    b[1] = 0
    rows = [(u, i, b[u, i]) for u in (0, 2) for i in range(N)]
    table = pa.table(dict(zip("uiv", map(list, zip(*rows, strict=True)), strict=True)))
    sides = ucle.table(table, ["u", "i"], "v", bounds=[U, N])
    given = {"b": sides, "database": connection, "decomposition": decomposition}
    text = "x[u,j] = solve[i,j](S[u,i,j], b[u,i])"
    with ucle.einsum_program(text, S=S, **given).execute() as result:
        found = result["x"].to_numpy()
    np.testing.assert_allclose(found, np.linalg.solve(S, b[..., None])[..., 0], atol=1e-12)
    entries = [(0, i, j, S[0, i, j]) for i in range(N) for j in range(N)]
    one = pa.table(dict(zip("uijv", map(list, zip(*entries, strict=True)), strict=True)))
    missing = ucle.table(one, ["u", "i", "j"], "v", bounds=[U, N, N])
    program = ucle.einsum_program(text, S=missing, **given)
    with pytest.raises(ExecutionError, match="singular"):
        program.execute()


def test_views_of_solutions_follow_their_tables() -> None:
    with ucle.connect() as connection:
        connection.execute("""
            CREATE TABLE S AS
            SELECT u, i, j, 4.0 * (i = j)::INT AS v
            FROM range(2) c(u), range(3) a(i), range(3) b(j);
            CREATE TABLE b AS SELECT u, i, 1.0 AS v FROM range(2) c(u), range(3) a(i);
        """)
        text = "x[u,j] = solve[i,j](S[u,i,j], b[u,i])"
        inputs = {"S": "S", "b": "b", "database": connection}
        program = ucle.einsum_program(text, **inputs, decomposition={"x": ["u"]})
        program.create_views(rows="nonfill")
        assert connection.sql("SELECT sum(val) FROM x").fetchall() == [(1.5,)]
        connection.execute("DELETE FROM b WHERE u = 0 OR i = 2")
        assert connection.sql("SELECT sum(val) FROM x").fetchall() == [(0.5,)]


def test_a_factorisation_is_computed_once() -> None:
    """Its results may be read by different statements."""
    text = "U[i,j] = svd_u[i,j](A[i,j]); S[i] = svd_s[i,j](A[i,j]); V[i,j] = svd_vh[i,j](A[i,j])"
    program = ucle.einsum_program(text, A=DATA["A"], outputs=["U", "S", "V"])
    assert program.to_sql().count("mat_svd") == 1
    with program.execute() as result:
        U, S, V = (result[name].to_numpy() for name in "USV")
    np.testing.assert_allclose(U * S @ V, DATA["A"], atol=1e-13)


# ---- What is wrong ----


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("E[i] = inv[i](A[i,j])", ProgramSyntaxError, "two labels"),
        ("E[i] = inv[i,i](A[i,i])", ProgramSyntaxError, "two labels"),
        ("E[i,j] = inv[i,k](A[i,j])", LabelError, "'k'"),
        ("E[u,i] = inv[u,i](b[u,i])", BoundError, "square"),
        ("E[a] = solve[i,a](W[i,a], c[i])", BoundError, "square"),
        ("E[a] = solve[i,a](W[i,a])", ProgramSyntaxError, "right-hand sides"),
        ("E[i] = solve[i](A[i,i], c[i])", ProgramSyntaxError, "right-hand sides"),
        ("E[j] = solve[i,j](A[i,j], c[j])", LabelError, "equations|labels of solve"),
        ("E[j] = solve[i,j](A[i,k], c[i])", LabelError, "labels of solve"),
        ("E[j] = solve[i,j](A[i,j] * 1j, c[i])", ValueTypeError, "real"),
        ("E[i] = solve(A[i,j], c[i])", NameResolutionError, "over which labels"),
        ("E[i,a] = svd[i,a](W[i,a])", NameResolutionError, "svd"),
        ("E[i,a] = svd_u[i](W[i,a])", ProgramSyntaxError, "two labels"),
        ("E[i,a] = qr_q[i,j](W[i,a])", LabelError, "'j'"),
        ("E[i,j] = inv[i,j](A[i,j] * 1j)", ValueTypeError, "real"),
    ],
)
def test_refused(text: str, error: type[Exception], said: str) -> None:
    data = DATA | {"C": DATA["A"] * 1j}
    text = text.replace("A[i,j] * 1j", "C[i,j]")
    inputs = {name: data[name] for name in data if f"{name}[" in text.split("=", 1)[1]}
    with pytest.raises(error, match=said):
        ucle.einsum_program(text, **inputs)


def test_there_is_no_sql_for_it(connection: duckdb.DuckDBPyConnection) -> None:
    given = {"A": DATA["A"], "database": connection}
    with pytest.raises(UnsupportedError, match="no SQL"):
        ucle.einsum_program("E[i,j] = inv[i,j](A[i,j])", **given, decomposition="relational")


@pytest.mark.parametrize("name", ["inv", "cholesky"])
def test_no_answer_is_an_error(name: str, connection: duckdb.DuckDBPyConnection) -> None:
    given = {"A": [[1.0, 2.0], [2.0, 4.0]], "database": connection}
    program = ucle.einsum_program(f"E[i,j] = {name}[i,j](A[i,j])", **given)
    with pytest.raises(ExecutionError, match=r"singular|positive"):
        program.execute()


# ---- As tensors ----


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_names_of_numpy(size: int, dtype: str) -> None:
    whole = positive(2, size=size) if dtype[0] == "f" else np.eye(size) * np.ones((2, 1, 1))
    x = whole.astype(dtype)
    t, tolerance = ucle.asarray(x), 1e-5 if dtype == "float32" else 1e-12
    for name in ("inv", "cholesky", "eigvalsh"):
        found = getattr(np.linalg, name)(t).to_numpy()
        expected = getattr(np.linalg, name)(x)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, atol=tolerance)
    values, vectors = (each.to_numpy() for each in np.linalg.eigh(t))
    again = vectors @ (values[..., None] * np.swapaxes(vectors, -1, -2))
    np.testing.assert_allclose(again, x, atol=tolerance)


def test_matrices_of_many_rows() -> None:
    """They are computed block by block, which small ones are not."""
    x = positive(size=150) / 150
    b = RNG.normal(size=150)
    t = ucle.asarray(x)
    for name in ("inv", "cholesky", "eigvalsh"):
        found = getattr(ucle.linalg, name)(t).to_numpy()
        np.testing.assert_allclose(found, getattr(np.linalg, name)(x), rtol=1e-10, atol=1e-10)
    values, vectors = (each.to_numpy() for each in ucle.linalg.eigh(t))
    np.testing.assert_allclose(x @ vectors, vectors * values, atol=1e-13)
    np.testing.assert_allclose(x @ ucle.linalg.solve(t, b).to_numpy(), b, atol=1e-12)


def test_solving_is_as_exact_as_numpy() -> None:
    """Residuals measure this for ill-conditioned systems; inverses alone are far off."""
    worst = 0.0
    for power in range(0, 12, 2):
        turned, _ = np.linalg.qr(RNG.normal(size=(6, 6)))
        A = turned * np.logspace(0, -power, 6) @ np.linalg.qr(RNG.normal(size=(6, 6)))[0]
        b = RNG.normal(size=6)
        x = ucle.linalg.solve(A, b).to_numpy()
        scale = np.linalg.norm(A) * np.linalg.norm(x) + np.linalg.norm(b)
        worst = max(worst, np.linalg.norm(A @ x - b) / scale)
    assert worst < 1e-14


def test_solving_stacks_of_systems() -> None:
    S, several = DATA["S"], RNG.normal(size=(U, N, 2))
    found = ucle.linalg.solve(ucle.asarray(S), several).to_numpy()
    np.testing.assert_allclose(found, np.linalg.solve(S, several), atol=1e-12)
    one = np.linalg.solve(ucle.asarray(S[0]), DATA["b"][0]).to_numpy()
    np.testing.assert_allclose(one, np.linalg.solve(S[0], DATA["b"][0]), atol=1e-12)


def test_names_of_axes() -> None:
    """The inverse takes back: its rows are what the columns of the matrix were."""
    A = DATA["A"] + np.triu(np.ones((N, N)), 1)
    t = ucle.array(A, axes=("out", "into"))
    assert [axis.name for axis in ucle.linalg.inv(t).lazy.axes] == ["into", "out"]
    b = ucle.array(DATA["b"][0], axes=("out",))
    found = ucle.linalg.solve(t, b)
    assert [axis.name for axis in found.lazy.axes] == ["into"]
    np.testing.assert_allclose(found.to_numpy(), np.linalg.solve(A, DATA["b"][0]), atol=1e-12)
    # Right-hand sides along the other axis are those of the transposed matrix.
    other = ucle.linalg.solve(t, b.rename({"out": "into"}))
    assert [axis.name for axis in other.lazy.axes] == ["out"]
    np.testing.assert_allclose(other.to_numpy(), np.linalg.solve(A.T, DATA["b"][0]), atol=1e-12)
    # Other axes that both have are aligned, and those of b alone have a solution each.
    stack = ucle.array(DATA["S"], axes=("who", "out", "into"))
    sides = ucle.array(RNG.normal(size=(2, N, U)), axes=("day", "out", "who"))
    several = ucle.linalg.solve(stack, sides)
    assert [axis.name for axis in several.lazy.axes] == ["who", "into", "day"]
    expected = np.linalg.solve(DATA["S"], np.moveaxis(sides.to_numpy(), (0, 1, 2), (2, 1, 0)))
    np.testing.assert_allclose(several.to_numpy(), expected, atol=1e-12)
    with pytest.raises(LabelError, match="equations"):
        ucle.linalg.solve(t, ucle.array(np.ones(N), axes=("who",)))
    with pytest.raises(LabelError, match="names"):
        ucle.linalg.solve(t, np.ones(N))


def test_a_table_of_many_matrices(fresh: duckdb.DuckDBPyConnection) -> None:
    """Nothing is collected: 10,000 systems of 4 unknowns are solved by rows of a table."""
    fresh.execute("""
        CREATE TABLE systems AS SELECT u, f, g, 1.0 + (f = g)::INT * (5 + u % 7) AS v
        FROM range(10000) a(u), range(4) b(f), range(4) c(g)
    """)
    text = """
        x[u,f] = inv[f,g](G[u,f,g]) * b[g]
        worst = max[u,f](abs(sum[g](G[u,f,g] * x[u,g]) - b[f]))
    """
    program = ucle.einsum_program(
        text, G=ucle.table("systems", ["u", "f", "g"], "v"), b=np.arange(4.0), database=fresh
    )
    with program.execute() as result:
        assert result["worst"].to_numpy() < 1e-14


def test_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    original = choose_decomposition.price_program

    def without(*arguments: Any) -> Any:
        costed = original(*arguments)
        return replace(costed, resources=replace(costed.resources, kernels=False))

    monkeypatch.setattr(choose_decomposition, "price_program", without)
    with pytest.raises(KernelsMissingError, match="matrices"):
        ucle.einsum_program("E[i,j] = inv[i,j](A[i,j])", A=DATA["A"])
