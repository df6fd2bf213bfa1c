"""Tensors in files and frames: what is written is read back as the same tensor."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
from numpy.typing import NDArray

import ucle
from ucle.errors import InputError, OutputError, UnsupportedError, ValueTypeError
from ucle.inputs.metadata import read_description
from ucle.run.results import TensorRelation

Array = NDArray[Any]
TYPES = ("float64", "float32", "int64", "bool", "complex128", "complex64")
KEEPS_ALL = (".parquet", ".arrow", ".feather", ".ipc", ".npy", ".npz")


def random_array(seed: int, rank: int, dtype: str) -> Array:
    """An array with zeros, also in its last rows, so that data alone does not tell its shape."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 5, rank))
    array = rng.integers(-3, 4, shape)
    array[rng.random(shape) < 0.5] = 0
    if rank and shape[0] > 1:
        array[-1] = 0
    made = np.asarray(array.astype(dtype))
    return made * (1 - 0.5j) if dtype.startswith("complex") else made


def computed(array: Array, promoted: int | None = None, fill: Any = 0) -> TensorRelation:
    """The array as a result, with so many of its labels promoted, or as the optimiser likes."""
    labels = [f"i{n}" for n in range(array.ndim)]
    tensor = ucle.tensor(ucle.table(array, fill=fill), axes=labels)
    pinned: Any = "auto" if promoted is None else {"out": labels[:promoted]}
    return tensor.compute(decomposition=pinned)


def same(found: Any, expected: Array) -> None:
    values = np.asarray(found)
    assert values.dtype == expected.dtype
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("suffix", KEEPS_ALL)
@pytest.mark.parametrize("seed", range(8))
def test_round_trips_of_any_tensor(suffix: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(0, 4))
    array = random_array(seed, rank, TYPES[seed % len(TYPES)])
    path = tmp_path / f"t{suffix}"
    computed(array, int(rng.integers(0, rank + 1))).save(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    rank_of_arrays = {"ndim": rank} if suffix.startswith(".np") else {}
    read = ucle.tensor(path, **rank_of_arrays)
    same(read, array)
    labels = ",".join("ijkl"[:rank])
    program = ucle.einsum_program(f"B[{labels}] = A[{labels}]", A=str(path))
    same(program.execute()["B"].to_numpy(), array)


@pytest.mark.sample(12)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tns", ".tns.gz", ".mtx", ".mtx.gz"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("seed", range(2))
def test_round_trips_of_entries(suffix: str, dtype: str, seed: int, tmp_path: Path) -> None:
    array = random_array(seed, 2, dtype)
    array[0, 0] = array[-1, -1] = 1  # the data tells the shape
    path = tmp_path / f"t{suffix}"
    made = computed(array)
    if dtype.startswith("complex") and ".mtx" not in suffix:
        with pytest.raises(UnsupportedError, match="real numbers"):
            made.save(path)
        assert not list(tmp_path.iterdir())
        return
    made.save(path)
    read = np.asarray(ucle.tensor(path, ndim=2))
    np.testing.assert_array_equal(read, array)
    if ".tns" in suffix:
        assert read.dtype == np.float64


def test_a_relation_describes_itself(tmp_path: Path) -> None:
    array = np.array([[np.inf, 1.0, np.inf], [np.inf] * 3])
    made = computed(array, 1, fill=np.inf)
    path = tmp_path / "distances.parquet"
    for keys, promoted in (None, 2), (["i0"], 1):
        made.save(path, keys=keys)
        noted = read_description(pq.read_schema(path))
        assert noted is not None
        assert (noted.labels, noted.bounds, noted.promoted) == (("i0", "i1"), (2, 3), promoted)
        assert noted.fill == np.inf
        assert pq.read_metadata(path).num_rows == 1
    read = ucle.tensor(path)
    assert (read.axes, read.shape) == (("i0", "i1"), (2, 3))
    same(read.min("i1"), array.min(1))
    # What the caller states is what counts.
    stated = ucle.table(str(path), ["i0"], "val", shape=[3], bounds=[4, 3], fill=0)
    assert ucle.tensor(stated).shape == (4, 3)


def test_files_hold_entries(tmp_path: Path) -> None:
    array = random_array(3, 2, "float64")
    tensor = ucle.array(array, axes=("i", "j")).compute(decomposition={"out": ["j"]})
    assert tensor.stored.columns == ["j", "val"]
    tensor.save(tmp_path / "t.parquet")
    assert pq.read_schema(tmp_path / "t.parquet").names == ["i", "j", "val"]
    same(ucle.tensor(tmp_path / "t.parquet"), array)


@pytest.mark.parametrize("keys", [["j"], ["k"], ["i", "k"], ["j", "k"]])
@pytest.mark.parametrize("place", ["memory", "file"])
def test_arrays_of_leading_axes_are_read_in_order(
    keys: list[str], place: str, tmp_path: Path
) -> None:
    """Their columns are those of later axes, and square tensors would hide it."""
    array = np.arange(27.0).reshape(3, 3, 3) % 5
    tensor = ucle.array(array, axes=("i", "j", "k")).compute(decomposition={"out": keys})
    given: Any = tensor.to_arrow(keys)
    assert given.column_names == [*keys, "val"]
    if place == "file":
        pq.write_table(given, given := tmp_path / "t.parquet")
    read = ucle.tensor(given)
    assert (read.axes, read.shape) == (("i", "j", "k"), array.shape)
    same(read, array)
    np.testing.assert_array_equal(
        ucle.einsum_program("y[a,b,c] = x[a,b,c]", x=given).execute()["y"].to_numpy(), array
    )


def test_dictionaries_survive(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [900, 700, 800], "b": ["x", "y", "x"], "v": [1.0, 2.0, 3.0]})
    given = ucle.table(frame, {"a": "a", "b": "b"}, "v", coordinates="dictionary")
    path = tmp_path / "t.parquet"
    ucle.tensor(given).save(path)
    read = ucle.tensor(path)
    assert read.sel(a=700, b="y").item() == 2.0
    assert read.sum("b").to_pandas().to_dict("list") == {
        "a": [700, 800, 900],
        "val": [2.0, 3.0, 1.0],
    }


