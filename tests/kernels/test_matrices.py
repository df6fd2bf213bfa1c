"""Functions of whole matrices on random and special matrices, around the sizes of their blocks.

Errors are bounded by what backward stable algorithms promise: a small multiple of the rounding
error times the size of the matrix, and for inverses times its condition number.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
from kernel_routes import Route

from ucle.testing.generate import Array

EPSILON = np.finfo(np.float64).eps
SIZES = range(1, 131)
AROUND_BLOCKS = (2, 3, 16, 17, 24, 25, 31, 32, 33, 47, 48, 64, 65, 97, 130)


def apply(route: Route, name: str, matrices: Array) -> Array:
    """A function of one matrix or of several that follow each other in one tensor."""
    rows, columns = matrices.shape[-2:]
    call = f"SELECT mat_{name}($1::BLOB, {rows}, {columns})"
    ((found,),) = route.connection.execute(call, [matrices.tobytes()]).fetchall()
    return np.frombuffer(found, matrices.dtype).reshape(matrices.shape)


def lower_alone(matrix: Array) -> Array:
    """The lower triangle, below numbers that nobody may read."""
    return np.tril(matrix) + np.triu(np.full(matrix.shape, np.nan), 1)


def turned(rng: np.random.Generator, values: Array) -> Array:
    """A symmetric matrix with these eigenvalues."""
    basis, _ = np.linalg.qr(rng.normal(size=(len(values), len(values))))
    product: Array = basis * values @ basis.T
    return (product + product.T) / 2


def check_inverse(matrix: Array, found: Array) -> None:
    size, scale = len(matrix), abs(matrix).max()
    matrix, found = matrix / scale, found * scale
    bound = 2 * size * EPSILON * np.linalg.norm(matrix) * np.linalg.norm(found)
    assert np.linalg.norm(matrix @ found - np.eye(size)) <= bound
    expected = np.linalg.inv(matrix)
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error <= 4 * size * EPSILON * np.linalg.cond(matrix)


def check_cholesky(matrix: Array, found: Array) -> None:
    assert (np.diag(found) > 0).all()
    assert not np.triu(found, 1).any()
    error = np.linalg.norm(found @ found.T - matrix)
    assert error <= 2 * len(matrix) * EPSILON * np.linalg.norm(matrix)


def check_eigen(matrix: Array, values: Array, vectors: Array) -> None:
    size, scale = len(matrix), abs(matrix).max() or 1.0
    assert not (values - np.diag(np.diag(values))).any()
    matrix, values = matrix / scale, np.diag(values) / scale
    expected = np.linalg.eigvalsh(matrix)
    bound = (20 + 2 * size) * EPSILON
    norm = abs(expected).max()
    assert (np.diff(values) >= 0).all()
    np.testing.assert_allclose(values, expected, rtol=0, atol=bound * norm)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(size), rtol=0, atol=bound)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, rtol=0, atol=bound * norm)
    assert (vectors.max(axis=0) >= abs(vectors).max(axis=0) * (1 - 1e-14)).all()


def symmetric_matrices(rng: np.random.Generator, n: int) -> Iterator[Array]:
    """Symmetric matrices that make the algorithms take each of their branches."""
    random = rng.normal(size=(n, n))
    random += random.T
    middle = abs(np.arange(n) - n // 2).astype(np.float64)
    yield random
    yield random * 1e300 / n
    yield random * 1e-300
    yield random * np.outer(np.logspace(0, -150, n), np.logspace(0, -150, n))
    yield np.diag(rng.normal(size=n)) + 1e-160 * random
    yield turned(rng, np.logspace(0, -12, n))
    yield turned(rng, rng.integers(1, 4, n).astype(np.float64))
    yield np.ones((n, n))
    yield np.zeros((n, n))
    yield np.eye(n)
    yield np.ascontiguousarray(np.eye(n)[::-1])
    yield 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    yield np.diag(middle) + np.eye(n, k=1) + np.eye(n, k=-1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("first", range(0, len(SIZES), 13))
def test_random_matrices_of_all_sizes(route: Route, first: int) -> None:
    rng = np.random.default_rng(first)
    for n in SIZES[first : first + 13]:
        matrix = rng.normal(size=(n, n))
        check_inverse(matrix, apply(route, "inv", matrix))
        positive = matrix @ matrix.T + np.eye(n)
        check_cholesky(positive, apply(route, "cholesky", lower_alone(positive)))
        values, vectors = (
            apply(route, name, lower_alone(matrix + matrix.T))
            for name in ("eigenvalues", "eigenvectors")
        )
        check_eigen(matrix + matrix.T, values, vectors)


@pytest.mark.sample(6)
@pytest.mark.parametrize("n", AROUND_BLOCKS)
def test_special_symmetric_matrices(route: Route, n: int) -> None:
    for matrix in symmetric_matrices(np.random.default_rng(n), n):
        lower = lower_alone(matrix)
        values, vectors = (apply(route, name, lower) for name in ("eigenvalues", "eigenvectors"))
        check_eigen(matrix, values, vectors)


@pytest.mark.parametrize("n", AROUND_BLOCKS)
def test_badly_conditioned_matrices(route: Route, n: int) -> None:
    rng = np.random.default_rng(n)
    left, right = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    for matrix in (
        left * np.logspace(0, -12, n) @ right,
        rng.normal(size=(n, n)) * 1e200,
        rng.normal(size=(n, n)) * 1e-200,
        left * np.logspace(0, -8, n) @ left.T,
    ):
        check_inverse(matrix, apply(route, "inv", matrix))
    positive = turned(rng, np.logspace(0, -10, n))
    check_cholesky(positive, apply(route, "cholesky", positive))


@pytest.mark.parametrize("n", AROUND_BLOCKS)
def test_singular_matrices_are_found(route: Route, n: int) -> None:
    """Equal columns cancel exactly, wherever they are."""
    rng = np.random.default_rng(n)
    for _ in range(4):
        matrix = rng.normal(size=(n, n))
        one, other = rng.choice(n, 2, replace=False)
        equal, zero_row, zero_column = (matrix.copy() for _ in range(3))
        equal[:, one] = equal[:, other]
        zero_row[one] = zero_column[:, one] = 0
        for singular in (equal, zero_row, zero_column):
            with pytest.raises(duckdb.Error, match="it is singular"):
                apply(route, "inv", singular)
        indefinite = matrix @ matrix.T + np.eye(n)
        indefinite[one, one] = -1
        with pytest.raises(duckdb.Error, match="positive definite"):
            apply(route, "cholesky", indefinite)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 2, 16, 17, 65])
def test_what_is_not_finite(route: Route, n: int, special: float) -> None:
    matrix = np.eye(n) * 2 + 0.5
    matrix[n - 1, 0] = special
    for name in ("eigenvalues", "eigenvectors"):
        with pytest.raises(duckdb.Error, match="finite"):
            apply(route, name, matrix)
    if special != np.inf or n > 1:
        with pytest.raises(duckdb.Error, match="positive definite"):
            apply(route, "cholesky", matrix)
    if np.isnan(special):
        assert np.isnan(apply(route, "inv", matrix)).any()


def test_matrices_that_follow_each_other(route: Route) -> None:
    """Each is what it is alone, and float32 is float64 rounded at the end."""
    rng = np.random.default_rng(0)
    for n in (1, 5, 16, 40):
        several = rng.normal(size=(4, n, n))
        several = several @ np.swapaxes(several, 1, 2) + np.eye(n)
        for name in ("inv", "cholesky", "eigenvalues", "eigenvectors"):
            alone = np.stack([apply(route, name, matrix) for matrix in several])
            np.testing.assert_array_equal(apply(route, name, several), alone)
            single = several.astype(np.float32)
            found = apply(route, f"{name}_f32", single)
            expected = apply(route, name, single.astype(np.float64)).astype(np.float32)
            np.testing.assert_array_equal(found, expected)
        assert apply(route, "inv", np.zeros((0, n, n))).shape == (0, n, n)
    assert apply(route, "cholesky", np.zeros((0, 0))).shape == (0, 0)


def test_both_routes_give_the_same() -> None:
    rng = np.random.default_rng(1)
    routes = [Route("extension"), Route("arrow")]
    matrix = rng.normal(size=(150, 150))
    positive = matrix @ matrix.T
    for name in ("inv", "cholesky", "eigenvalues", "eigenvectors"):
        one, other = (apply(route, name, positive) for route in routes)
        np.testing.assert_array_equal(one, other)


@pytest.mark.sample(1)
def test_large_entries_before_tiny_ones(route: Route) -> None:
    """Iterations that begin at the large eigenvalues of many magnitudes do not end."""
    scales = np.logspace(0, -150, 400)
    random = np.random.default_rng(3).normal(size=(400, 400))
    matrix = (random + random.T) * np.outer(scales, scales)
    values = np.diag(apply(route, "eigenvalues", matrix))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), rtol=0, atol=1e-12)


@pytest.mark.turns(3)
@pytest.mark.sample(1)
def test_memory_of_matrices_is_bounded(route: Route) -> None:
    """Four copies are more than may be held, which is at least a quarter of a GiB."""
    refused = pytest.raises(duckdb.Error, match="may hold at a time")
    with route.limited(40_000_000) as connection, refused:
        connection.execute("SELECT mat_eigenvectors(full(9000000, 1), 3000, 3000)").fetchall()
