"""The order in which objects of other libraries are asked, and what becomes of what they raise.

Stand-ins have the attributes of the objects of xarray, pydata/sparse, torch and anndata, so that
the order is tested without these; the packages themselves are asked where they are installed.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

import ucle
from ucle import errors
from ucle.inputs.fingerprints import fingerprint
from ucle.inputs.objects import is_table

A = np.array([[1.0, 2.0], [3.0, 4.0]])
FRAME = pd.DataFrame({
    "who": ["ann", "ann", "bob"], "feat": ["x", "b", "x"], "v": [1.0, 10.0, 100.0],
})  # fmt: skip
WEIGHTS = pd.Series({"x": 2.0, "b": 3.0})


class Streams:
    """Hands out Arrow streams, and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Both(Streams):
    """An array that can be had as a stream of its entries as well, as those of xarray."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        super().__init__(pa.table({"value": array.reshape(-1).astype(str)}))
        self.array, self.shape, self.ndim = array, array.shape, array.ndim

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.array, dtype=dtype)


class Labelled(Both):
    """An array with dimensions and coordinates."""

    name = None

    def __init__(self, array: Any, dims: str, /, **coords: Any) -> None:
        super().__init__(np.asarray(array))
        self.dims = tuple(dims)
        self.coords = {name: np.asarray(each) for name, each in coords.items()}


class Filled:
    """A sparse array in coordinates, as pydata's COO, whose other entries are worth something."""

    format = "coo"

    def __init__(self, dense: np.ndarray[Any, Any], fill: Any) -> None:
        self.coords = np.stack(np.nonzero(dense != fill))
        self.data = dense[tuple(self.coords)]
        self.shape, self.dtype, self.nnz = dense.shape, dense.dtype, len(self.data)
        self.fill_value = dense.dtype.type(fill)

    def asformat(self, name: str) -> Filled:
        assert name == "coo"
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise RuntimeError("cannot convert a sparse array to dense automatically")


class Backed:
    """A matrix that lies in a file, as anndata's: it is no array, and is read on request."""

    format = "csr"
    shape = (2, 2)
    dtype = np.dtype(float)

    def to_memory(self) -> Any:
        return scipy.sparse.csr_array(A)


class Raises:
    """Has dimensions, and raises something when it is asked for numbers, as torch's tensors do."""

    shape = (2, 2)

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise self.error

    def detach(self) -> None: ...


