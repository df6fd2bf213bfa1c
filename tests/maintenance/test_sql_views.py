"""The shapes of SQL views that other systems maintain, as programs: tables equal the queries."""

from __future__ import annotations

import re

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

import ucle
from ucle.maintenance.candidates import WAYS

VIEWS = {
    "projection": ("SELECT i, j, 2 * val + 1 FROM A", "y[i,j] = when(A[i,j] != 0, 2 * A[i,j] + 1)"),
    "filter": ("SELECT i, j, val FROM A WHERE val > 3", "y[i,j] = when(A[i,j] > 3, A[i,j])"),
    "sum by group": ("SELECT i, sum(val) FROM A GROUP BY i", "y[i] += A[i,j]"),
    "sum of all": ("SELECT sum(val) FROM A", "y[] += A[i,j]"),
    "count by group": ("SELECT i, count(*) FROM A GROUP BY i", "y[i] count= A[i,j] != 0"),
    "mean": (
        "SELECT i, avg(val) FROM A GROUP BY i",
        "s[i] += A[i,j]; n[i] count= A[i,j] != 0; y[i] = s[i] / max(n[i], 1)",
    ),
    "variance": (
        "SELECT i, var_pop(val) FROM A GROUP BY i HAVING var_pop(val) > 0",
        "s[i] += A[i,j]; q[i] += A[i,j] * A[i,j]; n[i] count= A[i,j] != 0; "
        "y[i] = (q[i] - s[i] * s[i] / max(n[i], 1)) / max(n[i], 1)",
    ),
    "least": (
        "SELECT i, min(val) FROM A GROUP BY i",
        "y[i] = min[j](where(A[i,j] != 0, A[i,j], 1e999))",
    ),
    "largest": ("SELECT i, max(val) FROM A GROUP BY i", "y[i] max= A[i,j]"),
    "group that passes": (
        "SELECT i, sum(val) FROM A GROUP BY i HAVING sum(val) > 9",
        "s[i] += A[i,j]; y[i] = when(s[i] > 9, s[i])",
    ),
    "join": (
        "SELECT i, j, k, a.val * b.val FROM A a JOIN B b USING (j)",
        "y[i,j,k] = A[i,j] * B[j,k]",
    ),
    "sum over a join": (
        "SELECT i, k, sum(a.val * b.val) FROM A a JOIN B b USING (j) GROUP BY i, k",
        "y[i,k] += A[i,j] * B[j,k]",
    ),
    "join of three": (
        "SELECT i, sum(a.val * b.val * c.val) FROM A a JOIN B b USING (j) JOIN C c USING (k) "
        "GROUP BY i",
        "y[i] += A[i,j] * B[j,k] * C[k]",
    ),
    "left join": (
        "SELECT i, j, a.val + coalesce(d.val, 0) FROM A a LEFT JOIN D d USING (i, j)",
        "y[i,j] = when(A[i,j] != 0, A[i,j] + D[i,j])",
    ),
    "full join": (
        "SELECT i, j, coalesce(a.val, 0) + coalesce(d.val, 0) FROM A a FULL JOIN D d USING (i, j)",
        "y[i,j] = A[i,j] + D[i,j]",
    ),
    "semi join": (
        "SELECT i, j, val FROM A WHERE j IN (SELECT j FROM B)",
        "y[i,j] = when(any[k](B[j,k] != 0), A[i,j])",
    ),
    "anti join": (
        "SELECT i, j, val FROM A WHERE j NOT IN (SELECT j FROM B)",
        "y[i,j] = unless(any[k](B[j,k] != 0), A[i,j])",
    ),
    "distinct": ("SELECT DISTINCT i, true FROM A", "y[i] any= A[i,j] != 0"),
    "count of distinct ones": (
        "SELECT i, count(DISTINCT k) FROM A JOIN B USING (j) GROUP BY i",
        "t[i,k] any= A[i,j] * B[j,k] != 0; y[i] count= t[i,k]",
    ),
    "running sum": (
        "SELECT i, j, sum(val) OVER (PARTITION BY i ORDER BY j) FROM A",
        "y[i,j] = when(A[i,j] != 0, cumsum[j](A[i,j]))",
    ),
}
"""A query, and the program whose entries are its rows. All values are greater than 0."""

CHANGES = (
    "INSERT INTO A VALUES (9, 2, 4), (1, 7, 2)",
    "UPDATE A SET val = val + 3 WHERE i = 1; DELETE FROM A WHERE i = 2",
    "INSERT INTO B VALUES (7, 1, 5); DELETE FROM B WHERE j = 1; UPDATE C SET val = 4 WHERE k = 1",
    "DELETE FROM A WHERE (i, val) IN (SELECT i, max(val) FROM A GROUP BY i)",
    "INSERT INTO D VALUES (3, 2, 1); DELETE FROM D WHERE i = 0; INSERT INTO A VALUES (3, 8, 1)",
)


def new_database() -> duckdb.DuckDBPyConnection:
    connection = ucle.connect()
    for name, keys in (("A", "ij"), ("B", "jk"), ("D", "ij")):
        one, two = keys
        connection.execute(
            f"CREATE TABLE {name} AS SELECT {one}, {two}, "
            f"(1 + ({one} * 3 + {two}) % 5)::BIGINT AS val "
            f"FROM range(6) a({one}), range(6) b({two}) WHERE ({one} + {two} * {ord(name)}) % 3 = 0"
        )
    connection.execute("CREATE TABLE C AS SELECT k, (k + 1)::BIGINT AS val FROM range(6) c(k)")
    return connection


def rows_of(relation: duckdb.DuckDBPyRelation) -> NDArray[np.float64]:
    return np.array(sorted(tuple(map(float, row)) for row in relation.fetchall()))


@pytest.mark.sample(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", VIEWS)
def test_a_view_is_maintained(shape: str, way: str) -> None:
    query, text = VIEWS[shape]
    bounds = {x: 10 for x in "ijk" if re.search(rf"\b{x}\b", text)}  # sizes stay as they are
    with new_database() as connection:
        names = [x for x in "ABCD" if f"{x}[" in text]
        program = ucle.einsum_program(
            text, inputs={x: x for x in names}, database=connection, outputs=["y"], bounds=bounds
        )
        kept = program.maintain("kept", connection)
        for change in CHANGES:
            connection.execute(change)
            kept.refresh(way=way)
            expected = rows_of(connection.sql(query))
            np.testing.assert_allclose(rows_of(connection.sql("FROM kept")), expected, 1e-12)
