"""Arrays from memory that cross joins get by reference: they lie in lists without being copied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

import ucle
from ucle.options import Optimisations
from ucle.run.array_tables import blob_array, in_lists
from ucle.testing.check_matrix import recompiled

Routes = Mapping[str, duckdb.DuckDBPyConnection]

RNG = np.random.default_rng(4)
A = sp.random_array((600, 300), density=0.02, rng=RNG, format="coo")
H = RNG.random((300, 16))
TILED = {"y": ["i"]}
PROGRAMS: Mapping[str, Any] = {
    "y[i,k] += A[i,j] * H[j,k]": lambda a, h: {"y": a @ h},
    # Read as it is, and one row at a time, too.
    "y[i,k] += A[i,j] * H[j,k]; z[k] += H[j,k] * H[j,k]; w[j,k] = H[j,k] + 1": lambda a, h: {
        "y": a @ h,
        "z": (h * h).sum(0),
        "w": h + 1,
    },
}


def _entries() -> pa.Table:
    return pa.table({"i": A.coords[0], "j": A.coords[1], "val": A.data})


@pytest.mark.parametrize("text", PROGRAMS)
def test_products_with_tables(text: str, routes: Routes) -> None:
    for connection in routes.values():
        inputs = {"A": ucle.table(_entries(), ["i", "j"]), "H": H}
        program = ucle.einsum_program(
            text, inputs=inputs, database=connection, bounds={"i": 600, "j": 300}
        )
        tiled = program.with_decomposition(TILED)
        plans = [program, tiled, recompiled(tiled, Optimisations(references=None))]
        plans += program.plans(4)
        assert any('"H"."listed"[1]' in plan.to_sql() for plan in plans)
        for plan in plans:
            for array in (H, np.zeros_like(H), np.asfortranarray(H * 2)):
                with plan.execute(connection, H=array) as result:
                    for name, expected in PROGRAMS[text](A, array).items():
                        np.testing.assert_allclose(result[name].to_numpy(), expected, atol=1e-12)


def test_a_script_that_is_run_by_hand(native: duckdb.DuckDBPyConnection) -> None:
    """`register` makes the tables that the script reads, with their lists."""
    program = ucle.einsum_program(
        "y[i,k] += A[i,j] * H[j,k]",
        A=ucle.table(_entries(), ["i", "j"]),
        H=H,
        bounds={"i": 600, "j": 300},
        database=native,
        decomposition=TILED,
    )
    assert '"H"."listed"[1]' in program.to_sql()
    program.register(native)
    rows = native.execute(program.to_sql()).fetchall()
    found = np.zeros((600, 16))
    for row in rows:
        found[row[0]] = row[-1]
    np.testing.assert_allclose(found, A @ H, atol=1e-12)


def test_no_copy() -> None:
    values = blob_array(H)
    lists = in_lists(values)
    assert lists.to_pylist() == [[value] for value in values.to_pylist()]
    assert lists.values.buffers()[2].address == values.buffers()[2].address == H.ctypes.data