class RaisesRows:
    """A table that fails while it is read."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise KeyError("connection lost")


class RaisesEntries:
    """A sparse array that fails while it is listed."""

    format, shape, nnz = "csr", (2, 2), 1

    def tocoo(self) -> Any:
        raise OSError("truncated")


ENTRY_POINTS: list[Callable[[Any], Any]] = [
    lambda x: ucle.einsum("ij->i", x),
    lambda x: ucle.einsum_program("T[i] += A[i,j]", A=x).execute()["T"].to_numpy(),
    lambda x: ucle.einsum_program("T[i] += A[i,j]", A=ucle.table(x)).execute()["T"].to_numpy(),
    lambda x: ucle.asarray(x).sum(1).to_numpy(),
]


def test_arrays_are_arrays_at_every_entry_point() -> None:
    """Finding P6: what has `__array__` and dimensions is no table, whatever else it has."""
    assert [is_table(x) for x in (Both(A), Labelled(A, "ab"), pl.Series([1]), pd.Series([1]))] == [
        False
    ] * 4
    assert all(map(is_table, (Streams(pa.table({"i": [0]})), FRAME, pl.DataFrame({"i": [0]}))))
    for value in (
        Both(A),
        Labelled(A, "ab"),
        Labelled(A, "ab", a=[0, 1]),
        Backed(),
        pa.array(A.tolist()),
    ):
        for entry_point in ENTRY_POINTS:
            assert entry_point(value).tolist() == [3.0, 7.0], type(value)
    x = Labelled([1, 2, 3], "a")
    assert ucle.einsum("i,i->", x, x) == 14
    table = Streams(pa.table({"i": [0, 1], "j": [0, 1], "v": [1.0, 2.0]}))
    assert ucle.einsum("ij->i", table).tolist() == [1.0, 2.0]


def test_whatever_an_object_raises_names_it() -> None:
    """Findings A7, P17 and raw tracebacks: an input, a class, what was raised, and a way out."""
    raised = [
        RuntimeError("Can't call numpy() on Tensor that requires grad."),
        TypeError("can't convert Sparse layout tensor to numpy."),
        ValueError("odd"), NotImplementedError(), KeyError("k"), AttributeError("a"), OSError("o"),
    ]  # fmt: skip
    values = [
        *map(Raises, raised),
        RaisesRows(),
        RaisesEntries(),
        object(),
        pl.LazyFrame({"i": [0]}),
    ]
    for value in values:
        for number, entry_point in enumerate(ENTRY_POINTS):
            if number == 3 and isinstance(value, RaisesRows | pl.LazyFrame):
                continue  # nothing says how many axes it has, which is an error before
            with pytest.raises(errors.InputError) as info:
                entry_point(value)
            said = str(info.value)
            assert type(value).__qualname__ in said, said
            assert said.startswith(("operand 0", "input "))
            if isinstance(value, Raises):
                assert type(value.error).__name__ in said
                assert "detach()" in said
    fingerprint(Raises(raised[0]))  # is no error of its own


def test_fills_of_sparse_arrays_are_kept() -> None:
    """Finding P7, without the package."""
    for fill in (0, 1, -2.5):
        dense = np.full((2, 2), fill, float)
        dense[0, 1] = 5
        for entry_point in ENTRY_POINTS:
            assert entry_point(Filled(dense, fill)).tolist() == dense.sum(1).tolist()
        stated = ucle.table(Filled(dense, fill), fill=0)  # what is stated goes before
        found = ucle.einsum_program("T[i] += A[i,j]", A=stated).execute()["T"].to_numpy()
        assert found.tolist() == [5.0, 0.0]
        assert (
            ucle.einsum("ij,kj->ik", Filled(dense[:1], fill), A).tolist()
            == (dense[:1] @ A.T).tolist()
        )


def test_nulls_of_arrow_are_errors_everywhere() -> None:
    """Finding P8: no NaN is made of them."""
    for value in (pa.array([1.0, None]), pa.chunked_array([[1], [None]]), pl.Series([1, None]),
                  pd.Series([1, None], dtype="Int64")):  # fmt: skip
        for entry_point in (
            lambda x: ucle.einsum("i->", x), lambda x: ucle.asarray(x).sum().item(),
            lambda x: ucle.einsum_program("s += A[i]", A=x), ucle.parameter,
            lambda x: ucle.einsum("i,i->", [1.0, 2.0], x),
        ):  # fmt: skip
            with pytest.raises(errors.ValueTypeError, match="NULL"):
                entry_point(value)


def test_results_are_arrays_to_numpy() -> None:
    """Finding P9: NumPy's protocol, with a type and a copy."""
    with ucle.einsum_program("Z[i,j] = x[i] * x[j]", x=[1.0, 2.0]).execute() as result:
        z, expected = result["Z"], [[1.0, 2.0], [2.0, 4.0]]
        assert np.asarray(z).tolist() == expected
        assert np.array(z, copy=True).tolist() == expected
        assert np.asarray(z, dtype="float32").dtype == np.float32
        assert (np.ones((2, 2)) @ np.asarray(z)).tolist() == [[3.0, 6.0], [3.0, 6.0]]
        for value in (z, ucle.array([1.0])):
            with pytest.raises(errors.ArgumentError, match="copy=False"):
                np.array(value, copy=False)
        again = ucle.einsum_program("T[i] += Z[i,j]", Z=z).execute()["T"]  # still a table to ucle
        assert again.to_numpy().tolist() == [3.0, 6.0]


def test_an_index_is_read_or_refused() -> None:
    """Finding P5: by its values in a series, and in frames as columns or not at all."""
    program = ucle.einsum_program("y[p] += A[p,f] * w[f]", A=FRAME, w=WEIGHTS)
    assert program.execute()["y"].to_numpy().tolist() == [32.0, 200.0]
    result = ucle.einsum_program("y[i] = x[i]", x=pd.Series({9: 3.0, 5: 2.0})).execute()["y"]
    assert result.coordinates("i").to_pylist() == [5, 9]
    assert result.to_numpy().tolist() == [2.0, 3.0]
    swapped = program.execute(inputs={"w": WEIGHTS[::-1] * 2})
    assert swapped["y"].to_numpy().tolist() == [64.0, 400.0]
    plain = ucle.einsum_program("y[i] = x[i]", x=pd.Series([1.0, 2.0]))
    other = plain.execute(inputs={"x": pd.Series({9: 3.0, 5: 2.0})})["y"]
    assert other.coordinates("i").to_pylist() == [5, 9]
    for index in (["a", "b"], pd.date_range("2020", periods=2), [0.5, 1.5]):
        frame = pd.DataFrame({"k": [0, 1], "v": [1.0, 2.0]}, index=index)
        with pytest.raises(errors.InputError, match="index of this frame"):
            ucle.einsum_program("y[i] = x[i]", x=frame)
        stated = ucle.table(frame, ["k"], "v")
        assert ucle.einsum_program("y[i] = x[i]", x=stated).execute()["y"].to_numpy().tolist() == [
            1,
            2,
        ]
    series = pd.Series([1.0, 2.0], index=["a", "b"])
    before = fingerprint(series)
    series.index = ["a", "c"]
    assert fingerprint(series) != before


