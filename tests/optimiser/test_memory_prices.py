"""Plans of joins and aggregations that no cache holds, by the statistics of large graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ucle
from ucle.optimiser.tiled_and_compressed import tall_tile
from ucle.plan.prices import (
    CACHED,
    ENGINE,
    OPEN,
    PAPER,
    POINTED,
    POINTER,
    SHARED,
    AggregateWork,
    JoinWork,
    RecodeWork,
    cost,
)
from ucle.stats.measure import MeasuredInput

DEGREE, WIDTH = 10, 16


def chosen(nodes: int) -> str:
    """The plan of a product with a graph that is known by its statistics alone."""
    every = float(nodes)
    measured = MeasuredInput(
        sizes=(nodes, nodes),
        finite=True,
        entries=every * DEGREE,
        extremes=(-4.0, 4.0),
        distinct=(every, every),
        exact=False,
        largest=(100.0, 100.0),
    )
    with ucle.connect() as connection:
        connection.execute("CREATE TABLE a AS SELECT 0 AS i, 0 AS j, 1.0::DOUBLE AS v").fetchall()
        graph = replace(ucle.table("a", ["i", "j"], "v"), measured=measured)
        program = ucle.einsum_program(
            "Z[i,k] += A[i,j] * H[j,k]",
            A=graph,
            H=np.ones((nodes, WIDTH)),
            database=connection,
            memory_limit="8GB",
        )
        return str(program).strip()


@pytest.mark.parametrize(
    ("nodes", "tile"), [(100_000, 256), (1_000_000, 1024)], ids=["100000", "1000000"]
)
def test_long_lists_of_edges_are_cut_into_tiles(nodes: int, tile: int) -> None:
    """Joins and states in main memory took three times as long, and 256 rows a tile twice."""
    assert chosen(nodes) == f"Z[I/{tile},k] += A[I/{tile},{{j}}] * H[j,k]"


@pytest.mark.parametrize("bound", [1, 1000, 262_144, 262_145, 1_000_000, 10**9])
def test_tall_axes_have_few_tiles(bound: int) -> None:
    tile = tall_tile(bound)
    assert bound <= tile * OPEN
    assert tile == 1 or bound > tile // 2 * OPEN
    assert tile & (tile - 1) == 0


@pytest.mark.parametrize("rows", [1e3, 1e7])
def test_what_no_cache_holds_costs_more(rows: float) -> None:
    sizes = CACHED, SHARED, 2 * SHARED
    kept = POINTED / POINTER + 1
    joins = [cost(JoinWork(rows, 8.0, 128.0, built=size, kept=kept), ENGINE) for size in sizes]
    states = [
        cost(AggregateWork(rows + kept, kept, 128.0, 16.0, size), ENGINE) - ENGINE.state * size
        for size in sizes
    ]
    for near, shared, far in (joins, states):
        assert near < shared < far
    papers = {cost(JoinWork(rows, 8.0, 128.0, built=size, kept=kept), PAPER) for size in sizes}
    assert len(papers) == 1


def test_few_long_tuples_are_fetched_in_time() -> None:
    """A table of 169,000 rows of 1 KB took no longer than one that a cache holds."""
    few, many = (
        cost(JoinWork(1e6, 8.0, 1024.0, built=3 * SHARED, kept=kept), ENGINE)
        for kept in (169_000.0, 1_690_000.0)
    )
    assert few < many
    cached = 2 * CACHED
    kept = 169_000.0 * cached / (3 * SHARED)
    assert few == cost(JoinWork(1e6, 8.0, 1024.0, built=cached, kept=kept), ENGINE)


def test_arrays_are_fetched_from_the_cache_that_cores_share() -> None:
    """A product of 238,000 edges in no order with 64 columns took 1.8 times that of tiles."""
    rows, size = 238_000.0, 512.0
    own, shared = (
        cost(JoinWork(rows, 8.0, size, built=built, kept=built / size), ENGINE)
        for built in (CACHED / 2, 2 * CACHED)
    )
    assert shared - own == pytest.approx(rows * (ENGINE.near + size * ENGINE.read))


def test_entries_go_into_few_groups_or_many() -> None:
    few, many = (cost(RecodeWork(1e6, 8.0, 1e6, n), ENGINE) for n in (OPEN, OPEN + 1))
    assert many - few == pytest.approx(1e6 * ENGINE.far)


def test_arrays_that_are_recoded_in_place_take_no_step() -> None:
    """It is a call in the query of whatever reads them."""
    apart, in_place = (cost(RecodeWork(9.0, 8.0, 0.0, in_place=x), ENGINE) for x in (False, True))
    assert apart - in_place == pytest.approx(ENGINE.step)
