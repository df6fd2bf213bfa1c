"""Names of tables mean what DuckDB takes them for, whatever the search path is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.database.open_sessions import open_session
from ucle.database.table_names import find_relation, is_taken
from ucle.errors import InputError
from ucle.inputs.inputs import parse_table_name
from ucle.plan.sources import TableName

PLACES = [
    "memory.main",
    "memory.s",
    'memory."we.ird "" name"',
    "o.main",
    "o.s",
    "o.S2",
    "twin.main",
    "memory.twin2",
    "twin2.main",
    "temp.main",
]
"""Each has a table t that holds the name of the place; `twin2` is a database and a schema."""

SETTINGS = [
    "USE memory",
    "SET search_path = 's'",
    "USE memory; SET search_path = 's'",
    "SET search_path = 'o.s,s'",
    "SET search_path = 'memory.s,o.main'",
    'USE memory."we.ird "" name"',
    "USE o",
    "USE o.s",
    "USE o.s2",
    "USE twin2.main",
    "SET schema = 'twin2'",
]
NAMES = ["t", "T", "main.t", "s.t", "S.T", "o.t", "temp.t", "memory.t", "o.main.t", "o.s2.t"]
NAMES += ["twin.t", "twin2.t", "memory.twin2.t", '"we.ird "" name".t', "nowhere.t", "a.b.t"]
NAMES += ["information_schema.tables", "pg_catalog.pg_class", "system.main.duckdb_tables"]


@pytest.fixture
def places() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("ATTACH ':memory:' AS o; ATTACH ':memory:' AS twin")
        connection.execute("ATTACH ':memory:' AS twin2")
        for place in PLACES:
            if not place.endswith(".main"):
                connection.execute(f"CREATE SCHEMA {place}").fetchall()
        yield connection


@pytest.mark.sample(4)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_name_means_what_duckdb_takes_it_for(
    places: duckdb.DuckDBPyConnection, setting: str
) -> None:
    """With a table in each place, and then with fewer and fewer of them.

    On a connection of its own: after `USE`, ``SET search_path = 's'`` is a place of a database.
    """
    session = open_session(places)
    places.execute(setting).fetchall()
    for place in PLACES:
        temporary = "TEMP " if place.startswith("temp") else ""
        query = "SELECT '" + place.replace("'", "''") + "' AS place"
        places.execute(f"CREATE OR REPLACE {temporary}TABLE {place}.t AS {query}").fetchall()
    for gone in [None, "temp.main", "memory.s", "o.s", "o.main"]:
        if gone is not None:
            places.execute(f"DROP TABLE {gone}.t").fetchall()
        for name in NAMES:
            found = find_relation(session, parse_table_name(name, "test"))
            try:
                rows = places.sql(f"SELECT * FROM {name} LIMIT 1").fetchall()
            except duckdb.Error:
                assert found is None, (setting, gone, name)
                continue
            assert found is not None, (setting, gone, name)
            if name.casefold().endswith("t") and found.name.casefold() == "t":
                where = parse_table_name(rows[0][0], "test").parts
                assert (found.database, found.schema) == where, (setting, gone, name)


def test_python_variables_are_no_tables() -> None:
    edges = {"i": [0], "v": [1.0]}
    import pandas as pd

    edges = pd.DataFrame(edges)
    with ucle.connect() as connection:
        assert connection.sql("FROM edges").fetchall() == [(0, 1.0)]  # DuckDB finds it
        for name in ("edges", "frame"):
            with pytest.raises(InputError, match="no table or view of that name"):
                ucle.einsum_program("y[i] = A[i]", A=name, database=connection)
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.edges AS SELECT 1 AS i, 2.0 AS v")
        with pytest.raises(InputError, match="no table or view of that name"):
            ucle.einsum_program("y[i] = A[i]", A="edges", database=connection)
        connection.execute("CREATE TABLE edges AS SELECT 0 AS i, 5.0 AS v").fetchall()
        program = ucle.einsum_program("y[i] = A[i]", A="edges", database=connection)
        connection.execute("DROP TABLE edges").fetchall()
        with pytest.raises(InputError, match="no table or view of that name"):
            program.execute()


CHANGES = [
    ("SET search_path = 's'", 3),
    ("USE o", 5),
    ("USE memory", 1),
    ("CREATE TEMP TABLE t AS SELECT 0 AS i, 1 AS j, 7.0 AS v", 7),
    ("DROP TABLE temp.t; USE o.s", 9),
    ("DROP TABLE o.s.t", 5),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("native", [True, False])
def test_programs_read_the_table_that_is_meant(tmp_path: Path, native: bool, store: bool) -> None:
    """Facts, notes, stored layouts and checks of one table are not those of its namesakes."""
    with ucle.connect() if native else duckdb.connect() as connection:
        connection.execute(f"ATTACH '{tmp_path / 'o.db'}' AS o; CREATE SCHEMA s; CREATE SCHEMA o.s")
        for place, value in (("memory.main", 1), ("s", 3), ("o.main", 5), ("o.s", 9)):
            rows = f"SELECT 0::INT AS i, 1::INT AS j, {value}::DOUBLE AS v"
            connection.execute(f"CREATE TABLE {place}.t AS {rows}").fetchall()

        def compile_() -> ucle.EinsumProgram:
            return ucle.einsum_program(
                "y[i] += A[i,j] * x[j]",
                A="t",
                x=np.ones(2),
                database=connection,
                decomposition={"y": ["i"]},
                store=store,
            )

        program = compile_()
        for change, value in [("SELECT 1", 1), *CHANGES]:
            connection.execute(change).fetchall()
            for made in (program, compile_()):
                with made.execute() as result:
                    assert result["y"].to_numpy().tolist() == [value], change


def test_duplicates_are_those_of_the_table_that_is_meant() -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE SCHEMA s; CREATE TABLE main.t (i INT PRIMARY KEY, v DOUBLE)")
        connection.execute("CREATE TABLE s.t AS SELECT 0 AS i, 1.0 AS v FROM range(2)").fetchall()
        program = ucle.einsum_program("y[i] = A[i]", A="t", database=connection)
        connection.execute("SET search_path = 's'").fetchall()
        for run in (
            program.execute,
            lambda: ucle.einsum_program("y[i] = A[i]", A="t", database=connection),
        ):
            with pytest.raises(ucle.errors.DuplicateCoordinatesError):
                run()


def test_databases_in_memory_of_one_name(tmp_path: Path) -> None:
    with ucle.connect() as connection:
        made = "ATTACH ':memory:' AS o; CREATE TABLE o.t AS SELECT 0 AS i, {}::DOUBLE AS v"
        connection.execute(made.format(1)).fetchall()
        program = ucle.einsum_program("y[i] = A[i]", A="o.t", database=connection)
        connection.execute("DETACH o; " + made.format(2)).fetchall()
        assert program.execute()["y"].to_numpy().tolist() == [2]


def test_where_a_view_would_be_created() -> None:
    with duckdb.connect() as connection:
        session = open_session(connection)
        connection.execute("CREATE SCHEMA s; CREATE TABLE t AS SELECT 1 AS x").fetchall()
        taken: list[Any] = [is_taken(session, TableName(x)) for x in (("t",), ("s", "t"))]
        connection.execute("USE s").fetchall()
        taken += [is_taken(session, TableName(x)) for x in (("t",), ("memory", "t"))]
        assert taken == [True, False, False, True]


@pytest.mark.parametrize("written", ["Größe", "GRößE", "größe", "Ärger", "ÄRGER"])
def test_only_ascii_letters_have_a_case(written: str) -> None:
    """To DuckDB ß and ss, ä and Ä are different letters."""
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE "größe" (i INTEGER); CREATE TABLE "Ärger" (i INTEGER)')
        try:
            connection.execute(f'FROM "{written}"')
            there = True
        except duckdb.CatalogException:
            there = False
        found = find_relation(open_session(connection), TableName((written,)))
        assert (found is not None) == there
