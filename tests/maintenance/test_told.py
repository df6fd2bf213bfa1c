"""Changes that a caller tells: what a refresh does with them, and what it refuses."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import ucle
from ucle.errors import (
    ArgumentError,
    ArgumentTypeError,
    CoordinateError,
    DuplicateCoordinatesError,
    ExecutionError,
    InputError,
    MaintenanceError,
    NameResolutionError,
    UcleError,
    ValueTypeError,
)

TEXT = "T[i] += A[i,j] * x[j]; Z[i] = relu(T[i] - 1)"


def new_database() -> duckdb.DuckDBPyConnection:
    connection = ucle.connect()
    connection.execute(
        "CREATE TABLE A AS SELECT i % 7 AS i, i AS j, 1 + i % 3 AS val FROM range(20) r(i)"
    )
    connection.execute("CREATE TABLE x AS SELECT j, 0.5 * j AS val FROM range(20) r(j)")
    return connection


def maintain(connection: duckdb.DuckDBPyConnection, **options: Any) -> ucle.Maintained:
    program = ucle.einsum_program(TEXT, A="A", x="x", database=connection)
    return program.maintain("scores", connection, **options)


def rows(connection: duckdb.DuckDBPyConnection, query: str = "FROM scores") -> list[Any]:
    return sorted(connection.sql(query).fetchall())


def full(connection: duckdb.DuckDBPyConnection) -> list[Any]:
    program = ucle.einsum_program(TEXT, A="A", x="x", database=connection)
    with program.execute() as result:
        return sorted(result["Z"].shown(rows="nonfill").fetchall())


def state(connection: duckdb.DuckDBPyConnection) -> dict[str, list[Any]]:
    """All that a failed refresh must not change."""
    names = connection.sql("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
    return {
        f"{x}.{y}": rows(connection, f'FROM "{x}"."{y}"')
        for x, y in names
        if not y.startswith("ucle_")
    }


FORMS: dict[str, Callable[[duckdb.DuckDBPyConnection, pd.DataFrame], Any]] = {
    "pandas": lambda connection, frame: frame,
    "Arrow": lambda connection, frame: pa.Table.from_pandas(frame, preserve_index=False),
    "relation": lambda connection, frame: connection.from_df(frame),
    "table": lambda connection, frame: [
        connection.from_df(frame).create("news"),
        "news",
    ][1],
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("applied", [False, True])
def test_told_changes(form: str, applied: bool) -> None:
    """An inserted, a deleted and an updated row, with columns in another order."""
    with new_database() as connection:
        kept = maintain(connection)
        new = pd.DataFrame({"val": [4, 9], "j": [19, 3], "i": [2, 3]})
        old = pd.DataFrame({"j": [3, 8], "i": [3, 1]})
        if applied:
            connection.execute("DELETE FROM A WHERE (i = 3 AND j = 3) OR (i = 1 AND j = 8)")
            connection.execute("INSERT INTO A VALUES (2, 19, 4), (3, 3, 9)")
        report = kept.refresh(
            inserted={"A": FORMS[form](connection, new)}, deleted={"A": old}, applied=applied
        )
        assert report.changed == {"A": 3}
        assert connection.sql("SELECT count(*) FROM A").fetchall() == [(20,)]
        assert rows(connection) == full(connection)
        assert kept.refresh().changed == {}


def test_nothing_is_told() -> None:
    """An input that is named has no other changes; the others are compared."""
    with new_database() as connection:
        kept = maintain(connection)
        connection.execute("UPDATE x SET val = 7 WHERE j = 3")
        nothing = connection.sql("FROM A WHERE false")
        assert kept.refresh(inserted={"A": nothing}).changed == {"x": 1}
        assert rows(connection) == full(connection)
        assert kept.refresh(inserted={"A": nothing}, deleted={"x": "x"}).changed == {"x": 20}
        assert rows(connection) == []


def test_values_of_deleted_rows() -> None:
    with new_database() as connection:
        kept = maintain(connection)
        wrong = connection.sql("SELECT 0 AS i, 0 AS j, 7 AS val")
        with pytest.raises(MaintenanceError, match="another value"):
            kept.refresh(deleted={"A": wrong})
        right = connection.sql("FROM A WHERE i = 0 AND j = 0")
        assert kept.refresh(deleted={"A": right}).changed == {"A": 1}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"deleted": {"A": "SELECT 0 AS i, 1 AS j"}}, MaintenanceError, "i = 0, j = 1"),
        (
            {"inserted": {"A": "SELECT 1 AS i, 8 AS j, 2 AS val"}},
            DuplicateCoordinatesError,
            "i = 1, j = 8",
        ),
        (
            {"inserted": {"A": "SELECT 1 AS i, 30 AS j, 2 AS val FROM range(2)"}},
            DuplicateCoordinatesError,
            "same coordinates",
        ),
        ({"inserted": {"A": "SELECT 1 AS i, 2 AS val"}}, InputError, "no column j"),
        ({"inserted": {"A": "SELECT *, 1 AS day FROM A"}}, InputError, "no column day"),
        ({"deleted": {"A": "SELECT 1 AS i, 2 AS val"}}, InputError, "no column j"),
        ({"inserted": {"A": "SELECT -1 AS i, 2 AS j, 3 AS val"}}, CoordinateError, "bound"),
        ({"inserted": {"A": "SELECT NULL AS i, 2 AS j, 3 AS val"}}, CoordinateError, "NULL"),
        ({"inserted": {"A": "SELECT 1 AS i, 2 AS j, NULL AS val"}}, ValueTypeError, "NULL"),
        ({"inserted": {"A": "SELECT 1 AS i, 2 AS j, 0.5 AS val"}}, ValueTypeError, "no integer"),
        ({"inserted": {"A": "SELECT 1 AS i, 2 AS j, 'a' AS val"}}, ExecutionError, "convert"),
        ({"inserted": {"B": "FROM A"}}, NameResolutionError, "'B'"),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_what_does_not_fit(
    arguments: dict[str, dict[str, str]], error: type[UcleError], match: str, inside: bool
) -> None:
    """Nothing is changed, also in a transaction of the user, which cannot be committed then."""
    with new_database() as connection:
        kept = maintain(connection)
        before = state(connection)
        told = {
            kind: {x: connection.sql(y) for x, y in own.items()} for kind, own in arguments.items()
        }
        if inside:
            connection.begin()
        with pytest.raises(error, match=match):
            kept.refresh(**told)  # type: ignore[arg-type]
        if inside:
            try:
                connection.commit()
            except duckdb.Error:
                connection.rollback()
        assert state(connection) == before
        assert kept.refresh().changed == {}


def test_objects_that_are_no_rows() -> None:
    with new_database() as connection:
        kept = maintain(connection)
        with pytest.raises(InputError, match="no rows"):
            kept.refresh(inserted={"A": [[1, 2, 3]]})
        with pytest.raises(InputError, match="cannot find"):
            kept.refresh(inserted={"A": "no_table"})
        with pytest.raises(ArgumentTypeError):
            kept.refresh(inserted="A")  # type: ignore[arg-type]


@pytest.mark.parametrize("applied", [False, True])
def test_changes_that_are_not_told(applied: bool) -> None:
    """The number of rows shows them, and what they are at the coordinates that are told."""
    with new_database() as connection:
        kept = maintain(connection)
        connection.execute("INSERT INTO A VALUES (2, 19, 4)")
        new = connection.sql("SELECT 5 AS i, 1 AS j, 4 AS val")
        before = state(connection)
        with pytest.raises(MaintenanceError, match="other changes"):
            kept.refresh(inserted={"A": new}, applied=applied)
        assert state(connection) == before
        kept.refresh()
        assert rows(connection) == full(connection)


def test_rows_that_are_not_as_told() -> None:
    with new_database() as connection:
        kept = maintain(connection)
        connection.execute("INSERT INTO A VALUES (2, 19, 4)")
        for told in ("SELECT 2 AS i, 19 AS j, 5 AS val", "SELECT 2 AS i, 18 AS j, 4 AS val"):
            with pytest.raises(MaintenanceError, match="told value"):
                kept.refresh(inserted={"A": connection.sql(told)}, applied=True)
        kept.refresh(inserted={"A": connection.sql("FROM A WHERE j = 19 AND i = 2")}, applied=True)
        assert rows(connection) == full(connection)


@pytest.mark.sample(2)
@pytest.mark.parametrize("way", ["affected keys", "differences", "auto"])
def test_hidden_changes_are_found_later(way: str) -> None:
    """The number of rows hides an update: what was computed from it is computed again."""
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT i, j, 1 AS val FROM range(4) a(i), range(4) b(j)"
        )
        connection.execute("CREATE TABLE B AS FROM A")
        program = ucle.einsum_program(
            "C[i,k] += A[i,j] * B[j,k]", A="A", B="B", database=connection
        )
        kept = program.maintain("product", connection)
        connection.execute("UPDATE A SET val = 5 WHERE i = 1 AND j = 2")
        new = connection.sql("SELECT 2 AS i, 7 AS j, 3 AS val")
        kept.refresh(way=way, inserted={"A": connection.sql("SELECT 1 AS i, 7 AS j, 3 AS val")})
        nothing = connection.sql("FROM A WHERE false")
        kept.refresh(
            way=way,
            inserted={"A": nothing, "B": new},
            deleted={"B": connection.sql("SELECT 2 AS i, 3 AS j")},
        )
        assert kept.refresh(way=way).changed == {"A": 1}
        with program.recompile().execute() as result:
            expected = sorted(result["C"].shown(rows="nonfill").fetchall())
        assert rows(connection, "FROM product") == expected
        connection.execute("UPDATE A SET val = 6 WHERE i = 1 AND j = 2")
        report = kept.refresh(way="differences")
        assert report.tensors[0].way == "differences"


Pairs = list[tuple[int, int]]


def _wrongly_told(rng: random.Random, told: Pairs) -> Pairs:
    """Rows with one that is missing, moved, of another value, or there twice, or with a new one."""
    told, place = list(told), rng.randrange(len(told)) if told else 0
    kind = rng.choice(["missing", "moved", "other", "twice", "new"] if told else ["new"])
    if kind == "new":
        return [*told, (rng.randrange(12), rng.randrange(1, 4))]
    i, val = told.pop(place)
    other = {"moved": [(i + 1, val)], "other": [(i, val + 1)], "twice": [(i, val)] * 2}
    return told + other.get(kind, [])


def _fits(before: Pairs, now: Pairs, inserted: Pairs, deleted: Pairs, *, summed: bool) -> bool:
    """Whether rows that are told are what has changed at their coordinates, by their definition."""
    gone, came = ({i for i, _ in x} for x in (deleted, inserted))
    removed, staying = ([x for x in before if (x[0] in gone) is y] for y in (True, False))
    expected = staying + inserted
    at = [[x for x in rows if x[0] in gone | came] for rows in (now, expected)]
    alike = came & {i for i, _ in staying} or len(came) < len(inserted)
    return (
        Counter(deleted) == Counter(removed)
        and (summed or not alike)
        and len(now) == len(expected)
        and Counter(at[0]) == Counter(at[1])
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_every_wrong_telling_is_refused(seed: int, summed: bool) -> None:
    """By the definition of what fits: tables are changed, and told as they were or not."""
    rng = random.Random(seed)

    def drawn(keys: list[int]) -> Pairs:
        return [(i, rng.randrange(1, 4)) for i in keys]

    before = drawn(rng.choices(range(10), k=8) if summed else rng.sample(range(10), 6))
    keys = sorted({i for i, _ in before})
    gone = rng.sample(keys, rng.randrange(3))
    deleted = [x for x in before if x[0] in gone]
    free = range(12) if summed else [i for i in range(12) if i not in keys or i in gone]
    inserted = drawn(rng.choices(free, k=3) if summed else rng.sample(free, rng.randrange(4)))
    now = [x for x in before if x[0] not in gone] + inserted
    if rng.random() < 0.7:
        inserted = _wrongly_told(rng, inserted)
    if rng.random() < 0.3:
        deleted = _wrongly_told(rng, deleted)
    with ucle.connect() as connection:

        def relation(rows: Pairs) -> duckdb.DuckDBPyRelation:
            return connection.from_df(pd.DataFrame(rows, columns=["i", "val"], dtype="int64"))

        relation(before).create("A")
        given = ucle.table("A", duplicates="sum") if summed else "A"
        program = ucle.einsum_program("y[i] = 2 * A[i]", A=given, database=connection)
        kept = program.maintain("kept", connection)
        connection.execute("DELETE FROM A")
        relation(now).insert_into("A")
        told: dict[str, Any] = {"inserted": {"A": relation(inserted)}, "applied": True}
        if deleted or rng.random() < 0.5:
            told["deleted"] = {"A": relation(deleted)}
        if not _fits(before, now, inserted, deleted, summed=summed):
            with pytest.raises((MaintenanceError, DuplicateCoordinatesError)):
                kept.refresh(**told)
        else:
            kept.refresh(**told)
        kept.refresh()
        with program.recompile().execute() as result:
            expected = sorted(result["y"].shown(rows="nonfill").fetchall())
        assert rows(connection, "FROM kept") == expected


@pytest.mark.parametrize("applied", [False, True])
def test_rows_at_coordinates_of_several_keys(applied: bool) -> None:
    """Rows are passed over by one key after the other, and compared by all of them together."""
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT i, j, k, i + 1 AS val "
            "FROM range(12) i(i), range(12) j(j), range(12) k(k) WHERE (i + j + k) % 2 = 0"
        )
        program = ucle.einsum_program("T[i] += A[i,j,k]", A="A", database=connection)
        kept = program.maintain("sums", connection)

        def tell(inserted: str, deleted: str, changes: bool = applied) -> None:
            told = {
                "inserted": {"A": connection.sql(f"FROM (VALUES {inserted}) t(i, j, k, val)")},
                "deleted": {"A": connection.sql(f"FROM (VALUES {deleted}) t(i, j, k)")},
            }
            if changes:
                connection.execute(
                    f"DELETE FROM A WHERE (i, j, k) IN (VALUES {deleted}); "
                    f"INSERT INTO A VALUES {inserted}"
                )
            kept.refresh(**told, applied=applied)  # type: ignore[arg-type]

        tell("(3, 4, 2, 5), (5, 4, 4, 6)", "(1, 3, 2), (2, 4, 6)")
        expected = connection.sql("SELECT i, sum(val) FROM A GROUP BY i").fetchall()
        assert rows(connection, "FROM sums") == sorted(expected)
        wrong = [
            ("(3, 4, 2, 5), (7, 4, 2, 6)", "(4, 4, 2)"),  # there is a row
            ("(7, 4, 2, 6)", "(4, 4, 3)"),  # there is none
            ("(7, 4, 2, 6)", "(1, 3, 2)"),  # there is none any more
        ]
        for inserted, deleted in wrong:
            connection.execute("BEGIN")
            with pytest.raises((MaintenanceError, DuplicateCoordinatesError)):
                tell(inserted, deleted)
            connection.execute("ROLLBACK")
        if applied:
            with pytest.raises(MaintenanceError, match="other changes"):
                tell("(7, 4, 2, 6)", "(4, 4, 2)", changes=False)


@pytest.mark.parametrize("summed", [False, True])
def test_a_state_that_others_have_changed(summed: bool) -> None:
    """Two equal rows in place of two other equal ones are seen, too."""
    with ucle.connect() as connection:
        times = "0, 0, 1, 1, 2" if summed else "0, 1, 2"
        connection.execute(f"CREATE TABLE A AS SELECT unnest([{times}]) AS i, 1.0 AS val")
        given = ucle.table("A", duplicates="sum") if summed else "A"
        program = ucle.einsum_program("y[i] = 2 * A[i]", A=given, database=connection)
        kept = program.maintain("kept", connection)
        connection.execute('UPDATE ucle."kept: state of A" SET k0 = 7 WHERE k0 = 1')
        for told in ({"inserted": {"A": connection.sql("SELECT 4 AS i, 1.0 AS val")}}, {}):
            if not told:
                connection.execute("INSERT INTO A VALUES (4, 1.0)")
            with pytest.raises(MaintenanceError, match="changed by others"):
                kept.refresh(**told)  # type: ignore[arg-type]


def test_tables_that_only_grow() -> None:
    with new_database() as connection:
        kept = maintain(connection, append_only=["A"])
        new = connection.sql("SELECT 2 AS i, 19 AS j, 4 AS val")
        assert kept.refresh(inserted={"A": new}).changed == {"A": 1}
        assert rows(connection) == full(connection)
        assert kept.refresh().changed == {}
        connection.execute("INSERT INTO A VALUES (3, 19, 4), (4, 19, 4)")
        with pytest.raises(MaintenanceError, match="other changes"):
            kept.refresh(
                inserted={"A": connection.sql("FROM A WHERE i = 3 AND j = 19")}, applied=True
            )
        told = connection.sql("FROM A WHERE i BETWEEN 3 AND 4 AND j = 19")
        assert kept.refresh(inserted={"A": told}, applied=True).changed == {"A": 2}
        assert rows(connection) == full(connection)
        with pytest.raises(ArgumentError, match="only appended"):
            kept.refresh(deleted={"A": told})


def test_rows_of_others_at_the_same_time(tmp_path: Path) -> None:
    """Others commit rows while a transaction appends some: these get rowids behind them."""
    with ucle.connect(tmp_path / "data.db") as connection:
        connection.execute("CREATE TABLE A AS SELECT i, i AS val FROM range(5) r(i)")
        program = ucle.einsum_program("s[] += A[i]", A="A", database=connection)
        kept = program.maintain("total", connection, append_only=["A"])
        connection.begin()
        connection.execute("INSERT INTO A VALUES (10, 100)")
        assert kept.refresh().changed == {"A": 1}
        with connection.cursor() as other:
            other.execute("INSERT INTO A VALUES (11, 1000)")
        connection.commit()
        kept.refresh()
        assert connection.sql("FROM total").fetchall() == [(1110,)]
        connection.begin()
        connection.execute("INSERT INTO A VALUES (12, 10000)")
        kept.refresh()
        connection.execute("INSERT INTO A VALUES (13, 1)")
        assert kept.refresh().changed == {"A": 1}
        connection.commit()
        assert kept.refresh().changed == {}
        assert connection.sql("FROM total").fetchall() == [(11111,)]


def test_views_and_files(tmp_path: Path) -> None:
    """What is no table is changed by its owner."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE base AS SELECT i, i * 1.0 AS val FROM range(9) r(i)")
        connection.execute("CREATE VIEW A AS SELECT i, val FROM base WHERE i < 100")
        kept = ucle.einsum_program("s[] += A[i]", A="A", database=connection).maintain(
            "total", connection
        )
        new = connection.sql("SELECT 20 AS i, 4.0 AS val")
        with pytest.raises(ArgumentError, match="only a table"):
            kept.refresh(inserted={"A": new})
        connection.execute("INSERT INTO base VALUES (20, 4.0)")
        assert kept.refresh(inserted={"A": new}, applied=True).changed == {"A": 1}
        assert connection.sql("FROM total").fetchall() == [(40.0,)]


