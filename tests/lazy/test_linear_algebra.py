"""Linear algebra of lazy tensors against NumPy: random, singular, tiny and empty matrices."""

from __future__ import annotations

import warnings
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ucle
from ucle.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    BoundError,
    ExecutionError,
    UnsupportedError,
    ValueTypeError,
)
from ucle.testing import Routes
from ucle.testing.generate import Array

linalg = ucle.linalg
SHAPES = [
    (1, 1), (2, 2), (1, 3), (3, 1), (4, 6), (6, 4), (2, 3, 2), (2, 1, 1), (0, 3, 2), (2, 3, 3),
    (0, 0), (0, 3), (3, 0), (2, 1, 2, 3),
]  # fmt: skip
DTYPES = ("float64", "float32", "int64", "bool")


def random(shape: tuple[int, ...], dtype: str) -> Array:
    rng = np.random.default_rng(sum(shape) + len(dtype))
    values: Array = (3 * rng.normal(size=shape)).astype(dtype)
    return values


def conditioned(shape: tuple[int, int], least: float, rank: int) -> Array:
    """A matrix with singular values from 1 to the given one, and zeros behind the given rank."""
    rng, count = np.random.default_rng(rank), min(shape)
    left, right = (np.linalg.qr(rng.normal(size=(n, count)))[0] for n in shape)
    values = np.geomspace(1, least, count) * (np.arange(count) < rank)
    matrix: Array = left * values @ right.T
    return matrix


def check(found: Any, expected: Any, tolerance: float) -> None:
    array, expected = np.asarray(found), np.asarray(expected)
    assert array.dtype == expected.dtype
    assert array.shape == expected.shape
    np.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance)


def computed(*tensors: ucle.Tensor) -> list[Array]:
    """The values of tensors, which one program computes."""
    return [found.to_numpy() for found in ucle.compute(*tensors)]


