"""QR, singular values, systems and pivots of random and special matrices of all shapes.

Errors are bounded by what backward stable algorithms promise: a small multiple of the rounding
error times the size of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import duckdb
import numpy as np
import pytest
from kernel_routes import Route
from test_matrices import apply

from ucle.testing.generate import Array

EPSILON = np.finfo(np.float64).eps
SHAPES = [*product((1, 2, 3, 17, 32, 33, 65), (1, 2, 5, 33, 66)), (130, 97), (33, 140), (7, 300)]


def factorise(route: Route, name: str, parts: int, matrices: Array) -> Array:
    """All parts of a factorisation of one matrix, or of several that follow each other."""
    *count, rows, columns = matrices.shape
    padded = np.full((*count, parts, rows, columns), np.nan, matrices.dtype)
    padded[..., 0, :, :] = matrices
    call = f"SELECT mat_{name}($1::BLOB, {parts}, {rows}, {columns})"
    ((found,),) = route.connection.execute(call, [padded.tobytes()]).fetchall()
    return np.frombuffer(found, matrices.dtype).reshape(padded.shape)


def solve(route: Route, matrix: Array, sides: Array) -> Array:
    """The solutions of a system."""
    call = f"SELECT mat_solve($1::BLOB, $2::BLOB, {len(matrix)})"
    values = [matrix.tobytes(), sides.tobytes()]
    ((found,),) = route.connection.execute(call, values).fetchall()
    return np.frombuffer(found, matrix.dtype).reshape(sides.shape)


def bases(rng: np.random.Generator, rows: int, columns: int) -> tuple[Array, Array]:
    """Orthonormal columns and rows for a matrix of this shape."""
    count = min(rows, columns)
    left, right = (np.linalg.qr(rng.normal(size=(n, count)))[0] for n in (rows, columns))
    return left, right.T


def special_matrices(rng: np.random.Generator, rows: int, columns: int) -> Iterator[Array]:
    """Matrices that make the algorithms take each of their branches."""
    count, random = min(rows, columns), rng.normal(size=(rows, columns))
    left, right = bases(rng, rows, columns)
    yield random
    yield random * 1e300 / random.size
    yield random * 1e-300
    yield random * np.logspace(0, -150, columns)
    yield random * np.logspace(0, -150, rows)[:, None]
    yield left * np.logspace(0, -14, count) @ right
    yield left * np.logspace(0, -30, count) @ right
    yield left * rng.integers(1, 4, count) @ right
    yield left[:, : count // 2 + 1] @ right[: count // 2 + 1]
    yield rng.integers(0, 2, (rows, columns)).astype(np.float64)
    yield np.triu(random)
    yield np.eye(rows, columns)
    yield np.ones((rows, columns))
    yield np.zeros((rows, columns))


def check_orthonormal(columns: Array, bound: float) -> None:
    product_ = columns.T @ columns
    np.testing.assert_allclose(product_, np.eye(len(product_)), rtol=0, atol=bound)


def check_qr(matrix: Array, found: Array) -> None:
    (rows, columns), scale = matrix.shape, abs(matrix).max() or 1.0
    count, bound = min(rows, columns), (20 + 2 * max(rows, columns)) * EPSILON
    q, r = found[0], found[1] / scale
    assert not q[:, count:].any()
    assert not np.tril(r, -1).any()
    check_orthonormal(q[:, :count], bound)
    error = np.linalg.norm(q[:, :count] @ r[:count] - matrix / scale)
    assert error <= bound * np.linalg.norm(matrix / scale)


def check_svd(matrix: Array, found: Array, alone: Array) -> None:
    (rows, columns), scale = matrix.shape, abs(matrix).max() or 1.0
    count, bound = min(rows, columns), (20 + 2 * max(rows, columns)) * EPSILON
    u, s, vh = found[0, :, :count], np.diag(found[1]) / scale, found[2, :count]
    assert not found[0, :, count:].any()
    assert not found[2, count:].any()
    for diagonal in (found[1], alone):
        values = np.diag(diagonal)
        assert np.count_nonzero(diagonal) == np.count_nonzero(values)
        assert (values >= 0).all()
        assert (np.diff(values) <= 0).all()
        expected = np.linalg.svd(matrix / scale, compute_uv=False)
        atol = bound * expected[0]
        np.testing.assert_allclose(values / scale, expected, rtol=0, atol=atol)
    check_orthonormal(u, bound)
    check_orthonormal(vh.T, bound)
    np.testing.assert_allclose(u * s @ vh, matrix / scale, rtol=0, atol=bound * max(s[0], 1e-300))
    assert (vh.max(axis=1) >= abs(vh).max(axis=1) * (1 - 1e-14)).all()


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("first", range(0, len(SHAPES), 10))
def test_matrices_of_all_shapes(route: Route, first: int) -> None:
    rng = np.random.default_rng(first)
    for rows, columns in SHAPES[first : first + 10]:
        for matrix in special_matrices(rng, rows, columns):
            check_qr(matrix, factorise(route, "qr", 2, matrix))
            values = apply(route, "singular_values", matrix)
            check_svd(matrix, factorise(route, "svd", 3, matrix), values)


@pytest.mark.parametrize("shape", [(1, 1), (40, 9), (9, 40), (70, 70)])
def test_signs_of_qr_are_those_of_lapack(route: Route, shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).normal(size=shape)
    q, r = factorise(route, "qr", 2, matrix)
    expected = np.linalg.qr(matrix)
    np.testing.assert_allclose(q[:, : min(shape)], expected.Q, atol=1e-12)
    np.testing.assert_allclose(r[: min(shape)], expected.R, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 17, 32, 33, 65, 130])
def test_systems_and_pivots(route: Route, n: int) -> None:
    rng = np.random.default_rng(n)
    left, right = bases(rng, n, n)
    for matrix in (rng.normal(size=(n, n)), left * np.logspace(0, -12, n) @ right, left):
        pivots = np.diag(apply(route, "pivots", matrix))
        sign, logarithm = np.linalg.slogdet(matrix)
        assert np.prod(np.sign(pivots)) == sign
        size = 8 * n * n * EPSILON * np.linalg.cond(matrix)
        np.testing.assert_allclose(np.log(abs(pivots)).sum(), logarithm, atol=size)
        for sides in (rng.normal(size=(n, columns)) for columns in (0, 1, 3, 70)):
            solved = solve(route, matrix, sides)
            error = np.linalg.norm(matrix @ solved - sides)
            assert error <= 4 * n * EPSILON * np.linalg.norm(matrix) * np.linalg.norm(solved)


@pytest.mark.parametrize("n", [1, 2, 16, 17, 40])
def test_singular_systems(route: Route, n: int) -> None:
    """The determinant is 0, and nothing is solved."""
    rng = np.random.default_rng(n)
    matrix = rng.normal(size=(n, n))
    matrix[:, n // 2] = matrix[:, 0] if n > 1 else 0
    assert not apply(route, "pivots", matrix).any()
    with pytest.raises(duckdb.Error, match="it is singular"):
        solve(route, matrix, np.ones((n, 1)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (40, 40)])
def test_matrices_that_follow_each_other(route: Route, shape: tuple[int, int]) -> None:
    """Each is what it is alone, on both routes, and float32 is float64 rounded at the end."""
    rng = np.random.default_rng(0)
    several = rng.normal(size=(4, *shape))
    single = several.astype(np.float32)
    for name, parts in (("qr", 2), ("svd", 3)):
        found = factorise(route, name, parts, several)
        alone = np.stack([factorise(route, name, parts, matrix) for matrix in several])
        np.testing.assert_array_equal(found, alone)
        narrow = factorise(route, f"{name}_f32", parts, single)
        wide = factorise(route, name, parts, single.astype(np.float64))
        np.testing.assert_array_equal(narrow, wide.astype(np.float32))
        for other in (Route("extension"), Route("arrow")):
            np.testing.assert_array_equal(factorise(other, name, parts, several), found)
        nothing = factorise(route, name, parts, several[:0])
        assert nothing.shape == (0, parts, *shape)


@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (2, 3)])
def test_what_is_not_finite(route: Route, shape: tuple[int, int], special: float) -> None:
    matrix = np.ones(shape)
    matrix[-1, -1] = special
    for name, parts in (("qr", 2), ("svd", 3)):
        with pytest.raises(duckdb.Error, match="finite"):
            factorise(route, name, parts, matrix)
    with pytest.raises(duckdb.Error, match="finite"):
        apply(route, "singular_values", matrix)


def test_many_small_singular_values(route: Route) -> None:
    """Those of both signs mix in clusters around 0, of which no vector is lost."""
    left, right = bases(np.random.default_rng(1), 150, 120)
    values = np.concatenate([np.ones(3), np.full(60, 1e-9), np.logspace(-13, -18, 57)])
    matrix = left * values @ right
    check_svd(matrix, factorise(route, "svd", 3, matrix), apply(route, "singular_values", matrix))
