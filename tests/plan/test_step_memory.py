"""The memory that an execution is expected to hold, for tensors of known size."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from random_programs.levels import levelled_case

import ucle
from ucle.plan.memory_model import (
    FIXED,
    RETAINED,
    ChunkCopies,
    CrossJoined,
    FilledTable,
    GroupStates,
    JoinTable,
    Part,
    RowVectors,
    count_held_bytes,
    peak,
    statement,
)
from ucle.plan.relation_nodes import FusedStep
from ucle.plan.step_memory import plan_peak, slot_bytes
from ucle.testing.check_matrix import Routes, some_decompositions
from ucle.testing.generate import random_case
from ucle.testing.oracle import evaluate


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (RowVectors(rows=10, size=8, threads=2), 80),
        (RowVectors(rows=1e6, size=8, threads=2), 2 * 2048 * 8),
        (JoinTable(rows=10, size=84, other_rows=3, other_size=4), 3 * 12 + 8 * 8),
        (JoinTable(rows=5, size=4, other_rows=9, other_size=4), 5 * 12 + 16 * 8),
        (CrossJoined(size=5e6), 2 * 5e6),
        (FilledTable(rows=3, size=7), 21),
        (FilledTable(rows=4, size=100_000), 2 * 262_144),
        (FilledTable(rows=4, size=150_000), 4 * 262_144),
        (FilledTable(rows=4, size=300_000), 4 * 300_000),
        (GroupStates(rows=9, groups=1, size=1e8, inline=1 << 15, threads=2), 2 * (1e8 + 16) + 1e8),
        (GroupStates(rows=9, groups=2, size=1000, inline=1 << 15, threads=1), 2 * 1040 + 2000),
        (GroupStates(9, groups=2, size=1e6, inline=0, threads=2, stacked=True), 3 * 1000016 + 2e6),
        (ChunkCopies(rows=55, size=100, threads=2), 5500),
        (ChunkCopies(rows=5500, size=100, threads=2), 0),
        (GroupStates(rows=0, groups=0, size=0, inline=1 << 15, threads=4), 0),
    ],
)
def test_parts(part: Part, expected: float) -> None:
    assert count_held_bytes(part) == expected


def test_whole_tensors_are_made_first() -> None:
    groups = GroupStates(rows=4, groups=2, size=1e6, inline=0, threads=1)
    first, then = [RowVectors(rows=1, size=9e6, threads=1)], [CrossJoined(3e6), groups]
    assert statement(first, then) == 9e6 + 2 * 3e6 + 2 * (1e6 + 16)
    assert statement([], [CrossJoined(1e6), groups]) == 1e6 + 2 * (1e6 + 16) + 2e6


def test_what_statements_leave_stays_until_the_end() -> None:
    assert peak([]) == FIXED
    assert peak([(10.0, 4.0), (20.0, 1.0), (3.0, 3.0)]) == FIXED + RETAINED * 24.0
    assert peak([(10.0, 4.0), (20.0, 1.0), (25.0, 3.0)]) == FIXED + RETAINED * 30.0


def test_a_large_result_counts(native: duckdb.DuckDBPyConnection) -> None:
    x = np.ones((300, 700))
    program = ucle.einsum_program("Z[i,j] = x[i] * y[j]", x=x[:, 0], y=x[0], database=native)
    assert program.compiled.peak_memory >= FIXED + x.nbytes


def test_arrays_in_another_order_are_copied(native: duckdb.DuckDBPyConnection) -> None:
    x = np.ones((400, 900))

    def predicted(label: str) -> float:
        program = ucle.einsum_program(
            "Z[i,j] = exp(x[i,j])", x=x, database=native, decomposition={"Z": [label]}
        )
        return program.compiled.peak_memory

    assert predicted("j") >= predicted("i") + x.nbytes


def test_keys_of_arrays_count(native: duckdb.DuckDBPyConnection) -> None:
    """They are columns that DuckDB reads beside the array."""
    x = np.ones((400, 900))

    def predicted(array: object) -> float:
        program = ucle.einsum_program(
            "Z[i,j] = exp(x[i,j])", x=array, database=native, decomposition={"Z": ["i", "j"]}
        )
        return program.compiled.outside_memory

    i, j = np.indices(x.shape).reshape(2, -1)
    table = ucle.table(pa.table({"i": i, "j": j, "val": x.ravel()}), ["i", "j"], "val")
    assert predicted(x) >= predicted(table) + 8 * x.size
    x[0] = 0.0  # where other entries are is found by NumPy, as 8 bytes for each axis
    assert predicted(x) >= predicted(table) + (8 + 16) * np.count_nonzero(x)


def test_what_is_put_in_one_row_is_copied(native: duckdb.DuckDBPyConnection) -> None:
    x = np.ones((400, 900))
    program = ucle.einsum_program(
        "Z[i] += x[i,j] * y[i,j]", x=x, y=x, database=native, decomposition={"Z": []}
    )
    assert "POSITIONAL JOIN" in program.to_sql()
    assert program.compiled.peak_memory >= FIXED + 2 * x.nbytes


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("Z[i] += x[i,j] * w[j]", 0),
        ("P[i,k] += x[i,j] * y[j,k]; Z[k] += P[i,k] * P[i,k]", 0),
        ("Z[i] += x[i,j] * x[i,j]", 2),
        ("Z[i] += x[i,j] * v[i,j]", 2),
    ],
)
def test_a_parameter_is_no_row_beside_others(
    text: str, copied: int, native: duckdb.DuckDBPyConnection, routes: Routes
) -> None:
    """Beside small arrays, which are parameters, nothing is copied."""
    rng = np.random.default_rng(0)
    x, v = rng.random((500, 900)), rng.random((500, 900))
    given = {"x": x, "v": v, "w": rng.random(900), "y": rng.random((900, 3))}
    inputs = {name: array for name, array in given.items() if f"{name}[" in text}
    names = ["Z", "Z_1", "Z_2"]
    program = ucle.einsum_program(text, inputs=inputs, outputs=["Z"], database=native)
    whole: dict[str, list[str]] = {x: [] for x in names if x in program.compiled.program.by_name}
    program = program.with_decomposition(whole)
    assert "POSITIONAL JOIN" in program.to_sql()
    least = FIXED + RETAINED * copied * x.nbytes
    assert least <= program.compiled.peak_memory < least + RETAINED * 0.5 * x.nbytes
    expected = evaluate(text, given)["Z"]
    for connection in routes.values():
        with program.execute(connection) as result:
            np.testing.assert_allclose(result["Z"].to_numpy(), expected)


@pytest.mark.parametrize("make", [random_case, levelled_case])
def test_every_plan_has_a_prediction(make: object, native: duckdb.DuckDBPyConnection) -> None:
    for seed in range(8):
        case = make(seed)  # type: ignore[operator]
        case.create_tables(native)
        program = case.compile(native)
        for way in [None, *some_decompositions(program, seed, 4)]:
            chosen = program if way is None else program.with_decomposition(way)
            assert FIXED <= chosen.compiled.peak_memory < 10 * FIXED
        case.drop_tables(native)


def test_a_step_of_several_tensors_has_the_sizes_of_each(native: duckdb.DuckDBPyConnection) -> None:
    """The step has the name of the last one, whose type is not that of the first."""
    rng = np.random.default_rng(0)
    N = sp.random_array((600, 600), density=0.02, rng=rng, format="csr")
    inputs = {"N": N, "H": rng.random((600, 200)), "W": rng.random((200, 4)), "x": np.ones(200)}
    text = "Q[i,n] += N[i,j] * H[j,m] * W[m,n]; r[i] += N[i,j] * H[j,m] * x[m]"
    program = ucle.einsum_program(text, inputs=inputs, database=native)
    (fused,) = [
        x.relation for x in program.compiled.physical.steps if isinstance(x.relation, FusedStep)
    ]
    assert FIXED < program.compiled.peak_memory < 10 * FIXED
    sizes = slot_bytes(fused, program.compiled.memory_estimates)
    compressed = [
        size
        for size, x in zip(sizes, (*fused.operands, *fused.lines), strict=True)
        if x.layout.compressed is not None
    ]
    # It stays so when it is made ready for the lines.
    assert len(compressed) == 2
    assert max(compressed) < 8 * 600 * 600 / 10


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("text", ["Z[i,k] += A[i,j] * A[j,k]", "Z += A[i,j] * abs(x[i] - x[j])"])
def test_compressed_matrices_inside_statements(
    text: str, stored: bool, native: duckdb.DuckDBPyConnection
) -> None:
    """They have the size of their lists, not of 100,000 x 100,000 numbers."""
    n, rng = 100_000, np.random.default_rng(7)
    A = sp.random_array((n, n), density=4e-5, rng=rng)
    i, j = A.coords
    native.register("given", pa.table({"i": i, "j": j, "val": A.data}))
    native.execute("CREATE OR REPLACE TABLE few_entries AS FROM given").fetchall()
    native.unregister("given")
    inputs = {"A": ucle.table("few_entries", bounds=(n, n)) if stored else A}
    inputs |= {"x": rng.normal(size=n)} if "x[" in text else {}
    store = ["A"] if stored else False
    program = ucle.einsum_program(text, inputs=inputs, database=native, store=store)
    assert program.compiled.peak_memory < 1e9


@pytest.mark.parametrize(
    ("text", "layout", "expanded"),
    [
        ("y[i] += A[i,j] * M[i,j]", ["0{j}"], True),
        ("y[i,j] = A[i,j] * x[j]", ["0{j}", "result{j}"], True),
        ("y[i] += A[i,j] * x[j]", ["0{j}"], False),
    ],
)
def test_runs_count_where_kernels_expand_them(
    text: str, layout: list[str], expanded: bool, native: duckdb.DuckDBPyConnection
) -> None:
    length = 200_000
    columns = {"r": [0, 1], "a": [0, 5], "b": [length, length - 5], "v": [2.0, 3.0]}
    runs = ucle.table(pa.table(columns), ["r", "a"], "v", ends="b", bounds=(2, length))
    given = {"M": np.ones((2, length)), "x": np.ones(length)}
    inputs = {"A": runs, **{name: array for name, array in given.items() if name in text}}
    program = ucle.einsum_program(text, inputs=inputs, database=native, decomposition={"y": layout})
    assert "stack_runs" in program.to_sql()
    compiled = program.compiled
    as_stored = replace(compiled.memory_estimates, expanded=lambda *_: 0.0)
    more = compiled.peak_memory - plan_peak(compiled.physical, as_stored)
    entries = 2 * length - 10
    assert (more >= 12 * entries) is expanded
    assert (more == 0) is not expanded


def test_gathered_runs_count(native: duckdb.DuckDBPyConnection) -> None:
    """Arrays of them are states of an aggregation."""
    rows = np.arange(50_000)
    columns = {"r": rows // 50, "a": rows % 50 * 10, "b": rows % 50 * 10 + 9, "v": rows * 1.0}
    runs = ucle.table(pa.table(columns), ["r", "a"], "v", ends="b", bounds=(1000, 500))
    program = ucle.einsum_program(
        "y[i] += A[i,j] * x[j]",
        A=runs,
        x=np.ones(500),
        database=native,
        decomposition={"y": ["0{j}"]},
    )
    assert "stack_runs" in program.to_sql()
    assert program.compiled.peak_memory >= FIXED + 16 * len(rows)