def check_orthonormal(columns: Array, tolerance: float) -> None:
    size = columns.shape[-1]
    product = np.swapaxes(columns, -1, -2) @ columns
    expected = np.broadcast_to(np.eye(size, dtype=columns.dtype), product.shape)
    np.testing.assert_allclose(product, expected, atol=tolerance)


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_factorisations(shape: tuple[int, ...], dtype: str) -> None:
    A = random(shape, dtype)
    t, count, tolerance = ucle.asarray(A), min(shape[-2:]), 1e-4 if dtype == "float32" else 1e-10
    full = (sum(shape) + len(dtype)) % 2 == 0
    mode = "complete" if full else "reduced"
    made = *np.linalg.svd(t, full_matrices=full), linalg.svdvals(t), *np.linalg.qr(t, mode)
    found = computed(*made)
    expected = *np.linalg.svd(A, full_matrices=full), *np.linalg.qr(A, mode)
    U, S, Vh, values, Q, R = found
    for one, other in zip((U, S, Vh, Q, R), expected, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
    check(S, expected[1], tolerance)
    check(values, expected[1], tolerance)
    check(U[..., :count] * S[..., None, :] @ Vh[..., :count, :], A.astype(S.dtype), tolerance)
    check(Q @ R, A.astype(S.dtype), tolerance)
    for columns in (U, np.swapaxes(Vh, -1, -2), Q):
        check_orthonormal(columns, tolerance)


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", DTYPES[:3])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if min(shape[-2:])])
def test_what_follows_from_them(shape: tuple[int, ...], dtype: str) -> None:
    A = random(shape, dtype)
    t, tolerance = ucle.asarray(A), 1e-3 if dtype == "float32" else 1e-9
    B = random((*shape[:-2], shape[-2], 2), "float64")
    solved = linalg.lstsq(t, B)
    pinv, rank, cond, x, residuals, least_rank, values = computed(
        linalg.pinv(t), linalg.matrix_rank(t), linalg.cond(t), *solved
    )
    wide = A.astype(values.dtype)
    check(pinv, np.linalg.pinv(wide, rtol=None), tolerance)
    for found in (rank, least_rank):
        check(found, np.asarray(np.linalg.matrix_rank(A)), 0)
    if dtype != "int64":
        np.testing.assert_allclose(1 / cond, 1 / np.linalg.cond(A), atol=tolerance)
    np.testing.assert_allclose(x, np.linalg.pinv(wide, rtol=None) @ B, tolerance, tolerance)
    np.testing.assert_allclose(residuals, ((A @ x - B) ** 2).sum(-2), tolerance, tolerance)


@pytest.mark.sample(3)
@pytest.mark.parametrize("way", ["native", "arrow"])
@pytest.mark.parametrize("rank", [3, 5, 6])
@pytest.mark.parametrize("shape", [(6, 8), (40, 6)])
def test_badly_conditioned_matrices(
    shape: tuple[int, int], rank: int, way: str, routes: Routes
) -> None:
    A = conditioned(shape, 1e-9, rank)
    t = ucle.tensor(A, database=routes[way])
    b = A @ np.ones(shape[1])
    solved = linalg.lstsq(t, b)
    found = computed(solved.x, solved.rank, linalg.matrix_rank(t), linalg.matrix_rank(t, 1e-3))
    x, *ranks = found
    expected, _, known, _ = np.linalg.lstsq(A, b)
    assert [int(each) for each in ranks] == [known, rank, np.linalg.matrix_rank(A, 1e-3)]
    np.testing.assert_allclose(A @ x, b, atol=1e-13)
    np.testing.assert_allclose(x, expected, atol=1e-6)


def test_tolerances_of_each_matrix() -> None:
    A = np.stack([np.diag([3.0, 1.0, 1e-3]), np.diag([2.0, 1e-3, 1e-5])])
    limits = np.array([0.5, 1e-4])
    pinv, ranks, others = computed(
        linalg.pinv(A, limits), linalg.matrix_rank(A, limits), linalg.matrix_rank(A, rtol=limits)
    )
    np.testing.assert_allclose(pinv, np.linalg.pinv(A, limits), rtol=1e-12)
    assert ranks.tolist() == np.linalg.matrix_rank(A, limits).tolist()
    assert others.tolist() == np.linalg.matrix_rank(A, rtol=limits).tolist()


@pytest.mark.parametrize("size", [0, 1, 2, 5, 40])
def test_determinants(size: int) -> None:
    A = random((2, size, size), "float64")
    K = (A / 3).round().astype(int)
    A[1] = A[1] @ np.diag(np.arange(size) % 3 - 1.0) if size > 2 else A[1]
    pair = linalg.slogdet(A)
    found, sign, logarithm, single, whole = computed(
        linalg.det(A), *pair, np.linalg.det(ucle.asarray(A[0])), linalg.det(K)
    )
    with np.errstate(all="ignore"):
        expected = np.linalg.slogdet(A)
    check(found, np.linalg.det(A), 1e-9)
    check(single, np.linalg.det(A[0]), 1e-9)
    check(whole, np.linalg.det(K), 1e-9)
    np.testing.assert_array_equal(sign, expected.sign)
    check(logarithm, expected.logabsdet, 1e-9)


def test_determinants_that_would_overflow() -> None:
    A = np.diag(np.full(30, 1e200))
    A[0, 0] = -1e-200
    found = linalg.slogdet(A)
    np.testing.assert_allclose(
        [found.sign.item(), found.logabsdet.item()], np.linalg.slogdet(A), rtol=1e-14
    )


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("shapes", [((1, 1), (1, 2)), ((3, 3), (2, 3, 0)), ((2, 4, 4), (4, 3))])
def test_systems(shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    A, B = random(shapes[0], "float64"), random(shapes[1], dtype)
    A, b = A + 4 * np.eye(A.shape[-1]), B[..., 0] if B.shape[-1] else None
    check(np.linalg.solve(ucle.asarray(A), B).to_numpy(), np.linalg.solve(A, B), 1e-10)
    narrow = A.astype(dtype)
    check(linalg.solve(narrow, B).to_numpy(), np.linalg.solve(narrow, B), 1e-4)
    if b is not None and b.ndim == 1:
        check(linalg.solve(A, b).to_numpy(), np.linalg.solve(A, b), 1e-10)


def test_systems_of_a_table(fresh: duckdb.DuckDBPyConnection) -> None:
    """Only its data determine sizes."""
    fresh.execute("""
        CREATE TABLE a AS SELECT i, j, 1.0 + (i = j)::INT AS v FROM range(4) a(i), range(4) b(j)
    """)
    a = ucle.tensor(ucle.table("a", ["i", "j"], "v"), database=fresh).unnamed()
    found = linalg.solve(a, np.arange(4.0)).to_numpy()
    np.testing.assert_allclose(found, np.linalg.solve(1 + np.eye(4), np.arange(4.0)), atol=1e-14)
    with pytest.raises(BoundError, match="size"):
        linalg.svd(a)


@pytest.mark.parametrize("order", ["nuc", 2, -2])
def test_norms_of_singular_values(order: Any) -> None:
    x = random((3, 4, 5), "float64")
    t = ucle.asarray(x)
    found = computed(
        np.linalg.norm(t[0], order),
        linalg.matrix_norm(t, ord=order),
        linalg.norm(t, order, axis=(2, 0), keepdims=True),
    )
    check(found[0], np.linalg.norm(x[0], order), 1e-12)
    check(found[1], np.linalg.matrix_norm(x, ord=order), 1e-12)
    check(found[2], np.linalg.norm(x, order, axis=(2, 0), keepdims=True), 1e-12)


@pytest.mark.sample(4)
@pytest.mark.parametrize("p", [1, -1, 2, -2, np.inf, "fro", "nuc"])
def test_condition_numbers(p: Any) -> None:
    x = random((2, 3, 3), "float64")
    check(linalg.cond(x, p).to_numpy(), np.linalg.cond(x, p), 1e-10)
    if p == 2:
        assert linalg.cond(np.zeros((2, 2)), p).item() == np.linalg.cond(np.zeros((2, 2)), p)


@pytest.mark.parametrize("rowvar", [True, False])
@pytest.mark.parametrize("shape", [(7,), (1, 5), (3, 6), (4, 1), (2, 3, 6)])
def test_covariances(shape: tuple[int, ...], rowvar: bool) -> None:
    options: dict[str, Any]
    for dtype, options in (
        ("float64", {}),
        ("float32", {"bias": True}),
        ("int64", {"ddof": 2}),
        ("complex128", {"ddof": 0}),
    ):
        x = random(shape, dtype) + (0.5j if dtype == "complex128" else 0)
        t = ucle.asarray(x)
        sets = x if x.ndim == 3 else x[None]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few observations
            expected = [np.cov(each, rowvar=rowvar, **options) for each in sets]
            made = np.stack(expected) if x.ndim == 3 else expected[0]
            if np.isfinite(made).all():
                check(np.cov(t, rowvar=rowvar, **options).to_numpy(), made, 1e-12)
            if dtype == "float64" and 1 not in shape:
                expected = [np.corrcoef(each, rowvar=rowvar) for each in sets]
                made = np.stack(expected) if x.ndim == 3 else expected[0]
                check(np.corrcoef(t, rowvar=rowvar).to_numpy(), made, 1e-12)


def test_variables_that_do_not_vary() -> None:
    x = np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]])
    with np.errstate(all="ignore"):
        expected = np.corrcoef(x)
    np.testing.assert_allclose(ucle.corrcoef(x).to_numpy(), expected)
    assert np.isnan(ucle.cov([[1.0], [2.0]]).to_numpy()).all()


