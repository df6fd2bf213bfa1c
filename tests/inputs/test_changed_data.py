"""One program on data that changes: right answers, refusals, and words about stale statistics."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import ucle
from ucle.errors import BoundError, DuplicateCoordinatesError
from ucle.foundation.dtypes import same_value
from ucle.inputs.table_changes import is_stale
from ucle.run import current_data
from ucle.stats import measure

SIZE = 50
GRAM = "y[i,k] += A[i,j] * A[k,j]"
DECOMPOSITIONS = ["relational", "auto", {"y": []}, {"y": ["i"]}]


@pytest.fixture(params=["memory", "file"])
def connection(request: Any, tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    path = ":memory:" if request.param == "memory" else tmp_path / "data.db"
    with ucle.connect(path) as opened:
        opened.execute(
            f"CREATE TABLE t AS SELECT i::INT AS i, ((i * 7) % {SIZE})::INT AS j, "
            f"(i / 2)::DOUBLE AS v FROM range({SIZE}) s(i)"
        ).fetchall()
        opened.execute("CREATE VIEW seen AS FROM t").fetchall()
        yield opened


def matrix(connection: duckdb.DuckDBPyConnection) -> Any:
    made = np.zeros((SIZE + 11, SIZE + 11))
    for i, j, value in connection.sql("FROM t").fetchall():
        made[i, j] += value
    return made


@pytest.mark.sample(2)
@pytest.mark.parametrize("relation", ["t", "seen"])
@pytest.mark.parametrize("decomposition", DECOMPOSITIONS, ids=str)
def test_changes_are_followed(
    connection: duckdb.DuckDBPyConnection, relation: str, decomposition: Any
) -> None:
    program = ucle.einsum_program(
        GRAM, A=relation, database=connection, decomposition=decomposition
    )
    for change in (
        "INSERT INTO t VALUES (3, 5, 2)",
        "UPDATE t SET v = v + 1",
        "UPDATE t SET v = v * 2 WHERE i < 9",
        "DELETE FROM t WHERE i = 7",
        "INSERT INTO t SELECT i, j + 10, 1 FROM t WHERE j < 10",
    ):
        connection.execute(change).fetchall()
        with warnings.catch_warnings(), program.execute() as result:
            warnings.simplefilter("error")
            expected = matrix(connection) @ matrix(connection).T
            np.testing.assert_allclose(
                result["y"].to_numpy(), expected[:SIZE, :SIZE], err_msg=change
            )
    for change in (
        "INSERT INTO t VALUES (60, 5, 1)",
        "UPDATE t SET j = 60 WHERE i = 41",
        "DELETE FROM t WHERE i > 30 OR j > 20",
    ):
        connection.execute(change).fetchall()
        with program.execute() as result:
            expected = matrix(connection) @ matrix(connection).T
            found = result["y"].to_numpy()
            ((size,),) = connection.sql("SELECT max(i) + 1 FROM t").fetchall()
            np.testing.assert_allclose(found, expected[:size, :size], err_msg=change)


QUOTIENTS = (
    "y[i,j] = A[i,j] / sum[k](A[i,k])",
    "y[i,j] = A[i,j] / sqrt(sum[k](A[i,k]) * sum[k](A[k,j]))",
    "y[i,j] = A[i,j] * log(5 / count[k](A[i,k]))",
    "y[i,j] = A[i,j] * sum[k](A[i,k]) ^ -0.5",
    "y[i,j] = A[i,j] * sqrt(sum[k](A[i,k]) - 0.5)",
    "y[i,j] = A[i,j] * log1p(sum[k](A[i,k]) - 1.5)",
    "y[i,j] = A[i,j] * (1 - logsumexp[k](A[i,k] - 1))",
    "d[i] = max[k](A[i,k])\ny[i,j] = when(A[i,j], 1 / d[j])",
    "y[i,j] = A[i,j] / (1 + A[j,i])",
    "y[i,j] = A[i,j] / (sum[k](A[i,k] * A[k,j]) - 0.5)",
)
WAYS: dict[str, Any] = {
    "t": "t",
    "view": "seen",
    "ids": ucle.table("named", coordinates="dictionary"),
    "arrays": "arrays",
    "sums": ucle.table("halves", duplicates="sum"),
}


# Every two of a program, a way and a size meet.
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("text", "way", "large"),
    [
        (text, way, (m + n) % 2 > 0)
        for m, text in enumerate(QUOTIENTS)
        for n, way in enumerate(WAYS)
    ],
)
def test_what_is_stored_does_not_depend_on_what_was_there_before(
    text: str, way: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes lose their last edge and get it back: as in a program that is compiled then."""
    if large:
        monkeypatch.setattr(measure, "EXACT_ENTRIES", 1)
        monkeypatch.setattr(measure, "EXACT_DEGREES", 0)
    with ucle.connect() as connection:
        for sql in (
            "CREATE TABLE t AS SELECT i::INT i, j::INT j, 1.0 + (i + j) % 3 v "
            "FROM range(9) a(i), range(9) b(j) WHERE j IN (i, (i * 2 + 1) % 9)",
            "CREATE VIEW seen AS FROM t",
            "CREATE VIEW named AS SELECT 'n' || i i, 'n' || j j, v FROM t",
            "CREATE VIEW halves AS SELECT i, j, v / 2 v FROM t, range(2)",
            "CREATE VIEW arrays AS SELECT i::INT i, list(coalesce(v, 0.0) ORDER BY j) v "
            "FROM (FROM range(9) a(i), range(9) b(j)) LEFT JOIN t USING (i, j) GROUP BY i",
        ):
            connection.execute(sql).fetchall()
        program = ucle.einsum_program(text, A=WAYS[way], database=connection)
        for sql in (
            "UPDATE t SET v = v + 1",
            "DELETE FROM t WHERE i = 4",
            "INSERT INTO t VALUES (4, 0, 2), (4, 4, 1)",
            "UPDATE t SET v = 0 WHERE i = 5",
            "UPDATE t SET v = 2 WHERE i = 5 AND j = 5",
            "DELETE FROM t WHERE j = 8",
        ):
            connection.execute(sql).fetchall()
            again = ucle.einsum_program(text, A=WAYS[way], database=connection)
            with program.execute() as result, again.execute() as expected:
                fill = again.compiled.program.types["y"].fill
                assert same_value(result["y"].fill, fill), sql
                assert same_value(expected["y"].fill, fill), sql
                found, rows = (x["y"].to_pandas() for x in (result, expected))
                keys = list(rows.columns[:-1])
                found, rows = (x.sort_values(keys, ignore_index=True) for x in (found, rows))
                pd.testing.assert_frame_equal(found, rows, obj=sql)


