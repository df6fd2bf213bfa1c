"""Views and text files that are examined: computed once, and with the facts of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.database import computed_rows
from ucle.database.session import Session
from ucle.errors import CoordinateError, DuplicateCoordinatesError, InputError

TEXT = "y[i] += A[i,j]; z = max[i,j](A[i,j])"
COPY = "ucle_computed_rows"


@pytest.fixture(params=[True, False], ids=["native", "arrow"])
def connection(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[duckdb.DuckDBPyConnection]:
    monkeypatch.setattr(computed_rows, "LEAST_ROWS", 100)
    with ucle.connect() if request.param else duckdb.connect() as opened:
        opened.execute(
            "CREATE TABLE t AS SELECT (hash(n) % 40)::INT AS i, (hash(n + 9) % 30)::INT AS j, "
            "(n % 5)::DOUBLE AS v FROM range(2000) r(n)"
        ).fetchall()
        opened.execute("CREATE VIEW w AS SELECT i, j, sum(v) AS v FROM t GROUP BY ALL").fetchall()
        opened.execute("CREATE VIEW plain AS SELECT i, j, v FROM t WHERE v > 9").fetchall()
        yield opened


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries over data that sessions run."""
    read, seen = Session.read, list[str]()

    def watch(session: Session, sql: str, where: str = "database") -> Any:
        seen.append(sql)
        return read(session, sql, where)

    monkeypatch.setattr(Session, "read", watch)
    return seen


def compile_(connection: duckdb.DuckDBPyConnection, of: Any = "w") -> ucle.EinsumProgram:
    return ucle.einsum_program(TEXT, A=of, database=connection)


def evaluations(reads: list[str], of: str = "w") -> list[str]:
    """The queries that compute a view, or parse a file."""
    named = (f'"{of}"', f"'{of}'")
    passing = ("DESCRIBE", "EXPLAIN")
    return [x for x in reads if any(name in x for name in named) and not x.startswith(passing)]


def test_views_are_computed_once(connection: duckdb.DuckDBPyConnection, reads: list[str]) -> None:
    program = compile_(connection)
    assert len(evaluations(reads)) == 1
    reads.clear()
    with program.execute() as result:
        assert len(evaluations(reads)) == 1
        expected = np.zeros(40)
        for i, total in connection.sql("SELECT i, sum(v) FROM t GROUP BY i").fetchall():
            expected[i] = total
        np.testing.assert_allclose(result["y"].to_numpy(), expected)
    assert COPY not in str(connection.sql("FROM duckdb_tables()").fetchall())


def test_facts_are_those_of_a_table(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE same AS FROM w").fetchall()
    one, other = (compile_(connection, x).compiled.front.inputs["A"] for x in ("w", "same"))
    assert one.statistics == other.statistics
    assert one.values == other.values
    assert [x.size for x in one.bounds] == [x.size for x in other.bounds]


def test_scans_are_not_copied(connection: duckdb.DuckDBPyConnection, reads: list[str]) -> None:
    compile_(connection, ucle.table("plain", bounds=[40, 30]))
    assert COPY not in "".join(reads)


def test_lists_of_different_lengths(
    connection: duckdb.DuckDBPyConnection, reads: list[str]
) -> None:
    connection.execute(
        "CREATE VIEW lists AS SELECT i, list(v ORDER BY v) AS v FROM w GROUP BY i"
    ).fetchall()
    ragged = ucle.table("lists", ["i"], "v", ragged="place")
    program = ucle.einsum_program("y += A[i,p]", A=ragged, database=connection)
    assert sum(x.startswith("CREATE") for x in reads) == 1
    with program.execute() as result:
        ((total,),) = connection.sql("SELECT sum(v) FROM t").fetchall()
        assert result["y"].to_numpy() == total


def test_text_is_parsed_once(
    connection: duckdb.DuckDBPyConnection, reads: list[str], tmp_path: Path
) -> None:
    path = str(tmp_path / "entries.csv")
    connection.execute(f"COPY (FROM w) TO '{path}'").fetchall()
    compile_(connection, path)
    typed = [x for x in evaluations(reads, path) if "'v': 'DOUBLE'" in x]
    assert sum(x.startswith("CREATE") for x in typed) == 1
    assert len(typed) == 3  # its types are found, and rows counted, as many would be noted


@pytest.mark.parametrize(
    ("row", "error"),
    [("(1, 1, 1), (1, 1, 2)", DuplicateCoordinatesError), ("(-1, 1, 1)", CoordinateError)],
)
def test_errors_name_the_view(
    connection: duckdb.DuckDBPyConnection, row: str, error: type[InputError]
) -> None:
    connection.execute(
        f"CREATE VIEW wrong AS SELECT DISTINCT * FROM (FROM w UNION ALL VALUES {row})"
    ).fetchall()
    with pytest.raises(error, match="wrong") as raised:
        compile_(connection, "wrong")
    assert COPY not in str(raised.value)
    assert COPY not in str(connection.sql("FROM duckdb_tables()").fetchall())


def test_failing_views(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE VIEW fails AS SELECT i, j, CASE WHEN count(*) < 0 THEN 1.0 ELSE "
        "error('no ' || 'number') END AS v FROM t GROUP BY ALL"
    ).fetchall()
    with pytest.raises(InputError, match="no number"):
        compile_(connection, "fails")


def test_without_space(
    connection: duckdb.DuckDBPyConnection, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that cannot be made is done without."""
    refuse = "SELECT error('no space')"
    monkeypatch.setattr(computed_rows, "create_table", lambda *_, **__: refuse)
    with compile_(connection).execute() as result:
        (found,) = connection.sql("SELECT max(v) FROM w").fetchall()
        assert result["z"].to_numpy() == found[0]
    assert refuse in reads


def test_in_a_transaction(connection: duckdb.DuckDBPyConnection, reads: list[str]) -> None:
    connection.execute("BEGIN").fetchall()
    compile_(connection)
    connection.execute("COMMIT").fetchall()
    assert COPY not in "".join(reads)
    assert len(evaluations(reads)) > 1
