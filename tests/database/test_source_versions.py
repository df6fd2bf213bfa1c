"""Versions of sources: another one for whatever changes the data, None where that is not seen."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ucle.database.data_versions import Version, source_version
from ucle.database.open_sessions import open_session
from ucle.plan.sources import InMemory, ParquetFile, TableName, TableSource

ROWS = 300_000
"""More than two row groups, so that DuckDB writes them when they are inserted."""


def version(connection: duckdb.DuckDBPyConnection, *parts: str) -> Version | None:
    source = TableSource(TableName(parts), ("i",), "v")
    return source_version(open_session(connection), source)


def make(
    connection: duckdb.DuckDBPyConnection, name: str = "t", rows: int = ROWS, kind: str = "TABLE"
) -> None:
    connection.execute(
        f"CREATE {kind} {name} AS SELECT range::INT i, (range % 1000)::INT j, 1.5 v "
        f"FROM range({rows})"
    ).fetchall()


@pytest.fixture(params=["file", "memory", "temporary"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with a table t, in each place that a table may have."""
    place = str(tmp_path / "data.db") if request.param == "file" else ":memory:"
    with duckdb.connect(place) as connection:
        make(connection, kind="TEMP TABLE" if request.param == "temporary" else "TABLE")
        yield connection


def test_it_stays_while_nothing_changes(stored: duckdb.DuckDBPyConnection) -> None:
    known = version(stored, "t")
    assert known is not None
    hash(known)
    stored.execute("SELECT sum(v) FROM t").fetchall()
    stored.execute("CREATE TEMP TABLE other AS SELECT 1 i").fetchall()
    assert version(stored, "t") == known


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO t VALUES (1, 2, 3)",
        "DELETE FROM t WHERE i = 5",
        "DELETE FROM t WHERE i = 5; INSERT INTO t VALUES (5, 6, 1.5)",
        "UPDATE t SET v = 7 WHERE i = 5",
        "UPDATE t SET i = 5 - i WHERE i IN (2, 3)",
        "CREATE TABLE u AS SELECT * FROM t; DROP TABLE t; ALTER TABLE u RENAME TO t",
        "ALTER TABLE t ADD COLUMN w INT",
        "TRUNCATE t",
    ],
)
def test_every_change_makes_another(stored: duckdb.DuckDBPyConnection, change: str) -> None:
    before = version(stored, "t")
    assert before is not None
    for statement in change.split(";"):
        stored.execute(statement).fetchall()
    assert version(stored, "t") != before


def test_updates_in_a_file(tmp_path: Path) -> None:
    """A second one marks no other segments, and checkpoints take turns between the same blocks."""
    seen: list[Version | None] = []
    path = str(tmp_path / "data.db")
    connection = duckdb.connect(path)
    make(connection)
    for checkpoint in (False, False, True, True, True, True):
        connection.execute("UPDATE t SET i = 5 - i WHERE i IN (2, 3)").fetchall()
        if checkpoint:
            connection.execute("CHECKPOINT").fetchall()
        seen.append(version(connection, "t"))
    for _ in range(4):
        connection.execute("UPDATE t SET i = 5 - i WHERE i IN (2, 3)").fetchall()
        connection.close()
        connection = duckdb.connect(path)
        seen.append(version(connection, "t"))
    connection.close()
    assert None not in seen
    assert len(set(seen)) == len(seen)


def test_updates_in_memory_make_it_unknown() -> None:
    with duckdb.connect() as connection:
        make(connection)
        connection.execute("UPDATE t SET v = 7 WHERE i = 5").fetchall()
        assert version(connection, "t") is None
    with duckdb.connect() as connection:
        make(connection)
        connection.execute("CHECKPOINT").fetchall()
        assert version(connection, "t") is None


def test_it_is_of_one_database(tmp_path: Path) -> None:
    """Tables that are alike are told apart by where they are."""
    versions: list[Version | None] = []
    with duckdb.connect() as one, duckdb.connect() as other:
        for connection in (one, other):
            make(connection)
            versions.append(version(connection, "t"))
    for name in ("one.db", "other.db"):
        with duckdb.connect(str(tmp_path / name)) as connection:
            make(connection)
            versions.append(version(connection, "t"))
    assert None not in versions
    assert all(one != other for one, other in itertools.combinations(versions, 2))


def test_names_with_qualifiers(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{tmp_path / 'o.db'}' AS other").fetchall()
        connection.execute('CREATE SCHEMA other."a b"').fetchall()
        make(connection, 'other."a b"."x y"', 10)
        first = version(connection, "other", "a b", "x y")
        assert first is not None
        connection.execute('INSERT INTO other."a b"."x y" VALUES (1, 2, 3)').fetchall()
        assert version(connection, "other", "a b", "x y") not in (None, first)
        assert version(connection, "x y") is None  # DuckDB does not find it by that
        assert version(connection, "nowhere") is None


def test_what_cannot_be_known(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        make(connection, rows=10)
        connection.execute("CREATE VIEW w AS SELECT * FROM t").fetchall()
        assert version(connection, "w") is None
        session = open_session(connection)
        assert source_version(session, TableSource(InMemory("table", "t"), ("i",), "v")) is None
        pattern = ParquetFile(str(tmp_path / "*.parquet"))
        assert source_version(session, TableSource(pattern, ("i",), "v")) is None
        connection.execute("BEGIN").fetchall()
        assert version(connection, "t") is None
        connection.execute("INSERT INTO t VALUES (1, 2, 3)").fetchall()  # it is not aborted
        connection.execute("ROLLBACK").fetchall()
        assert version(connection, "t") is not None


def test_parquet_files(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        path = tmp_path / "t.parquet"
        source = TableSource(ParquetFile(str(path)), ("i",), "v")
        seen = []
        for rows in (10, 11):
            connection.execute(f"COPY (SELECT range i, 1 v FROM range({rows})) TO '{path}'")
            seen.append(source_version(open_session(connection), source))
        assert None not in seen
        assert seen[0] != seen[1]
