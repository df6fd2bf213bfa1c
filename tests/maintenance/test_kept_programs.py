"""A second refresh of the same kind compiles nothing; what a program relies on is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest

import ucle
from ucle.language.syntax_to_text import statement_text
from ucle.maintenance import candidates, kept_programs

TEXT = "T[i,k] += A[i,j] * H[j,k]; Z[i,k] = relu(T[i,k])"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The outputs of all programs that refreshes compile."""
    found: list[object] = []
    compile_sized = kept_programs.compile_sized

    def count(session: Any, resolved: Any, sized: Any, options: Any) -> Any:
        found.append(options.outputs)
        return compile_sized(session, resolved, sized, options)

    monkeypatch.setattr(kept_programs, "compile_sized", count)
    return found


def new_database() -> duckdb.DuckDBPyConnection:
    connection = ucle.connect()
    connection.execute(
        "CREATE TABLE A AS SELECT i, j, 1.0::DOUBLE AS val FROM range(20) a(i), range(20) b(j) "
        "WHERE (i * j) % 3 = 0"
    )
    connection.execute(
        "CREATE TABLE H AS SELECT j, k, (j - k)::DOUBLE AS val FROM range(20) a(j), range(3) b(k)"
    )
    return connection


def check(connection: duckdb.DuckDBPyConnection) -> None:
    program = ucle.einsum_program(TEXT, A="A", H="H", database=connection)
    with program.execute() as result:
        expected = sorted(result["Z"].shown(rows="nonfill").fetchall())
    assert repr(sorted(connection.sql("FROM kept").fetchall())) == repr(expected)  # NaN, too


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", ["affected keys", "differences", "from scratch"])
def test_nothing_is_compiled_again(way: str, compiled: list[object]) -> None:
    with new_database() as connection:
        program = ucle.einsum_program(TEXT, A="A", H="H", database=connection)
        kept = program.maintain("kept", connection)
        for number in range(4):
            connection.execute(
                f"INSERT INTO A VALUES (19, {number + 1}, 2.0)"
                if number != 2
                else "UPDATE A SET val = val + 1 WHERE i = 3 AND j = 4"
            )
            before = len(compiled)
            kept.refresh(way=way)
            check(connection)
            if number == 1:
                assert len(compiled) == before
        again = ucle.maintained("kept", connection)
        connection.execute("INSERT INTO A VALUES (19, 7, 2.0)")
        before = len(compiled)
        again.refresh(way=way)
        assert len(compiled) == before
        check(connection)
        ucle.clear_caches()
        connection.execute("INSERT INTO A VALUES (19, 8, 2.0)")
        again.refresh(way=way)
        assert len(compiled) > before


