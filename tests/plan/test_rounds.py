"""Statements whose groups exceed the memory run in rounds, each over a range of a key."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from leftovers import temporary_objects

import ucle
from ucle.errors import ExecutionError
from ucle.options import Optimisations
from ucle.plan.relation_nodes import Portion
from ucle.plan.relation_tree import nodes
from ucle.plan.steps import Step
from ucle.testing import check_everywhere, recompiled
from ucle.testing.check_matrix import Routes
from ucle.testing.generate import random_case

ALWAYS = Optimisations(rounds=0.0)
"""However much memory there is."""

ROWS, SIZE = 30, 5

rng = np.random.default_rng(4)
GRAPH = rng.integers(1, 5, (ROWS, ROWS)) * (rng.random((ROWS, ROWS)) < 0.2)
H = rng.integers(-4, 5, (ROWS, SIZE))
W = rng.integers(-4, 5, (SIZE, 3))


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE A (i INT, j INT, v DOUBLE)")
    entries = [(int(i), int(j), float(GRAPH[i, j])) for i, j in np.argwhere(GRAPH)]
    connection.executemany("INSERT INTO A VALUES (?, ?, ?)", entries)
    connection.execute("CREATE TABLE H (j INT, v DOUBLE[])")
    rows = [(n, row.astype(float).tolist()) for n, row in enumerate(H)]
    connection.executemany("INSERT INTO H VALUES (?, ?)", rows)


@pytest.fixture
def routes() -> Iterator[Routes]:
    with contextlib.ExitStack() as stack:
        connections = {
            "native": stack.enter_context(ucle.connect(threads=2)),
            "arrow": stack.enter_context(duckdb.connect(config={"threads": 2})),
        }
        for connection in connections.values():
            fill(connection)
        yield connections


def program(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    promoted: Any,
    optimisations: Optimisations = ALWAYS,
    **inputs: Any,
) -> ucle.EinsumProgram:
    tables = {
        "A": ucle.table("A", ["i", "j"], "v", bounds=(ROWS, ROWS)),
        "H": ucle.table("H", ["j"], "v", shape=(SIZE,), bounds=(ROWS, SIZE)),
    }
    named = {name: table for name, table in tables.items() if f"{name}[" in text}
    compiled = ucle.einsum_program(
        text,
        inputs=named | inputs,
        database=connection,
        decomposition=promoted,
        association="as-written",
    )
    return recompiled(compiled, optimisations)


def statements(compiled: ucle.EinsumProgram) -> dict[str, Step]:
    return {step.name: step for step in compiled.compiled.physical.steps}


LAYER = np.maximum(GRAPH @ H, 0) @ W
PATHS = np.where(GRAPH, GRAPH, np.inf)

WORKS: dict[str, tuple[str, Any, Any]] = {
    "an array for each group": ("Z[i,k] += A[i,j] * H[j,k]", {"Z": "ij"}, GRAPH @ H),
    "numbers": ("Z[i,k] += A[i,j] * H[j,k]", {"Z": "ijk"}, GRAPH @ H),
    "one table twice": ("Z[i,k] += A[i,j] * A[j,k]", {"Z": "ijk"}, GRAPH @ GRAPH),
    "one table twice, by columns": ("Z[k,i] += A[i,j] * A[j,k]", {"Z": "ijk"}, (GRAPH @ GRAPH).T),
    "of one operand": ("Z[j] += A[i,j]", {"Z": "ij"}, GRAPH.sum(0)),
    "a function of groups": (
        "Y[i,k] += A[i,j] * H[j,k]; Z[i,k] = relu(Y[i,k])",
        {"Y": "ij", "Z": "i"},
        np.maximum(GRAPH @ H, 0),
    ),
    "one after the other": (
        "Y[i,k] += A[i,j] * H[j,k]; X[i,k] = relu(Y[i,k]); V[i,m] += X[i,k] * W[k,m];"
        "Z[i,m] += A[i,j] * V[j,m]",
        {"Y": "ij", "X": "i", "V": "i", "Z": "ij"},
        GRAPH @ LAYER,
    ),
    "with what no group meets": (
        "Z[i,j] += A[i,j] + 0 * A[j,i]",
        {"Z": "ij"},
        GRAPH,
    ),
    "repartitions": ("Z[i,k] += A[i,j] * H[j,k]", {"Z": ["i/16"]}, GRAPH @ H),
    "blocks": ("Z[i,k] += A[i,j] * A[j,k]", {"Z": ["i/8", "j/8", "k/8"]}, GRAPH @ GRAPH),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("work", WORKS)
def test_rounds_together_make_what_one_statement_makes(work: str, routes: Routes) -> None:
    text, promoted, expected = WORKS[work]
    weights = {"W": W.astype(float)} if "W[" in text else {}
    for connection in routes.values():
        compiled = program(connection, text, promoted, **weights)
        with compiled.execute(connection) as result:
            np.testing.assert_array_equal(result["Z"].to_numpy(), expected)
            result["Z"].relation.fetchall()  # few rows are no table before
            assert temporary_objects(connection)
        assert not [x for x in temporary_objects(connection) if x.startswith("table")]


ROUNDS = {
    "an array for each group": {"Z"},
    "numbers": {"Z"},
    "one table twice": {"Z"},
    "of one operand": {"Z"},
    "a function of groups": {"Z"},
    "one after the other": {"V", "Z"},
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("work", ROUNDS)
def test_which_statements_have_rounds(work: str, routes: Routes) -> None:
    text, promoted, _ = WORKS[work]
    weights = {"W": W.astype(float)} if "W[" in text else {}
    compiled = program(routes["native"], text, promoted, **weights)
    assert {name for name, step in statements(compiled).items() if step.rounds} == ROUNDS[work]


def test_numbers_are_cut_into_tables_of_their_own(routes: Routes) -> None:
    compiled = program(routes["native"], *WORKS["an array for each group"][:2])
    (step,) = (step for step in statements(compiled).values() if step.rounds)
    portions = []
    for each in step.rounds:
        (table,) = each.tables
        (portion,) = (x for x in nodes(table.relation) if isinstance(x, Portion))
        portions.append((portion.start, portion.end))
        assert not any(isinstance(x, Portion) for x in nodes(each.relation))
    ends = [end for _, end in portions]
    assert [start for start, _ in portions] == [None, *ends[:-1]]
    assert ends[-1] is None
    assert ends[:-1] == sorted(set(ends[:-1]))


def test_where_groups_fit_nothing_changes(routes: Routes) -> None:
    text, promoted, _ = WORKS["one after the other"]
    connection, weights = routes["native"], {"W": W.astype(float)}
    usual = program(connection, text, promoted, Optimisations(), **weights)
    never = program(connection, text, promoted, Optimisations(rounds=None), **weights)
    assert usual.compiled.physical == never.compiled.physical
    assert usual.to_sql() == never.to_sql()


def test_the_script_runs_by_hand(routes: Routes) -> None:
    text, promoted, expected = WORKS["an array for each group"]
    connection = routes["native"]
    script = program(connection, text, promoted).to_sql()
    assert script.count("INSERT INTO") > 1
    rows = connection.execute(script).fetchall()
    found = np.zeros((ROWS, SIZE))
    for row, values in rows:
        found[row] = values
    np.testing.assert_array_equal(found, expected)
    connection.execute('DROP TABLE "Z"')
    assert not temporary_objects(connection)


def test_integers_that_overflow_in_a_later_round_leave_nothing(routes: Routes) -> None:
    for connection in routes.values():
        connection.execute(
            """CREATE TABLE large AS SELECT x::INT AS i, y::INT AS j,
            CASE WHEN x = 29 THEN 9223372036854775807 ELSE 1 END AS v
            FROM range(30) r(x), range(2) s(y)"""
        )
        table = ucle.table("large", ["i", "j"], "v", bounds=(30, 2))
        compiled = program(connection, "Z[i] += L[i,j]", {"Z": "ij"}, L=table)
        assert statements(compiled)["Z"].rounds
        before = temporary_objects(connection)
        with pytest.raises(ExecutionError):
            compiled.execute(connection)
        assert temporary_objects(connection) == before


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(40, 52))
def test_random_programs_in_rounds(seed: int, routes: Routes) -> None:
    assert check_everywhere(random_case(seed), routes, seed, 6, ALWAYS)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_is_read_once_for_all_rounds(kind: str, routes: Routes, tmp_path: Path) -> None:
    """Where its tuples fit into memory; the table is dropped with those of the rounds."""
    file = tmp_path / f"edges.{kind}"
    routes["native"].execute(f"COPY A TO '{file}'")
    tuples = 24 * np.count_nonzero(GRAPH)
    for connection in routes.values():
        for text in ("Z[i,k] += A[i,j] * H[j,k]", "Z[i,k] += A[i,j] * A[j,k]"):
            expected = GRAPH @ (H if "H" in text else GRAPH)
            compiled = ucle.einsum_program(
                text,
                inputs={"A": ucle.table(str(file), ["i", "j"], "v", bounds=(ROWS, ROWS))}
                | ({"H": H.astype(float)} if "H" in text else {}),
                database=connection,
                decomposition={"Z": "ijk"},
                association="as-written",
                memory_limit="1GB",
            )
            for room, scans in ((1.2 * tuples, 1), (0.8 * tuples, None)):
                plan = recompiled(compiled, Optimisations(rounds=room / 1e9))
                (step,) = (x for x in statements(plan).values() if x.rounds)
                sql = plan.to_sql()
                sql = sql[sql.index("CREATE") :]  # behind the checks of sizes
                reads = sql.count(f"edges.{kind}'")
                assert reads == scans if scans else reads >= len(step.rounds)
                with plan.execute(connection) as result:
                    np.testing.assert_array_equal(result["Z"].to_numpy(), expected)
                assert not [x for x in temporary_objects(connection) if x.startswith("table")]
