"""Refreshes over the rows at affected coordinates of one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.language.parse import parse_program
from ucle.language.syntax_to_text import statement_text
from ucle.maintenance.renumbered import renumber

Connect = Callable[[], duckdb.DuckDBPyConnection]
ROUTES: dict[str, Connect] = {"native": ucle.connect, "plain": duckdb.connect}

PROGRAMS = {
    "attention": "S[i,j] = when(A[i,j], exp(sum[k](H[i,k] * H[j,k]))); n[i] += S[i,j]; "
    "O[i,k] += S[i,j] * H[j,k]; Y[i,k] = O[i,k] / max(n[i], 1e-9)",
    "step of PageRank": "links[i] += A[i,j]; "
    "Y[j] = 0.15 + 0.85 * sum[i](A[i,j] * x[i] / max(links[i], 1))",
    "two layers": "T[i,k] += A[i,j] * H[j,k]; Z[i,k] = relu(T[i,k] - 1); Y[i,k] += A[i,j] * Z[j,k]",
    "inverse frequencies": "df[j] count= A[i,j] != 0; idf[j] = log(100 / max(df[j], 1)); "
    "Y[i,j] = A[i,j] * idf[j]",
    "largest": "Y[i,p] = top_k[j,p](A[i,j])",
    "means": "s[i] += A[i,j]; n[i] count= A[i,j] > 2; Y[i] = s[i] / max(n[i], 1)",
    "another fill": "Y[i] = exp(-sum[j](A[i,j] * x[j]))",
    "broadcast": "Y[i,k] = max(x[i], sum[j](A[i,j] * H[j,k]))",
}
"""The last tensor of each is the output."""


class Data:
    """Tables of a graph over 400 nodes."""

    def __init__(self, connect: Connect, text: str, seed: int, **options: Any) -> None:
        self.connection, self.rng = connect(), np.random.default_rng(seed)
        run = self.connection.execute
        run("CREATE TABLE A (i BIGINT, j BIGINT, val DOUBLE)")
        self.insert(1200)
        run(
            "CREATE TABLE H AS SELECT i, k, (1 + (7 * i + 3 * k) % 5) / 10 AS val "
            "FROM range(400) a(i), range(4) b(k)"
        )
        run("CREATE TABLE x AS SELECT i, (1 + i % 3) / 4 AS val FROM range(400) a(i)")
        names = [name for name in "AHx" if f"{name}[" in text]
        self.program = ucle.einsum_program(
            text,
            inputs={name: name for name in names},
            database=self.connection,
            outputs=["Y"],
            bounds={"p": 3} if "top_k" in text else None,
        )
        self.kept = self.program.maintain("kept", self.connection, **options)

    def insert(self, count: int) -> None:
        """Insert edges at coordinates that have none."""
        i, j = self.rng.integers(0, 400, (2, count))
        own = {"i": i, "j": j, "val": self.rng.integers(1, 6, count)}
        rows = ", ".join(str(x) for x in zip(*(own[x].tolist() for x in own), strict=True))
        self.connection.execute(
            f"INSERT INTO A SELECT i, j, min(v) FROM (VALUES {rows}) t(i, j, v) "
            "ANTI JOIN A USING (i, j) GROUP BY ALL"
        )

    def check(self) -> None:
        """Compare the kept output with that of a full run."""
        with self.program.recompile().execute() as result:
            relation = result["Y"].shown(rows="nonfill")
            keys = relation.columns[:-1]
            expected = {tuple(x[:-1]): x[-1] for x in relation.fetchall()}
        rows = self.connection.table("kept").select(*keys, "val").fetchall()
        found = {tuple(x[:-1]): x[-1] for x in rows}
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, rtol=1e-9, atol=1e-12)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("appended", [False, True])
def test_rows_at_affected_coordinates(name: str, route: str, appended: bool) -> None:
    data = Data(ROUTES[route], PROGRAMS[name], 3, append_only=["A"] if appended else ())
    changes: list[Callable[[], object]] = [lambda: data.insert(3)]
    if not appended:
        run = data.connection.execute
        changes += [
            lambda: run("UPDATE A SET val = val + 1 WHERE i IN (5, 17)"),
            lambda: run("DELETE FROM A WHERE j IN (3, 200)"),
            lambda: run("UPDATE H SET val = val * 2 WHERE i = 11"),
        ]
    ways = set[str]()
    for change in changes:
        change()
        report = data.kept.refresh(way="affected keys")
        ways |= {x.reason for x in report.tensors}
        data.check()
    assert any("coordinates" in x for x in ways), ways


def test_words_as_coordinates() -> None:
    connection = ucle.connect()
    run = connection.execute
    columns = "'s' || i % 90 AS shop, i AS day, 1.0 AS val"
    run(f"CREATE TABLE paid AS SELECT {columns} FROM range(900) r(i)")
    text = "Y[shop,p] = top_k[day,p](paid[shop,day])"
    program = ucle.einsum_program(text, paid="paid", database=connection, bounds={"p": 2})
    kept = program.maintain("kept", connection)
    run("UPDATE paid SET val = 7 WHERE shop = 's3' AND day = 3")
    run("INSERT INTO paid VALUES ('s8', 5, 4.0)")
    report = kept.refresh(way="affected keys")
    rows = connection.sql("SELECT shop, val FROM kept WHERE val > 1 ORDER BY ALL").fetchall()
    assert rows == [("s3", 7.0), ("s8", 4.0)]
    assert report.tensors[0].reason == "2 of 90 coordinates of shop"


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("T[i] = A[i,i]", 0),
        ("T[i] = x[i] - x[~(i-1)]", 0),
        ("T[i] = x[i] * i", 0),
        ("T[i,j] = cumsum[j](A[i,j])", 1),
    ],
)
def test_other_uses_of_coordinates(text: str, axis: int) -> None:
    assert renumber(parse_program(text), axis, str) is None


def test_a_tensor_that_is_read_along_both_axes() -> None:
    program = parse_program("S[i,j] = A[i,j] * x[j]; Y[i] = sum[j](S[i,j] * S[j,i])")
    count = iter(range(9))
    found = renumber(program, 0, lambda stem: f"{stem}{next(count)}")
    assert found is not None
    texts = sorted(map(statement_text, found.statements))
    assert [x for x in texts if "sum" in x] == [
        "Y_at0[affected] = sum[j](S_at1[affected,j] * S_at2[j,affected])"
    ]
    assert len(found.statements) == 3
    assert {(x.tensor, x.axis) for x in found.parts} == {("A", 0), ("A", 1), ("x", 0)}
    assert found.axes == {"Y": 0}


@pytest.mark.parametrize("way", ["auto", "affected keys"])
def test_products_that_were_not_finite(way: str) -> None:
    connection = ucle.connect()
    run = connection.execute
    for name, value in (("A", "'inf'::DOUBLE"), ("B", "1.0")):
        start = int(name == "B")
        run(f"CREATE TABLE {name} AS SELECT i, 0 AS j, {value} AS val FROM range({start}, 4) r(i)")
    program = ucle.einsum_program(
        "T[i] += A[i,j]; U[i] += B[i,j]; Y[i] = T[i] * U[i]",
        A="A",
        B="B",
        database=connection,
        outputs=["Y"],
        nonfinite="exact",
    )
    kept = program.maintain("kept", connection)
    run("UPDATE A SET val = 2")
    kept.refresh(way=way)
    rows = connection.sql("SELECT i, val FROM kept WHERE val <> 0 ORDER BY i").fetchall()
    assert rows == [(1, 2.0), (2, 2.0), (3, 2.0)]
