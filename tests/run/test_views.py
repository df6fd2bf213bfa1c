"""Views that a program leaves behind."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import numpy as np
import pytest

import ucle
from ucle.errors import DatabaseError, ReadOnlyError, UnsupportedError
from ucle.testing import random_case
from ucle.testing.oracle import assert_equal

DEGREES = "D[i] += A[i,j]\nP[i,j] = A[i,j] * D[i]"


@pytest.fixture
def path(tmp_path: Path) -> str:
    with duckdb.connect(str(tmp_path / "graph.db")) as connection:
        connection.execute(
            "CREATE TABLE edges AS FROM (VALUES (0, 1, 2.0), (0, 2, 1.0), (1, 2, 4.0)) t(i, j, v)"
        ).fetchall()
        connection.execute("CREATE SCHEMA views").fetchall()
    return str(tmp_path / "graph.db")


def program(database: object, **options: object) -> ucle.EinsumProgram:
    options = {"outputs": ["D", "P"], "bounds": {"i": 4, "j": 4}} | options
    return ucle.einsum_program(DEGREES, A="edges", database=database, **options)


def test_views_outlive_the_program_and_follow_the_data(path: str) -> None:
    names = program(path, decomposition="relational").create_views(schema="views")
    assert names == ('"views"."D"', '"views"."P"')
    with duckdb.connect(path) as connection:  # without kernels
        connection.execute("USE views").fetchall()
        assert connection.sql("FROM D ORDER BY i").fetchall() == [(0, 3.0), (1, 4.0)]
        connection.execute("INSERT INTO main.edges VALUES (3, 0, 0.5)").fetchall()
        assert connection.sql("FROM D ORDER BY i").fetchall() == [(0, 3.0), (1, 4.0), (3, 0.5)]
        assert connection.sql("SELECT val FROM P WHERE i = 0 AND j = 1").fetchall() == [(6.0,)]


def test_macros_take_other_tables(path: str) -> None:
    """Two tables, one of them read twice, by kernels; each may be another one."""
    text = "D[i] += A[i,j] * B[j,k]; P[i,j] = A[i,j] * D[i]; N[i] = argmax[j](A[i,j])"
    with ucle.connect(path) as connection:
        connection.execute("""CREATE TABLE views."B_table" AS FROM edges""").fetchall()
        connection.execute("""
            CREATE TABLE later AS FROM (VALUES (0, 0, 3.0), (3, 2, 5.0)) t(i, j, v)
        """).fetchall()
        made = ucle.einsum_program(
            text,
            A="edges",
            B='views."B_table"',
            bounds={"i": 4, "j": 4, "k": 4},
            outputs=["D", "P", "N"],
            database=connection,
        )
        connection.execute(made.macro_sql(rows="all")).fetchall()
        A, B, C = (np.zeros((4, 4)) for _ in range(3))
        for array, table in ((A, "edges"), (B, 'views."B_table"'), (C, "later")):
            for i, j, v in connection.sql(f"FROM {table}").fetchall():
                array[i, j] = v
        first, second = "edges_table", '"B_table_table"'
        for arguments, one, other in (
            ("", A, B),
            (f"{first} := 'later'", C, B),
            (f"{second} := 'later'", A, C),
            (f"{first} := 'main.later', {second} := 'later'", C, C),
        ):
            found = connection.sql(f'SELECT val FROM "D"({arguments}) ORDER BY i').fetchall()
            np.testing.assert_array_equal([value for (value,) in found], one @ other.sum(axis=1))
        found = connection.sql(f"SELECT val FROM \"N\"({first} := 'later') ORDER BY i").fetchall()
        assert [value for (value,) in found] == C.argmax(axis=1).tolist()


FUZZ = int(os.environ.get("UCLE_FUZZ_PROGRAMS", "0"))


# In every fourth all inputs are tables.
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "seed", [*range(40), *(pytest.param(x, marks=pytest.mark.fuzz) for x in range(40, FUZZ))]
)
def test_views_show_what_programs_compute(seed: int) -> None:
    case = random_case(seed)
    with ucle.connect() as connection:
        case.create_tables(connection)
        compiled = case.compile(connection)
        if len(case.tables) < len(compiled.compiled.inputs):
            with pytest.raises(UnsupportedError, match="from memory"):
                compiled.create_views(connection)
            return
        compiled.create_views(connection)
        for name, expected in case.expected().items():
            if name in compiled.outputs:
                with compiled.execute(connection) as result:
                    made = result[name].relation
                    shown = connection.sql(f'FROM "{name}"')
                    assert shown.columns == made.columns
                    assert_equal(result[name].to_numpy(), expected, str(case))
                    assert sorted(map(repr, shown.fetchall())) == sorted(map(repr, made.fetchall()))


def test_names_are_not_taken_twice(path: str) -> None:
    compiled = program(path)
    compiled.create_views(schema="views")
    with pytest.raises(DatabaseError, match="of that name"):
        compiled.create_views(schema="views")
    compiled.create_views(schema="views", replace=True)
    with ucle.connect(path) as connection:
        total = connection.sql("FROM views.D").fetchall()
        assert np.isclose(sum(np.sum(row[-1]) for row in total), 7)
        connection.execute("CREATE TABLE P AS SELECT 1 AS x").fetchall()
        with pytest.raises(DatabaseError):
            compiled.create_views(connection, replace=True)
        views = "SELECT view_name FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'"
        assert connection.sql(views).fetchall() == []


def test_where_there_can_be_no_view(path: str) -> None:
    with duckdb.connect(path, read_only=True) as connection:
        with pytest.raises(UnsupportedError, match="belong to one connection"):
            program(connection, decomposition={"D": ["i"]}).create_views(connection)
        with pytest.raises(ReadOnlyError):
            program(connection, decomposition="relational").create_views(connection)
    with pytest.raises(DatabaseError, match="cannot be created"):
        program(path).create_views(schema="nowhere")


def test_in_a_transaction_of_the_user(path: str) -> None:
    with ucle.connect(path) as connection:
        compiled = program(connection)
        connection.execute("BEGIN").fetchall()
        compiled.create_views(connection)
        connection.execute("ROLLBACK").fetchall()
        with pytest.raises(duckdb.CatalogException):
            connection.sql("FROM P").fetchall()


# Views without kernels


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("first", range(0, 100, 25))
def test_plain_views_of_random_programs(first: int, tmp_path: Path) -> None:
    """A client without kernels reads from plain views what the program computes in SQL."""
    checked = 0
    for seed in range(first, first + 25):
        case, file = random_case(seed), str(tmp_path / f"{seed}.db")
        expected = {}
        with ucle.connect(file) as connection:
            case.create_tables(connection)
            made = case.compile(connection)
            if len(case.tables) < len(made.compiled.inputs):
                continue
            try:
                made.create_views(connection, kernels=False)
            except UnsupportedError:  # functions of matrices
                continue
            with made.with_decomposition("relational").execute(connection) as result:
                for name in result:
                    expected[name] = sorted(map(repr, result[name].relation.fetchall()))
        with duckdb.connect(file) as connection:
            for name, rows in expected.items():
                shown = connection.sql(f'FROM "{name}"').fetchall()
                assert sorted(map(repr, shown)) == rows, str(case)
        checked += 1
    assert checked


def test_a_view_says_that_it_needs_kernels(path: str) -> None:
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE h AS SELECT j, [j, 2.0 * j] v FROM range(4) t(j)"
        ).fetchall()
    comments = "SELECT comment FROM duckdb_views() WHERE view_name = 'Z'"
    with ucle.connect(path) as connection:
        made = ucle.einsum_program(
            "Z[i,k] += A[i,j] * H[j,k]",
            A=ucle.table("edges", ["i", "j"], "v", bounds=[4, 4]),
            H=ucle.table("h", ["j"], "v", shape=[2]),
            database=connection,
        )
        made.create_views(connection)
        ((comment,),) = connection.execute(comments).fetchall()
        assert "LOAD" in comment
        assert "kernels=False" in comment
        expected = sorted(connection.sql("FROM Z").fetchall())
        made.create_views(connection, replace=True, kernels=False)
        assert connection.execute(comments).fetchall() == [(None,)]
    with duckdb.connect(path) as connection:
        assert sorted(connection.sql("FROM Z").fetchall()) == expected


def test_what_only_kernels_compute(path: str) -> None:
    views = "SELECT count(*) FROM duckdb_views() WHERE NOT internal"
    with ucle.connect(path) as connection:
        square = {"A": "edges", "bounds": {"i": 4, "j": 4}, "database": connection}
        inverse = ucle.einsum_program("V[i,j] = inv[i,j](A[i,j])", **square)
        with pytest.raises(UnsupportedError, match="functions of matrices"):
            inverse.create_views(connection, kernels=False)
        with pytest.raises(UnsupportedError, match="without kernels"):
            program(connection).create_views(connection, kernels=False, keys={"P": ["i"]})
        assert connection.sql(views).fetchall() == [(0,)]
