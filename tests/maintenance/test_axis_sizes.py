"""Axes that one input makes longer than another: each statement has the sizes of the whole text."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

import ucle

TEXT = "M[i] max= A[i,j]; E[i] = sum[j](A[i,j] * x[j]); n[] = min[i](E[i] + 40)"
WAYS = ("auto", "affected keys", "from scratch", "a script")


def create(connection: duckdb.DuckDBPyConnection, words: bool) -> list[str]:
    """Make a table of 3 x 3 entries and a longer one; return how coordinates are written."""
    kind = "VARCHAR" if words else "BIGINT"
    places = [f"'n{n}'" if words else str(n) for n in range(7)]
    connection.execute(f"CREATE TABLE A (i {kind}, j {kind}, val DOUBLE)")
    connection.execute(f"CREATE TABLE x (j {kind}, val DOUBLE)")
    for i in range(3):
        for j in range(i == 0, 3):
            row = f"{places[i]}, {places[j]}, {-1.0 - i - j}"
            connection.execute(f"INSERT INTO A VALUES ({row})")
    for place in places:
        connection.execute(f"INSERT INTO x VALUES ({place}, 1)")
    return places


def check(
    connection: duckdb.DuckDBPyConnection, program: ucle.EinsumProgram, kept: ucle.Maintained
) -> None:
    """Compare what is kept with a full run."""
    with program.recompile().execute() as result:
        for name, table in kept.outputs.items():
            rows: Any = "nonfill" if result[name].type.rank else "all"
            expected = sorted(result[name].shown(rows=rows).fetchall())
            assert sorted(connection.table(table).fetchall()) == expected, name


@pytest.mark.sample(3)
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_axes_that_another_input_makes_longer(words: bool, way: str) -> None:
    """All rows of A are there for three columns; there are seven of them, four of which are 0."""
    with ucle.connect() as connection:
        places = create(connection, words)
        outputs = ["M", "E", "n"]
        program = ucle.einsum_program(TEXT, A="A", x="x", database=connection, outputs=outputs)
        kept = program.maintain("kept", connection)
        first, third = places[0], places[2]
        connection.execute(f"CREATE TABLE come AS SELECT {first} AS i, {first} AS j, -5.0 AS val")
        connection.execute(f"CREATE TABLE gone AS FROM A WHERE i = {third} AND j = {first}")
        if way == "a script":
            connection.execute(kept.to_sql(inserted={"A": "come"}, deleted={"A": "gone"}))
        else:
            kept.refresh(way=way, inserted={"A": "come"}, deleted={"A": "gone"})
        check(connection, program, kept)
        connection.execute(f"DELETE FROM x WHERE j IN ({first}, {places[4]})")
        kept.refresh(way="auto" if way == "a script" else way)
        check(connection, program, kept)
