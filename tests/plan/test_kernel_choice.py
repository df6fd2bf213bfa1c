"""The kernel of a vertex: aggregates make no tensor for each row, and paths stay fused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.ir.layouts import Decomposition
from ucle.plan.kernel_choice import choose_kernel
from ucle.run.array_tables import in_batches

ARRAYS = {"X": np.ones((6, 5, 4)), "y": np.ones((6, 5)), "Y": np.ones((6, 5, 4))}

FUSED = {
    "Z[g,k] += X[g,r,k] * y[g,r]": "sum_vec_sca_mult",
    "Z[g,k] += X[g,r,k] * Y[g,r,k]": "sum_vec_mult",
    "Z[g,k] min= X[g,r,k] + y[g,r]": "min_ein",
    "Z[g,k] max= X[g,r,k] * Y[g,r,k]": "max_ein",
    "Z[g,k] max= X[g,r,k] - y[g,r]": "max_ein",
    "Z[g,k] *= X[g,r,k] + Y[g,r,k]": "prod_ein",
    "Z[g,k] min= X[g,r,k]": "min_vec",
}


@pytest.mark.parametrize("statement", FUSED)
def test_kernel_and_aggregate_are_one(statement: str) -> None:
    inputs = {name: array for name, array in ARRAYS.items() if f"{name}[" in statement}
    with ucle.connect(threads=2) as connection:
        program = ucle.einsum_program(
            statement, **inputs, database=connection, decomposition={"Z": ["g", "r"]}
        )
        sql = program.to_sql()
        assert f"{FUSED[statement]}_8(" in sql
        assert "vec_add(" not in sql
        assert "vec_sca_add(" not in sql


def test_tables_from_memory_keep_all_threads_busy() -> None:
    few = pa.table({"i": range(16), "val": [b"x" * 2**17] * 16})
    assert [len(batch) for batch in in_batches(few, 2).to_batches()] == [8, 8]
    assert [len(batch) for batch in in_batches(few, 3).to_batches()] == [6, 6, 4]
    assert in_batches(few, 1) is few
    small = pa.table({"i": range(16)})
    assert in_batches(small, 2) is small
    many = pa.table({"i": np.arange(300_001)})
    assert in_batches(many, 4).equals(many)
    assert max(len(batch) for batch in in_batches(many, 4).to_batches()) <= 16384


@pytest.mark.parametrize("fill", [0, np.nan, 2])
def test_rows_of_arrays_that_hold_only_the_fill_are_left_out(fill: float) -> None:
    array = np.full((5, 4), fill, dtype=float)
    array[1, 0] = array[3, 2] = 7
    with ucle.connect() as connection:
        program = ucle.einsum_program(
            "Z[i,j] = X[i,j]",
            X=ucle.table(array, fill=fill),
            database=connection,
            decomposition={"Z": ["i"]},
        )
        with program.execute() as result:
            stored = result["Z"].stored.order("i").fetchall()
            assert [row[0] for row in stored] == [1, 3]
            np.testing.assert_array_equal(result["Z"].to_numpy(), array)


def test_tensors_of_more_axes_than_kernels_take() -> None:
    x = np.arange(2.0**18).reshape((2,) * 18)
    *labels, last = (f"x{n}" for n in range(18))
    text = f"y[{last},{','.join(labels)}] = x[{','.join([*labels, last])}]"
    with ucle.einsum_program(text, x=x).execute() as result:
        np.testing.assert_array_equal(result["y"].to_numpy(), np.moveaxis(x, -1, 0))


@pytest.mark.parametrize(
    ("statement", "keys", "product"),
    [
        ("z[s,t,u] += q[s,t,k] * r[s,u,k]", "s", True),
        ("z[s,t,u] += q[s,t,k] * r[s,u,k]", "t", False),
        ("z[s,t,u] max= q[s,t,k] * r[s,u,k]", "s", False),
    ],
)
def test_products_of_matrices_inside_of_arrays(statement: str, keys: str, product: bool) -> None:
    """Without rows and columns of its own, a sum of products is priced as no matrix product."""
    inputs = {"q": np.ones((3, 4, 5)), "r": np.ones((3, 6, 5))}
    program = ucle.einsum_program(statement, inputs=inputs)
    (vertex,) = program.compiled.program.vertices
    kernel = choose_kernel(vertex, Decomposition.promoting(vertex.label_names, {keys}))
    assert kernel.batched == product
    assert kernel.by_itself


def test_batches_of_products_are_promoted() -> None:
    """Within each sentence, words meet words: a key of words would read all others for each."""
    inputs = {name: np.ones((500, 64, 64)) for name in "qrv"}
    text = "w[s,t,u] += q[s,t,k] * r[s,u,k]; z[s,t,k] += w[s,t,u] * v[s,u,k]"
    program = ucle.einsum_program(text, inputs={x: ucle.table(y) for x, y in inputs.items()})
    chosen = program.compiled.decomposed.decompositions
    assert all(chosen[name].promoted <= {"s"} for name in ("w", "z"))
