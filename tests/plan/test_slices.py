"""Statements over few tuples with large arrays are cut into parts for threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.options import Optimisations
from ucle.plan.relation_nodes import Slices, Sorted
from ucle.plan.relation_tree import nodes
from ucle.testing import check_everywhere, recompiled
from ucle.testing.check_matrix import Routes
from ucle.testing.generate import random_case

THREADS, ROWS, SIZE = 3, 40, 6
EVERYWHERE = Optimisations(slices=0.0)
"""However little a statement costs."""

rng = np.random.default_rng(19)
A, B, C = rng.normal(size=(3, ROWS, SIZE))


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    for name, array in {"A": A, "B": B, "C": C}.items():
        rows = pa.table({"i": np.arange(ROWS, dtype=np.int32), "val": list(array)})
        connection.register("rows", rows)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        connection.unregister("rows")


@pytest.fixture
def three() -> Iterator[Routes]:
    """Connections with three threads and the tables, by their routes."""
    with contextlib.ExitStack() as stack:
        routes = {
            "native": stack.enter_context(ucle.connect(threads=THREADS)),
            "arrow": stack.enter_context(duckdb.connect(config={"threads": THREADS})),
        }
        for connection in routes.values():
            fill(connection)
        yield routes


def program(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    promoted: dict[str, str] | str,
    optimisations: Optimisations = EVERYWHERE,
    **inputs: Any,
) -> ucle.EinsumProgram:
    names = {name: name for name in "ABC" if f"{name}[" in text}
    compiled = ucle.einsum_program(
        text, inputs=names | inputs, database=connection, decomposition=promoted
    )
    return recompiled(compiled, optimisations)


def cuts(compiled: ucle.EinsumProgram) -> list[Slices]:
    """The slices in the plan that runs."""
    return [
        node
        for step in compiled.compiled.physical.steps
        for part in (*step.views, step)
        for node in nodes(part.relation)
        if isinstance(node, Slices)
    ]


WORKS = {
    "a join": ("Z[i,k] = A[i,k] * B[i,k]", {"Z": "i"}, A * B, 2),
    "a cross join": ("Z[i,j] += A[i,k] * B[j,k]", {"Z": "ij"}, A @ B.T, 2),
    "one number for each": ("Z[i] += A[i,k] * B[i,k]", {"Z": "i"}, (A * B).sum(1), 2),
    "into one number": ("Z += A[i,k] * B[i,k]", {"Z": "i"}, (A * B).sum(), 2),
    "into one array": ("Z[k] += A[i,k] * B[i,k]", {"Z": "i"}, (A * B).sum(0), 2),
    "a map": ("Z[i,k] = exp(A[i,k])", {"Z": "i"}, np.exp(A), 1),
    "a reduction": ("Z[i] max= A[i,k]", {"Z": "i"}, A.max(1), 1),
    "a tensor with itself": ("Z[i,j] += A[i,k] * A[j,k]", {"Z": "ij"}, A @ A.T, 1),
    "a fill": ("Z[i,k] = A[i,k] - B[i,k]", {"Z": "i"}, A - B, 2),
    "views": (
        "Y[i,k] = exp(A[i,k]); Z[k] += Y[i,k] * B[i,k]",
        {"Y": "i", "Z": "i"},
        (np.exp(A) * B).sum(0),
        2,
    ),
    "entries of arrays": ("Z[k] += A[i,k] * B[i,k]", {"Z": "ik"}, (A * B).sum(0), 2),
    "tables between": (
        "Y[i,k] = A[i,k] * B[i,k]; Z[i,j] += Y[i,k] * Y[j,k]",
        {"Y": "i", "Z": "ij"},
        (A * B) @ (A * B).T,
        None,
    ),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", WORKS)
def test_answers_are_the_same_in_parts(name: str, three: Routes) -> None:
    text, promoted, expected, count = WORKS[name]
    for connection in three.values():
        cut = program(connection, text, promoted)
        found = cuts(cut)
        assert found, cut.compiled.physical
        assert {len(x.starts) for x in found} == {THREADS - 1}
        assert count is None or len(found) == count
        with cut.execute(connection) as result:
            np.testing.assert_allclose(result["Z"].to_numpy(), expected, rtol=1e-12)
        whole = program(connection, text, promoted, Optimisations(slices=None))
        assert not cuts(whole)
        assert "UNION ALL" not in whole.to_sql()


def test_the_statement_reads_as_it_runs(three: Routes) -> None:
    sql = program(three["native"], *WORKS["a join"][:2]).to_sql()
    sql = sql[sql.index("CREATE") :]  # behind the checks of sizes
    assert sql.count("UNION ALL") == 2 * (THREADS - 1)
    assert "/* A: A; in 3 slices by i */" in sql
    assert "ORDER BY\n  1 ASC" in sql
    grouped = program(three["native"], *WORKS["into one array"][:2]).to_sql()
    assert "GROUP BY\n  TRUE" in grouped
    assert "ORDER BY" not in grouped


def test_no_rows_make_no_row(three: Routes) -> None:
    """A sum without groups over nothing has no row in parts, as it has none in one."""
    for connection in three.values():
        for name, remainder in {"even": 0, "odd": 1}.items():
            connection.execute(f"CREATE TABLE {name} AS FROM A WHERE i % 2 = {remainder}")
        cut = program(connection, "Z[k] += X[i,k] * Y[i,k]", {"Z": "i"}, X="even", Y="odd")
        assert len(cuts(cut)) == 2
        with cut.execute(connection) as result:
            assert len(result["Z"].to_arrow(rows="stored")) == 0
            np.testing.assert_array_equal(result["Z"].to_numpy(), np.zeros(SIZE))


def test_rows_are_in_the_order_of_their_keys(three: Routes) -> None:
    for connection in three.values():
        with program(connection, *WORKS["a cross join"][:2]).execute(connection) as result:
            keys = result["Z"].to_arrow(rows="stored").select(["i", "j"]).to_pylist()
        assert keys == [{"i": i, "j": j} for i in range(ROWS) for j in range(ROWS)]


def test_only_what_is_long_is_cut(three: Routes) -> None:
    text, promoted, _, _ = WORKS["a cross join"]
    connection = three["native"]
    assert not cuts(program(connection, text, promoted, Optimisations()))
    cost = program(connection, text, promoted).compiled.decomposed.total_cost
    assert cuts(program(connection, text, promoted, Optimisations(slices=cost / 20)))
    assert not cuts(program(connection, text, promoted, Optimisations(slices=cost * 1.01)))


def test_numbers_of_slices(three: Routes) -> None:
    """No more than threads, and no more than positions of the key."""
    connection = three["native"]
    text, promoted, _, _ = WORKS["a join"]
    connection.execute("CREATE TABLE two AS FROM A WHERE i < 2")
    (few,) = cuts(program(connection, "Z[i,k] = exp(A[i,k])", {"Z": "i"}, A="two"))
    assert few.starts == (1,)
    connection.execute("SET threads = 1")
    assert not cuts(program(connection, text, promoted))


def test_what_is_not_cut(three: Routes, tmp_path: Path) -> None:
    """Views may be expensive to compute, memory is in batches, and many rows need no help."""
    connection = three["native"]
    text, promoted = "Z[i,k] = exp(A[i,k])", {"Z": "i"}
    connection.execute("CREATE VIEW seen AS FROM A")
    path = str(tmp_path / "a.parquet")
    connection.execute(f"COPY A TO '{path}'")
    rows = connection.sql("FROM A").to_arrow_table()
    twice = ucle.table("A", ["i"], "val", duplicates="sum")
    for whole in ("seen", path, rows, A, twice):
        assert not cuts(program(connection, text, promoted, A=whole)), whole
    many = THREADS * 122_880
    connection.execute(f"CREATE TABLE many AS SELECT i, [1.0, 2.0] AS val FROM range({many}) t(i)")
    assert not cuts(program(connection, text, promoted, A="many"))
    connection.execute("DELETE FROM many WHERE i % 2 = 1")
    assert cuts(program(connection, text, promoted, A="many"))
    connection.execute("CREATE TABLE edges AS SELECT i, i AS j, 1.0 AS v FROM range(9) t(i)")
    sums = program(connection, "Z[i] += A[i,j] * A[i,j]", {"Z": "ij"}, A="edges")
    assert not cuts(sums), "numbers are worked on as fast as they are read"


def test_the_shorter_side_is_left_whole(three: Routes) -> None:
    connection = three["native"]
    edges = f"SELECT i % {ROWS} AS r, i // {ROWS} AS i, 1.0 AS v FROM range({ROWS * ROWS}) t(i)"
    connection.execute(f"CREATE TABLE edges AS {edges}")
    cut = program(connection, "Z[r,k] += E[r,i] * A[i,k]", {"Z": "ri"}, E="edges")
    (only,) = cuts(cut)
    assert only.type.axes[only.axis].name == "r", "slices have no groups in common"
    with cut.execute(connection) as result:
        expected = np.ones((ROWS, ROWS)) @ A
        np.testing.assert_allclose(result["Z"].to_numpy(), expected, rtol=1e-12, atol=1e-12)


def test_a_table_that_has_become_a_view(three: Routes) -> None:
    connection = three["native"]
    cut = program(connection, *WORKS["a join"][:2])
    assert cuts(cut)
    connection.execute("ALTER TABLE A RENAME TO A_before")
    connection.execute("CREATE VIEW A AS FROM A_before")
    with cut.execute(connection) as result:
        np.testing.assert_allclose(result["Z"].to_numpy(), A * B, rtol=1e-12)


def test_a_table_that_has_grown(three: Routes) -> None:
    """Positions beyond those that there were are in the last part."""
    connection = three["native"]
    cut = program(connection, "Z[i,k] = exp(A[i,k])", {"Z": "i"})
    connection.execute(f"INSERT INTO A SELECT i + {ROWS}, val FROM A")
    with cut.execute(connection) as result:
        expected = np.exp(np.concatenate([A, A]))
        np.testing.assert_allclose(result["Z"].to_numpy(), expected, rtol=1e-12)


def test_columns_of_strange_names(three: Routes) -> None:
    """Keys are strings behind a dictionary, and a column is called as DuckDB calls row numbers."""
    connection = three["native"]
    connection.execute("CREATE TABLE strange AS SELECT 'n' || i AS name, NULL AS rowid, val FROM A")
    table = ucle.table("strange", ["name"], "val")
    cut = program(connection, "Z[i,k] = exp(A[i,k])", {"Z": "i"}, A=table)
    assert cuts(cut)
    with cut.execute(connection) as result:
        order = sorted(range(ROWS), key=lambda n: f"n{n}")
        np.testing.assert_allclose(result["Z"].to_numpy(), np.exp(A[order]), rtol=1e-12)


def test_explain_tells_of_slices(three: Routes) -> None:
    cut = program(three["native"], *WORKS["a join"][:2])
    lines = [line for line in cut.explain().splitlines() if line.startswith("slices:")]
    assert lines == ["slices: Z reads A in 3 parts, by i", "slices: Z reads B in 3 parts, by i"]
    assert '"slices": [\n    "Z reads A in 3 parts, by i"' in cut.explain("json")


@pytest.mark.slow
def test_what_is_sorted_has_keys(three: Routes) -> None:
    for text, promoted, _, _ in WORKS.values():
        for step in program(three["native"], text, promoted).compiled.physical.steps:
            for node in nodes(step.relation):
                assert not isinstance(node, Sorted) or node.layout.promoted


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(8))
def test_random_programs_in_parts(seed: int, three: Routes) -> None:
    assert check_everywhere(random_case(seed), three, seed, 6, EVERYWHERE)
