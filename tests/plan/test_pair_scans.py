"""Tensors in the columns of one table are joined row by row, in one scan of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.testing.check_matrix import Routes

ROWS, OTHERS = 40, 7
QUOTIENT = "y[i] = A[i] / (B[i] + 5)"
TEXTS = {
    "product": ("y[i] = A[i] * B[i]", lambda a, b: a * b),
    "sum": ("y[i] = A[i] + B[i]", lambda a, b: a + b),
    "difference": ("y[i] = B[i] - A[i]", lambda a, b: b - a),
    "sum of products": ("y += A[i] * B[i]", lambda a, b: a @ b),
    "quotient": (QUOTIENT, lambda a, b: a / (b + 5)),
    "larger": ("y[i] = max(A[i], B[i])", np.maximum),
    "comparison": ("y[i] = A[i] < B[i]", np.less),
    "where": ("y[i] = when(B[i], A[i])", lambda a, b: np.where(b != 0, a, 0)),
}
SOURCES = ("table", "view", "parquet", "csv")


def make_rows(connection: duckdb.DuckDBPyConnection, folder: Path, source: str) -> Any:
    """Numbers of which some are 0 or, in `c`, NULL; keys in no order; what the input is named."""
    rng = np.random.default_rng(3)
    keys, numbers = rng.permutation(ROWS), rng.integers(-2, 3, (3, ROWS)).astype(float)
    connection.execute(
        "CREATE OR REPLACE TABLE rows AS SELECT unnest(?) AS i, unnest(?) AS name, unnest(?) AS a, "
        "unnest(?) AS b, unnest(?) AS c",
        [
            keys.tolist(),
            [f"row {key:02}" for key in keys],
            numbers[0].tolist(),
            numbers[1].tolist(),
            [None if x == 1 else x for x in numbers[2]],
        ],
    )
    arrays = np.zeros((3, ROWS))
    arrays[:, keys] = numbers
    arrays[2][arrays[2] == 1] = 0
    if source in ("parquet", "csv"):
        path = str(folder / f"rows.{source}")
        connection.execute(f"COPY rows TO '{path}'")
        return path, arrays
    if source == "view":
        connection.execute("CREATE OR REPLACE VIEW shown AS SELECT * FROM rows WHERE i >= 0")
        return "shown", arrays
    return "rows", arrays


def joins(program: ucle.EinsumProgram) -> int:
    """The number of joins of a program whose keys need no dictionary."""
    return program.to_sql().count(" JOIN ")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("route", ["native", "arrow"])
def test_numbers_of_one_table(route: str, source: str, routes: Routes, tmp_path: Path) -> None:
    connection = routes[route]
    table, (a, b, c) = make_rows(connection, tmp_path, source)
    missing = ucle.table(table, ["i"], "c", nulls="missing")
    for text, expected in TEXTS.values():
        for other, values in ((ucle.table(table, ["i"], "b"), b), (missing, c)):
            inputs = {"A": ucle.table(table, ["i"], "a"), "B": other}
            program = ucle.einsum_program(
                text,
                inputs=inputs,
                database=connection,
                decomposition={"y": ["i"]},
                bounds={"i": ROWS},
            )
            with program.execute() as result:
                np.testing.assert_array_equal(result["y"].to_numpy(), expected(a, values))
            if text != QUOTIENT:  # of which one side has an entry everywhere
                assert joins(program) == 0, text


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("route", ["native", "arrow"])
def test_what_is_stored(route: str, source: str, routes: Routes, tmp_path: Path) -> None:
    """A row of fills alone is stored neither by a join nor by a scan in its place."""
    connection = routes[route]
    table, arrays = make_rows(connection, tmp_path, source)
    a, b, _ = arrays
    for text, expected in (
        ("y[i] = A[i] * B[i]", a * b),
        ("y[i] = A[i] + B[i]", a + b),
        ("y[i] = max(A[i], B[i])", np.maximum(a, b)),
    ):
        inputs = {name: ucle.table(table, ["i"], name.lower()) for name in "AB"}
        program = ucle.einsum_program(
            text, inputs=inputs, database=connection, decomposition={"y": ["i"]}
        )
        with program.execute() as result:
            rows = result["y"].to_arrow()["i"].to_pylist()
        assert sorted(rows) == np.flatnonzero(expected).tolist()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("route", ["native", "arrow"])
def test_features_and_target(route: str, source: str, routes: Routes, tmp_path: Path) -> None:
    """Of rows with names: the columns that become an array, and another one."""
    connection = routes[route]
    table, (a, b, c) = make_rows(connection, tmp_path, source)
    wide = ucle.table(table, ["name"], ["a", "c"], columns_as="feature", nulls="missing")
    features, target = ucle.tensor(wide), ucle.tensor(ucle.table(table, ["name"], "b"), axes="name")
    found = features.dot(target, axis="name").to_numpy(connection)
    np.testing.assert_allclose(found, np.stack([a, c]) @ b)
    program = ucle.einsum_program(
        "s[f] += X[n,f] * y[n]", X=wide, y=ucle.table(table, ["name"], "b"), database=connection
    )
    with program.execute() as result:
        np.testing.assert_allclose(result["s"].to_numpy(), np.stack([a, c]) @ b)
    assert '"paired"' in program.to_sql()


def test_one_hot_features(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """The arrays of rows with categories have the other column beside them."""
    path = str(tmp_path / "people.parquet")
    connection.execute(
        "COPY (SELECT n AS person, n % 7 AS age, ['x', 'y', 'z'][n % 3 + 1] AS town, "
        f"(n * n) % 11 AS spent FROM range(500) t(n)) TO '{path}'"
    )
    columns = ["age", ucle.one_hot("town")]
    features = ucle.table(path, ["person"], columns, columns_as="feature", dtype=float)
    program = ucle.einsum_program(
        "s[f] += X[p,f] * y[p]",
        X=features,
        y=ucle.table(path, ["person"], "spent", dtype=float),
        database=connection,
        decomposition={"s": ["p"]},
    )
    with program.execute() as result:
        names = result["s"].coordinates("f").to_pylist()
        found = dict(zip(names, result["s"].to_numpy(), strict=True))
    n = np.arange(500)
    spent = n * n % 11
    expected = {f"town_{x}": spent[n % 3 == k].sum() for k, x in enumerate("xyz")}
    assert found == {"age": (n % 7) @ spent, **expected}
    assert '"paired"' in program.to_sql()


@pytest.mark.parametrize("route", ["native", "arrow"])
def test_two_keys(route: str, routes: Routes) -> None:
    connection = routes[route]
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE days AS SELECT s AS shop, d AS day, "
        "(s * d % 5)::DOUBLE AS a, (s + d)::DOUBLE AS b FROM range(6) x(s), range(9) y(d)"
    )
    s, d = np.ogrid[:6, :9]
    inputs = {name: ucle.table("days", ["shop", "day"], name.lower()) for name in "AB"}
    for text, expected, once in (
        ("y[s] += A[s,d] * B[s,d]", ((s * d % 5) * (s + d)).sum(axis=1), True),
        ("y[s,t] += A[s,d] * B[t,d]", (s * d % 5).astype(float) @ (s + d).T, False),
    ):
        program = ucle.einsum_program(
            text, inputs=inputs, database=connection, decomposition={"y": ["s", "d"]}
        )
        with program.execute() as result:
            np.testing.assert_array_equal(result["y"].to_numpy(), expected)
        assert ('"paired"' in program.to_sql()) is once


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("route", ["native", "arrow"])
def test_more_columns(route: str, source: str, routes: Routes, tmp_path: Path) -> None:
    """What is computed from columns of a table entry by entry has the same rows."""
    connection = routes[route]
    table, (a, b, c) = make_rows(connection, tmp_path, source)
    whole = ucle.table(table, ["i"], "a", dtype="int64")
    missing = ucle.table(table, ["i"], "c", nulls="missing")
    inputs = {"A": whole, "B": ucle.table(table, ["i"], "b"), "C": missing}
    for text, expected in (
        ("y[i] = A[i] * B[i]", a * b),
        ("y[i] = A[i] * B[i] + C[i]", a * b + c),
        ("y[i] = (A[i] - B[i]) * C[i]", (a - b) * c),
        ("y[i] = A[i] + B[i] + C[i]", a + b + c),
        ("y += A[i] * B[i] * (C[i] - B[i])", (a * b * (c - b)).sum()),
        ("y += exp(A[i] * B[i] - C[i])", np.exp(a * b - c).sum()),
    ):
        program = ucle.einsum_program(
            text,
            inputs={x: each for x, each in inputs.items() if f"{x}[" in text},
            database=connection,
            decomposition={"y": ["i"]},
            association="as-written",
            rewrite="none",
            bounds={"i": ROWS},
        )
        with program.execute() as result:
            np.testing.assert_allclose(result["y"].to_numpy(), expected, rtol=1e-14)
        if source != "view" or text.count("B[") == 1:  # a view with two readers is computed once
            assert joins(program) == 0, text


def test_other_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Rows that are summed, of another table, or with other keys are joined as before."""
    connection.execute(
        "CREATE OR REPLACE TABLE one AS SELECT n AS i, 9 - n AS k, n + 1.0 AS a, n * 2.0 AS b "
        "FROM range(10) t(n); CREATE OR REPLACE TABLE other AS FROM one"
    )
    n = np.arange(10)
    plain, summed = ucle.table("one", ["i"], "a"), ucle.table("one", ["i"], "a", duplicates="sum")
    for other, b in (
        (ucle.table("other", ["i"], "b"), 2 * n),
        (ucle.table("one", ["k"], "b"), 2 * (9 - n)),
    ):
        for first in (plain, summed):
            program = ucle.einsum_program(
                "y += A[i] * B[i]",
                A=first,
                B=other,
                database=connection,
                decomposition={"y": ["i"]},
            )
            with program.execute() as result:
                assert result["y"].to_numpy() == (n + 1) @ b
            assert '"paired"' not in program.to_sql()
    connection.execute("INSERT INTO one VALUES (3, 3, 100, 100)")
    inputs = {"A": summed, "B": ucle.table("one", ["i"], "b", duplicates="sum")}
    program = ucle.einsum_program("y += A[i] * B[i]", inputs=inputs, database=connection)
    a, b = n + 1.0, 2.0 * n
    a[3] += 100
    b[3] += 100
    with program.execute() as result:
        assert result["y"].to_numpy() == a @ b


def test_price(connection: duckdb.DuckDBPyConnection) -> None:
    """Two columns of one table cost no hash table, as those of two tables do."""
    connection.execute(
        "CREATE OR REPLACE TABLE one AS SELECT n AS i, n + 1.0 AS a, n + 2.0 AS b "
        "FROM range(1000) t(n); "
        "CREATE OR REPLACE TABLE other AS FROM one"
    )
    joins = []
    for table in ("one", "other"):
        program = ucle.einsum_program(
            "y += A[i] * B[i]",
            A=ucle.table("one", ["i"], "a"),
            B=ucle.table(table, ["i"], "b"),
            database=connection,
            decomposition={"y": ["i"]},
        )
        joins.append(program.compiled.decomposed.costs["y"].join)
    assert joins[0] < joins[1]
