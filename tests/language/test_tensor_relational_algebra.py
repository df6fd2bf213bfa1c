"""The operations of the tensor relational algebra (tensor_relational_algebra.txt, section 2.1).

A relation of keys and arrays is a tensor with axes for both. Each operation is compared with what
it does to the rows of the paper's examples, and to random ones, on every route and decomposition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ucle
from ucle.testing.check_matrix import Routes, some_decompositions

Key = tuple[int, ...]
Relation = dict[Key, NDArray[Any]]
"""Arrays by their keys, as the paper writes a tensor relation."""

A = np.array([[1, 2, 5, 6], [3, 4, 7, 8], [9, 10, 13, 14], [11, 12, 15, 16]], dtype=float)
B = np.array([[1, 2, 5, 6, 9, 10, 13, 14], [3, 4, 7, 8, 11, 12, 15, 16]], dtype=float)

R_A: Relation = {
    (k, m): A[2 * k : 2 * k + 2, 2 * m : 2 * m + 2] for k, m in product(range(2), repeat=2)
}
R_B: Relation = {(k,): B[:, 4 * k : 4 * k + 4] for k in range(2)}


def _random(keys: Key, shape: Key, seed: int) -> Relation:
    """A relation in which some rows are missing, which are worth arrays of 0."""
    rng = np.random.default_rng(seed)
    every = [key for key in np.ndindex(*keys) if rng.random() < 0.7]
    return {key: rng.integers(-3, 4, shape).astype(float) for key in every}


def _tensor(relation: Relation, keys: Key, shape: Key) -> NDArray[Any]:
    whole = np.zeros((*keys, *shape))
    for key, array in relation.items():
        whole[key] = array
    return whole


def _create(connection: Any, name: str, relation: Relation, keys: int, shape: Key) -> None:
    columns = ", ".join(f"k{n} INTEGER" for n in range(keys))
    sizes = "".join(f"[{size}]" for size in reversed(shape))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({columns}, val DOUBLE{sizes})")
    marks = ", ".join("?" * (keys + 1))
    for key, array in relation.items():
        row = [*map(int, key), array.tolist()]
        connection.execute(f"INSERT INTO {name} VALUES ({marks})", row)


def _check(
    text: str,
    relations: Mapping[str, tuple[Relation, Key, Key]],
    expected: NDArray[Any],
    routes: Routes,
    bounds: Mapping[str, int] | None = None,
) -> None:
    for connection in routes.values():
        for name, (relation, keys, shape) in relations.items():
            _create(connection, name, relation, len(keys), shape)
    inputs = {
        name: ucle.table(name, bounds=[*keys, *shape])
        for name, (_, keys, shape) in relations.items()
    }
    compiler = next(iter(routes.values()))
    chosen = ucle.einsum_program(text, inputs=inputs, database=compiler, bounds=bounds)
    for way in ("auto", "relational", *some_decompositions(chosen, 0, 5)):
        program = chosen if way == "auto" else chosen.with_decomposition(way)
        for connection in routes.values():
            with program.execute(connection) as result:
                array = result[program.outputs[0]].to_numpy()
            np.testing.assert_array_equal(array, expected, err_msg=f"{text} by {way}")


def _both(paper: Relation, keys: Key, shape: Key) -> list[tuple[Relation, Key, Key]]:
    """The paper's relation, and a random one of the same shape."""
    return [(paper, keys, shape), (_random(keys, shape, sum(keys)), keys, shape)]


SQUARE = pytest.mark.parametrize("given", _both(R_A, (2, 2), (2, 2)), ids=["paper", "random"])
WIDE = pytest.mark.parametrize("given", _both(R_B, (2,), (2, 4)), ids=["paper", "random"])
Given = tuple[Relation, Key, Key]


@pytest.mark.sample(1)
@SQUARE
@pytest.mark.parametrize(
    ("operator", "numpy"), [("+=", np.add), ("max=", np.maximum), ("*=", np.multiply)]
)
def test_aggregation(
    operator: str, numpy: Callable[..., Any], given: Given, routes: Routes
) -> None:
    rows = _tensor(*given)
    _check(f"S[l,r,c] {operator} R[k,l,r,c]", {"R": given}, numpy.reduce(rows, 0), routes)
    whole = numpy.reduce(numpy.reduce(rows, 0), 0)
    _check(f"S[r,c] {operator} R[k,l,r,c]", {"R": given}, whole, routes)


@pytest.mark.sample(1)
@SQUARE
def test_join(given: Given, routes: Routes) -> None:
    relation = given[0]
    joined: Relation = {
        (k, m, n): relation[k, m] @ relation[m, n]
        for k, m, n in product(range(2), repeat=3)
        if (k, m) in relation and (m, n) in relation
    }
    expected = _tensor(joined, (2, 2, 2), (2, 2))
    _check("P[k,l,m,r,c] += R[k,l,r,s] * R[l,m,s,c]", {"R": given}, expected, routes)
    if relation is R_A:
        np.testing.assert_array_equal(expected[0, 1, 0], [[111, 122], [151, 166]])
        matrix = _tensor({(): A @ A}, (), (4, 4)).reshape(2, 2, 2, 2).swapaxes(1, 2)
        _check("C[k,m,r,c] += R[k,l,r,s] * R[l,m,s,c]", {"R": given}, matrix, routes)