def test_few_and_many_rows_in_turn(compiled: list[object]) -> None:
    """Each amount of changed rows has programs of its own, and those of both are kept."""
    with new_database() as connection:
        connection.execute(
            "CREATE OR REPLACE TABLE A AS SELECT i, j, 1.0::DOUBLE AS val "
            "FROM range(200) a(i), range(20) b(j) WHERE (i * j) % 3 = 0"
        )
        program = ucle.einsum_program(
            TEXT, A="A", H="H", database=connection, bounds={"i": 400, "j": 20}
        )
        kept = program.maintain("kept", connection, append_only=["A"])
        counts = []
        for start, rows in ((200, 1), (201, 30), (235, 1), (236, 30)):
            connection.execute(
                "INSERT INTO A SELECT $1 + n, j, 2.0 FROM range($2) a(n), range(20) b(j) "
                "WHERE $2 > 1 OR j = 7",
                [start, rows],
            )
            before = len(compiled)
            kept.refresh(way="affected keys")
            counts.append(len(compiled) - before)
            check(connection)
    few, many, *again = counts
    assert few > 0
    assert many > 0, "a plan for one row was taken for 600"
    assert again == [0, 0]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether programs fit other facts, as far as that is asked."""
    answers: list[bool] = []
    fits_data = kept_programs.fits_data

    def ask(*arguments: Any) -> bool:
        answers.append(fits_data(*arguments))
        return answers[-1]

    monkeypatch.setattr(kept_programs, "fits_data", ask)
    return answers


def test_what_fits_is_remembered(asked: list[bool]) -> None:
    """Whether a program fits other facts is asked once for these facts."""
    with new_database() as connection:
        program = ucle.einsum_program(TEXT, A="A", H="H", database=connection)
        kept = program.maintain("kept", connection)
        found = []
        for number, value in enumerate((2.0, 3.0, 3.0, 2.5, 4.0, 4.0)):  # new largest values
            connection.execute(f"INSERT INTO A VALUES (19, {3 * number + 1}, {value})")
            asked.clear()
            kept.refresh(way="from scratch")
            found.append(list(asked))
            check(connection)
    assert [set(x) for x in found] == [set(), {True}, set(), set(), {True}, set()]


def test_facts_that_come_and_go(asked: list[bool]) -> None:
    """That changed rows have a row or a column in common holds for few rows by chance."""
    with new_database() as connection:
        program = ucle.einsum_program(TEXT, A="A", H="H", database=connection)
        kept = program.maintain("kept", connection)
        found = []
        row, column = "(1, {0}, 2.0), (1, {1}, 2.0)", "({0}, 1, 2.0), ({1}, 1, 2.0)"
        other = "(1, {0}, 2.0), (2, {0}, 2.0), (2, {1}, 2.0)"
        for number, rows in enumerate((row, column, other, column, other)):
            new = rows.format(4 + 3 * number, 5 + 3 * number)
            connection.execute(f"INSERT INTO A VALUES {new}")
            asked.clear()
            kept.refresh(way="affected keys")
            found.append(bool(asked))
            check(connection)
    assert found == [False, True, True, False, False]


@pytest.mark.parametrize("connect", [ucle.connect, duckdb.connect])
def test_masks_leave_out_what_is_everywhere(
    monkeypatch: pytest.MonkeyPatch, connect: Callable[[], duckdb.DuckDBPyConnection]
) -> None:
    """A join with all rows of a full factor would leave out no key."""
    texts: list[str] = []
    kept_program = candidates.kept_program

    def note(statements: Any, *others: Any) -> Any:
        texts.extend(map(statement_text, statements))
        return kept_program(statements, *others)

    monkeypatch.setattr(candidates, "kept_program", note)
    with connect() as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT i, j, (i + j)::DOUBLE AS val FROM range(20) a(i), "
            "range(20) b(j) WHERE (i * j) % 3 = 1"
        )
        for name in ("r", "x"):
            connection.execute(
                f"CREATE TABLE {name} AS SELECT i, i + 1.0::DOUBLE AS val FROM range(20) a(i)"
            )
        given = {"A": "A", "r": "r", "x": "x"}
        program = ucle.einsum_program(
            "T[j] += A[i,j] * r[i] * x[i]", inputs=given, database=connection
        )
        kept = program.maintain("kept", connection)
        for is_full in (True, False):
            if not is_full:
                connection.execute("DELETE FROM r WHERE i < 15 AND i % 2 = 0")
                kept.refresh()
            connection.execute("UPDATE x SET val = val + 1 WHERE i IN (2, 5)")
            texts.clear()
            kept.refresh(way="affected keys")
            masks = [x for x in texts if "x_changed" in x]
            assert any("A[i,j] != 0" in x for x in masks)
            assert any("r[i] != 0" in x for x in masks) is not is_full
            with program.recompile().execute() as result:
                expected = sorted(result["T"].shown(rows="nonfill").fetchall())
            assert sorted(connection.sql("FROM kept").fetchall()) == expected


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", ["affected keys", "differences", "from scratch"])
@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO A VALUES (25, 1, 2.0)",
        "INSERT INTO A VALUES (2, 30, 2.0); INSERT INTO H VALUES (30, 1, 4.0)",
        "INSERT INTO H VALUES (3, 9, 4.0)",
        "UPDATE A SET val = -val WHERE i = 3",
        "UPDATE A SET val = 'inf' WHERE i = 3 AND j = 5",
        "UPDATE A SET val = 'nan' WHERE i = 3 AND j = 5",
        "DELETE FROM A WHERE i > 4",
        "DELETE FROM A",
        "ALTER TABLE A ALTER val TYPE INTEGER",
        "ALTER TABLE H ALTER val TYPE FLOAT; ALTER TABLE A ALTER val TYPE FLOAT",
        "ALTER TABLE A ALTER i TYPE INTEGER",
        "ALTER TABLE A ADD COLUMN note VARCHAR; ALTER TABLE A DROP COLUMN note",
        "CREATE OR REPLACE TABLE A AS SELECT j AS i, i AS j, val FROM A",
        "INSERT INTO A SELECT i + 100, j, val FROM A, range(1)",
    ],
)
def test_other_data(way: str, change: str, compiled: list[object]) -> None:
    """A program that is kept is not run on data that it does not fit."""
    with new_database() as connection:
        program = ucle.einsum_program(TEXT, A="A", H="H", database=connection)
        kept = program.maintain("kept", connection)
        for number in range(2):
            connection.execute(f"INSERT INTO A VALUES (19, {number + 1}, 2.0)")
            kept.refresh(way=way)
        connection.execute(change)
        kept.refresh(way=way)
        check(connection)
        connection.execute("INSERT INTO A BY NAME SELECT 19 AS i, 10 AS j, 7 AS val")
        kept.refresh(way=way)
        check(connection)


def test_other_resources(compiled: list[object]) -> None:
    with new_database() as connection:
        program = ucle.einsum_program(TEXT, A="A", H="H", database=connection)
        kept = program.maintain("kept", connection)
        for number, setting in enumerate(("4", "4", "1")):
            connection.execute(f"SET threads = {setting}")
            connection.execute(f"INSERT INTO A VALUES (19, {3 * number + 1}, 2.0)")
            before = len(compiled)
            kept.refresh(way="affected keys")
            assert (len(compiled) > before) is (number != 1)
        check(connection)
