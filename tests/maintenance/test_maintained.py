"""Maintained programs as a pipeline meets them: other processes, hand-made changes, failures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.database.macro_check import open_checked
from ucle.database.statistics_cache import cover_facts
from ucle.database.statistics_store import read_facts
from ucle.errors import (
    DatabaseError,
    DuplicateCoordinatesError,
    MaintenanceError,
    NameResolutionError,
    NumberRangeError,
    UcleError,
    UnsupportedError,
)
from ucle.maintenance import facts
from ucle.maintenance.kept_documents import read_document
from ucle.stats.measure import MeasuredInput

TEXT = "T[i] += A[i,j] * x[j]; Z[i] = relu(T[i] - 1)"


def new_database(path: str = ":memory:") -> duckdb.DuckDBPyConnection:
    connection = ucle.connect(path)
    connection.execute(
        "CREATE TABLE A AS SELECT i % 7 AS i, i AS j, 1.0 AS val FROM range(20) r(i)"
    )
    connection.execute("CREATE TABLE x AS SELECT j, 0.5 * j AS val FROM range(20) r(j)")
    return connection


def new_program(connection: duckdb.DuckDBPyConnection) -> ucle.EinsumProgram:
    return ucle.einsum_program(TEXT, A="A", x="x", database=connection)


def kept_rows(connection: duckdb.DuckDBPyConnection, table: str = "scores") -> dict[int, float]:
    return dict(connection.sql(f"FROM {table}").fetchall())


def full_rows(connection: duckdb.DuckDBPyConnection) -> dict[int, float]:
    program = new_program(connection)
    return dict(program.execute()["Z"].shown(rows="nonfill").fetchall())


def tables_of(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {row[0] for row in connection.sql("SELECT table_name FROM duckdb_tables()").fetchall()}


def test_outputs_are_tables_and_changes_are_found() -> None:
    with new_database() as connection:
        kept = new_program(connection).maintain("scores", connection)
        assert kept.outputs == {"Z": "scores"}
        assert kept_rows(connection) == full_rows(connection)
        assert kept.refresh().changed == {}
        connection.execute("INSERT INTO A VALUES (2, 19, 4.0)")
        report = kept.refresh()
        assert report.changed == {"A": 1}
        assert report.rows >= 1
        assert "A (1 keys)" in str(report)
        assert kept_rows(connection) == full_rows(connection)


def test_nothing_is_computed_where_nothing_changed() -> None:
    """A change that leaves an intermediate as it was goes no further."""
    with new_database() as connection:
        kept = new_program(connection).maintain("scores", connection)
        connection.execute("UPDATE A SET val = 3 WHERE j = 0")  # times 0
        report = kept.refresh(way="affected keys")
        assert report.changed == {"A": 1}
        assert report.rows == 0


def test_several_outputs_and_schemas() -> None:
    with new_database() as connection:
        connection.execute("CREATE SCHEMA s")
        program = ucle.einsum_program(TEXT, A="A", x="x", database=connection, outputs=["T", "Z"])
        kept = program.maintain("s.scores", connection)
        assert kept.outputs == {"T": "s.scores_T", "Z": "s.scores_Z"}
        assert kept_rows(connection, "s.scores_Z") == full_rows(connection)


def test_another_process_refreshes(tmp_path: Path) -> None:
    path = str(tmp_path / "data.duckdb")
    with new_database(path) as connection:
        new_program(connection).maintain("scores", connection)
        connection.execute("INSERT INTO A VALUES (2, 19, 4.0)")
    code = f"import ucle; print(ucle.maintained('scores', {path!r}).refresh().changed)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "{'A': 1}"
    with ucle.connect(path) as connection:
        assert kept_rows(connection) == full_rows(connection)
        ucle.maintained("scores", connection).drop()
        assert tables_of(connection) == {"A", "x", "maintained", "maintained_parts"}


def test_a_table_that_others_changed_is_refused() -> None:
    with new_database() as connection:
        kept = new_program(connection).maintain("scores", connection)
        connection.execute("DELETE FROM scores WHERE i = 3")
        with pytest.raises(MaintenanceError, match="changed by others"):
            kept.refresh()
        kept.drop()
        assert tables_of(connection) == {"A", "x", "maintained", "maintained_parts"}
        with pytest.raises(NameResolutionError, match="'scores'"):
            kept.refresh()


def test_a_failed_refresh_leaves_everything_as_it_was() -> None:
    with new_database() as connection:
        kept = new_program(connection).maintain("scores", connection)
        before = kept_rows(connection)
        connection.execute("INSERT INTO A VALUES (-1, 3, 1.0)")
        with pytest.raises(UcleError, match="outside its bound"):
            kept.refresh()
        assert kept_rows(connection) == before
        connection.execute("DELETE FROM A WHERE i = -1")
        connection.execute("INSERT INTO A VALUES (3, 19, 1.0)")
        assert kept.refresh().changed == {"A": 1}
        assert kept_rows(connection) == full_rows(connection)


def test_an_error_in_the_middle() -> None:
    """The states of inputs are as before, too."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE x AS SELECT i, i AS val FROM range(5) r(i)")
        program = ucle.einsum_program("y[i] = x[i] * x[i]", x="x", database=connection)
        kept = program.maintain("squares", connection)
        state = connection.table('ucle."squares: state of x"')
        before = sorted(state.fetchall())
        connection.execute(f"INSERT INTO x VALUES (7, {2**62})")
        with pytest.raises(NumberRangeError):
            kept.refresh()
        assert sorted(state.fetchall()) == before
        connection.execute("DELETE FROM x WHERE i = 7")
        assert kept.refresh().changed == {}


