"""The functions on lists against NumPy, on seeded random vectors and matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from ucle.udf_kernels import load_extension

TYPES = {"DOUBLE": np.float64, "FLOAT": np.float32}
AGGREGATES: dict[str, Any] = {
    "vec_sum": lambda x: x.astype(np.float64).sum(0),
    "vec_avg": lambda x: x.astype(np.float64).mean(0),
    "vec_min": lambda x: x.min(0),
    "vec_max": lambda x: x.max(0),
}
SHAPES = [(0, 0, 0), (1, 1, 1), (0, 3, 2), (2, 0, 3), (1, 7, 5), (5, 7, 1), (9, 8, 7), (40, 33, 50)]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": "2"}) as connection:
        load_extension(connection)
        yield connection


def close(got: Any, expected: Any, sql: str) -> None:
    tolerance = 1e-12 if sql == "DOUBLE" else 2e-6
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(np.asarray(got), expected, rtol=tolerance, atol=tolerance * scale)


def vectors(connection: duckdb.DuckDBPyConnection, groups: Any, values: Any, sql: str) -> None:
    """A table `v(i, g, x)`; every seventh vector is NULL."""
    rows = [None if i % 7 == 3 else row for i, row in enumerate(values.tolist())]
    data = pa.table({"g": groups, "x": pa.array(rows, pa.list_(pa.float64()))})
    connection.register("given", data)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE v AS "
        f"SELECT row_number() OVER () - 1 AS i, g, x::{sql}[] AS x FROM given"
    )
    connection.unregister("given")


@pytest.mark.sample(12)
@pytest.mark.parametrize("sql", TYPES)
@pytest.mark.parametrize("name", AGGREGATES)
@pytest.mark.parametrize(
    ("rows", "width", "groups"),
    [(1, 1, 1), (50, 3, 4), (5000, 17, 1), (9000, 6, 2500), (300, 0, 3), (40, 1300, 2)],
)
def test_aggregates(
    connection: duckdb.DuckDBPyConnection, name: str, sql: str, rows: int, width: int, groups: int
) -> None:
    rng = np.random.default_rng([rows, width, groups])
    values = rng.normal(size=(rows, width)).astype(TYPES[sql])
    group = rng.integers(groups, size=rows)
    kept = np.arange(rows) % 7 != 3
    vectors(connection, group, values, sql)
    expected = {
        g: AGGREGATES[name](values[kept & (group == g)]).astype(TYPES[sql])
        for g in np.unique(group[kept]).tolist()
    }
    got = connection.execute(f"SELECT g, {name}(x) FROM v GROUP BY g").fetchall()
    assert {g for g, x in got if x is not None} == set(expected)
    for g, x in got:
        if x is not None:
            close(x, expected[g], sql)
    if width > 0:
        fixed = f"SELECT g, {name}(x::{sql}[{width}]) FROM v GROUP BY g"
        for g, x in connection.execute(fixed).fetchall():
            if x is not None:
                close(x, expected[g], sql)


@pytest.mark.sample(12)
@pytest.mark.parametrize("sql", TYPES)
@pytest.mark.parametrize("name", AGGREGATES)
@pytest.mark.parametrize(
    "frame",
    [
        "PARTITION BY g",
        "ORDER BY i",
        "PARTITION BY g ORDER BY i ROWS BETWEEN 5 PRECEDING AND 2 FOLLOWING",
        "ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
    ],
)
def test_windows(connection: duckdb.DuckDBPyConnection, name: str, sql: str, frame: str) -> None:
    rng = np.random.default_rng(11)
    rows, width = 400, 5
    values = rng.integers(-9, 9, size=(rows, width)).astype(TYPES[sql])
    group = rng.integers(3, size=rows)
    vectors(connection, group, values, sql)
    got = connection.execute(f"SELECT i, {name}(x) OVER ({frame}) FROM v ORDER BY i").fetchall()
    members = connection.execute(
        f"SELECT i, list(i) FILTER (x IS NOT NULL) OVER ({frame}) FROM v ORDER BY i"
    ).fetchall()
    for (i, x), (j, inside) in zip(got, members, strict=True):
        assert i == j
        if not inside:
            assert x is None
        else:
            close(x, AGGREGATES[name](values[inside]), sql)


def test_states_spill_no_memory(connection: duckdb.DuckDBPyConnection) -> None:
    from ucle.udf_kernels import native

    held = native.load_module().lib.ucle_memory_held
    before = held()
    query = "SELECT sum(len(vec_avg([i, i + 1]))) OVER () FROM range(5000) t(i) GROUP BY i % 700"
    connection.execute(query).fetchall()
    with pytest.raises(duckdb.Error, match="one length within a group"):
        connection.execute("SELECT vec_sum([i for j in range(i)]) FROM range(9) t(i)").fetchall()
    assert held() == before


def matrix(values: Any, sql: str) -> str:
    rows, cols = values.shape
    return f"pack({rows}, {cols}, {values.ravel().tolist()}::{sql}[])"


@pytest.mark.sample(None)
@pytest.mark.parametrize("sql", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products(
    connection: duckdb.DuckDBPyConnection, sql: str, shape: tuple[int, int, int]
) -> None:
    m, k, n = shape
    rng = np.random.default_rng(shape)
    a, b = (rng.normal(size=s).astype(TYPES[sql]) for s in ((m, k), (k, n)))
    x, y = (rng.normal(size=s).astype(TYPES[sql]) for s in (k, m))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    vector, other = (f"{v.tolist()}::{sql}[]" for v in (x, y))
    sql_a, sql_b = matrix(a, sql), matrix(b, sql)
    query = f"""
        SELECT mat_mult({sql_a}, {sql_b}), mat_vec({sql_a}, {vector}), vec_mat({other}, {sql_a}),
            mat_transpose({sql_a}), mat_to_list({sql_a}), outer_prod({other}, {vector}),
            inner_prod({vector}, {vector}), norm({vector})
    """
    (row,) = connection.execute(query).fetchall()
    product, a_x, y_a, turned, listed, outer, inner, norm = row
    assert (product["rows"], product["cols"]) == (m, n)
    close(product["val"], (wide_a @ wide_b).ravel(), sql)
    close(a_x, wide_a @ x, sql)
    close(y_a, y @ wide_a, sql)
    assert (turned["rows"], turned["cols"]) == (k, m)
    close(turned["val"], a.T.ravel(), sql)  # DuckDB 1.4 rounds what it reads
    close(np.array(listed).reshape(m, k), a, sql)
    assert (outer["rows"], outer["cols"]) == (m, k)
    close(outer["val"], np.outer(y, x).ravel(), sql)
    close(inner, x.astype(np.float64) @ x.astype(np.float64), sql)
    close(norm, np.linalg.norm(x.astype(np.float64)), sql)


@pytest.mark.sample(2)
@pytest.mark.parametrize("sql", TYPES)
@pytest.mark.parametrize(("rows", "k", "n"), [(3, 2, 2), (2500, 32, 24), (5000, 3, 40)])
def test_one_matrix_for_many_vectors(
    connection: duckdb.DuckDBPyConnection, sql: str, rows: int, k: int, n: int
) -> None:
    rng = np.random.default_rng([rows, k, n])
    values = rng.normal(size=(rows, k)).astype(TYPES[sql])
    a = rng.normal(size=(k, n)).astype(TYPES[sql])
    vectors(connection, np.zeros(rows, int), values, sql)
    kept = np.arange(rows) % 7 != 3
    for call, factor in (("vec_mat(x, m)", a), ("mat_vec(mat_transpose(m), x)", a)):
        got = connection.execute(
            f"SELECT {call} FROM v, (SELECT {matrix(a, sql)} AS m) ORDER BY i"
        ).fetchall()
        assert [x is not None for (x,) in got] == kept.tolist()
        found = np.array([x for (x,) in got if x is not None])
        close(found, values[kept].astype(np.float64) @ factor.astype(np.float64), sql)
    shuffled = connection.execute(  # vectors that do not lie one behind the other
        f"SELECT i, vec_mat(x, m) FROM (SELECT * FROM v WHERE x IS NOT NULL ORDER BY hash(i)), "
        f"(SELECT {matrix(a, sql)} AS m)"
    ).fetchall()
    for i, x in shuffled:
        close(x, values[i].astype(np.float64) @ a.astype(np.float64), sql)


@pytest.mark.parametrize("sql", TYPES)
def test_matrices_of_a_table(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    rng = np.random.default_rng(5)
    shapes = rng.integers(0, 6, size=(300, 3)).tolist()
    matrices = [
        (rng.normal(size=(m, k)).astype(TYPES[sql]), rng.normal(size=(k, n)).astype(TYPES[sql]))
        for m, k, n in shapes
    ]
    rows = ", ".join(
        f"({i}, {matrix(a, sql)}, {matrix(b, sql)})" for i, (a, b) in enumerate(matrices)
    )
    connection.execute(f"CREATE OR REPLACE TEMP TABLE m AS FROM (VALUES {rows}) t(i, a, b)")
    query = "SELECT i, mat_mult(a, b), mat_to_list(mat_transpose(a)) FROM m WHERE i % 3 <> 1"
    for i, product, turned in connection.execute(query).fetchall():
        a, b = matrices[i]
        expected = a.astype(np.float64) @ b.astype(np.float64)
        assert (product["rows"], product["cols"]) == expected.shape
        close(product["val"], expected.ravel(), sql)
        close(np.array(turned).reshape(a.T.shape), a.T, sql)


@pytest.mark.sample(None)
@pytest.mark.parametrize("sql", TYPES)
@pytest.mark.parametrize("width", [1, 7, 8, 9, 100, 1000])
def test_cosine(connection: duckdb.DuckDBPyConnection, sql: str, width: int) -> None:
    rng = np.random.default_rng(width)
    a, b = (rng.normal(size=width).astype(TYPES[sql]) for _ in range(2))
    (row,) = connection.execute(
        f"SELECT cosine({a.tolist()}::{sql}[], {b.tolist()}::{sql}[])"
    ).fetchall()
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    expected = wide_a @ wide_b / np.linalg.norm(wide_a) / np.linalg.norm(wide_b)
    close(row, [expected], sql)


@pytest.mark.slow
def test_results_that_are_too_large(connection: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT outer_prod(x, x) FROM (SELECT range(3000000)::DOUBLE[] AS x)"
    with pytest.raises(duckdb.Error, match="bytes in one batch of rows"):
        connection.execute(query)