def test_the_same_table_for_two_inputs() -> None:
    """The other input is compared."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE e AS SELECT i, i + 1 AS j, 1 AS val FROM range(5) r(i)")
        program = ucle.einsum_program(
            "C[i,k] += A[i,j] * B[j,k]", A="e", B="e", database=connection
        )
        kept = program.maintain("paths", connection)
        new = connection.sql("SELECT 5 AS i, 6 AS j, 1 AS val")
        with pytest.raises(ArgumentError, match="twice"):
            kept.refresh(inserted={"A": new, "B": new})
        assert kept.refresh(inserted={"A": new}).changed == {"A": 1, "B": 1}
        assert len(rows(connection, "FROM paths")) == 5
        connection.execute("DELETE FROM e WHERE i = 0")
        gone = connection.sql("SELECT 0 AS i, 1 AS j")
        kept.refresh(deleted={"A": gone, "B": gone}, applied=True)
        assert len(rows(connection, "FROM paths")) == 4


@pytest.mark.parametrize("applied", [False, True])
def test_rows_that_are_added_up(applied: bool) -> None:
    """A deletion removes all rows at its coordinates."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE A AS SELECT i % 3 AS i, i AS val FROM range(9) r(i)")
        given = ucle.table("A", duplicates="sum")
        program = ucle.einsum_program("y[i] = 2 * A[i]", A=given, database=connection)
        kept = program.maintain("sums", connection)
        if applied:
            connection.execute(
                "DELETE FROM A WHERE i = 1; INSERT INTO A VALUES (1, 5), (1, 6), (2, 1)"
            )
        kept.refresh(
            deleted={"A": connection.sql("SELECT 1 AS i")},
            inserted={"A": connection.sql("FROM (VALUES (1, 5), (1, 6), (2, 1)) t(i, val)")},
            applied=applied,
        )
        assert rows(connection, "FROM sums") == [(0, 18), (1, 22), (2, 32)]
        with pytest.raises(MaintenanceError, match="another value"):
            kept.refresh(deleted={"A": connection.sql("SELECT 1 AS i, 5 AS val")})