def test_covariances_of_a_sparse_table(fresh: duckdb.DuckDBPyConnection) -> None:
    """What is not stored is observed, too."""
    rows = pa.table({"v": [0, 1, 1], "o": [2, 0, 3], "x": [2.0, 1.0, -1.0]})
    dense = np.zeros((2, 5))
    dense[[0, 1, 1], [2, 0, 3]] = [2, 1, -1]
    t = ucle.tensor(ucle.table(rows, ["v", "o"], "x", bounds=[2, 5]), database=fresh)
    np.testing.assert_allclose(ucle.cov(t).to_numpy(), np.cov(dense), atol=1e-14)


def test_names_of_axes() -> None:
    x = random((2, 4, 3), "float64")
    t = ucle.array(x, axes=("u", "row", "column"))
    q, r = linalg.qr(t)
    u, s, vh = linalg.svd(t)
    made = {
        ("u", "row", "component"): q,
        ("u", "component", "column"): r,
        ("u", "column", "row"): linalg.pinv(t),
        ("u", "component"): linalg.svdvals(t),
        ("u",): linalg.matrix_rank(t),
        ("u", "row", "row_2"): ucle.corrcoef(t),
    }
    for axes, tensor in made.items():
        assert tensor.axes == axes
    assert (u.axes, s.axes) == (("u", "row", "component"), ("u", "component"))
    assert vh.axes == ("u", "component", "column")
    check(linalg.pinv(t).to_numpy(), np.linalg.pinv(x), 1e-12)
    assert linalg.norm(t, 2, axis=("row", "column")).axes == ("u",)


def test_one_call_computes_a_factorisation() -> None:
    u, s, vh = linalg.svd(random((5, 4), "float64"), full_matrices=False)
    program = ucle.einsum_program(((u * s) @ vh).program_text(), X=random((5, 4), "float64"))
    assert program.to_sql().count("mat_svd") == 1


