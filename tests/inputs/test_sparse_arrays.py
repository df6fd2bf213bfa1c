"""Sparse arrays of scipy and of others, as inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import ucle
from ucle.inputs.sparse_arrays import SparseArray, is_sparse, to_coordinates, without_axes

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
