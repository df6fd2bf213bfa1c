"""Tests of labels that may be tiled, compressed or deferred, and of the search that does so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse as sp

import ucle
from ucle.errors import LabelError
from ucle.optimiser.tiled_and_compressed import list_levelled
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case


def _sparse(shape: tuple[int, int], density: float, seed: int = 0) -> sp.coo_array:
    rng = np.random.default_rng(seed)
    return sp.random_array(shape, density=density, rng=rng, format="coo")


def _offered(text: str, inputs: Mapping[str, Any], name: str, tile: int = 2) -> list[str]:
    program = ucle.einsum_program(text, inputs=inputs, association="as-written")
    compiled = program.compiled.program
    vertex = compiled.by_name[name]
    return [vertex.text(each) for each in list_levelled(vertex, compiled, tile)]


def test_tiles_of_labels_of_the_output() -> None:
    offered = _offered("Z[i,j] = X[i,j] + Y[i,j]", {"X": np.eye(3), "Y": np.eye(3)}, "Z")
    assert offered == [
        "Z[I/2,j] = X[I/2,j] + Y[I/2,j]",
        "Z[i,J/2] = X[i,J/2] + Y[i,J/2]",
        "Z[I/2,{j}] = X[I/2,{j}] + Y[I/2,{j}]",
        "Z[i,{j}] = X[i,{j}] + Y[i,{j}]",
    ]


def test_full_arrays_are_not_compressed_to_be_added() -> None:
    offered = _offered(
        "Z[i,j] = X[i,j] + Y[i,j]", {"X": np.ones((3, 3)), "Y": np.ones((3, 3))}, "Z"
    )
    assert not [each for each in offered if "{" in each]


def test_what_is_short_is_not_tiled() -> None:
    assert not _offered("Z[i,j] = X[i,j] + 1", {"X": np.ones((3, 3))}, "Z", tile=3)[2:]


def test_drivers_of_a_product() -> None:
    offered = _offered("Z[i,k] += A[i,j] * B[j,k]", {"A": np.eye(3), "B": np.eye(3)}, "Z")
    assert offered[2:] == [
        "Z[I/2,k] += A[I/2,{j}] * B[j,k]",
        "Z[i,k] += A[i,{j}] * B[j,k]",
        "Z[I/2,{k}] += A[I/2,{j}] * B[j,{k}]",
        "Z[i,{k}] += A[i,{j}] * B[j,{k}]",
        "Z[i,k] += A[{i},J/2] * B[J/2,k]",
        "Z[i,k] += A[{i},j] * B[j,k]",
    ]


def test_drivers_of_columns() -> None:
    offered = _offered("y[j] += A[i,j]", {"A": np.eye(3)}, "y")
    assert offered[1:] == [
        "y[J/2] += A[{i},J/2]",
        "y[j] += A[{i},j]",
        "y[j] += A[I/2,{j}]",
        "y[j] += A[i,{j}]",
    ]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("text", "name", "listed"),
    [
        ("Y[i,j] = -X[i,j]; Z[j] += Y[i,j] * u[i]", "Y", "ij"),
        ("Y[j,i] = -X[i,j]; Z[j] += Y[j,i] * u[i]", "Y", "ij"),
        ("Y[i,j] = X[i,j] * v[j]; Z[j] += Y[i,j] * u[i]", "Y", "ij"),
        ("Y[i,j] = X[i,j] * W[i,j]; Z[j] += Y[i,j]", "Y", "ij"),
        ("Y[i,j] = -X[i,j]; P[i,j] = Y[i,j] * v[j]; Z[j] += P[i,j] * u[i]", "Y", "ij"),
        ("Y[i,j] = -X[i,j]; Z[i] += Y[i,j] * v[j]", "Y", "j"),
        ("Y[i,j] = -X[i,j]; Z[i,j,k] = Y[i,j] * R[k]", "Y", "j"),
        ("Y[i,j] = -X[i,j]; Z += Y[i,j]", "Y", "j"),
        ("Y[i,j] = -X[i,j]; Z[j] += Y[i,j] * u[i]; P[i] += Y[i,j] * v[j]", "Y", "ij"),
    ],
)
def test_entries_are_listed_as_they_are_summed(
    text: str, name: str, listed: str, routes: Routes
) -> None:
    rng = np.random.default_rng(3)
    arrays: dict[str, Any] = {
        "X": _sparse((4, 5), 0.4).toarray(),
        "W": _sparse((4, 5), 0.5, 1).toarray(),
        "u": rng.normal(size=4),
        "v": rng.normal(size=5),
        "R": rng.normal(size=2),
    }
    arrays = {x: array for x, array in arrays.items() if f"{x}[" in text}
    offered = _offered(text, arrays, name)
    assert {x for x in "ij" if any(f"{{{x}}}" in way.split(" = ")[0] for way in offered)} == {
        *listed
    }
    inputs = {x: sp.coo_array(array) if x in "XW" else array for x, array in arrays.items()}
    check_everywhere(Case(text, arrays, inputs, {}), routes, 2, 12)


def test_whole_arrays_are_compressed_where_the_others_are_small() -> None:
    for columns, whole in ((100, True), (2000, False)):
        inputs = {"A": np.eye(2000), "B": np.ones((2000, columns))}
        offered = _offered("Z[i,k] += A[i,j] * B[j,k]", inputs, "Z")
        assert ("Z[i,k] += A[i,{j}] * B[j,k]" in offered) is whole
        assert "Z[I/2,k] += A[I/2,{j}] * B[j,k]" in offered


@pytest.mark.parametrize(
    ("text", "fill"),
    [("Z[i,k] += A[i,j] * B[j,k]", 1.0), ("Z[i,k] min= A[i,j] + B[j,k]", 0.0)],
)
def test_fills_that_add_something_are_not_compressed(text: str, fill: float) -> None:
    inputs = {x: ucle.table(np.eye(3), fill=fill) for x in "AB"}
    assert not [x for x in _offered(text, inputs, "Z") if "{" in x]


def test_shortest_paths_are_compressed() -> None:
    inputs = {x: ucle.table(np.eye(3), fill=np.inf) for x in "AB"}
    assert "Z[I/2,{k}] min= A[I/2,{j}] + B[j,{k}]" in _offered(
        "Z[i,k] min= A[i,j] + B[j,k]", inputs, "Z"
    )


MASKED = "S[i,j] += Q[i,k] * K[j,k]; Z[i,j] = M[i,j] * S[i,j]"


def _masked_inputs() -> dict[str, Any]:
    return {x: np.eye(3) for x in "QKM"}


def test_products_behind_masks_are_deferred() -> None:
    offered = _offered(MASKED, _masked_inputs(), "Z")
    assert "Z[I/2,{j}] = M[I/2,{j}] * S[I/2,j]" in offered
    program = ucle.einsum_program(MASKED, inputs=_masked_inputs(), association="as-written")
    compiled = program.compiled.program
    deferred = [
        each
        for each in list_levelled(compiled.by_name["S"], compiled, 2)
        if each.deferred is not None
    ]
    assert len(deferred) == 3


@pytest.mark.parametrize(
    "text",
    [
        MASKED + "; U[i,j] = S[i,j] + 1",
        "S[i,j] += Q[i,k] * K[j,k]; Z[i,j] = M[i,j] + S[i,j]",
        "S[i,j] += Q[i,k] * K[j,k]; Z[i,j] = M[j,i] * S[i,j]",
        "S[i,j] max= Q[i,k] * K[j,k]; Z[i,j] = M[i,j] * S[i,j]",
    ],
)
def test_what_is_not_deferred(text: str) -> None:
    program = ucle.einsum_program(text, inputs=_masked_inputs(), association="as-written")
    compiled = program.compiled.program
    for vertex in compiled.vertices:
        assert all(each.deferred is None for each in list_levelled(vertex, compiled, 2)), vertex


def test_an_output_is_not_deferred() -> None:
    program = ucle.einsum_program(
        MASKED, inputs=_masked_inputs(), association="as-written", outputs=["S", "Z"]
    )
    compiled = program.compiled.program
    vertex = compiled.by_name["S"]
    assert all(each.deferred is None for each in list_levelled(vertex, compiled, 2))


def test_sparse_matrices_are_compressed(native: duckdb.DuckDBPyConnection) -> None:
    a, b = _sparse((3000, 3000), 0.005), np.ones((3000, 256))
    program = ucle.einsum_program("Z[i,k] += A[i,j] * B[j,k]", A=a, B=b, database=native)
    assert str(program) == "Z[I/256,k] += A[I/256,{j}] * B[j,k]"
    with program.execute(native) as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), a.tocsr() @ b)


def test_dense_matrices_are_not(native: duckdb.DuckDBPyConnection) -> None:
    a, b = np.ones((600, 600)), np.ones((600, 32))
    program = ucle.einsum_program("Z[i,k] += A[i,j] * B[j,k]", A=a, B=b, database=native)
    assert "{" not in str(program)


def test_products_of_sparse_matrices(native: duckdb.DuckDBPyConnection) -> None:
    a = _sparse((2000, 2000), 0.003)
    program = ucle.einsum_program("Z[i,k] += A[i,j] * A[j,k]", A=a, database=native)
    assert str(program) == "Z[i,{k}] += A[i,{j}] * A[j,{k}]"
    with program.execute(native) as result:
        found = result["Z"].to_scipy().tocsr()
    expected = a.tocsr() @ a.tocsr()
    assert abs(found - expected).max() < 1e-12
    assert found.nnz == expected.nnz


def test_attention_is_computed_behind_its_mask(native: duckdb.DuckDBPyConnection) -> None:
    mask, q = _sparse((2000, 2000), 0.002), np.ones((2000, 64))
    text = "S[i,j] += Q[i,k] * K[j,k]; Z[i,j] = M[i,j] * S[i,j]"
    program = ucle.einsum_program(text, Q=q, K=q, M=mask, database=native)
    chosen = program.compiled.decomposed.decompositions.values()
    assert any(each.deferred is not None for each in chosen)
    with program.execute(native) as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), 64 * mask.toarray())


def test_a_program_says_its_levels_and_takes_them_back(native: duckdb.DuckDBPyConnection) -> None:
    a, b = _sparse((3000, 3000), 0.005), np.ones((3000, 256))
    program = ucle.einsum_program("Z[i,k] += A[i,j] * B[j,k]", A=a, B=b, database=native)
    assert program.decomposition == {"Z": {"i/256", "0{j}"}}
    assert program.with_decomposition(program.decomposition).to_sql() == program.to_sql()
    assert "val DOUBLE[256]{3000}" in program.explain()


@pytest.mark.parametrize("label", ["j/256", "1{k}", "i/", "k{j}", "i/0"])
def test_levels_that_there_are_not(label: str) -> None:
    a = np.eye(3)
    with pytest.raises(LabelError, match="promotes an unknown label"):
        ucle.einsum_program("Z[i,k] += A[i,j] * B[j,k]", A=a, B=a, decomposition={"Z": {label}})