def test_coordinates_in_no_order_meet_no_positions() -> None:
    """A dictionary has them in order; an array beside it would be by places that are gone."""
    x = np.array([1.0, 10.0])
    for value in (WEIGHTS, Labelled([2.0, 3.0], "a", a=["x", "b"])):
        with pytest.raises(errors.ValueTypeError, match="in no order"):
            ucle.einsum_program("s += w[i] * x[i]", w=value, x=x)
    ordered = WEIGHTS.sort_index()
    assert ucle.einsum_program("s += w[i] * x[i]", w=ordered, x=x).execute()["s"].item() == 23.0
    with pytest.raises(errors.ArgumentTypeError, match="dense array"):
        ucle.parameter(WEIGHTS)


def test_numpys_entry_point_takes_positions_that_stand_for_the_same() -> None:
    """Positions that agree are taken, as in NumPy; other coordinates raise an error."""
    assert ucle.einsum("i,i->", WEIGHTS, WEIGHTS) == 13.0
    assert ucle.einsum("i->i", WEIGHTS).tolist() == [2.0, 3.0]
    for operands in ((WEIGHTS, WEIGHTS[::-1]), (Labelled([1.0, 2.0], "a", a=[1, 2]), WEIGHTS)):
        with pytest.raises(errors.ValueTypeError, match="other coordinates"):
            ucle.einsum("i,i->", *operands)
    with pytest.raises(errors.ValueTypeError, match="a table"):
        ucle.einsum("pf,f->p", FRAME, WEIGHTS)


def labelled(value: Any) -> dict[Any, Any]:
    """Entries of a matrix by what `einsum_program` says of its coordinates."""
    result = ucle.einsum_program("T[i,j] = A[i,j]", A=value).execute()["T"]
    rows = result.to_arrow().to_pylist()
    return {(row["i"], row["j"]): row["val"] for row in rows}


def check_labelled(make: Callable[..., Any]) -> None:
    """Arrays with dimensions: their coordinates where they have some, positions elsewhere."""
    days = np.array(["2020-01-02", "2020-01-01"], "datetime64[ns]")
    first, second = dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 1)
    coordinates: list[tuple[Any, Any, list[Any], list[Any]]] = [
        (None, None, [0, 1], [0, 1]),
        ([0, 1], None, [0, 1], [0, 1]),
        (["u", "t"], None, ["u", "t"], [0, 1]),
        (None, ["u", "t"], [0, 1], ["u", "t"]),
        ([20, 10], ["u", "t"], [20, 10], ["u", "t"]),
        (days, None, [first, second], [0, 1]),
    ]
    for rows, columns, p, q in coordinates:
        given = {n: x for n, x in (("a", rows), ("b", columns)) if x is not None}
        value = make(A, "ab", **given)
        expected = {(p[i], q[j]): A[i, j] for i in (0, 1) for j in (0, 1)}
        found = {tuple(map(_naive, key)): x for key, x in labelled(value).items()}
        assert found == expected, given
        assert ucle.einsum("ij->i", value).tolist() == [3.0, 7.0]
        assert ucle.asarray(value).sum().item() == 10.0
    for wrong in ([0.5, 1.5], [True, False], [1, "a"]):
        value = make(A, "ab", a=np.array(wrong, dtype=object if "a" in wrong else None))
        with pytest.raises(errors.InputError, match="input A"):
            ucle.einsum_program("T[i,j] = A[i,j]", A=value)
    one, other = (make([1.0, 2.0], "a", a=x) for x in (["x", "y"], ["y", "z"]))
    both = ucle.einsum_program("T[i] = A[i] + B[i]", A=one, B=other).execute()["T"]
    assert both.to_numpy().tolist() == [1.0, 3.0, 2.0]
    complex_ = make(A * 1j, "ab", a=["x", "y"])
    total = ucle.einsum_program("s += A[i,j]", A=complex_).execute()["s"].item()
    assert total == 10j
    for shape in ((0, 2), (2, 0)):
        empty = make(np.zeros(shape), "ab", a=[f"n{n}" for n in range(shape[0])])
        assert ucle.einsum_program("s += A[i,j]", A=empty).execute()["s"].item() == 0.0