def test_a_transaction_of_the_user() -> None:
    """A refresh is a part of it, and goes with it."""
    with new_database() as connection:
        kept = new_program(connection).maintain("scores", connection)
        before = kept_rows(connection)
        connection.begin()
        connection.execute("INSERT INTO A VALUES (2, 19, 4.0)")
        assert kept.refresh().changed == {"A": 1}
        assert kept_rows(connection) != before
        connection.rollback()
        assert kept_rows(connection) == before
        assert kept.refresh().changed == {}


def test_tables_that_only_grow() -> None:
    with new_database() as connection:
        kept = new_program(connection).maintain("scores", connection, append_only=["A"])
        connection.execute("INSERT INTO A VALUES (2, 19, 4.0), (30, 3, 1.0)")
        assert kept.refresh().changed == {"A": 2}
        assert kept_rows(connection) == full_rows(connection)
        assert kept.refresh().changed == {}
        connection.execute("DELETE FROM A WHERE i = 30")
        with pytest.raises(MaintenanceError, match="only appended"):
            kept.refresh()


def test_files_of_a_pattern(tmp_path: Path) -> None:
    with new_database() as connection:
        for part in range(2):
            connection.execute(
                f"COPY (SELECT * FROM A WHERE j % 2 = {part}) TO '{tmp_path}/part{part}.parquet'"
            )
        program = ucle.einsum_program(
            TEXT, A=f"{tmp_path}/part*.parquet", x="x", database=connection
        )
        kept = program.maintain("scores", connection)
        connection.execute(
            f"COPY (SELECT 2 AS i, 21 AS j, 1.0 AS val) TO '{tmp_path}/part2.parquet'"
        )
        connection.execute("INSERT INTO x VALUES (21, 7.0)")
        assert kept.refresh().changed == {"A": 1, "x": 1}
        connection.execute("INSERT INTO A VALUES (2, 21, 1.0)")
        assert kept_rows(connection) == full_rows(connection)


def test_what_cannot_be_maintained() -> None:
    with new_database() as connection:
        program = ucle.einsum_program(TEXT, A="A", x=np.ones(20), database=connection)
        with pytest.raises(UnsupportedError, match="input x"):
            program.maintain("scores", connection)
        assert tables_of(connection) == {"A", "x"}
        with pytest.raises(DatabaseError, match="already exists"):
            new_program(connection).maintain("A", connection)
        assert tables_of(connection) == {"A", "x"}
        with pytest.raises(NameResolutionError, match="maintain"):
            ucle.maintained("scores", connection)


