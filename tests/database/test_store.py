"""Inputs that are stored in the layouts in which programs read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.errors import InputError, NameResolutionError
from ucle.testing import random_case
from ucle.testing.check_matrix import Routes, some_decompositions
from ucle.testing.oracle import assert_equal

CHAIN = "Y[i,k] += A[i,j] * X[j,k]"
BY_ROWS = {"Y": {"i", "j"}}
"""A is read by its entries and X by its rows, which lies there by its entries."""
STORED = '"data"."ucle"."X_by_j"'


def coo(array: np.ndarray[Any, Any]) -> pa.Table:
    i, j = np.nonzero(array)
    return pa.table({"i": i, "j": j, "v": array[i, j]})


@pytest.fixture
def arrays() -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    draws = {"A": random.random((7, 6)), "X": random.random((6, 5))}
    made = {name: np.where(draw > 0.3, draw, 0) for name, draw in draws.items()}
    made["X"][5, 4] = 0  # where a test adds an entry
    return made


@pytest.fixture
def path(tmp_path: Path, arrays: dict[str, Any]) -> str:
    """A database with the entries of A and X."""
    with ucle.connect(tmp_path / "data.db") as connection:
        for name, array in arrays.items():
            connection.register("entries", coo(array))
            connection.execute(f"CREATE TABLE {name} AS FROM entries").fetchall()
    return str(tmp_path / "data.db")


def compiled(database: Any, **options: Any) -> ucle.EinsumProgram:
    options = {"decomposition": BY_ROWS, "bounds": {"i": 7, "j": 6, "k": 5}} | options
    return ucle.einsum_program(CHAIN, A="A", X="X", database=database, **options)


def answer(program: ucle.EinsumProgram, database: Any = None) -> np.ndarray[Any, Any]:
    with program.execute(database) as result:
        return result["Y"].to_numpy()


def kept(connection: duckdb.DuckDBPyConnection) -> list[str]:
    query = (
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'ucle' "
        "AND table_name NOT IN ('layouts', 'facts') ORDER BY ALL"
    )
    return [name for (name,) in connection.execute(query).fetchall()]


def test_a_later_program_reads_what_was_stored(path: str, arrays: dict[str, Any]) -> None:
    before = compiled(path)
    first = compiled(path, store="X")
    later = compiled(path)
    assert STORED not in before.to_sql()
    for program in (first, later):
        assert STORED in program.to_sql()
        assert "repartition" not in program.to_sql()
        assert program.costs["Y"].repartition == 0 < before.costs["Y"].repartition
        np.testing.assert_allclose(answer(program), arrays["A"] @ arrays["X"])
    with duckdb.connect(path) as connection:
        assert kept(connection) == ["X_by_j"]
        rows = connection.execute("SELECT j, val FROM ucle.X_by_j").fetchall()
    assert [key for key, _ in rows] == sorted(key for key, _ in rows)
    np.testing.assert_array_equal([value for _, value in rows], arrays["X"])


def test_the_optimiser_knows_what_is_there(path: str) -> None:
    compiled(path, decomposition={"Y": {"j"}}, store=True)
    with duckdb.connect(path) as connection:
        assert kept(connection) == ["A_by_j", "X_by_j"]
    free = compiled(path, decomposition="auto")
    pinned = compiled(path, decomposition={"Y": {"j"}})
    assert pinned.costs["Y"].repartition == 0
    assert free.cost <= pinned.cost


def test_inputs_in_several_layouts(path: str, arrays: dict[str, Any]) -> None:
    text = "Y[i,k] += A[i,j] * X[j,k]\nZ[k,l] += X[j,k] * X[j,l]"
    options = {"decomposition": {"Y": {"i", "j"}, "Z": {"k", "l"}}, "store": ["X"]}
    program = ucle.einsum_program(text, A="A", X="X", database=path, **options)
    with duckdb.connect(path) as connection:
        assert kept(connection) == ["X_by_j", "X_by_k"]
    with program.execute() as result:
        np.testing.assert_allclose(result["Y"].to_numpy(), arrays["A"] @ arrays["X"])
        np.testing.assert_allclose(result["Z"].to_numpy(), arrays["X"].T @ arrays["X"])


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE X SET v = v + 1 WHERE i = 2",
        "INSERT INTO X VALUES (5, 4, 2.5)",
        "DELETE FROM X WHERE i = 3",
        "CREATE OR REPLACE TABLE X AS SELECT i, 4 - j AS j, v FROM X",
        "DROP TABLE ucle.X_by_j",
        "DROP SCHEMA ucle CASCADE",
    ],
)
@pytest.mark.parametrize("store", [True, False])
def test_nothing_stale_is_read(path: str, change: str, store: bool) -> None:
    """Programs compiled before the change, and after it, read no stale data."""
    storing = compiled(path, store=True)
    program = storing if store else compiled(path)
    assert STORED in program.to_sql()
    answer(program)
    with ucle.connect(path) as connection:
        connection.execute(change).fetchall()
        expected = connection.execute(
            "SELECT A.i, X.j, sum(A.v * X.v) FROM A JOIN X ON A.j = X.i GROUP BY ALL"
        ).fetchnumpy()
    dense = np.zeros((7, 5))
    i, j, values = expected.values()
    dense[i, j] = values
    for found in (answer(program), answer(compiled(path)), answer(program)):
        np.testing.assert_allclose(found, dense)
    assert (STORED in compiled(path).to_sql()) is store


@pytest.mark.slow
@pytest.mark.parametrize("store", [True, False])
def test_what_changes_below_a_view_is_seen(path: str, store: bool) -> None:
    """On one connection, where nothing tells that the view shows other data."""
    text = "Y[i,k] += A[i,j] * X[j,k]"
    with ucle.connect(path) as connection:
        connection.execute("CREATE VIEW seen AS FROM X").fetchall()
        options: dict[str, Any] = {
            "decomposition": BY_ROWS,
            "bounds": {"i": 7, "j": 6, "k": 5},
            "database": connection,
        }
        storing = ucle.einsum_program(text, A="A", X="seen", store=["X"], **options)
        program = storing if store else ucle.einsum_program(text, A="A", X="seen", **options)
        assert '"ucle"."seen_' in program.to_sql()
        for factor in (1, 3, 2):
            connection.execute(f"UPDATE X SET v = v * {factor}").fetchall()
            fresh = ucle.einsum_program(text, A="A", X="X", **options)
            expected = answer(fresh)
            assert expected.any()
            np.testing.assert_allclose(answer(program), expected)
            np.testing.assert_allclose(answer(program), expected)


def test_another_process_finds_it(path: str, arrays: dict[str, Any]) -> None:
    compiled(path, store=True)
    with ucle.connect(path) as connection:
        connection.execute("CREATE TABLE other AS FROM range(10)").fetchall()
        connection.execute("CHECKPOINT").fetchall()
    program = compiled(path)
    assert STORED in program.to_sql()
    np.testing.assert_allclose(answer(program), arrays["A"] @ arrays["X"])


def test_where_nothing_can_be_stored(path: str, arrays: dict[str, Any]) -> None:
    with duckdb.connect(path, read_only=True) as connection:
        with pytest.raises(InputError, match="cannot be stored"):
            compiled(connection, store=["X"])
        np.testing.assert_allclose(
            answer(compiled(connection, store=True), connection), arrays["A"] @ arrays["X"]
        )
    with ucle.connect(path) as connection:
        connection.execute("BEGIN").fetchall()
        with pytest.raises(InputError, match="transaction"):
            compiled(connection, store=["X"])
        connection.execute("ROLLBACK").fetchall()
        assert kept(connection) == []
    with pytest.raises(InputError, match="in memory"):
        ucle.einsum_program(CHAIN, A="A", X=arrays["X"], database=path, store=["X"])
    with pytest.raises(NameResolutionError, match="no input B"):
        compiled(path, store=["B"])


def test_a_database_in_memory(arrays: dict[str, Any]) -> None:
    with ucle.connect() as connection:
        for name, array in arrays.items():
            connection.register("entries", coo(array))
            connection.execute(f"CREATE TABLE {name} AS FROM entries").fetchall()
        compiled(connection, store=True)
        program = compiled(connection)
        assert '"memory"."ucle"."X_by_j"' in program.to_sql()
        np.testing.assert_allclose(answer(program), arrays["A"] @ arrays["X"])


def test_a_file_is_stored_in_the_current_database(path: str, arrays: dict[str, Any]) -> None:
    parquet = str(Path(path).parent / "X.parquet")
    with ucle.connect(path) as connection:
        connection.execute(f"COPY X TO '{parquet}'").fetchall()
    options = {"decomposition": BY_ROWS, "database": path}
    for store in ("X", False):
        program = ucle.einsum_program(CHAIN, A="A", X=parquet, store=store, **options)
        assert '"data"."ucle"."file_by_j"' in program.to_sql()
        np.testing.assert_allclose(answer(program), arrays["A"] @ arrays["X"])


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int, routes: Routes) -> None:
    """Every decomposition stores what it reads, in all element types and with all fills."""
    case = random_case(seed)
    expected = case.expected()
    for connection in routes.values():
        case.create_tables(connection)
        try:
            program = case.compile(connection, store=True)
            for way in ["auto", *some_decompositions(program, seed, 3)]:
                for _ in range(2):  # once to store, once to read
                    chosen = program if way == "auto" else program.with_decomposition(way)
                    with chosen.execute(connection) as result:
                        for name in result:
                            context = f"decomposition {way}, tensor {name}\n{case}"
                            assert_equal(result[name].to_numpy(), expected[name], context)
        finally:
            case.drop_tables(connection)
            connection.execute("DROP SCHEMA IF EXISTS ucle CASCADE").fetchall()
