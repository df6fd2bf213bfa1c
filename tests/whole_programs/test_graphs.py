"""Graph convolution and sparse attention of the paper on real graphs, against scipy."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from graph_data import NAMES, Workload, attention, gcn

import ucle

WORKLOADS: dict[str, Callable[[Path], Workload]] = {"gcn": gcn, "attention": attention}
TOLERANCE = 1e-9
# The Arrow route copies operands for every row. Without a limit the largest graph takes 7 GB, which
# two workers of the test run may ask for at once.
HALF_A_MINUTE = ("attention", "amazon_photo")
LONG = (
    pytest.mark.fuzz,
    pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="`make fuzz` runs it"),
)
ARROW_LIMITS = {"amazon_photo": "1GB"}


def compile_workload(workload: Workload, connection: Any, **options: Any) -> ucle.EinsumProgram:
    return ucle.einsum_program(
        workload.text, inputs=workload.inputs, database=connection, **options
    )


def check(program: ucle.EinsumProgram, workload: Workload, connection: Any) -> None:
    """Every number is that of scipy, relative to the largest."""
    with program.execute(connection) as result:
        relation = result[workload.output]
        expected = workload.expected
        if sp.issparse(expected):
            found = relation.to_scipy().tocsr()
            error, scale = abs(found - expected).max(), abs(expected).max()
        else:
            error = np.abs(relation.to_numpy() - expected).max()
            scale = np.abs(expected).max()
    assert relation.shape == expected.shape
    assert error <= TOLERANCE * scale


@pytest.mark.slow
@pytest.mark.parametrize("graph", NAMES)
@pytest.mark.parametrize("name", WORKLOADS)
def test_native(name: str, graph: str, graphs: Path, native: duckdb.DuckDBPyConnection) -> None:
    workload = WORKLOADS[name](graphs / graph)
    program = compile_workload(workload, native)
    assert program.route == "native"
    check(program, workload, native)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "graph"),
    [x for x in product(WORKLOADS, NAMES) if x != HALF_A_MINUTE]
    + [pytest.param(*HALF_A_MINUTE, marks=LONG)],
)
def test_arrow(name: str, graph: str, graphs: Path, plain: duckdb.DuckDBPyConnection) -> None:
    """The route of connections that allow no extension."""
    workload = WORKLOADS[name](graphs / graph)
    program = compile_workload(workload, plain, memory_limit=ARROW_LIMITS.get(graph))
    assert program.route == "arrow"
    check(program, workload, plain)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_relational(name: str, graphs: Path, plain: duckdb.DuckDBPyConnection) -> None:
    workload = WORKLOADS[name](graphs / "cora_lcc")
    program = compile_workload(workload, plain, decomposition="relational")
    assert program.route == "plain"
    check(program, workload, plain)


def test_stored_tables(graphs: Path, tmp_path: Path) -> None:
    """The program also runs from tables of a file, with features as arrays."""
    workload = gcn(graphs / "cora_lcc")
    inputs = dict(workload.inputs)
    path = tmp_path / "graph.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name in ("D", "A"):
            matrix = inputs[name].tocoo()
            columns = {"i": matrix.coords[0], "j": matrix.coords[1], "v": matrix.data}
            connection.register("columns", pa.table(columns))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM columns")
            inputs[name] = ucle.table(name, bounds=matrix.shape)
    program = ucle.einsum_program(workload.text, inputs=inputs, database=path)
    check(program, workload, None)


def decomposition(program: ucle.EinsumProgram) -> dict[str, str]:
    """Every vertex in upper-case-lower-case form, by the tensor it makes."""
    decomposed = program.compiled.decomposed
    return {v.name: v.text(decomposed.decompositions[v.name]) for v in decomposed.program.vertices}


def test_gcn_is_decomposed_as_in_table_8(graphs: Path, native: duckdb.DuckDBPyConnection) -> None:
    program = compile_workload(
        gcn(graphs / "amazon_photo"), native, profile="paper", association="as-written"
    )
    found = decomposition(program)
    assert (
        found
        | {
            "T0": "T0[I,K] += D[I,J] * A[J,K]",
            "T1": "T1[I,L] += T0[I,K] * D[K,L]",
            "T2": "T2[I,m] += T1[I,L] * H[L,m]",
            "T3": "T3[I,n] += T2[I,m] * W1[m,n]",
            "H1": "H1[I,n] = relu(T3[I,n])",
        }
        == found
    )


def test_attention_is_decomposed_as_in_table_7(
    graphs: Path, native: duckdb.DuckDBPyConnection
) -> None:
    program = compile_workload(
        attention(graphs / "planetoid_citeseer"),
        native,
        profile="paper",
        association="as-written",
    )
    assert decomposition(program) == {
        "T0": "T0[I,k] += X[I,M] * WQ[M,k]",
        "T1": "T1[J,k] += X[J,N] * WK[N,k]",
        "T2": "T2[I,J,k] = T0[I,k] * A[I,J]",
        "T3": "T3[I,J] += T2[I,J,k] * T1[J,k]",
        "Attn": "Attn[I,J] = 0.03125 * T3[I,J]",
    }