def test_a_table_that_is_gone() -> None:
    with new_database() as connection:
        kept = new_program(connection).maintain("scores", connection)
        connection.execute("ALTER TABLE x RENAME TO y")
        with pytest.raises(UcleError):
            kept.refresh()
        connection.execute("ALTER TABLE y RENAME TO x")
        assert kept.refresh().changed == {}


def test_rows_that_repeat_others() -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE A AS SELECT range AS i, range * 1.0 AS val FROM range(9)")
        program = ucle.einsum_program("y[i] = 2 * A[i]", A="A", database=connection)
        kept = program.maintain("doubled", connection, append_only=["A"])
        connection.execute("INSERT INTO A VALUES (3, 1.0)")
        with pytest.raises(DuplicateCoordinatesError, match="i = 3"):
            kept.refresh()
        assert connection.sql("SELECT count(*), sum(val) FROM doubled").fetchall() == [(8, 72.0)]


@pytest.mark.parametrize("keys", ["ij", "ijk"])
def test_rows_that_repeat_others_at_several_keys(keys: str) -> None:
    """Rows are passed over by one key after the other, and compared by all of them together."""
    with ucle.connect() as connection:
        ranges = ", ".join(f"range(12) {x}({x})" for x in keys)
        connection.execute(
            f"CREATE TABLE A AS SELECT {', '.join(keys)}, 1.0 AS val FROM {ranges} "
            f"WHERE ({' + '.join(keys)}) % 2 = 0"
        )
        program = ucle.einsum_program(f"n[] += A[{','.join(keys)}]", A="A", database=connection)
        kept = program.maintain("total", connection, append_only=["A"])
        before = float(connection.sql("FROM total").fetchall()[0][0])
        rest = ", 2" * (len(keys) - 2)
        connection.execute(f"INSERT INTO A VALUES (3, 4{rest}, 1.0), (4, 3{rest}, 1.0)")
        assert kept.refresh().changed == {"A": 2}
        assert connection.sql("FROM total").fetchall() == [(before + 2,)]
        for old in ("3, 4", "3, 3"):
            connection.execute("BEGIN")
            connection.execute(f"INSERT INTO A VALUES (7, 4{rest}, 1.0), ({old}{rest}, 1.0)")
            with pytest.raises(DuplicateCoordinatesError, match=f"i = 3, j = {old[-1]}"):
                kept.refresh()
            connection.execute("ROLLBACK")


def test_facts_of_tables_that_only_grow() -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE A AS SELECT range AS i, range * 1.0 AS val FROM range(9)")
        program = ucle.einsum_program("m[i] = A[i] / max[j](A[j])", A="A", database=connection)
        kept = program.maintain("shares", connection, append_only=["A"])
        for row in ("(12, 20.0)", "(40, 40.0)", "(39, -5.0)"):
            connection.execute(f"INSERT INTO A VALUES {row}")
            kept.refresh()
            with program.recompile().execute() as result:
                expected = sorted(result["m"].shown(rows="nonfill").fetchall())
            assert sorted(connection.sql("FROM shares").fetchall()) == expected


def checked_facts(
    connection: duckdb.DuckDBPyConnection, program: ucle.EinsumProgram
) -> MeasuredInput:
    """Facts of A as they are noted, whose V is right; and what is kept of n is, too."""
    with program.recompile().execute() as result:
        expected = sorted(result["n"].shown(rows="nonfill").fetchall())
    assert sorted(connection.table("kept").fetchall()) == expected
    with open_checked(connection) as session:
        (watched,) = read_document(session, "kept").inputs
    found = read_facts(watched.facts, 2, ())
    assert found is not None
    v = connection.sql("SELECT count(DISTINCT i), count(DISTINCT j) FROM A").fetchall()
    assert [found.counts.get(axis, v[0][axis]) for axis in (0, 1)] == list(v[0])
    return found