@pytest.mark.sample(1)
@SQUARE
def test_join_of_other_kernels(given: Given, routes: Routes) -> None:
    other = _random((2, 3), (2, 2), seed=9), (2, 3), (2, 2)
    one, two = _tensor(*given), _tensor(*other)
    expected = one[:, :, None] - two[None]
    _check("P[k,l,m,r,c] = R[k,l,r,c] - T[l,m,r,c]", {"R": given, "T": other}, expected, routes)


@pytest.mark.sample(1)
@SQUARE
def test_rekey(given: Given, routes: Routes) -> None:
    relation, *_ = given
    renamed: Relation = {(2 * k + m,): array for (k, m), array in relation.items()}
    expected = _tensor(renamed, (4,), (2, 2))
    text = "T[n,r,c] += (n == 2*k + l) * R[k,l,r,c]"
    _check(text, {"R": given}, expected, routes, {"n": 4})
    swapped = _tensor({(m, k): array for (k, m), array in relation.items()}, (2, 2), (2, 2))
    _check("T[l,k,r,c] = R[k,l,r,c]", {"R": given}, swapped, routes)


@pytest.mark.sample(1)
@SQUARE
@pytest.mark.parametrize(
    ("condition", "keeps"),
    [("k == l", lambda k, m: k == m), ("k < l or k > 0", lambda k, m: k < m or k > 0)],
)
def test_filter(
    condition: str, keeps: Callable[[int, int], bool], given: Given, routes: Routes
) -> None:
    kept = {key: array for key, array in given[0].items() if keeps(*key)}
    expected = _tensor(kept, (2, 2), (2, 2))
    _check(f"F[k,l,r,c] = when({condition}, R[k,l,r,c])", {"R": given}, expected, routes)
    _check(f"F[k,l,r,c] = ({condition}) * R[k,l,r,c]", {"R": given}, expected, routes)


@pytest.mark.sample(1)
@SQUARE
def test_transform(given: Given, routes: Routes) -> None:
    rows = _tensor(*given)
    expected = np.maximum(rows - 8, 0)
    _check("T[k,l,r,c] = max(R[k,l,r,c] - 8, 0)", {"R": given}, expected, routes)
    _check("T[k,l,c] max= R[k,l,r,c]", {"R": given}, rows.max(2), routes)
    # diag of what is filtered by checkEq and rekeyed to its first key
    diagonals = np.einsum("kkrr->kr", rows)
    _check("D[k,r] = R[k,k,r,r]", {"R": given}, diagonals, routes)


@pytest.mark.sample(1)
@WIDE
def test_tile(given: Given, routes: Routes) -> None:
    rows = _tensor(*given)
    expected = rows.reshape(2, 2, 2, 2).swapaxes(1, 2)
    text, bounds = "T[k,l,r,c] = R[k,r,2*l+c]", {"l": 2, "c": 2}
    _check(text, {"R": given}, expected, routes, bounds)
    if given[0] is R_B:
        np.testing.assert_array_equal(expected[1, 0], [[9, 10], [11, 12]])
        # and rekeyed, so that it is the matrix of two rows
        text = f"{text}; U[n,r,c] += (n == 2*k + l) * T[k,l,r,c]"
        merged = expected.reshape(4, 2, 2)
        _check(text, {"R": given}, merged, routes, {**bounds, "n": 4})


@WIDE
def test_stack(given: Given, routes: Routes) -> None:
    text = "T[k,l,r,c] = R[k,r,2*l+c]; S[k,r,n] += (n == 2*l + c) * T[k,l,r,c]"
    bounds = {"l": 2, "c": 2, "n": 4}
    _check(text, {"R": given}, _tensor(*given), routes, bounds)


@SQUARE
def test_stack_of_all_tiles(given: Given, routes: Routes) -> None:
    """Tiles are read as one tensor, which the paper calls concat."""
    relation, *_ = given
    expected = _tensor(*given).swapaxes(1, 2).reshape(4, 4)
    for connection in routes.values():
        _create(connection, "R", relation, 2, (2, 2))
        stored = ucle.table("R", tiles=[2, 2], bounds=[4, 4])
        program = ucle.einsum_program("T[j,i] = R[i,j]", R=stored, database=connection)
        for way in ("auto", "relational", *some_decompositions(program, 0, 5)):
            with program.with_decomposition(way).execute() as result:
                np.testing.assert_array_equal(result["T"].to_numpy(), expected.T)