# ---- What is wrong ----


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: linalg.svd(np.ones(3)), AxisError, "matrices"),
        (lambda: linalg.qr(np.ones((2, 2)), "raw"), ArgumentTypeError, "mode"),
        (lambda: linalg.svd(np.ones((2, 2)), hermitian=True), UnsupportedError, "eigh"),
        (lambda: linalg.svdvals(np.ones((2, 2)) * 1j).to_numpy(), ValueTypeError, "real"),
        (lambda: linalg.det(np.ones((2, 3))), BoundError, "square"),
        (lambda: linalg.solve(np.ones((2, 3)), np.ones(2)), BoundError, "square"),
        (lambda: linalg.solve(np.eye(2), np.ones(3)), BoundError, "right-hand sides"),
        (lambda: linalg.lstsq(np.eye(2), np.ones(3)), BoundError, "right-hand sides"),
        (lambda: linalg.matrix_rank(np.eye(2), 1, rtol=1), ArgumentTypeError, "tolerances"),
        (lambda: ucle.corrcoef(np.ones((2, 2)) * 1j), ValueTypeError, "real"),
        (lambda: linalg.solve(np.ones((2, 2)), np.ones(2)).to_numpy(), ExecutionError, "singular"),
        (lambda: linalg.svdvals([[np.nan, 1.0]]).to_numpy(), ExecutionError, "finite"),
        (lambda: linalg.norm(np.eye(2), 3, axis=(0, 1)), ArgumentTypeError, "nuc"),
    ],
)
def test_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_there_are_no_gradients() -> None:
    x = ucle.array(random((3, 3), "float64"), name="x")
    for loss in (linalg.det(x), linalg.svdvals(x).sum(), linalg.solve(x, np.ones(3)).sum()):
        with pytest.raises(UnsupportedError, match="derivative"):
            ucle.grad(loss, x).to_numpy()


@pytest.mark.parametrize("function", [ucle.cov, ucle.corrcoef])
def test_missing_values_are_no_observations(function: Any) -> None:
    rows = pa.table({"who": [0, 1, 2], "p": [1.0, None, 4.0], "q": [2.0, 1.0, 3.0]})
    table = ucle.table(rows, ["who"], columns_as="f", nulls="missing", bounds=[3, None])
    with pytest.raises(UnsupportedError, match="missing values"):
        function(ucle.tensor(table), rowvar=False)
    whole = ucle.table(rows.select(["who", "q"]), ["who"], columns_as="f", bounds=[3, None])
    assert np.allclose(np.asarray(function(ucle.tensor(whole), rowvar=False)).ravel()[0], 1.0)


def test_the_names_of_an_inverse_are_exchanged_in_frames() -> None:
    matrix = np.random.default_rng(4).normal(size=(3, 3))
    X = ucle.array(matrix, axes=("page", "next"))
    for inverse in (ucle.linalg.inv(X), ucle.linalg.pinv(X)):
        assert inverse.axes == ("next", "page")
        frame = inverse.to_pandas(columns="page")
        np.testing.assert_allclose(frame.to_numpy(), np.linalg.inv(matrix))
        assert frame.index.name == "next"


@pytest.mark.parametrize("axes", [None, ("time", "who")])
@pytest.mark.parametrize("seed", range(3))
def test_covariances_under_a_mask(seed: int, axes: tuple[str, str] | None) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 5)) + 100
    x[rng.random(x.shape) < 0.2] = np.nan
    X = ucle.array(x, axes=axes)
    frame = pd.DataFrame(x)
    mask = ~ucle.isnan(X)
    for made, expected in (
        (ucle.cov(X, rowvar=False, where=mask), frame.cov()),
        (ucle.corrcoef(X, rowvar=False, where=mask), frame.corr()),
        (ucle.cov(X.T, where=mask.T, ddof=1), frame.cov()),
    ):
        np.testing.assert_allclose(made.to_numpy(), expected, rtol=1e-9, atol=1e-12)
    if axes is not None:  # a mask of whole observations
        kept = np.isfinite(x).all(axis=1)
        found = ucle.cov(X, rowvar=False, where=ucle.array(kept, axes=("time",)))
        np.testing.assert_allclose(found.to_numpy(), frame[kept].cov(), rtol=1e-9, atol=1e-12)
    with pytest.raises(ArgumentError, match="two masks"):
        ucle.cov(X, where=mask, stored=True)