@pytest.mark.sample(4)
@pytest.mark.parametrize("relation", ["t", "seen"])
@pytest.mark.parametrize("decomposition", DECOMPOSITIONS, ids=str)
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("INSERT INTO t VALUES (60, 5, 1)", BoundError),
        ("UPDATE t SET v = v + 1; UPDATE t SET j = 60 WHERE i = 1", BoundError),
        ("INSERT INTO t FROM t", DuplicateCoordinatesError),
    ],
)
def test_what_does_not_fit_is_refused(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    decomposition: Any,
    change: str,
    error: type[Exception],
) -> None:
    """Also of views, and of the second change, which DuckDB's catalogue says nothing of."""
    program = ucle.einsum_program(
        GRAM,
        A=relation,
        database=connection,
        decomposition=decomposition,
        bounds={"i": SIZE, "j": SIZE, "k": SIZE},
    )
    *first, last = change.split(";")
    for statement in first:
        connection.execute(statement).fetchall()
        program.execute().close()
    connection.execute(last).fetchall()
    for _ in range(2):
        with pytest.raises(error):
            program.execute()


def many(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    connection.execute(
        f"CREATE OR REPLACE TABLE m AS SELECT (i % 200)::INT AS i, (i // 200)::INT AS j, 1.0 AS v "
        f"FROM range({rows}) s(i)"
    ).fetchall()


@pytest.mark.sample(2)
@pytest.mark.parametrize(("before", "after"), [(900, 20_000), (20_000, 900)])
def test_stale_statistics_are_pointed_out(
    connection: duckdb.DuckDBPyConnection, before: int, after: int
) -> None:
    many(connection, before)
    program = ucle.einsum_program(
        "y[i] += A[i,j]", A=ucle.table("m", bounds=[200, 100]), database=connection
    )
    assert program.drift() == ()
    many(connection, after)
    with pytest.warns(ucle.StaleStatisticsWarning, match=r"A \(m\) held"):
        result = program.execute()
    assert result["y"].to_numpy().sum() == after  # right all the same
    (drift,) = program.drift()
    assert (drift.tensor, drift.source) == ("A", "m")
    assert (drift.compiled, drift.found) == (before, after)
    again = program.recompile()
    assert again.drift() == ()
    with warnings.catch_warnings(), again.execute() as result:
        warnings.simplefilter("error")
        assert result["y"].to_numpy().sum() == after
    many(connection, before)  # as it was
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.execute().close()


def test_the_warning_is_of_the_caller_and_can_be_an_error(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    many(connection, 900)
    program = ucle.einsum_program(
        "y[i] += A[i,j]", A=ucle.table("m", bounds=[200, 100]), database=connection
    )
    many(connection, 20_000)
    with pytest.warns(ucle.StaleStatisticsWarning) as caught:
        program.execute().close()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ucle.StaleStatisticsWarning):
            program.execute()
    tables = "SELECT count(*) FROM duckdb_tables() WHERE temporary"
    assert connection.sql(tables).fetchall() == [(0,)]


def test_a_moderate_change_is_not_worth_a_word(connection: duckdb.DuckDBPyConnection) -> None:
    many(connection, 5_000)
    program = ucle.einsum_program(
        "y[i] += A[i,j]", A=ucle.table("m", bounds=[200, 200]), database=connection
    )
    many(connection, 30_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.execute().close()


@pytest.mark.parametrize("large", [False, True])
def test_rows_that_are_added_up_count_once(
    connection: duckdb.DuckDBPyConnection, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of many rows for each position is not stale because it is a log."""
    if large:
        monkeypatch.setattr(measure, "EXACT_ENTRIES", 1)
    connection.execute("CREATE TABLE log AS SELECT i % 1000 AS i FROM range(20000) s(i)")
    given = ucle.table("log", ["i"], duplicates="sum", bounds=[1000])
    program = ucle.einsum_program("y[i] = 2 * A[i]", A=given, database=connection)
    connection.execute("INSERT INTO log SELECT i % 1000 FROM range(10) s(i)").fetchall()
    assert program.drift() == ()
    with program.execute() as result:
        assert result["y"].to_numpy().sum() == 2 * 20010


@pytest.mark.parametrize(
    ("compiled", "found", "stale"),
    [(0, 10_000, True), (0, 9_999, False), (1_000, 10_000, False), (1_000, 10_001, True)],
)
def test_is_stale(compiled: int, found: int, stale: bool) -> None:
    assert is_stale(compiled, found) is stale
    assert is_stale(found, compiled) is stale


def test_recompile_keeps_what_was_asked_for(connection: duckdb.DuckDBPyConnection) -> None:
    weights = np.arange(float(SIZE))
    text = "T[i] += A[i,j] * w[j]; Z[i] = T[i] + 1"
    program = ucle.einsum_program(
        text, A="t", w=weights, database=connection, outputs=["T"], decomposition="relational"
    )
    connection.execute("DELETE FROM t WHERE i > 40").fetchall()
    again = program.recompile()
    assert again.outputs == ("T",)
    assert again.route == "plain"
    with again.execute() as result:
        expected = (matrix(connection)[:, :SIZE] @ weights)[:41]
        np.testing.assert_allclose(result["T"].to_numpy(), expected)
    for plan in program.plans(3):
        made = plan.recompile()
        assert made.compiled.decomposed.promoted == plan.compiled.decomposed.promoted


def test_recompile_on_another_database(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    program = ucle.einsum_program("y[i] += A[i,j]", A="t", database=connection)
    other = tmp_path / "other.db"
    with duckdb.connect(str(other)) as made:
        made.execute("CREATE TABLE t AS SELECT 70 AS i, 80 AS j, 2.5 AS v").fetchall()
    for made in (program, program.recompile(str(other))):
        with made.execute(str(other)) as result:
            assert result["y"].to_numpy()[70] == 2.5
            assert result["y"].to_numpy().shape == (71,)


def test_another_decomposition_reads_no_inputs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[object] = []
    real = current_data.follow_data
    monkeypatch.setattr(
        current_data, "follow_data", lambda *args: (followed.append(args), real(*args))[1]
    )
    with ucle.connect() as one, ucle.connect() as other:
        for database in (one, other):
            database.execute("CREATE TABLE A AS SELECT i, i % 3 AS j, 2.0 AS w FROM range(9) t(i)")
        program = ucle.einsum_program("y[j] += A[i,j]", A="A", database=one)
        program.execute(other)["y"].to_numpy()
        assert len(followed) == 1  # another database: all checks
        for decomposition in ("relational", {"y": ()}):
            again = program.with_decomposition(decomposition)
            for database in (one, other):
                assert again.execute(database)["y"].to_numpy().tolist() == [6, 6, 6]
        assert len(followed) == 1
        other.execute("INSERT INTO A VALUES (0, 0, 1.0)")
        with pytest.raises(DuplicateCoordinatesError):
            again.with_decomposition("auto").execute(other)["y"].to_numpy()
        other.execute("DELETE FROM A WHERE i = 0")
        assert again.execute(other)["y"].to_numpy().tolist() == [4, 6, 6]
