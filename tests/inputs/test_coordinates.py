"""Coordinates that are no positions: strings, dates, scattered ids, and their dictionaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ucle
from ucle import errors
from ucle.testing import Routes

NAMES = ["ann", "bob", "cid", "dan"]
EDGES = [("ann", "bob", 1.0), ("bob", "cid", 2.0), ("cid", "ann", 3.0), ("dan", "ann", 4.0)]
MATRIX = np.array([[0, 1, 0, 0], [0, 0, 2, 0], [3, 0, 0, 0], [4, 0, 0, 0.0]])
SOURCE, TARGET, WEIGHT = zip(*EDGES, strict=True)
TABLE = pa.table({"src": SOURCE, "dst": TARGET, "w": WEIGHT})
SQUARE = "P[i,k] += A[i,j] * A[j,k]"
WAYS: list[Any] = ["auto", "relational", {"P": ["i"]}, {"P": ["k"]}, {"P": []}]


@pytest.fixture
def follows(connection: duckdb.DuckDBPyConnection) -> Any:
    connection.register("follows_data", TABLE)
    connection.execute("CREATE TABLE follows AS FROM follows_data")
    connection.unregister("follows_data")
    yield connection
    connection.execute("DROP TABLE follows")


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_strings(way: Any, follows: duckdb.DuckDBPyConnection) -> None:
    """One dictionary for both columns, in order; every form of the result shows the names."""
    program = ucle.einsum_program(SQUARE, A="follows", database=follows, decomposition=way)
    with program.execute() as result:
        tensor = result["P"]
        np.testing.assert_array_equal(tensor.to_numpy(), MATRIX @ MATRIX)
        assert tensor.coordinates("i").to_pylist() == NAMES
        assert tensor.coordinates("k").to_pylist() == NAMES
        table = tensor.to_arrow()
        keys = [name for name in table.column_names if name != "val"]
        assert all(set(table[key].to_pylist()) <= set(NAMES) for key in keys)
        tensor.to_table("squared", replace=True)
        assert sorted(follows.sql("FROM squared").fetchall(), key=str) == sorted(
            (tuple(row.values()) for row in table.to_pylist()), key=str
        )
        assert tensor.relation.columns == table.column_names == ["i", "k", "val"]
    follows.execute("DROP TABLE squared")


@pytest.mark.parametrize("axes", [("i", "j"), ("src", "dst"), ("SRC", "j")])
def test_a_dense_axis_stands_in_the_order_of_the_dictionary(
    axes: tuple[str, str], follows: duckdb.DuckDBPyConnection
) -> None:
    """Axes go by labels or by columns."""
    ages = np.array([30.0, 40.0, 50.0, 60.0])
    people = ucle.table("follows", coordinates=dict.fromkeys(axes, "people"))
    program = ucle.einsum_program("S[i] += A[i,j] * x[j]", A=people, x=ages, database=follows)
    with program.execute() as result:
        np.testing.assert_array_equal(result["S"].to_numpy(), MATRIX @ ages)
    with pytest.raises(errors.BoundError):  # on its own, the column dst holds three names
        ucle.einsum_program("S[i] += A[i,j] * x[j]", A="follows", x=ages, database=follows)


def test_ids_of_which_few_are_in_use(connection: duckdb.DuckDBPyConnection) -> None:
    """As positions, bounds are astronomical; through a dictionary they are 3, and may be dense."""
    ids = np.array([10**15, 5, 7 * 10**12])
    table = pa.table({"u": ids, "v": ids[[1, 1, 0]], "x": [1.0, 2.0, 3.0]})
    shared = ucle.table(table, coordinates={"u": "nodes", "v": "nodes"})
    program = ucle.einsum_program(
        "S[u] += E[u,v] * X[v]; T[u] += exp(E[u,v])",
        E=shared,
        X=np.array([1.0, 10.0, 100.0]),
        database=connection,
    )
    assert "nodes" in program.to_sql()
    with program.execute() as result:
        assert result["S"].shape == (3,)
        found = dict(zip(*result["S"].to_arrow().to_pydict().values(), strict=True))
        if result["S"].layout.promoted:
            assert found == {5: 2.0, 7 * 10**12: 300.0, 10**15: 1.0}
        np.testing.assert_allclose(result["S"].to_numpy(), [2.0, 300.0, 1.0])
        np.testing.assert_allclose(result["T"].to_numpy(), [2 + np.e**2, 2 + np.e**3, 2 + np.e])
        assert result["S"].coordinates("u").to_pylist() == sorted(ids.tolist())


def test_positions_are_still_positions(connection: duckdb.DuckDBPyConnection) -> None:
    """Bounds of billions need no dictionary as long as nothing is dense."""
    far = pa.table({"i": [5, 3 * 10**9], "j": [4 * 10**9, 2], "v": [2.0, 1.5]})
    program = ucle.einsum_program("T[j,i] = A[i,j] * A[i,j]", A=far, database=connection)
    with program.execute() as result:
        assert result["T"].shape == (4 * 10**9 + 1, 3 * 10**9 + 1)
        rows = {tuple(row.values()) for row in result["T"].to_arrow().to_pylist()}
        assert rows == {(4 * 10**9, 5, 4.0), (2, 3 * 10**9, 2.25)}


@pytest.mark.parametrize("kind", ["DATE", "UUID", "TIMESTAMP", "ENUM"])
def test_other_types_of_keys(kind: str, connection: duckdb.DuckDBPyConnection) -> None:
    values = {
        "DATE": "DATE '2026-01-01' + n::INT",
        "TIMESTAMP": "TIMESTAMP '2026-01-01' + n * INTERVAL 1 HOUR",
        "UUID": "('00000000-0000-0000-0000-00000000000' || n)::UUID",
        "ENUM": "('c' || n)::ENUM('c0', 'c1', 'c2')",
    }[kind]
    connection.execute(
        f"CREATE TABLE dated AS SELECT {values} AS k, n + 1.0 AS v FROM range(3) t(n)"
    )
    try:
        program = ucle.einsum_program("T[k] = A[k] * 2", A="dated", database=connection)
        with program.execute() as result:
            np.testing.assert_array_equal(result["T"].to_numpy(), [2.0, 4.0, 6.0])
            assert len(set(result["T"].coordinates("k").to_pylist())) == 3
    finally:
        connection.execute("DROP TABLE dated")


def test_names_from_memory_and_from_a_file(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    pq.write_table(TABLE, tmp_path / "edges.parquet")
    for source in (TABLE, tmp_path / "edges.parquet", TABLE.to_pandas()):
        with ucle.einsum_program(SQUARE, A=source, database=connection).execute() as result:
            np.testing.assert_array_equal(result["P"].to_numpy(), MATRIX @ MATRIX)


def test_array_columns_under_names(connection: duckdb.DuckDBPyConnection) -> None:
    vectors = pa.table({"who": NAMES[::-1], "vec": [[float(n), 1.0] for n in range(4)]})
    program = ucle.einsum_program("S[i,m] += A[i,j] * H[j,m]", A=TABLE, H=vectors,
                                  database=connection)  # fmt: skip
    with program.execute() as result:
        features = np.array([[3.0, 1], [2, 1], [1, 1], [0, 1]])
        np.testing.assert_array_equal(result["S"].to_numpy(), MATRIX @ features)


def test_duplicates_and_nulls_among_names(connection: duckdb.DuckDBPyConnection) -> None:
    twice = pa.table({"i": ["a", "a"], "v": [1.0, 2.0]})
    with pytest.raises(errors.DuplicateCoordinatesError, match="i = a"):
        ucle.einsum_program("T[i] = A[i]", A=twice, database=connection)
    summed = ucle.table(twice, duplicates="sum")
    with ucle.einsum_program("T[i] = A[i]", A=summed, database=connection).execute() as result:
        assert result["T"].to_arrow().to_pylist()[0]["val"] in (3.0, [3.0])
    with pytest.raises(errors.CoordinateError, match="NULL"):
        ucle.einsum_program("T[i] = A[i]", A=pa.table({"i": ["a", None], "v": [1.0, 2.0]}))


def test_names_in_one_table_and_positions_in_another() -> None:
    positions = pa.table({"k": [0, 1], "v": [1.0, 2.0]})
    with pytest.raises(errors.ValueTypeError, match="by a dictionary in one table"):
        ucle.einsum_program("S[i] += A[i,j] * x[j]", A=TABLE, x=positions)


def test_changed_data_is_checked(follows: duckdb.DuckDBPyConnection) -> None:
    program = ucle.einsum_program("S[j] += A[i,j]", A="follows", database=follows)
    follows.execute("INSERT INTO follows VALUES ('dan', 'bob', 1.0)")
    with program.execute() as result:  # no new name: the dictionary is made again
        np.testing.assert_array_equal(result["S"].to_numpy(), [7.0, 2.0, 2.0])
    follows.execute("INSERT INTO follows VALUES ('ann', 'eve', 1.0)")
    with program.execute() as result:
        np.testing.assert_array_equal(result["S"].to_numpy(), [7.0, 2.0, 2.0, 1.0])


def test_nothing_is_left_behind(follows: duckdb.DuckDBPyConnection) -> None:
    before = follows.sql("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
    with ucle.einsum_program(SQUARE, A="follows", database=follows).execute():
        pass
    assert follows.sql("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall() == before


@pytest.mark.parametrize(
    ("coordinates", "error"),
    [
        ("names", "unknown treatment"),
        ({"q": "nodes"}, "names 'q'"),
        ({"i": "dictionary", "j": "dictionary"}, "no name of a dictionary"),
        ({"i": "nodes", "j": "auto"}, "no name of a dictionary"),
    ],
)
def test_bad_coordinates(coordinates: Any, error: str) -> None:
    with pytest.raises(errors.InputError, match=error):
        ucle.einsum_program("T[i,j] = A[i,j]", A=ucle.table(TABLE, coordinates=coordinates))


def test_names_of_a_table_in_memory_that_no_output_reads(routes: Routes) -> None:
    """Its names are coordinates all the same: the dictionary of the label reads them."""
    price = pd.DataFrame({"fruit": ["fig", "pear"], "val": [1.0, 2.0]})
    bought = pd.DataFrame({"n": [0, 0], "fruit": ["fig", "apple"], "val": [1.0, 2.0]})
    for connection in routes.values():
        program = ucle.einsum_program(
            "double[fruit] = 2 * price[fruit]; cost[n] = bought[n,fruit] * price[fruit]",
            price=ucle.table(price),
            bought=ucle.table(bought),
            outputs=["double"],
            database=connection,
        )
        with program.execute() as result:
            assert result["double"].to_numpy().tolist() == [0.0, 2.0, 4.0]
        with program.prepare(connection) as run:
            assert run()["double"].to_numpy().tolist() == [0.0, 2.0, 4.0]