def _naive(value: Any) -> Any:
    return value.to_pydatetime() if isinstance(value, pd.Timestamp) else value


def test_labelled_arrays_by_their_protocol() -> None:
    check_labelled(Labelled)


def test_arrays_of_xarray() -> None:
    """Finding P6, with the package."""
    if importlib.util.find_spec("xarray") is None:
        pytest.skip("xarray is not installed: the stand-ins have its attributes")
    import xarray as xr

    check_labelled(
        lambda values, dims, /, **coords: xr.DataArray(values, dims=tuple(dims), coords=coords)
    )
    x = xr.DataArray([1, 2, 3])
    assert ucle.einsum("i,i->", x, x) == 14
    with pytest.raises(errors.InputError, match="xarray Dataset"):
        ucle.einsum_program("s += A[i]", A=xr.Dataset({"x": x}))


def test_tensors_of_torch() -> None:
    """Finding A7: sparse tensors, those of gradients, and bfloat16 are typed errors."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: a stand-in raises what its tensors raise")
    import torch

    dense = torch.tensor(A)
    for entry_point in ENTRY_POINTS:
        assert entry_point(dense).tolist() == [3.0, 7.0]
        for value in (
            dense.to_sparse(), dense.to_sparse_csr(), dense.clone().requires_grad_(),
            dense.to(torch.bfloat16),
        ):  # fmt: skip
            with pytest.raises(errors.InputError, match="torch Tensor"):
                entry_point(value)


def reader_on(connection: duckdb.DuckDBPyConnection) -> Any:
    """A stream of rows of a query that has not ended: the result of ``.arrow()`` in DuckDB 2.0."""
    relation: Any = connection.sql("SELECT 3 AS i, 2.0::DOUBLE AS v")
    modern = hasattr(relation, "to_arrow_reader")
    return (relation.to_arrow_reader if modern else relation.fetch_arrow_reader)()


def test_streams_of_the_connection_itself(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("CREATE TABLE t AS SELECT i, 1.0::DOUBLE AS v FROM range(5) r(i)")
    text, expected = "s[i] = A[i] + B[i]", [1, 1, 1, 3, 1]

    def compiled(given: Any) -> ucle.EinsumProgram:
        return ucle.einsum_program(text, A="t", B=given, database=fresh)

    program = compiled(reader_on(fresh))
    assert_array_equal(program.execute()["s"].to_numpy(), expected)
    named = compiled(ucle.table(reader_on(fresh), ["i"], "v"))
    assert_array_equal(named.execute()["s"].to_numpy(), expected)
    assert_array_equal(compiled("t").execute(B=reader_on(fresh))["s"].to_numpy(), expected)
    found = ucle.einsum("i,i->i", reader_on(fresh), "t", database=fresh)
    assert_array_equal(found, [0, 0, 0, 2, 0])
    found = ucle.einsum_program("i,i->i", "t", reader_on(fresh), database=fresh)
    assert_array_equal(found.execute()["out"].to_numpy(), [0, 0, 0, 2, 0])
    tensor = ucle.tensor(reader_on(fresh), axes=("i",))
    assert_array_equal(tensor.to_numpy(), [0, 0, 0, 2])


def test_streams_are_read_once_for_all_compilations() -> None:
    with duckdb.connect() as other:
        given = ucle.table(reader_on(other), ["i"], "v")
        programs = [
            ucle.einsum_program("s[i] = 2 * B[i]", B=given),
            ucle.einsum_program("s[i] = 2 * B[i]", B=given),
            ucle.einsum_program("s[i] = 2 * B[i]", B=reader_on(other)),
        ]
    for program in [*programs, programs[-1].recompile()]:
        assert_array_equal(program.execute()["s"].to_numpy(), [0, 0, 0, 4])


def test_readers_that_are_open_block_their_connection(fresh: duckdb.DuckDBPyConnection) -> None:
    fresh.execute("CREATE TABLE t AS SELECT i, 1.0::DOUBLE AS v FROM range(5) r(i)")
    reader = reader_on(fresh)
    try:
        fresh.execute("SELECT 1")
    except duckdb.Error:
        with pytest.raises(errors.DatabaseError, match="before an earlier one has ended") as caught:
            ucle.einsum_program("s[i] = 2 * A[i]", A="t", database=fresh)
        assert ".to_arrow_table()" in str(caught.value)
    reader.close()
    program = ucle.einsum_program("s[i] = 2 * A[i]", A="t", database=fresh)
    assert_array_equal(program.execute()["s"].to_numpy(), np.full(5, 2.0))
