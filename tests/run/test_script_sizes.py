"""Scripts over data whose sizes change: right, or an error before anything is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest
from test_view_sizes import CHANGES, OUTPUTS, TEXT, fill, keyed, total, unless_refused

import ucle

REFUSED = r"(is no longer|has grown beyond) \d+; call to_sql again"
SHAPED = "no longer has the shape 2 x 3; call to_sql again"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with ucle.connect() as opened:
        yield opened


def run(
    connection: duckdb.DuckDBPyConnection, script: str, pattern: str = REFUSED
) -> dict[str, list[Any]] | None:
    """The results of a script, whose tables are dropped; None if it refuses to make any."""
    before = temporary(connection)
    statements, *results = script.split("-- result ")
    if unless_refused(lambda: connection.execute(statements).fetchall(), pattern) is None:
        assert temporary(connection) == before  # nothing was made
        return None
    shown = (result.split("\n", 1) for result in results)
    rows = {name: connection.execute(query).fetchall() for name, query in shown}
    for name in temporary(connection) - before:
        connection.execute(f'DROP TABLE "{name}"')
    return rows


def temporary(connection: duckdb.DuckDBPyConnection) -> set[str]:
    query = "SELECT table_name FROM duckdb_tables() WHERE temporary"
    return {name for (name,) in connection.sql(query).fetchall()}


@pytest.mark.sample(4)
@pytest.mark.parametrize("keys", ["integers", "strings"])
@pytest.mark.parametrize("mode", ["relational", "auto", {"y": [], "gram": [], "mean": []}], ids=str)
def test_scripts_are_right_or_raise(
    connection: duckdb.DuckDBPyConnection, keys: str, mode: Any
) -> None:
    given = fill(connection, keys)
    program = ucle.einsum_program(
        TEXT, A=given, database=connection, decomposition=mode, outputs=OUTPUTS
    )
    script, refused = program.to_sql(), 0
    for change in CHANGES:
        connection.execute(keyed(change, keys)).fetchall()
        current = program.recompile()
        with current.execute() as result:
            for text in (script, current.to_sql()):
                if (shown := run(connection, text)) is None:
                    refused += 1
                    assert text == script  # the one that was just made fits
                    continue
                for name in OUTPUTS:
                    expected = result[name].to_numpy().sum()
                    assert total(shown[name]) == pytest.approx(expected), change
    assert 0 < refused < len(CHANGES)


def test_sizes_that_no_answer_depends_on(connection: duckdb.DuckDBPyConnection) -> None:
    fill(connection, "integers")
    program = ucle.einsum_program(
        "y[i] += A[i,j]", A="t", database=connection, decomposition="relational"
    )
    script = program.to_sql()
    assert "error(" not in script
    connection.execute("INSERT INTO t VALUES (9, 9, 2)").fetchall()
    rows = run(connection, script)
    assert rows is not None
    assert (9, 2.0) in rows["y"]


def test_bounds_and_arrays_limit_tables(connection: duckdb.DuckDBPyConnection) -> None:
    fill(connection, "integers")
    program = ucle.einsum_program(
        "y[i] += A[i,j] * x[j]",
        A=ucle.table("t", bounds=[6, None]),
        x=np.ones(5),
        database=connection,
        decomposition={"y": ["i"]},
    )
    script = program.to_sql()
    for row, fits in (("(5, 4, 2)", True), ("(5, 5, 2)", False)):
        connection.execute(f"INSERT INTO t VALUES {row}").fetchall()
        program.register(connection)
        assert (run(connection, script) is not None) == fits


def test_each_form_has_its_own(connection: duckdb.DuckDBPyConnection) -> None:
    """All rows of an output are as many as there are coordinates, those stored are not."""
    fill(connection, "integers")
    program = ucle.einsum_program(
        "y[i] += A[i,j]", A="t", database=connection, decomposition="relational"
    )
    every, stored = program.to_sql(rows="all"), program.to_sql()
    assert "error(" in every
    assert "error(" not in stored
    assert program.to_sql(rows="all") == every


def test_arrays_of_another_shape(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE d AS SELECT 0 AS i, [[1.0, 2, 3], [4, 5, 6]] AS v").fetchall()
    program = ucle.einsum_program("y[i] += D[i,j,k]", D="d", database=connection)
    script = program.to_sql()
    assert run(connection, script, SHAPED) is not None
    connection.execute("INSERT INTO d VALUES (0, [[1.0], [2]])").fetchall()
    assert run(connection, script, SHAPED) is None