@pytest.mark.parametrize("applied", [False, True])
def test_other_forms_of_inputs(applied: bool) -> None:
    """Wide tables, arrays, symmetric tables, dates as coordinates, columns that are not read."""
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE w AS SELECT i, i AS a, 2 * i AS b FROM range(5) r(i)")
        connection.execute(
            "CREATE TABLE v AS SELECT i, [i, 1.0]::DOUBLE[2] AS val FROM range(5) r(i)"
        )
        connection.execute(
            "CREATE TABLE s AS SELECT i, i + 1 AS j, 1.0 AS val, 'x' AS note FROM range(4) r(i)"
        )
        connection.execute(
            "CREATE TABLE d AS SELECT DATE '2024-01-01' + i::INTEGER AS day, 1 AS val "
            "FROM range(5) r(i)"
        )
        inputs = {
            "w": ucle.table("w", columns=["i"], columns_as="c"),
            "v": "v",
            "s": ucle.table("s", columns=["i", "j"], value="val", symmetric=True),
            "d": "d",
        }
        program = ucle.einsum_program(
            "y[i] += w[i,c]; z[k] += v[i,k]; p[i] += s[i,j]; n[] += d[t]",
            inputs=inputs,
            database=connection,
        )
        kept = program.maintain("all_forms", connection)
        change = {
            "w": ("SELECT 1 AS i, 7 AS a, 8 AS b", "SELECT 1 AS i"),
            "v": ("SELECT 1 AS i, [2.0, 3.0] AS val", "SELECT 1 AS i"),
            "s": ("SELECT 7 AS i, 1 AS j, 2.0 AS val, 'y' AS note", "SELECT 1 AS i, 0 AS j"),
            "d": ("SELECT DATE '2023-01-01' AS day, 5 AS val", "SELECT DATE '2024-01-01' AS day"),
        }
        inserted = {x: connection.sql(y) for x, (y, _) in change.items()}
        deleted = {x: connection.sql(y) for x, (_, y) in change.items()}
        if applied:
            connection.execute("DELETE FROM w WHERE i = 1; DELETE FROM v WHERE i = 1")
            connection.execute("DELETE FROM s WHERE i = 0; DELETE FROM d WHERE day = '2024-01-01'")
            for name, (new, _) in change.items():
                connection.execute(f"INSERT INTO {name} BY NAME {new}")
        kept.refresh(inserted=inserted, deleted=deleted, applied=applied)
        with program.recompile().execute() as result:
            for name, table in kept.outputs.items():
                mode = "nonfill" if result[name].type.rank else "all"
                expected = sorted(result[name].shown(rows=mode).fetchall())
                assert rows(connection, f"FROM {table}") == expected
        notes = rows(connection, "SELECT note FROM s WHERE i = 7")
        assert notes == [("y",)]
        assert kept.refresh().changed == {}


def test_a_transaction_of_the_user() -> None:
    """An error after the first change ends it; without one the refresh is a part of it."""
    with new_database() as connection:
        kept = maintain(connection)
        before = state(connection)
        connection.begin()
        kept.refresh(inserted={"A": connection.sql("SELECT 2 AS i, 19 AS j, 4 AS val")})
        assert rows(connection) == full(connection)
        connection.rollback()
        assert state(connection) == before
        connection.execute("ALTER TABLE A ALTER val TYPE DOUBLE")
        assert kept.refresh().rows >= 0
        before = state(connection)
        connection.begin()
        with pytest.raises(UcleError):
            kept.refresh(
                inserted={
                    "A": connection.sql("SELECT 3 AS i, 19 AS j, 'NaN'::DOUBLE AS val"),
                    "x": connection.sql("SELECT -7 AS j, 1 AS val"),
                }
            )
        with pytest.raises(duckdb.Error, match="aborted"):
            connection.sql("SELECT 1").fetchall()
        connection.rollback()
        assert state(connection) == before
