"""Minima and maxima follow insertions by their new terms alone."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.testing.check_matrix import Routes

SOURCES = ("comparison", "append-only", "told", "applied")
TYPES = {"BIGINT": 2**53, "DOUBLE": 0.25, "FLOAT": 0.25}


def rows(relation: Any) -> list[Any]:
    return sorted(relation.fetchall())


def expected(program: ucle.EinsumProgram, name: str) -> list[Any]:
    with program.recompile().execute() as result:
        mode = "nonfill" if result[name].type.rank else "all"
        return rows(result[name].shown(rows=mode))


class Case:
    """A program over a table A of pairs, which grows."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, text: str, kind: str, source: str, fill: float
    ) -> None:
        self.connection, self.source = connection, source
        self.rng = np.random.default_rng(7)
        connection.execute(f"CREATE TABLE A (i BIGINT, j BIGINT, val {kind})")
        connection.execute(
            f"CREATE TABLE x AS SELECT j, (1 + j % 3)::{kind} AS val FROM range(30) r(j)"
        )
        self.big = 0 if "A[k" in text else TYPES[kind]
        self.keys = self.rng.permutation([(i, j) for i in range(12) for j in range(30)])
        connection.execute(f"INSERT INTO A VALUES (11, 29, 1), {self._next(60)}")
        given = {"A": ucle.table("A", fill=fill) if fill else "A"}
        if "x[" in text:
            given["x"] = "x"
        self.program = ucle.einsum_program(text, inputs=given, database=connection)
        only = ["A"] if source == "append-only" else []
        self.kept = self.program.maintain("kept", connection, append_only=only)

    def _next(self, count: int, low: int = 1) -> str:
        keys, self.keys = self.keys[:count], self.keys[count:]
        values = [int(x) + self.big for x in self.rng.integers(low, 50, count)]
        return ", ".join(
            f"({i}, {j}, {x})" for (i, j), x in zip(keys, values, strict=True) if (i, j) != (11, 29)
        )

    def insert(self, count: int, low: int = 1) -> Any:
        new = f"FROM (VALUES {self._next(count, low)}) t(i, j, val)"
        relation = self.connection.sql(new)
        if self.source != "told":
            self.connection.execute(f"INSERT INTO A {new}")
        if self.source in ("told", "applied"):
            return self.kept.refresh(
                way="differences", inserted={"A": relation}, applied=self.source == "applied"
            )
        return self.kept.refresh(way="differences")


@pytest.mark.sample(2)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("text", "fill"),
    [
        ("T[i] max= A[i,j]", 0.0),
        ("T[i] max= A[i,j] * x[j]", 0.0),
        ("T[] max= A[i,j]", 0.0),
        ("T[i] min= A[i,j]", float("inf")),
        ("T[j] min= A[i,j] + x[j]", float("inf")),
        ("T[i] any= A[i,j] > 20", 0.0),
        ("T[] any= A[i,j]", 0.0),
        ("T[i] all= A[i,j] < 40", 0.0),
        ("T[i,k] max= A[i,j] * A[k,j]", 0.0),
    ],
)
@pytest.mark.parametrize("route", ["native", "arrow"])
def test_insertions(route: str, text: str, fill: float, kind: str, source: str) -> None:
    if fill and kind == "BIGINT":
        pytest.skip("no integer is infinite")
    connect = ucle.connect if route == "native" else duckdb.connect
    with connect() as connection:
        case = Case(connection, text, kind, source, fill)
        for count in (1, 5, 40):
            report = case.insert(count)
            assert [x.way for x in report.tensors] == ["differences"], report
            assert rows(connection.table("kept")) == expected(case.program, "T")


@pytest.mark.sample(2)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "text",
    ["T[i] min= A[i,j]", "T[i] max= -A[i,j]", "T[i] all= A[i,j] < 3", "T[i] max= 1 / A[i,j]"],
)
def test_terms_that_move_away(source: str, text: str) -> None:
    """In place of the fill, which may have been the extreme, there is another entry."""
    with ucle.connect() as connection:
        case = Case(connection, text, "DOUBLE", source, 0.0)
        case.connection.execute("DELETE FROM A WHERE i = 3")
        case.kept.drop()
        only = ["A"] if source == "append-only" else []
        case.kept = case.program.recompile().maintain("kept", connection, append_only=only)
        for count, low in ((30, -40), (30, 1)):
            case.insert(count, low)
            assert rows(connection.table("kept")) == expected(case.program, "T")


def test_a_row_that_is_full(routes: Routes) -> None:
    """The least of a row rises when the last of its zeros becomes an entry."""
    for connect in (ucle.connect, duckdb.connect):
        with connect() as connection:
            connection.execute(
                "CREATE TABLE A AS SELECT 0 AS i, j, j + 1.0 AS val FROM range(4) r(j)"
            )
            connection.execute("DELETE FROM A WHERE j = 2")
            program = ucle.einsum_program("T[i] min= A[i,j]", A="A", database=connection)
            kept = program.maintain("kept", connection)
            assert rows(connection.table("kept")) == []
            connection.execute("INSERT INTO A VALUES (0, 2, 9.0)")
            report = kept.refresh(way="differences")
            assert report.tensors[0].way != "differences"
            assert rows(connection.table("kept")) == [(0, 1.0)]


def test_deletions_and_updates() -> None:
    """Affected keys are computed again."""
    with ucle.connect() as connection:
        case = Case(connection, "T[i] max= A[i,j]; u[] max= T[i]", "BIGINT", "comparison", 0.0)
        for change in (
            "DELETE FROM A WHERE val = (SELECT max(val) FROM A)",
            "UPDATE A SET val = val - 20 WHERE i = 4",
        ):
            connection.execute(change)
            report = case.kept.refresh(way="differences")
            assert "differences" not in [x.way for x in report.tensors]
            assert rows(connection.table("kept")) == expected(case.program, "u")


def test_what_follows_an_extreme() -> None:
    """An intermediate that got entries alone hands them on."""
    with ucle.connect() as connection:
        case = Case(connection, "T[i] max= A[i,j]; u[] max= T[i]", "DOUBLE", "comparison", 0.0)
        connection.execute("INSERT INTO A VALUES (20, 29, 1000)")
        case.kept.refresh()
        connection.execute("DELETE FROM A WHERE i = 7")
        case.kept.refresh()
        connection.execute("INSERT INTO A VALUES (7, 3, 2000)")
        report = case.kept.refresh(way="differences")
        assert [x.way for x in report.tensors] == ["differences", "differences"]
        assert rows(connection.table("kept")) == [(2000.0,)]