def test_frames_hold_entries() -> None:
    array = np.array([[0.0, 2.0], [3.0, 0.0]])
    tensor = ucle.array(array, axes=("i", "j"))
    expected = {"i": [0, 1], "j": [1, 0], "val": [2.0, 3.0]}
    for promoted in (0, 1, 2):
        made = computed(array, promoted)
        found = made.to_pandas().sort_values("i0").to_dict("list")
        assert list(found.values()) == list(expected.values())
    assert tensor.to_pandas().sort_values("i").to_dict("list") == expected
    assert tensor.to_polars().sort("i").to_dict(as_series=False) == expected
    assert tensor.sum().to_pandas().to_dict("list") == {"val": [5.0]}
    assert (0 * tensor).sum().to_pandas().to_dict("list") == {"val": [0.0]}
    assert len((tensor == 0).to_pandas()) == 4
    assert len((tensor == 0).to_pandas(rows="nonfill")) == 2


def test_whatever_reads_arrow_streams_reads_tensors() -> None:
    array = random_array(5, 2, "float64")
    tensor = ucle.array(array, axes=("i", "j"))
    made = tensor.compute(decomposition="relational")
    assert pa.table(made).column_names == ["i", "j", "val"]
    assert pl.DataFrame(made).height == pa.table(made).num_rows
    found = duckdb.from_arrow(pa.table(tensor)).columns
    assert found[-1] == "val"
    same(ucle.tensor(made), array)
    same(ucle.einsum_program("B[i,j] = A[i,j]", A=tensor).execute()["B"].to_numpy(), array)
    reader = pa.table({"i": [0, 2], "v": [1.0, 2.0]}).to_reader()
    same(ucle.tensor(reader, axes=("i",)), np.array([1.0, 0.0, 2.0]))


# ---- Files of others ----


def test_matrix_market_of_scipy(tmp_path: Path) -> None:
    symmetric = np.array([[2.0, 1.0], [1.0, 0.0]])
    scipy.io.mmwrite(tmp_path / "s.mtx", scipy.sparse.coo_array(symmetric), symmetry="symmetric")
    scipy.io.mmwrite(tmp_path / "d.mtx", symmetric)
    same(ucle.tensor(tmp_path / "s.mtx"), symmetric)
    same(ucle.tensor(tmp_path / "d.mtx"), symmetric)


