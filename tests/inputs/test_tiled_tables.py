"""Tables whose rows hold tiles of a tensor are that tensor, on every decomposition and route."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import ucle
from ucle import errors
from ucle.testing.check_matrix import Routes, some_decompositions

SHAPE = (8, 6)
TILE = 2


def _blocks(
    seed: int, shape: tuple[int, int] = SHAPE, tiles: tuple[int, int] = (TILE, TILE)
) -> tuple[NDArray[Any], list[tuple[int, int, list[list[float]]]]]:
    """A matrix, and the blocks of it that are stored, those at its ends as long as the others."""
    rng = np.random.default_rng(seed)
    counts = [-(-size // tile) for size, tile in zip(shape, tiles, strict=True)]
    whole = np.zeros([n * tile for n, tile in zip(counts, tiles, strict=True)])
    rows = []
    for numbers in np.ndindex(*counts):
        if rng.random() < 0.3:
            continue
        place = tuple(slice(n * t, n * t + t) for n, t in zip(numbers, tiles, strict=True))
        whole[place] = rng.integers(0, 4, tiles)
        whole[shape[0] :], whole[:, shape[1] :] = 0, 0
        rows.append((*numbers, whole[place].tolist()))
    return whole[: shape[0], : shape[1]], rows


def _create(connection: duckdb.DuckDBPyConnection, rows: Any, type_: str) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE blocks (bi INTEGER, bj INTEGER, val {type_})")
    if rows:
        connection.executemany("INSERT INTO blocks VALUES (?, ?, ?)", rows)


def _check(
    text: str, expected: Any, routes: Routes, stored: Any, rows: Any, type_: str, **inputs: Any
) -> None:
    """The answer of the first output on each route, and by a sample of all decompositions."""
    for connection in routes.values():
        _create(connection, rows, type_)
    compiler = next(iter(routes.values()))
    chosen = ucle.einsum_program(text, A=stored, database=compiler, **inputs)
    ways: list[Any] = ["auto", "relational", *some_decompositions(chosen, seed=0, sample=6)]
    for way in ways:
        program = chosen if way == "auto" else chosen.with_decomposition(way)
        for connection in routes.values():
            with program.execute(connection) as result:
                array = result[program.outputs[0]].to_numpy()
            np.testing.assert_allclose(array, expected, err_msg=f"{text} by {way}")


X = np.arange(1.0, 7.0)
W = np.arange(18.0).reshape(6, 3) - 4
TEXTS = {
    "y[i] += A[i,j] * x[j]": lambda a: a @ X,
    "Y[i,k] += A[i,j] * W[j,k]": lambda a: a @ W,
    "Y[j,i] = A[i,j] + 1": lambda a: a.T + 1,
    "Y[i,k] += A[i,j] * A[k,j]": lambda a: a @ a.T,
    "y[j] max= A[i,j] - 2": lambda a: (a - 2).max(0),
    "H[i,k] += A[i,j] * W[j,k]; y[k] += relu(H[i,k])": lambda a: np.maximum(a @ W, 0).sum(0),
}


def _used(text: str) -> dict[str, Any]:
    return {name: array for name, array in (("x", X), ("W", W)) if f"{name}[" in text}


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("type_", ["DOUBLE[2][2]", "DOUBLE[][]"])
def test_blocks(text: str, type_: str, routes: Routes) -> None:
    matrix, rows = _blocks(1)
    if rows[-1][:2] != (3, 2):  # so that the table tells the bounds
        rows.append((3, 2, matrix[6:, 4:].tolist()))
    stored = ucle.table("blocks", tiles=[2, 2])
    _check(text, TEXTS[text](matrix), routes, stored, rows, type_, **_used(text))


@pytest.mark.sample(1)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("shape", [(7, 6), (8, 6)])
def test_blocks_whose_last_ones_are_cut_off(
    text: str, shape: tuple[int, int], routes: Routes
) -> None:
    matrix, rows = _blocks(2, shape, (4, 4))
    stored = ucle.table("blocks", tiles=[4, 4], bounds=shape)
    _check(text, TEXTS[text](matrix), routes, stored, rows, "DOUBLE[4][4]", **_used(text))


@pytest.mark.sample(1)
@pytest.mark.parametrize("text", list(TEXTS)[:3])
@pytest.mark.parametrize("shape", [(8, 6), (7, 6)])
def test_blocks_that_are_not_square(text: str, shape: tuple[int, int], routes: Routes) -> None:
    matrix, rows = _blocks(3, shape, (4, 3))
    stored = ucle.table("blocks", tiles=[4, 3], bounds=shape)
    _check(text, TEXTS[text](matrix), routes, stored, rows, "DOUBLE[3][4]", **_used(text))


def test_blocks_in_flat_lists(routes: Routes) -> None:
    matrix, rows = _blocks(4)
    flat = [(i, j, [x for row in block for x in row]) for i, j, block in rows]
    stored = ucle.table("blocks", ["bi", "bj"], "val", tiles=[2, 2], bounds=SHAPE)
    _check("y[i] += A[i,j] * x[j]", matrix @ X, routes, stored, flat, "DOUBLE[4]", x=X)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex128"])
def test_blocks_of_other_types(dtype: str, routes: Routes) -> None:
    matrix, _ = _blocks(5)
    values = (matrix * (1j if dtype == "complex128" else 1)).astype(dtype)
    blocked = sp.bsr_array(values, blocksize=(2, 2))
    for connection in routes.values():
        program = ucle.einsum_program("Y[j,i] = A[i,j]", A=blocked, database=connection)
        for way in ("relational", *some_decompositions(program, 0, 8)):
            with program.with_decomposition(way).execute() as result:
                np.testing.assert_array_equal(result["Y"].to_numpy(), values.T)


def test_tiles_of_vectors_and_of_rows(routes: Routes) -> None:
    vector, matrix = np.arange(1.0, 6.0), np.arange(10.0).reshape(5, 2)
    padded = np.concatenate([vector, [0.0]]).reshape(3, 2)
    tiles = pa.table({"b": [0, 1, 2], "val": pa.array(padded.tolist())})
    rows = pa.table(
        {"b": [0, 1, 2], "val": pa.array([*matrix[:4].reshape(2, 4).tolist(), [8.0, 9.0, 0, 0]])}
    )
    inputs = {
        "v": ucle.table(tiles, tiles=[2], bounds=[5]),
        "M": ucle.table(rows, ["b"], "val", tiles=[2], shape=[2, 2], bounds=[5, 2]),
    }
    for connection in routes.values():
        text = "y[k] += v[i] * M[i,k]"
        program = ucle.einsum_program(text, inputs=inputs, database=connection)
        for way in ("auto", "relational", *some_decompositions(program, 0, 16)):
            with program.with_decomposition(way).execute() as result:
                np.testing.assert_allclose(result["y"].to_numpy(), vector @ matrix)


def test_tiles_of_several_sizes_beside_keys_and_arrays(routes: Routes) -> None:
    tensor = np.random.default_rng(0).integers(-2, 3, (4, 3, 5, 2)).astype(np.float64)
    padded = np.pad(tensor, [(0, 0), (0, 0), (0, 1), (0, 0)])
    data = [
        (i, j, k, padded[2 * i : 2 * i + 2, j, 3 * k : 3 * k + 3].ravel().tolist())
        for i, j, k in np.ndindex(2, 3, 2)
    ]
    columns = dict(zip(("k0", "k1", "k2", "payload"), zip(*data, strict=True), strict=True))
    stored = ucle.table(
        pa.table({name: list(values) for name, values in columns.items()}),
        tiles=[2, None, 3],
        shape=[2, 3, 2],
        bounds=tensor.shape,
    )
    for connection in routes.values():
        program = ucle.einsum_program("y[i,k] += A[i,j,k,l]", A=stored, database=connection)
        for way in ("auto", "relational", *some_decompositions(program, 0, 8)):
            with program.with_decomposition(way).execute() as result:
                np.testing.assert_array_equal(result["y"].to_numpy(), tensor.sum((1, 3)))


def test_tiles_beside_keys(routes: Routes) -> None:
    matrix = np.arange(12.0).reshape(4, 3)
    data = [(b, k, matrix[2 * b : 2 * b + 2, k].tolist()) for b in range(2) for k in range(3)]
    stored = ucle.table("blocks", tiles=[2])
    _check("y[k] += A[i,k]", matrix.sum(0), routes, stored, data, "DOUBLE[2]")


def test_a_fill_and_duplicates(routes: Routes) -> None:
    rows = [(0, 0, [[1.0, 2.0], [3.0, 4.0]]), (0, 0, [[1.0, 1.0], [1.0, 1.0]])]
    stored = ucle.table("blocks", tiles=[2, 2], bounds=[4, 3], duplicates="sum")
    expected = np.zeros((4, 3))
    expected[:2, :2] = [[2, 3], [4, 5]]
    rows.append((1, 1, [[7.0, 0.0], [8.0, 0.0]]))
    expected[2:, 2] = 7, 8
    _check("Y[j,i] = A[i,j]", expected.T, routes, stored, rows, "DOUBLE[2][2]")
    stored = ucle.table("blocks", tiles=[2, 2], bounds=[4, 4], fill=np.inf)
    expected = np.full((4, 4), np.inf)
    expected[:2, :2] = [[1, 2], [3, 4]]
    _check(
        "Y[i,k] min= A[i,j] + A[j,k]",
        (expected[:, :, None] + expected).min(1),
        routes,
        stored,
        rows[:1],
        "DOUBLE[2][2]",
    )


def test_scipy_in_blocks(routes: Routes) -> None:
    matrix, _ = _blocks(6)
    blocked = sp.bsr_array(matrix, blocksize=(2, 2))
    doubled = sp.bsr_matrix(
        (
            np.concatenate([blocked.data, blocked.data]),
            np.concatenate([np.r_[a, a] for a in np.split(blocked.indices, blocked.indptr[1:-1])]),
            2 * blocked.indptr,
        ),
        shape=matrix.shape,
    )
    doubled.data = np.concatenate(
        [np.r_[a, a] for a in np.split(blocked.data, blocked.indptr[1:-1])]
    )
    for given in (blocked, doubled):
        expected = given.toarray() @ W
        for connection in routes.values():
            program = ucle.einsum_program(
                "Y[i,k] += A[i,j] * W[j,k]", A=given, W=W, database=connection
            )
            for way in ("auto", "relational", {"Y": ["i/2", "j/2"]}):
                with program.with_decomposition(way).execute() as result:
                    np.testing.assert_allclose(result["Y"].to_numpy(), expected)
    empty = sp.bsr_array((4, 4), blocksize=(2, 2))
    assert not ucle.einsum_program("y[i] += A[i,j]", A=empty).execute()["y"].to_numpy().any()


@pytest.mark.parametrize(
    ("rows", "options", "error", "message"),
    [
        ([(0, 0, [[1.0, 2.0], [3.0, None]])], {}, errors.ValueTypeError, "array is NULL"),
        ([(0, 0, None)], {"shape": [2, 2]}, errors.ValueTypeError, "array does not have"),
        ([(0, 0, [[1.0, 2.0]])], {}, errors.InputError, "shape of the tiles"),
        (
            [(0, 0, [[1.0, 2.0], [3.0, 4.0]]), (0, 1, [[1.0, 2.0], [3.0]])],
            {},
            errors.ValueTypeError,
            "array does not have",
        ),
        (2 * [(0, 0, [[1.0, 2.0], [3.0, 4.0]])], {}, errors.DuplicateCoordinatesError, "claim"),
        ([(-1, 0, [[1.0, 2.0], [3.0, 4.0]])], {}, errors.CoordinateError, "outside its bound"),
        ([(None, 0, [[1.0, 2.0], [3.0, 4.0]])], {}, errors.CoordinateError, "is NULL"),
        (
            [(0, 1, [[1.0, 2.0], [3.0, 4.0]])],
            {"bounds": [2, 3]},
            errors.CoordinateError,
            "entry of a tile",
        ),
        (
            [(0, 2, [[1.0, 2.0], [3.0, 4.0]])],
            {"bounds": [2, 3]},
            errors.CoordinateError,
            "outside its bound",
        ),
        (
            [(0, 0, [[1.0, 2.0], [3.0, 4.0]])],
            {"coordinates": "dictionary"},
            errors.ValueTypeError,
            "not numbered",
        ),
    ],
)
def test_what_is_wrong_with_blocks(
    rows: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with duckdb.connect() as connection:
        _create(connection, rows, "DOUBLE[][]")
        stored = ucle.table("blocks", tiles=[2, 2], **options)
        with pytest.raises(error, match=message):
            ucle.einsum_program("y[i] += A[i,j]", A=stored, database=connection)


@pytest.mark.parametrize("tiles", [[], [None], [0], [2, 0], [-1], "16", [1.5]])
def test_what_is_no_tile(tiles: Any) -> None:
    with pytest.raises(errors.UcleError, match="tile"):
        ucle.table("blocks", tiles=tiles)


def test_tables_without_arrays_have_no_tiles() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE edges AS SELECT 0 AS i, 1 AS j, 2.0 AS val")
        with pytest.raises(errors.InputError):
            ucle.einsum_program(
                "y[i] += A[i,j]", A=ucle.table("edges", tiles=[2, 2]), database=connection
            )


def test_statistics_are_those_of_the_matrix() -> None:
    matrix, rows = _blocks(7)
    with ucle.connect() as connection:
        _create(connection, rows, "DOUBLE[2][2]")
        stored = ucle.table("blocks", tiles=[2, 2], bounds=SHAPE)
        program = ucle.einsum_program("y[i] += A[i,j]", A=stored, database=connection)
        known = program.compiled.inputs["A"].statistics
    counts = matrix != 0
    assert known.entries == counts.sum()
    assert known.distinct == (counts.any(1).sum(), counts.any(0).sum())
    assert known.largest == (counts.sum(1).max(), counts.sum(0).max())
    assert known.tiles is not None
    assert known.tiles[1] == len(rows)


def test_blocks_that_change() -> None:
    with ucle.connect() as connection:
        _create(connection, [(0, 0, [[1.0, 2.0], [3.0, 4.0]])], "DOUBLE[2][2]")
        stored = ucle.table("blocks", tiles=[2, 2])
        program = ucle.einsum_program("Y[j,i] = A[i,j]", A=stored, database=connection)
        assert program.execute()["Y"].shape == (2, 2)
        connection.execute("INSERT INTO blocks VALUES (2, 1, [[5, 6], [7, 8]])")
        expected = np.zeros((6, 4))
        expected[:2, :2], expected[4:, 2:] = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
        np.testing.assert_array_equal(program.execute()["Y"].to_numpy(), expected.T)


@pytest.mark.parametrize("bounds", [None, (7, 5)])
def test_views_of_blocks(bounds: tuple[int, int] | None) -> None:
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE stored (bi INTEGER, bj INTEGER, val DOUBLE[2][2])")
        insert = "INSERT INTO stored VALUES (?, ?, ?)"
        connection.execute(insert, [3, 2, [[1.0, 0.0], [0.0, 0.0]]])
        stored = ucle.table("stored", tiles=[2, 2], bounds=bounds)
        text = "Y[i,k] += A[i,j] * A[k,j]"
        program = ucle.einsum_program(text, A=stored, database=connection)
        program.create_views()
        assert connection.execute("SELECT * FROM Y").fetchall() == [(6, 6, 1.0)]
        connection.execute(insert, [0, 2, [[2.0, 0.0], [0.0, 0.0]]])
        rows = connection.execute("SELECT * FROM Y ORDER BY ALL").fetchall()
        assert rows == [(0, 0, 4.0), (0, 6, 2.0), (6, 0, 2.0), (6, 6, 1.0)]


def test_blocks_are_stored_as_lists() -> None:
    matrix, rows = _blocks(8)
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE stored (bi INTEGER, bj INTEGER, val DOUBLE[2][2])")
        connection.executemany("INSERT INTO stored VALUES (?, ?, ?)", rows)
        stored = ucle.table("stored", tiles=[2, 2], bounds=SHAPE)
        for way in ({"y": ["i/3", "0{j}"]}, {"y": ["i/2", "j/2"]}, {"y": ["i/3", "j/3"]}):
            for _ in range(2):
                program = ucle.einsum_program(
                    "y[i] += A[i,j] * x[j]",
                    A=stored,
                    x=X,
                    database=connection,
                    decomposition=way,
                    store=["A"],
                )
                np.testing.assert_allclose(program.execute()["y"].to_numpy(), matrix @ X)


def test_lazy_tensors_of_blocks() -> None:
    matrix, rows = _blocks(9)
    with ucle.connect() as connection:
        _create(connection, rows, "DOUBLE[2][2]")
        stored = ucle.table("blocks", ["bi", "bj"], "val", tiles=[2, 2], bounds=SHAPE)
        product = stored @ ucle.array(X)
        np.testing.assert_allclose(product.to_numpy(database=connection), matrix @ X)
        unstated = ucle.table("blocks", ["bi", "bj"], "val", tiles=[2, 2])
        total = ucle.tensor(unstated, database=connection).sum()
        assert total.item() == matrix.sum()
