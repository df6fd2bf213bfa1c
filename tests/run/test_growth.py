"""States that outgrow what a loop was planned for."""

from __future__ import annotations

import logging
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from leftovers import temporary_objects
from scipy.sparse.csgraph import dijkstra

import ucle

NODES, SOURCES = 50_000, 8
STEP = """
around[node,source] min= D[j,source] + L[j,node]
next[node,source] = min(D[node,source], around[node,source])
moved[] = sum[node,source](next[node,source] < D[node,source])
"""


def roads(seed: int) -> sp.coo_array:
    """A graph in which most nodes can be reached from most others."""
    rng = np.random.default_rng(seed)
    cells = rng.choice(NODES * NODES, 6 * NODES, replace=False)
    lengths = rng.integers(1, 9, len(cells)).astype(float)
    return sp.coo_array((lengths, divmod(cells, NODES)), (NODES, NODES))


def program(roads: sp.coo_array, database: Any, **options: Any) -> ucle.EinsumProgram:
    """Shortest paths from a few nodes, which begin with one entry each."""
    names = "source", "target"
    links = pa.table({"source": roads.row, "target": roads.col, "val": roads.data})
    start = pa.table(
        {
            "node": np.arange(SOURCES),
            "source": np.arange(SOURCES),
            "val": np.zeros(SOURCES),
        }
    )
    return ucle.einsum_program(
        STEP,
        L=ucle.table(links, list(names), "val", fill=np.inf),
        D=ucle.table(start, ["node", "source"], "val", fill=np.inf),
        outputs=["next", "moved"],
        bounds={"node": NODES, "source": SOURCES},
        database=database,
        **options,
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(2))
def test_a_search_from_few_nodes(
    seed: int, fresh: duckdb.DuckDBPyConnection, caplog: pytest.LogCaptureFixture
) -> None:
    """It begins with 8 tuples and a plan for them, and ends with another one."""
    G = roads(seed)
    before = temporary_objects(fresh)
    search = program(G, fresh)
    with (
        caplog.at_level(logging.INFO, "ucle"),
        search.iterate({"D": "next"}, until="moved[] == 0") as found,
    ):
        distances, ended = found["next"].to_numpy(), found["next"].layout
    np.testing.assert_array_equal(distances, dijkstra(G.tocsr(), indices=range(SOURCES)).T)
    assert not ended.promoted
    assert "planned again" in caplog.text
    assert temporary_objects(fresh) == before


@pytest.mark.slow
def test_numbers_of_each_step_are_those_of_one_plan(fresh: duckdb.DuckDBPyConnection) -> None:
    G = roads(5)
    ends = []
    for decomposition in ("auto", "relational"):
        search = program(G, fresh, decomposition=decomposition)
        with search.iterate({"D": "next"}, max_steps=8) as found:
            ends.append((found.history["moved"], found["next"].to_numpy()))
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.sample(1)
def test_a_state_that_is_given_again_begins_with_the_plan_that_there_is(
    fresh: duckdb.DuckDBPyConnection,
) -> None:
    """`restore` goes back to a small state, and the steps after it are the same."""
    with program(roads(7), fresh).prepare(carry={"D": "next"}) as step:
        step()
        early, seen = step.state, []
        for _ in range(8):
            seen.append(step()["next"].to_numpy())
        step.restore(early)
        again = [step()["next"].to_numpy() for _ in range(8)]
    np.testing.assert_array_equal(seen, again)
