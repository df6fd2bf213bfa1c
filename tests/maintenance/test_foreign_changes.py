"""Others change what is kept, or inputs: a refresh is right then, or says what is wrong."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

import ucle
from ucle.errors import UcleError

TEXT = "T[i,k] += A[i,j] * H[j,k]; Z[i] max= T[i,k]"

KEPT = {"output": "scores", "kept": 'ucle."scores: T"', "state": 'ucle."scores: state of H"'}
OF_KEPT = (
    "DELETE FROM {t} WHERE rowid = 2",
    "DELETE FROM {t}",
    "INSERT INTO {t} SELECT * FROM {t} LIMIT 1",
    "UPDATE {t} SET {v} = {v} + 1 WHERE rowid = 1",
    "UPDATE {t} SET {k} = {k} + 1 WHERE rowid = 1",
    "UPDATE {t} SET {v} = NULL WHERE rowid = 1",
    "DROP TABLE {t}",
    "ALTER TABLE {t} RENAME COLUMN {v} TO other",
    "ALTER TABLE {t} RENAME COLUMN {k} TO other",
    "ALTER TABLE {t} DROP COLUMN {v}",
    "ALTER TABLE {t} ADD COLUMN other INTEGER",
    "ALTER TABLE {t} ALTER {v} TYPE INTEGER",
    "ALTER TABLE {t} ALTER {v} TYPE VARCHAR",
    "ALTER TABLE {t} ALTER {k} TYPE HUGEINT",
)
OF_REGISTRY = (
    "DROP TABLE ucle.maintained",
    "DELETE FROM ucle.maintained",
    "UPDATE ucle.maintained SET document = '{{}}'",
    "UPDATE ucle.maintained SET document = 'nothing'",
    "UPDATE ucle.maintained SET document = replace(document, '\"version\": 1', '\"version\": 9')",
    "UPDATE ucle.maintained SET document = left(document, 100)",
    "ALTER TABLE ucle.maintained RENAME COLUMN document TO text",
    "DROP SCHEMA ucle CASCADE",
)
OF_INPUTS = (
    "DROP TABLE A",
    "ALTER TABLE A RENAME COLUMN val TO other",
    "ALTER TABLE A RENAME COLUMN i TO other",
    "ALTER TABLE A DROP COLUMN j",
    "ALTER TABLE A ADD COLUMN other INTEGER",
    "ALTER TABLE A ALTER val TYPE INTEGER",
    "ALTER TABLE A ALTER val TYPE FLOAT",
    "ALTER TABLE A ALTER val TYPE VARCHAR",
    "ALTER TABLE A ALTER i TYPE VARCHAR",
    "ALTER TABLE A ALTER i TYPE SMALLINT",
    "UPDATE A SET val = NULL WHERE i = 1",
    "UPDATE A SET i = NULL WHERE i = 1",
    "INSERT INTO A SELECT * FROM A LIMIT 1",
    "INSERT INTO A VALUES (-1, 0, 1)",
    "INSERT INTO A VALUES (1, 2, 'nan')",
    "CREATE OR REPLACE TABLE A AS SELECT j AS i, i AS j, val FROM A",
    "CREATE TABLE B AS FROM A; DROP TABLE A; CREATE VIEW A AS FROM B",
    "CREATE OR REPLACE TABLE A AS SELECT * FROM A LIMIT 0",
)
CHANGES = [
    *(
        change.format(
            t=table,
            v="state" if name == "state" else "val",
            k="k0" if name == "state" else "i",
        )
        for name, table in KEPT.items()
        for change in OF_KEPT
    ),
    *(x.format() for x in OF_REGISTRY),
    *OF_INPUTS,
]


def full(connection: duckdb.DuckDBPyConnection) -> list[Any]:
    program = ucle.einsum_program(TEXT, A="A", H="H", database=connection)
    with program.execute() as result:
        return sorted(result["Z"].shown(rows="nonfill").fetchall())


def outcome(run: Any) -> Any:
    """What a function returns, or the class of the error that it raises."""
    try:
        return run()
    except UcleError as error:
        return type(error)


@pytest.mark.sample(2)
@pytest.mark.parametrize("way", ["auto", "affected keys", "differences"])
@pytest.mark.parametrize("change", CHANGES)
def test_foreign_changes(change: str, way: str) -> None:
    """Nothing is stale unnoticed, also where inputs change at the same time."""
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE A AS SELECT i, j, "
            "(1 + i)::DOUBLE AS val FROM range(6) a(i), range(6) b(j)"
            " WHERE i <> j"
        )
        connection.execute(
            "CREATE TABLE H AS SELECT j, k, "
            "(j * k)::DOUBLE AS val FROM range(6) a(j), range(2) b(k)"
        )
        program = ucle.einsum_program(TEXT, A="A", H="H", database=connection, outputs=["Z"])
        kept = program.maintain("scores", connection)
        connection.execute("INSERT INTO A VALUES (2, 2, 3)")
        kept.refresh(way=way)
        connection.execute(change)
        inputs = change in OF_INPUTS
        before = outcome(lambda: sorted(connection.table("scores").fetchall())) if inputs else None
        found = outcome(lambda: kept.refresh(way=way))
        if isinstance(found, type):
            if inputs:
                assert sorted(connection.table("scores").fetchall()) == before
                assert outcome(lambda: full(connection)) is found
            return
        check(connection)
        for statement in ("UPDATE A SET val = val + 2 WHERE j = 1", "DELETE FROM H WHERE j = 3"):
            try:
                connection.execute(statement)
            except duckdb.Error:
                continue  # no such column, or a view
            found = outcome(lambda: kept.refresh(way=way))
            if isinstance(found, type):
                return
            check(connection)


def check(connection: duckdb.DuckDBPyConnection) -> None:
    values = sorted(connection.sql("SELECT i, val FROM scores").fetchall())
    assert values == full(connection)