@pytest.mark.sample(2)
@pytest.mark.parametrize("most", [0, 2, 500])
def test_coordinates_that_get_entries(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """V of a table that grows is counted, by the few coordinates without an entry, or by a scan."""
    monkeypatch.setattr(facts, "MOST_ABSENT", most)
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT 2 * i AS i, j, 1.0 AS val FROM range(5) a(i), range(3) b(j)"
        )
        program = ucle.einsum_program(
            "s[i] += A[i,j]; n[i] = 1 / s[i]", A="A", database=connection, outputs=["n"]
        )
        kept = program.maintain("kept", connection, append_only=["A"])
        for row in ("(1, 0, 2)", "(3, 1, 2), (5, 3, 1)", "(7, 6, 4)", "(10, 4, 3)", "(9, 5, 1)"):
            connection.execute(f"INSERT INTO A VALUES {row}")
            kept.refresh()
            found = checked_facts(connection, program)
            lacking = {axis for axis, n in enumerate(found.sizes) if n > found.distinct[axis]}
            noted = {axis for axis, _ in found.absent}
            assert noted == lacking if most == 500 else noted <= lacking


@pytest.mark.sample(2)
@pytest.mark.parametrize("most", [0, 2, 500])
def test_coordinates_that_lose_entries(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """V is counted where rows were told that are gone: few coordinates are looked for."""
    uncounted: list[int] = []

    def cover(*given: Any) -> MeasuredInput:
        uncounted.append(2 - len(given[4].counts))
        return cover_facts(*given)

    monkeypatch.setattr(facts, "MOST_ABSENT", most)
    monkeypatch.setattr(facts, "cover_facts", cover)
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT i, j, 1.0 + i AS val FROM range(9) a(i), range(8) b(j)"
        )
        program = ucle.einsum_program(
            "s[i] += A[i,j]; n[i] = 1 / s[i]", A="A", database=connection, outputs=["n"]
        )
        kept = program.maintain("kept", connection)
        uncounted.clear()
        changes = (
            ("i = 3 AND j < 7", ""),
            ("i = 3", "(1, 9, 7.0)"),
            ("j IN (2, 5) OR i = 6", "(4, 5, 8.0), (0, 1, 3.0)"),
            ("i = 1", "(3, 0, 1.0), (1, 0, 2.0)"),
            ("i = 8", "(6, 2, 1.0)"),
            ("j = 4", "(0, 4, 5.0), (4, 4, 5.0)"),
        )
        for where, come in changes:
            rows = f"FROM (VALUES {come}) t(i, j, val)" if come else "FROM A WHERE false"
            connection.execute(f"CREATE OR REPLACE TEMP TABLE come AS {rows}")
            connection.execute(
                "CREATE OR REPLACE TEMP TABLE gone AS SELECT i, j FROM A "
                f"WHERE ({where}) OR (i, j) IN (SELECT (i, j) FROM come)"
            )
            kept.refresh(inserted={"A": "come"}, deleted={"A": "gone"})
            found = checked_facts(connection, program)
            assert all(len(places) <= most for _, places in found.absent)
    assert most < 500 or not any(uncounted)


