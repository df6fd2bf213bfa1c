"""Sparse arrays of scipy and of others, as inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse

import ucle
from ucle.inputs.column_types import Column
from ucle.inputs.sparse_arrays import SparseArray, is_sparse, to_coordinates, without_axes
from ucle.inputs.sparse_entries import plain_columns
from ucle.ir.layouts import Layout, Level
from ucle.plan.relation_nodes import Load
from ucle.plan.sources import ListsSource
from ucle.udf_kernels import Csr

FORMATS = ("coo", "csr", "csc", "dok", "lil", "dia", "bsr")


class Foreign:
    """A sparse array of a library that ucle does not know; it is handed out in its own class."""

    format = "foreign"

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.shape = array.shape
        self.dtype = array.dtype
        self.coords = np.nonzero(array)
        self.data = array[self.coords]
        self.nnz = len(self.data)

    def tocoo(self) -> Foreign:
        return self


A = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, -1.0]])
X = np.array([1.0, 10.0, 100.0])


@pytest.mark.parametrize(
    "sparse",
    [
        Foreign(A),
        to_coordinates(Foreign(A)),
        *(scipy.sparse.coo_array(A).asformat(name) for name in FORMATS),
        scipy.sparse.csr_matrix(A),
    ],
    ids=["foreign", "ours", *FORMATS, "matrix"],
)
def test_all_entry_points_take_it(sparse: Any) -> None:
    assert is_sparse(sparse)
    expected = (A @ X).tolist()
    assert ucle.einsum("ij,j->i", sparse, X).tolist() == expected
    assert ucle.einsum("ij,j->i", sparse, X, dtype="complex128").tolist() == expected
    assert (ucle.tensor(sparse) @ ucle.array(X)).to_numpy().tolist() == expected
    assert (ucle.array(sparse, axes=("i", "j")).sum("i")).to_numpy().tolist() == [3, 2, -1]
    program = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=ucle.table(sparse), x=X)
    assert program.execute()["y"].to_numpy().tolist() == expected


def test_axes_of_size_1_are_dropped() -> None:
    row = Foreign(A[1:])
    assert ucle.einsum("ij,kj->ki", row, A).tolist() == (A @ A[1:].T).tolist()
    assert ucle.einsum_program("ij,kj->kj", row, A).execute()["out"].to_numpy().tolist() == (
        (A[1:] * A).tolist()
    )
    assert (ucle.tensor(row) + A).to_numpy().tolist() == (A[1:] + A).tolist()
    scalar = Foreign(np.array([[4.0]]))
    assert ucle.einsum("ij,k->k", scalar, X).tolist() == (4 * X).tolist()
    assert without_axes(scalar, [0, 1]).shape == ()


@pytest.mark.parametrize("dtype", ["int64", "float32", "complex128", "bool"])
def test_entries_at_one_place_are_added_up_as_in_scipy(dtype: str) -> None:
    rng = np.random.default_rng(0)
    coords = tuple(rng.integers(0, 4, (3, 50)))
    data = rng.integers(0, 3, 50).astype(dtype)
    theirs = scipy.sparse.coo_array((data, coords), shape=(4, 4, 4))
    ours = to_coordinates(theirs).sum_duplicates()
    theirs.sum_duplicates()
    assert ours.data.dtype == dtype
    assert ours.data.tolist() == theirs.data.tolist()
    assert [x.tolist() for x in ours.coords] == [x.tolist() for x in theirs.coords]


@pytest.mark.parametrize("nnz", [0, 1])
def test_few_entries(nnz: int) -> None:
    one = SparseArray((3,), (np.arange(nnz),), np.ones(nnz))
    assert one.sum_duplicates().nnz == nnz
    assert ucle.array(one, axes=("i",)).to_numpy().tolist() == [float(nnz), 0, 0]


def test_what_is_no_sparse_array() -> None:
    class Half:
        shape, format = (1, 1), "coo"

        def __array__(self, *_: object, **__: object) -> np.ndarray[Any, Any]:
            return np.ones((1, 1))

    assert not is_sparse(Half())
    assert ucle.einsum("ij->", Half()) == 1


def test_explanations_name_the_library() -> None:
    program = ucle.einsum_program("y[i] += A[i,j]", A=scipy.sparse.csr_array(A))
    assert "scipy.sparse 2 x 3" in program.to_sql()
    program = ucle.einsum_program("y[i] += A[i,j]", A=Foreign(A))
    assert f"sparse array of {__name__.partition('.')[0]} 2 x 3" in program.to_sql()


# ---- Handed over as compressed arrays ----

PRODUCTS = {
    "y[i] += A[i,j] * x[j]": lambda a, x, _: a @ x[: a.shape[1]],
    "y[j] += A[i,j] * x[i]": lambda a, x, _: a.T @ x[: a.shape[0]],
    "y[i,k] += A[i,j] * H[j,k]": lambda a, _, h: a @ h[: a.shape[1]],
    "y[j,k] += A[i,j] * H[i,k]": lambda a, _, h: a.T @ h[: a.shape[0]],
    "y[i] += A[i,j]": lambda a, _, __: a.sum(axis=1),
    "y[i] = max[j](A[i,j] * x[j])": lambda a, x, _: (a * x[: a.shape[1]]).max(axis=1),
    "y[i,j] = square(A[i,j])": lambda a, _, __: a**2,
    "y[i,j] = A[i,j] + x[j]": lambda a, x, _: a + x[: a.shape[1]],
    "y[i,k] += A[i,j] * A[k,j]": lambda a, _, __: a @ a.T,
}


def _random(seed: int, shape: tuple[int, int], dtype: str) -> scipy.sparse.csr_array:
    """A matrix with explicit zeros among its entries."""
    rng = np.random.default_rng(seed)
    array = scipy.sparse.random_array(shape, density=0.1, rng=rng, format="csr")
    array.data = np.round(20 * array.data - 8)
    return array.astype(dtype)


def _lists(program: ucle.EinsumProgram) -> int:
    loads = [x.relation for x in program.compiled.physical.steps if isinstance(x.relation, Load)]
    return sum(isinstance(load.source, ListsSource) for load in loads)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("text", PRODUCTS)
@pytest.mark.parametrize("shape", [(40, 30), (3, 500), (700, 9)])
def test_every_plan_of_a_matrix_in_memory(
    shape: tuple[int, int], text: str, dtype: str, routes: Any
) -> None:
    A = _random(sum(shape), shape, dtype)
    rng = np.random.default_rng(3)
    x, H = (np.round(9 * rng.normal(size=s)).astype(dtype) for s in (700, (700, 4)))
    sizes = {"x[j]": shape[1], "x[i]": shape[0], "H[j,k]": shape[1], "H[i,k]": shape[0]}
    n = next((size for name, size in sizes.items() if name in text), 0)
    others = {name: y[:n] for name, y in {"x": x, "H": H}.items() if f"{name}[" in text}
    expected = PRODUCTS[text](A.toarray(), x, H)
    for connection in routes.values():
        for array in (A, A.tocsc(), A.tocoo()):
            program = ucle.einsum_program(text, A=array, inputs=others, database=connection)
            for plan in [program, *program.plans(20)]:
                with plan.execute(connection) as result:
                    np.testing.assert_array_equal(result["y"].to_numpy(), expected)


@pytest.mark.parametrize(
    "levels",
    [
        (Level.DENSE, Level.COMPRESSED),
        (Level.COMPRESSED, Level.DENSE),
        (Level.TILED, Level.COMPRESSED),
        (Level.COMPRESSED, Level.TILED),
    ],
)
def test_compressed_arrays_hold_the_matrix(levels: tuple[Level, Level]) -> None:
    array = _random(1, (40, 33), "float64")
    array.data[:3] = 0
    array[16:24] = 0  # no entry in a tile of 8 rows
    array[:, 24:32] = 0
    program = ucle.einsum_program("y[i] += A[i,j]", A=array)
    bound, type_ = program.compiled.inputs["A"], program.compiled.program.types["A"]
    layout = Layout.from_levels(*levels, tile=8)
    table = bound.loaded.lists(type_, layout)
    *keys, blobs = (column.to_pylist() for column in table.columns)
    parts = [Csr.from_bytes(blob, np.dtype(float)) for blob in blobs]
    found = np.zeros(array.shape).transpose(layout.row, layout.compressed)
    for number, part in zip(keys[0] if keys else [0], parts, strict=True):
        assert part.values.all()
        rows = found[number * 8 : number * 8 + 8] if keys else found
        rows += part.dense(0.0)
    expected = array.toarray().transpose(layout.row, layout.compressed)
    np.testing.assert_array_equal(found, expected)
    if keys:
        full = [n for n in range(-(-len(expected) // 8)) if expected[8 * n : 8 * n + 8].any()]
        assert keys[0] == full


@pytest.mark.parametrize("fill", [0.0, np.inf, np.nan])
def test_entries_that_equal_another_fill(fill: float, native: Any) -> None:
    array = scipy.sparse.coo_array(
        (np.array([1.0, fill, 0.0, 2.0]), ([0, 0, 1, 2], [0, 2, 1, 0])), shape=(3, 3)
    )
    dense = np.full((3, 3), fill)
    dense[array.coords] = array.data
    program = ucle.einsum_program(
        "y[i] = min[j](A[i,j] + x[j])", A=ucle.table(array, fill=fill), x=X, database=native
    )
    for plan in [program, *program.plans(20)]:
        with plan.execute() as result:
            np.testing.assert_array_equal(result["y"].to_numpy(), (dense + X).min(axis=1))


def test_products_take_the_matrix_as_it_is(native: Any) -> None:
    A = _random(2, (300, 300), "float64")
    x = np.arange(300.0)
    program = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=A, x=x, database=native)
    assert _lists(program) == 1
    assert "table in memory" not in program.to_sql()
    assert "table in memory" in program.with_decomposition("relational").to_sql()
    np.testing.assert_array_equal(program.execute()["y"].to_numpy(), A @ x)
    A.data *= 2
    np.testing.assert_array_equal(program.execute()["y"].to_numpy(), A @ x)
    other = _random(5, (300, 300), "float64")
    np.testing.assert_array_equal(program.execute(A=other)["y"].to_numpy(), other @ x)
    empty = scipy.sparse.csr_array((300, 300))
    assert not program.execute(A=empty)["y"].to_numpy().any()


@pytest.mark.parametrize(
    "given",
    [
        {"symmetric": True},
        {"coordinates": {"i": "nodes"}},
        {"dtype": "complex128"},
    ],
    ids=["symmetric", "dictionary", "complex"],
)
def test_tables_that_say_more_are_read_as_tables(given: dict[str, Any], native: Any) -> None:
    upper = scipy.sparse.triu(_random(4, (30, 30), "float64"))
    matrix = ucle.table(upper, **given)
    x = np.ones(30)
    program = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=matrix, x=x, database=native)
    assert _lists(program) == 0


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("fill", [0, 3])
def test_lists_become_an_array_where_it_is_read(fill: int, dtype: str, routes: Any) -> None:
    """No kernel takes lists of rows beside an array and adds up columns."""
    A = _random(7, (60, 8), dtype)
    B = np.round(9 * np.random.default_rng(8).normal(size=(60, 8))).astype(dtype)
    A.eliminate_zeros()
    whole = np.full(A.shape, fill, dtype)
    whole[A.tocoo().coords] = A.data
    for connection in routes.values():
        table = ucle.table(A, fill=fill)
        text = "y[j] += A[i,j] * B[i,j]"
        program = ucle.einsum_program(text, A=table, B=B, database=connection)
        assert _lists(program) == 1
        if fill == 0:  # there is no matrix without entries to complete
            assert "WITH" not in program.to_sql()
        for plan in [program, *program.plans(20)]:
            with plan.execute(connection) as result:
                np.testing.assert_array_equal(result["y"].to_numpy(), (whole * B).sum(axis=0))
        empty = ucle.table(scipy.sparse.csr_array((60, 8), dtype=dtype), fill=fill)
        with program.execute(connection, A=empty) as result:
            np.testing.assert_array_equal(result["y"].to_numpy(), fill * B.sum(axis=0))


# ---- Frames of coordinates ----


def _frame(kind: str, A: scipy.sparse.csr_array, order: np.ndarray[Any, Any]) -> Any:
    entries = A.tocoo()
    i, j, v = entries.row[order], entries.col[order], entries.data[order]
    if kind == "pandas":
        return pd.DataFrame({"i": i, "j": j, "v": v})
    table = pa.table({"i": i.astype("int64"), "j": j.astype("uint16"), "v": v})
    return pa.concat_tables([table.slice(0, 50), table.slice(50)]) if kind == "chunks" else table


@pytest.mark.parametrize("kind", ["arrow", "chunks", "pandas"])
@pytest.mark.parametrize("ordered", [False, True])
def test_frames_are_handed_over_like_sparse_arrays(kind: str, ordered: bool, native: Any) -> None:
    A = _random(9, (300, 300), "float64")
    order = np.arange(A.nnz) if ordered else np.random.default_rng(1).permutation(A.nnz)
    frame = _frame(kind, A, order)
    x = np.arange(300.0)
    table = ucle.table(frame, bounds=A.shape)
    program = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=table, x=x, database=native)
    assert _lists(program) == 1
    assert program.compiled.statistics.tensor("A").entries == np.count_nonzero(A.data)
    np.testing.assert_array_equal(program.execute()["y"].to_numpy(), A @ x)
    if kind == "pandas":
        frame["v"] *= 2
        np.testing.assert_array_equal(program.execute()["y"].to_numpy(), 2 * (A @ x))


@pytest.mark.parametrize("columns", [["i"], ["i", "j"], ["i", "j", "k"]])
def test_frames_without_values(columns: list[str], native: Any) -> None:
    rng = np.random.default_rng(len(columns))
    places = np.unique(rng.integers(0, 5, size=(40, len(columns))), axis=0)
    frame = pd.DataFrame(places, columns=columns)
    labels = ",".join(columns)
    program = ucle.einsum_program(
        f"y[{labels}] = 3 * A[{labels}]", A=ucle.table(frame, columns, 2), database=native
    )
    expected = np.zeros(program.execute()["y"].to_numpy().shape)
    expected[tuple(places.T)] = 6
    for plan in [program, *program.plans(9)]:
        np.testing.assert_array_equal(plan.execute()["y"].to_numpy(), expected)


@pytest.mark.parametrize("large", [1, 2**40])
def test_rows_at_one_position(large: int, native: Any) -> None:
    """Whether or not NumPy looks for them, as positions beyond 62 bits have no number."""
    frame = pd.DataFrame({"i": [0, 3, 0], "j": [large, 2, large], "v": [1.0, 2.0, 3.0]})
    with pytest.raises(ucle.errors.DuplicateCoordinatesError, match="several rows claim"):
        ucle.einsum_program("y[i] += A[i,j]", A=frame, database=native)
    table = ucle.table(frame, duplicates="sum")
    program = ucle.einsum_program("y[i] += A[i,j]", A=table, database=native)
    assert program.execute()["y"].to_numpy().tolist() == [4, 0, 0, 2]


@pytest.mark.parametrize("decomposition", ["auto", "relational"])
@pytest.mark.parametrize("prepared", [False, True])
def test_what_the_caller_changes_later(decomposition: str, prepared: bool, native: Any) -> None:
    """Each execution sees it; a prepared program goes on with what it began with."""
    array = scipy.sparse.coo_array(A)
    options = {"decomposition": decomposition, "database": native}
    program = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=array, x=X, **options)
    with program.prepare() as run:
        first = run()["y"].to_numpy().tolist()
        array.data[:] = 7
        again = run() if prepared else program.execute()
        expected = first if prepared else (array @ X).tolist()
        assert again["y"].to_numpy().tolist() == expected


def test_types_of_frames_are_those_that_duckdb_says() -> None:
    types = [pa.bool_(), pa.float32(), pa.float64(), pa.string()]
    types += [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
    table = pa.table({f"c{n}": pa.array([], type_) for n, type_ in enumerate(types)})
    with ucle.connect() as connection:
        connection.register("given", table)
        rows = connection.execute("DESCRIBE given").fetchall()
    assert plain_columns(table) == tuple(Column(row[0], row[1]) for row in rows)
    assert plain_columns(table.rename_columns(["a", "A", *table.column_names[2:]])) is None
