"""Inputs that read the same table share its scan only where that gives the same tensor."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import numpy as np
import pytest

import ucle
from ucle.plan.relation_nodes import TableScan
from ucle.plan.steps import Role
from ucle.testing.check_matrix import Routes


@pytest.mark.parametrize("route", ["native", "arrow"])
def test_inputs_of_other_sizes(route: str, routes: Routes) -> None:
    """The labels of the axes have the size of one input or of both."""
    connection = routes[route]
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE e AS SELECT i, i + 1 AS j, 1 AS val FROM range(5) r(i)"
    )
    program = ucle.einsum_program("C[i,k] += A[i,j] * B[j,k]", A="e", B="e", database=connection)
    with program.execute() as result:
        np.testing.assert_array_equal(result["C"].to_numpy()[:, :6], np.eye(5, 6, 2))


@pytest.mark.parametrize("route", ["native", "arrow"])
def test_inputs_with_other_fills(route: str, routes: Routes) -> None:
    """A row that holds the fill of one input is an entry of the other."""
    connection = routes[route]
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE f AS SELECT i, j, ((i + j) % 3)::DOUBLE AS val "
        "FROM range(5) a(i), range(5) b(j) WHERE i <> j"
    )
    inputs = {"A": "f", "B": ucle.table("f", fill=math.inf)}
    text = "y[i,j] = A[i,j] + exp(-B[i,j]); s[i] += A[i,j]; m[i] min= B[i,j]"
    program = ucle.einsum_program(text, inputs=inputs, database=connection)
    n = np.arange(5)
    a = np.where(n[:, None] == n, 0, (n[:, None] + n) % 3.0)
    b = np.where(n[:, None] == n, np.inf, a)
    with program.execute() as result:
        np.testing.assert_allclose(result["y"].to_numpy(), a + np.exp(-b), rtol=1e-14)
        np.testing.assert_array_equal(result["s"].to_numpy(), a.sum(axis=1))
        np.testing.assert_array_equal(result["m"].to_numpy(), b.min(axis=1))


@pytest.mark.parametrize("route", ["native", "arrow"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_scans_that_look_coordinates_up_are_read_once(
    route: str, suffix: str, routes: Routes, tmp_path: Path
) -> None:
    """Where that takes longer than writing their tuples: text, and names of many rows."""
    path, rows = tmp_path / f"sales.{suffix}", 80_000 if suffix == "csv" else 200_000
    duckdb.execute(
        "COPY (SELECT 's' || (n % 400) AS shop, 'p' || (n // 400) AS product, n % 7 - 3.0 AS val "
        f"FROM range({rows}) t(n)) TO '{path}'"
    )
    text = (
        "a[s] = sum[p](X[s,p]); b[p] = sum[s](X[s,p] * a[s]); c[s] = sum[p](square(X[s,p]) * b[p])"
    )
    program = ucle.einsum_program(
        text,
        X=ucle.table(str(path), ["shop", "product"], "val"),
        database=routes[route],
        decomposition="relational",
    )
    (scan,) = (x for x in program.compiled.physical.steps if isinstance(x.relation, TableScan))
    assert scan.role is Role.TABLE
    X = (np.arange(rows) % 7 - 3.0).reshape(-1, 400)
    a = X.sum(0)
    expected = (X**2).T @ (X @ a)
    with program.execute() as result:
        frame = result["c"].to_pandas()
    names = np.array([f"s{n}" for n in range(400)])
    found = dict(zip(frame["s"], frame["val"], strict=True))
    np.testing.assert_allclose([found.get(name, 0.0) for name in names], expected)


@pytest.mark.parametrize("kind", ["text", "dates"])
def test_text_is_looked_up_once(kind: str, routes: Routes) -> None:
    """Strings take several times as long to look up as dates: of few rows, dates are read again."""
    shop, day = "n % 400", "n // 400"
    if kind == "text":
        shop, day = f"'s' || {shop}", f"'d' || {day}"
    else:
        shop, day = (f"DATE '2024-01-01' + ({x})::INTEGER" for x in (shop, day))
    for connection in routes.values():
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE looked_up AS SELECT {shop} AS shop, {day} AS day, "
            "n % 7 - 3.0 AS val FROM range(100_000) t(n)"
        )
    text = "a[s] = sum[p](X[s,p]); b[p] = sum[s](square(X[s,p]) * a[s])"
    table = ucle.table("looked_up", ["shop", "day"], "val")
    X = (np.arange(100_000) % 7 - 3.0).reshape(-1, 400)
    for connection in routes.values():
        program = ucle.einsum_program(
            text, X=table, database=connection, decomposition="relational"
        )
        steps = [x for x in program.compiled.physical.steps if isinstance(x.relation, TableScan)]
        assert [x.role for x in steps] == ([Role.TABLE] if kind == "text" else [])
        with program.execute() as result:
            frame = result["b"].to_pandas()
        expected = np.sort(X**2 @ X.sum(0))
        np.testing.assert_allclose(np.sort(frame["val"]), expected[expected != 0])


def test_scans_of_numbers_are_read_again(native: duckdb.DuckDBPyConnection) -> None:
    native.execute(
        "CREATE OR REPLACE TEMP TABLE g AS SELECT n % 400 AS i, n // 400 AS j, 1.0 AS val "
        "FROM range(80_000) t(n)"
    )
    text = "a[s] = sum[p](X[s,p]); b[p] = sum[s](X[s,p] * a[s])"
    program = ucle.einsum_program(text, X="g", database=native, decomposition="relational")
    tables = [x.relation for x in program.compiled.physical.steps if x.role is Role.TABLE]
    assert not any(isinstance(x, TableScan) for x in tables)