def test_an_appended_number() -> None:
    """A number without keys: nothing is not a change, and a second row of it is refused."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE e AS SELECT 2.0 AS val")
        program = ucle.einsum_program("T[] = 3 * e[]", e="e", database=connection)
        kept = program.maintain("kept", connection, append_only=["e"])
        assert kept.refresh().changed == {}
        connection.execute("INSERT INTO e VALUES (3.0)")
        with pytest.raises(DuplicateCoordinatesError):
            kept.refresh()
        assert connection.table("kept").fetchall() == [(6.0,)]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text",
    [
        "M[r,k] = 2 * forest[f,p](X[r,f], F[p,k])",
        "M[r,k] = 2 + forest[f,p](X[r,f], F[p,k]); s[k] += M[r,k]",
        "M[r] = 2 * cumsum[r](sum[f](X[r,f])) + sum[p,k](F[p,k])",
    ],
)
@pytest.mark.parametrize("way", ["auto", "affected keys"])
def test_parts_of_statements_are_not_kept(text: str, way: str) -> None:
    """A forest, or a scan, inside a statement: its own tensor has no name in the text."""
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE F AS FROM (VALUES (0, 0, 1), (1, 0, 5), (2, 0, 1), (3, 0, 2), "
            "(4, 0, 17), (11, 0, 3), (17, 0, 4)) t(p, k, val)"
        )
        connection.execute(
            "CREATE TABLE X AS SELECT r, f, 3.0 * r + f AS val FROM range(40) a(r), range(2) b(f)"
        )
        program = ucle.einsum_program(text, X="X", F="F", database=connection)
        kept = program.maintain("kept", connection)
        for _ in range(2):
            connection.execute("UPDATE X SET val = 20 - val WHERE r = 3")
            kept.refresh(way=way)
            with program.recompile().execute() as result:
                for name, table in kept.outputs.items():
                    expected = sorted(result[name].shown(rows="nonfill").fetchall())
                    assert sorted(connection.table(table).fetchall()) == expected


def test_categories_as_coordinates_are_refused_with_a_view_in_place_of_them() -> None:
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE shirts AS FROM (VALUES (1, 2.0, 'red'), (2, 3.0, 'blue')) "
            "t(id, price, colour)"
        )
        text = "total[f] += X[id,f]"
        features = ucle.table("shirts", ["id"], ["price", ucle.one_hot("colour")], columns_as="f")
        program = ucle.einsum_program(text, X=features, database=connection)
        with pytest.raises(UnsupportedError, match="one_hot of colour") as refused:
            program.maintain("totals", connection)
        assert "view" in str(refused.value.hint)
        connection.execute(
            "CREATE VIEW features AS SELECT id, price, (colour = 'red')::DOUBLE AS colour_red "
            "FROM shirts"
        )
        wide = ucle.table("features", ["id"], columns_as="f")
        program = ucle.einsum_program(text, X=wide, database=connection)
        kept = program.maintain("totals", connection)
        connection.execute("INSERT INTO shirts VALUES (3, 4.0, 'red')")
        kept.refresh()
        names = dict(connection.sql("FROM totals").fetchall())
        assert names == {"price": 9.0, "colour_red": 2.0}


@pytest.mark.sample(4)
@pytest.mark.parametrize("way", ["auto", "affected keys", "differences", "from scratch"])
@pytest.mark.parametrize("connect", [ucle.connect, duckdb.connect])
def test_complex_numbers(connect: Callable[[], duckdb.DuckDBPyConnection], way: str) -> None:
    """Fills are kept with the description of the program, which another process reads."""
    text = "T[i] += (1 + 2j) * A[i,j] * C[i,j]; Z[i,j] = 2 * C[i,j]; L[i,j] = A[i,j] + 3j"
    with connect() as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT i, j, (i + j)::DOUBLE AS val FROM range(5) a(i), "
            "range(6) b(j) WHERE (i * j) % 2 = 0"
        )
        connection.execute(
            "CREATE TABLE C AS SELECT i, j, {'re': i::DOUBLE, 'im': j::DOUBLE} AS val FROM A"
        )
        given = {"A": "A", "C": ucle.table("C", fill=1j)}
        program = ucle.einsum_program(text, inputs=given, database=connection)
        program.maintain("kept", connection)
        for change in (
            "INSERT INTO C VALUES (1, 3, {'re': 1.0, 'im': 2.0})",
            "INSERT INTO A VALUES (1, 3, 2.5); UPDATE C SET val = {'re': 5, 'im': 0} WHERE i = 2",
            "DELETE FROM C WHERE i = 1 AND j = 3; DELETE FROM A WHERE i = 4",
        ):
            connection.execute(change)
            ucle.maintained("kept", connection).refresh(way=way)
            with program.recompile().execute() as result:
                for name in "TZL":
                    expected = result[name].shown(rows="nonfill").fetchall()
                    found = connection.sql(f"FROM kept_{name}").fetchall()
                    assert sorted(map(repr, found)) == sorted(map(repr, expected))