@pytest.mark.parametrize("blank", [" ", "\t"])
@pytest.mark.parametrize("opened", [open, gzip.open])
def test_frostt_with_comments(blank: str, opened: Callable[..., Any], tmp_path: Path) -> None:
    lines = ["# a tensor", "", "1 1 1 0.5", "2 1 3 -1", "# more", "1 2 3 2"]
    path = tmp_path / ("t.tns.gz" if opened is gzip.open else "t.tns")
    with opened(path, "wt") as file:
        file.write("\n".join(lines).replace(" ", blank) + "\n")
    expected = np.zeros((2, 2, 3))
    expected[0, 0, 0], expected[1, 0, 2], expected[0, 1, 2] = 0.5, -1, 2
    same(ucle.tensor(path, ndim=3), expected)


def test_npz_of_numpy_and_scipy(tmp_path: Path) -> None:
    array = random_array(7, 2, "float32")
    np.savez(tmp_path / "dense.npz", anything=array)
    scipy.sparse.save_npz(tmp_path / "sparse.npz", scipy.sparse.csr_array(array))
    same(ucle.tensor(tmp_path / "dense.npz"), array)
    same(ucle.tensor(tmp_path / "sparse.npz"), array)
    np.savez(tmp_path / "two.npz", one=array, other=array)
    with pytest.raises(InputError, match=r"one, other.*picks one"):
        ucle.tensor(tmp_path / "two.npz")


def test_csv_is_read_by_duckdb(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("who;whom;weight\nann;bob;1.5\nbob;ann;2\n")
    knows = ucle.tensor(str(tmp_path / "people.csv"), axes=("who", "whom"))
    assert knows.sel(who="bob", whom="ann").item() == 2.0
    assert "read_csv" in knows.to_sql(decomposition="relational")


def test_arrow_streams_in_files(tmp_path: Path) -> None:
    table = pa.table({"i": [0, 1], "v": [1.0, 2.0]})
    with pa.ipc.new_stream(tmp_path / "t.arrows", table.schema) as writer:
        writer.write_table(table)
    same(ucle.tensor(tmp_path / "t.arrows", axes=("i",)), np.array([1.0, 2.0]))


# ---- Errors ----


@pytest.mark.parametrize("suffix", [".arrow", ".mtx", ".tns", ".tns.gz", ".npy", ".npz"])
def test_files_that_are_none(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"t{suffix}"
    with pytest.raises(InputError, match=r"input t.*this file does not exist"):
        ucle.tensor(path, ndim=1)
    path.write_text("this is\nnothing of the kind")
    with pytest.raises(InputError, match=r"input t.*this file cannot be read"):
        ucle.tensor(path, ndim=1)


def test_frostt_needs_integers_and_entries(tmp_path: Path) -> None:
    path = tmp_path / "t.tns"
    path.write_text("1.5 1 1\n")
    with pytest.raises(InputError, match="not integers"):
        ucle.tensor(path, ndim=2)
    path.write_text("# nothing\n")
    with pytest.raises(InputError, match="no entry"):
        ucle.tensor(path, ndim=2)
    path.write_text("1 1 1\n1 2\n")
    with pytest.raises(InputError, match="cannot be read"):
        ucle.tensor(path, ndim=2)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    made = computed(np.ones((2, 2)))
    with pytest.raises(UnsupportedError, match=r"expected: \.parquet, \.arrow"):
        made.save(tmp_path / "t.xlsx")
    with pytest.raises(UnsupportedError, match="no format"):
        made.save(tmp_path / "t.parquet.gz")
    with pytest.raises(OutputError, match=r"nosuch.*cannot be written"):
        made.save(tmp_path / "nosuch" / "t.parquet")
    with pytest.raises(UnsupportedError, match="matrices"):
        computed(np.ones(2)).save(tmp_path / "t.mtx")
    filled = computed(np.ones((2, 2)), fill=1)
    for suffix in (".mtx", ".tns"):
        with pytest.raises(UnsupportedError, match="fill 0"):
            filled.save(tmp_path / f"t{suffix}")
    assert not list(tmp_path.iterdir())


def test_values_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("i,v\n0,a\n")
    with pytest.raises(ValueTypeError, match="does not hold numbers"):
        ucle.tensor(tmp_path / "t.csv", axes=("i",)).compute()
