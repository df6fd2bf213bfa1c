"""The chosen decomposition and placements, against all pairs of them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import duckdb
import numpy as np
import pytest

from ucle import EinsumProgram, einsum_program
from ucle.inputs.table_input import TableInput
from ucle.partitions import Network
from ucle.partitions.choices import Problem
from ucle.partitions.distribute import EstimatedSizes, candidates, distribute_cheapest
from ucle.spark.program import CANDIDATES
from ucle.stats.measure import MeasuredInput

EDGES, NODES, WIDTH = 1e7, 500_000, 64
MOST_PAIRS = 20_000
"""The most pairs of a program that are priced."""

PROGRAMS = {
    "product": "Z[i,k] += A[i,j] * H[j,k]",
    "sums": "d[i] += A[i,j]",
    "gram": "G[k,l] += H[j,k] * H[j,l]",
    "sampled": "S[i,j] += A[i,j] * H[i,k] * H[j,k]",
    "rank": "q[i] += A[i,j] * p[j]; r[i] = 0.85 * q[i] + 0.1",
}
CLUSTERS = [(w, g) for w in (4, 16, 64) for g in (1.0, 10.0, 100.0)]


def program(text: str) -> EinsumProgram:
    """Compile a program for made-up statistics of a graph and of features in arrays."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE a (i INTEGER, j INTEGER, val DOUBLE)")
    connection.execute(f"CREATE TABLE h (j INTEGER, val DOUBLE[{WIDTH}])")
    graph, shape = (NODES, NODES), (NODES, WIDTH)
    distinct = (0.8 * NODES, 0.8 * NODES)
    edges = MeasuredInput(graph, True, EDGES, (0.0, 1.0), distinct, False, (2e4, 2e4))
    rows = MeasuredInput(
        shape, True, float(NODES * WIDTH), (-1.0, 1.0), (float(NODES), float(WIDTH)), True
    )
    inputs: dict[str, Any] = {
        "A": TableInput("a", measured=edges, bounds=graph),
        "H": TableInput("h", measured=rows, bounds=shape),
        "p": np.full(NODES, 1 / NODES),
    }
    used = {name: value for name, value in inputs.items() if f"{name}[" in text}
    return einsum_program(text, inputs=used, database=connection, memory_limit="64GB")


def problems(made: EinsumProgram, network: Network) -> list[Problem]:
    """The placements of all decompositions."""
    every = candidates(made.compiled, made.options, 1000)
    return [Problem(x.plan, EstimatedSizes(x), network, network.workers) for x in every]


def pairs(problem: Problem) -> int:
    return math.prod(map(len, problem.ways.values()))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == "sampled" else ()) for name in PROGRAMS],
)
def test_no_pair_is_cheaper(name: str) -> None:
    """All ways of all steps of each decomposition are priced."""
    made = program(PROGRAMS[name])
    tried = candidates(made.compiled, made.options, CANDIDATES)
    for workers, gigabits in CLUSTERS:
        network = Network(workers=workers, gigabits=gigabits)
        _, chosen = distribute_cheapest(tried, network, workers)
        every = problems(made, network)
        assert sum(map(pairs, every)) < MOST_PAIRS
        least = min(
            problem.cost(dict(zip(problem.ways, ways, strict=True)))
            for problem in every
            for ways in itertools.product(*problem.ways.values())
        )
        assert chosen.seconds <= 1.1 * least / 1e9, (workers, gigabits)
