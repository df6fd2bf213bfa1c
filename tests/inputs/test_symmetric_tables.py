"""Symmetric tables: each row stands for its first two coordinates in either order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import ucle
from ucle import errors
from ucle.testing.check_matrix import Routes, some_decompositions

SIZE = 6


def _graph(seed: int, size: int = SIZE) -> tuple[NDArray[Any], pa.Table]:
    """A symmetric matrix, and a table of its pairs, each in one of its orders."""
    rng = np.random.default_rng(seed)
    triangle = np.triu(
        np.where(rng.random((size, size)) < 0.5, rng.integers(1, 5, (size, size)), 0)
    )
    triangle[-1, -1] = 3  # so that the table tells the size
    i, j = np.nonzero(triangle)
    turned = rng.random(len(i)) < 0.5
    one, other = np.where(turned, j, i), np.where(turned, i, j)
    table = pa.table({"i": one, "j": other, "w": triangle[i, j].astype(float)})
    return (triangle + np.triu(triangle, 1).T).astype(float), table


X = np.arange(1.0, SIZE + 1)
W = np.arange(3.0 * SIZE).reshape(SIZE, 3) - 4
TEXTS = {
    "y[i] += A[i,j] * x[j]": lambda a: a @ X,
    "y[j] += A[i,j] * x[i]": lambda a: a @ X,
    "Y[i,k] += A[i,j] * W[j,k]": lambda a: a @ W,
    "Y[i,j] = A[i,j] + 1": lambda a: a + 1,
    "Y[i,j] = A[i,j] - A[j,i]": lambda a: a - a,
    "t[] += A[i,j] * A[j,k] * A[i,k]": lambda a: np.trace(a @ a @ a),
    "y[i] max= A[i,j] - 2": lambda a: (a - 2).max(1),
    "d[i] = A[i,i]": np.diag,
    "Y[i,j] = A[i,j] / (1 + sum[k](A[i,k]))": lambda a: a / (1 + a.sum(1))[:, None],
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", TEXTS)
def test_it_is_both_triangles(text: str, routes: Routes) -> None:
    matrix, table = _graph(0)
    inputs = {name: array for name, array in (("x", X), ("W", W)) if f"{name}[" in text}
    stored = ucle.table(table, symmetric=True)
    for connection in routes.values():
        chosen = ucle.einsum_program(text, A=stored, database=connection, **inputs)
        for way in ("auto", "relational", *some_decompositions(chosen, 0, 6)):
            with chosen.with_decomposition(way).execute() as result:
                array = result[chosen.outputs[0]].to_numpy()
            np.testing.assert_allclose(array, TEXTS[text](matrix), err_msg=f"{text} by {way}")


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(-3, 3)), max_size=9),
)
def test_random_pairs(size: int, pairs: list[tuple[int, int, int]]) -> None:
    pairs = [(i % size, j % size, w) for i, j, w in pairs]
    matrix = np.zeros((size, size))
    for i, j, w in pairs:
        matrix[i, j] += w
        matrix[j, i] += w * (i != j)
    columns = [list(x) for x in zip(*pairs, strict=True)] or [[], [], []]
    types = pa.int32(), pa.int32(), pa.float64()
    arrays = [pa.array(x, t) for x, t in zip(columns, types, strict=True)]
    table = pa.table(arrays, names=["i", "j", "w"])
    stored = ucle.table(table, bounds=[size, size], symmetric=True, duplicates="sum")
    text = "B[i,j] = A[i,j]; y[i] += A[i,j] * A[j,k]"
    program = ucle.einsum_program(text, A=stored, outputs=["B", "y"])
    with program.execute() as result:
        np.testing.assert_array_equal(result["B"].to_numpy(), matrix)
        np.testing.assert_array_equal(result["y"].to_numpy(), (matrix @ matrix).sum(1))
    known = program.compiled.inputs["A"].statistics
    assert known.entries == np.count_nonzero(matrix)


def test_statistics_are_those_of_the_matrix() -> None:
    matrix, table = _graph(1)
    program = ucle.einsum_program("y[i] += A[i,j]", A=ucle.table(table, symmetric=True))
    known, counts = program.compiled.inputs["A"].statistics, matrix != 0
    assert known.entries == counts.sum()
    assert known.distinct == (counts.any(1).sum(), counts.any(0).sum())
    assert known.largest == (counts.sum(1).max(), counts.sum(0).max())


def test_tables_files_and_sparse_arrays(tmp_path: Path) -> None:
    matrix, table = _graph(2)
    path = str(tmp_path / "pairs.parquet")
    coordinates = [table[x].to_numpy() for x in "ij"]
    sparse = sp.coo_array((table["w"].to_numpy(), tuple(coordinates)), shape=matrix.shape)
    with ucle.connect() as connection:
        connection.register("in_memory", table)
        connection.execute("CREATE TABLE pairs AS FROM in_memory")
        connection.execute(f"COPY pairs TO '{path}'")
        for data in ("pairs", path, sparse, sparse.tocsr(), table.to_pandas()):
            stored = ucle.table(data, symmetric=True)
            program = ucle.einsum_program("y[i] += A[i,j]", A=stored, database=connection)
            np.testing.assert_allclose(program.execute()["y"].to_numpy(), matrix.sum(1))


def test_names_of_nodes_are_numbered_together() -> None:
    pairs = pa.table({"a": ["ann", "bob"], "b": ["bob", "cid"], "w": [2.0, 3.0]})
    stored = ucle.table(pairs, symmetric=True)
    with ucle.einsum_program("d[i] += A[i,j]", A=stored).execute() as result:
        rows = result["d"].to_arrow().sort_by("i").to_pylist()
    assert rows == [{"i": "ann", "val": 2.0}, {"i": "bob", "val": 5.0}, {"i": "cid", "val": 3.0}]


def test_axes_behind_the_first_two() -> None:
    data = pa.table({"i": [0, 1], "j": [2, 1], "val": pa.array([[1.0, 2.0], [3.0, 4.0]])})
    expected = np.zeros((3, 3, 2))
    expected[0, 2] = expected[2, 0] = 1, 2
    expected[1, 1] = 3, 4
    stored = ucle.table(data, symmetric=True)
    with ucle.einsum_program("B[k,i,j] = A[i,j,k]", A=stored).execute() as result:
        np.testing.assert_array_equal(result["B"].to_numpy(), expected.transpose(2, 0, 1))


def test_axes_have_one_size() -> None:
    stored = ucle.table(pa.table({"i": [0, 1], "j": [5, 1]}), symmetric=True)
    with ucle.einsum_program("d[i] += A[i,j]", A=stored).execute() as result:
        assert result["d"].to_numpy().tolist() == [1, 1, 0, 0, 0, 1]


def test_both_orders_of_a_pair_are_duplicates() -> None:
    pairs = pa.table({"i": [0, 1], "j": [1, 0], "w": [2.0, 2.0]})
    with pytest.raises(errors.DuplicateCoordinatesError, match="same coordinates"):
        ucle.einsum_program("y[i] += A[i,j]", A=ucle.table(pairs, symmetric=True))
    summed = ucle.table(pairs, symmetric=True, duplicates="sum")
    with ucle.einsum_program("y[i] += A[i,j]", A=summed).execute() as result:
        assert result["y"].to_numpy().tolist() == [4, 4]


def test_unique_columns_do_not_say_that_pairs_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ucle.stats.measure.EXACT_ENTRIES", 0)
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE pairs (i INTEGER, j INTEGER, w DOUBLE, PRIMARY KEY (i, j))"
        )
        connection.execute("INSERT INTO pairs VALUES (0, 1, 2), (1, 0, 2)")
        stored = ucle.table("pairs", symmetric=True)
        with pytest.raises(errors.DuplicateCoordinatesError):
            ucle.einsum_program("y[i] += A[i,j]", A=stored, database=connection)


@pytest.mark.parametrize(
    ("data", "options", "labels"),
    [
        (np.eye(3), {}, "i,j"),
        (pa.table({"i": [0], "w": [1.0]}), {}, "i"),
        (pa.table({"i": [0], "val": [[1.0, 2.0]]}), {}, "i,j"),
        (pa.table({"i": [0], "j": [0], "val": [[1.0, 2.0]]}), {"tiles": [2]}, "i,j"),
    ],
)
def test_what_cannot_be_symmetric(data: Any, options: dict[str, Any], labels: str) -> None:
    with pytest.raises(errors.InputError):
        ucle.einsum_program(f"s[] += A[{labels}]", A=ucle.table(data, symmetric=True, **options))


def test_rows_that_are_wrong() -> None:
    for i, j, error in ((-1, 0, "outside"), (0, None, "NULL")):
        pairs = pa.table({"i": pa.array([i]), "j": pa.array([j], pa.int64()), "w": [1.0]})
        with pytest.raises(errors.CoordinateError, match=error):
            ucle.einsum_program("y[i] += A[i,j]", A=ucle.table(pairs, symmetric=True))


def test_views_and_stored_layouts_and_changes() -> None:
    matrix, table = _graph(3)
    with ucle.connect() as connection:
        connection.register("in_memory", table)
        connection.execute("CREATE TABLE pairs AS FROM in_memory")
        stored = ucle.table("pairs", symmetric=True)
        program = ucle.einsum_program("y[i] += A[i,j] * A[j,i]", A=stored, database=connection)
        program.create_views()
        rows = dict(connection.execute("SELECT * FROM y").fetchall())
        expected = (matrix**2).sum(1)
        assert rows == {n: value for n, value in enumerate(expected) if value}
        options = {"store": ["A"], "decomposition": {"z": ["i/4", "0{j}"]}}
        for data in (stored, "pairs"):
            text = "z[i] += A[i,j] * x[j]"
            kept = ucle.einsum_program(text, A=data, x=X, database=connection, **options)
            if data is stored:
                np.testing.assert_allclose(kept.execute()["z"].to_numpy(), matrix @ X)
            else:
                half = sp.coo_array((table["w"].to_numpy(), (table["i"], table["j"])))
                np.testing.assert_allclose(kept.execute()["z"].to_numpy(), half @ X)
        connection.execute("DELETE FROM pairs WHERE i <> 5 OR j <> 5")
        connection.execute("INSERT INTO pairs VALUES (7, 2, 4)")
        changed = np.zeros(8)
        changed[[2, 7]], changed[5] = 16, 9
        np.testing.assert_array_equal(program.execute()["y"].to_numpy(), changed)
