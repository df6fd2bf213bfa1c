"""The chosen decomposition and placements, against all pairs of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pytest

from ucle import EinsumProgram, einsum_program
from ucle.inputs.table_input import TableInput
from ucle.partitions import Network
from ucle.partitions.choices import ONCE, Choice, Problem, Repeated
from ucle.partitions.distribute import (
    EstimatedSizes,
    candidates,
    distribute,
    distribute_cheapest,
)
from ucle.partitions.fragments import DistributedPlan
from ucle.partitions.step_plans import StepPlans
from ucle.pipeline.artifacts import Planned
from ucle.plan.placement_rules import Way
from ucle.spark.program import CANDIDATES
from ucle.stats.measure import MeasuredInput

SIZES = {"small": (1e5, 10_000, 8), "large": (1e7, 500_000, 64)}
"""Edges and nodes of a graph, and the width of features."""

MOST = 60
"""The most decompositions of a program that are distributed."""

LAYER = "T[i,k] += A[i,j] * H[j,k]; X[i,n] = relu(sum[k](T[i,k] * W[k,n]))"
SCORES = "S[i,j] = when(A[i,j], exp(sum[k](H[i,k] * H[j,k]))); n[i] += S[i,j]"
RANKS = "q[i] += A[i,j] * p[j]; r[i] = 0.85 * q[i] + 0.1"

PROGRAMS = {
    "product": "Z[i,k] += A[i,j] * H[j,k]",
    "sums": "d[i] += A[i,j]",
    "gram": "G[k,l] += H[j,k] * H[j,l]",
    "sampled": "S[i,j] += A[i,j] * H[i,k] * H[j,k]",
    "rank": RANKS,
    "hops": "B[i,k] += A[i,j] * A[j,k]; d[i] += B[i,k]",
    "normal": "q[i] += A[i,j] * p[j]; r[j] += A[i,j] * q[i]; s[] += r[j] * p[j]",
    "scaled": "d[i] += A[i,j]; B[i,j] = A[i,j] / d[i]; Z[i,k] += B[i,j] * H[j,k]",
    "triangles": "t[] += A[i,j] * A[j,k] * A[i,k]",
    "least squares": "G[k,l] += H[j,k] * H[j,l]; b[k] += H[j,k] * p[j]",
    "layer": LAYER,
    "two layers": f"{LAYER}; U[i,n] += A[i,j] * X[j,n]; Z[i,c] += U[i,n] * V[n,c]",
    "attention": f"{SCORES}; O[i,k] += S[i,j] * H[j,k]; Y[i,k] = O[i,k] / max(n[i], 1e-9)",
}
SLOW = ("sampled", "scaled", "least squares", "layer", "two layers", "attention")
CLUSTERS = [(2, 10.0), (4, 1.0), (16, 10.0), (64, 1.0), (64, 100.0)]
"""Workers, and gigabits a second."""

LOOPS = {
    "rank": (RANKS, {"p": "r"}, ["r"]),
    "until": (f"{RANKS}; delta[] = sum[i](abs(r[i] - p[i]))", {"p": "r"}, ["r", "delta"]),
    "features": ("T[i,k] += A[i,j] * H[j,k]; N[i,k] = relu(T[i,k])", {"H": "N"}, ["N"]),
}
NOTHING: Mapping[str, str] = {}


def program(text: str, size: str = "large", outputs: list[str] | None = None) -> EinsumProgram:
    """Compile a program for made-up statistics of a graph and of features in arrays."""
    edges, nodes, width = SIZES[size]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE a (i INTEGER, j INTEGER, val DOUBLE)")
    connection.execute(f"CREATE TABLE h (j INTEGER, val DOUBLE[{width}])")
    graph, shape = (nodes, nodes), (nodes, width)
    distinct, degrees = (0.8 * nodes, 0.8 * nodes), (nodes / 25, nodes / 25)
    measured = MeasuredInput(graph, True, edges, (0.0, 1.0), distinct, False, degrees)
    full = float(nodes * width), (-1.0, 1.0), (float(nodes), float(width)), True
    random = np.random.default_rng(0)
    inputs: dict[str, Any] = {
        "A": TableInput("a", measured=measured, bounds=graph),
        "H": TableInput("h", measured=MeasuredInput(shape, True, *full), bounds=shape),
        "p": np.full(nodes, 1 / nodes),
        "W": random.normal(size=(width, width)),
        "V": random.normal(size=(width, 8)),
    }
    used = {name: value for name, value in inputs.items() if f"{name}[" in text}
    return einsum_program(
        text, inputs=used, database=connection, memory_limit="64GB", outputs=outputs
    )


def least_cost(problem: Problem, bound: float, carried: Mapping[str, str] = NOTHING) -> float:
    """The least cost of all choices, if it is below a bound.

    A choice for the first steps costs at least what they alone cost, and for the others the least
    that each can cost: it is left at once where that is too much. A state whose maker comes later
    may not have to move. `carried` is as in `Repeated`.
    """
    steps, best = problem.inner, bound
    least = [min(problem.price_step(x, way) for way in problem.ways[x.name]) for x in steps]
    after = [*itertools.accumulate(reversed(least), initial=0.0)][::-1]

    def price(chosen: Choice, count: int) -> float:
        problem.inner = steps[:count]
        try:
            moves = problem.exchanges(chosen, problem.stages(chosen))
            stays = (x for x in moves if x.step in carried and carried[x.step] not in chosen)
            saved = sum(problem.price_move(moves[x], x.placement) for x in stays)
            return problem.cost(chosen) - saved + after[count]
        finally:
            problem.inner = steps

    def extend(chosen: dict[str, Way], count: int) -> None:
        nonlocal best
        if count == len(steps):
            best = min(best, price(chosen, count))
            return
        name = steps[count].name
        others = ({**chosen, name: way} for way in problem.ways[name])
        priced = [(price(other, count + 1), other) for other in others]
        for cost, other in sorted(priced, key=lambda pair: pair[0]):
            if cost < best * (1 - 1e-9):
                extend(other, count + 1)

    extend({}, 0)
    return best


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PROGRAMS],
)
def test_no_pair_is_cheaper(name: str, size: str) -> None:
    """All ways of all steps of each decomposition are considered."""
    made = program(PROGRAMS[name], size)
    every = candidates(made.compiled, made.options, MOST)
    for workers, gigabits in CLUSTERS:
        network = Network(workers=workers, gigabits=gigabits)
        tried = candidates(made.compiled, made.options, CANDIDATES, network)
        _, chosen = distribute_cheapest(tried, network, workers)
        least = chosen.seconds * 1e9
        for each in every:
            problem = Problem(each.plan, EstimatedSizes(each), network, workers)
            least = least_cost(problem, least)
        assert chosen.seconds <= 1.1 * least / 1e9, (workers, gigabits)


@dataclass(frozen=True)
class Noted:
    """Cuts plans, and notes the problems that those of steps are."""

    network: Network
    problems: list[tuple[Problem, Mapping[str, str]]] = field(default_factory=list)

    def __call__(self, planned: Planned, repeated: Repeated) -> DistributedPlan:
        given = self.network, self.network.workers, repeated
        problem = Problem(planned.plan, EstimatedSizes(planned), *given)
        if repeated is not ONCE:
            self.problems.append((problem, repeated.carried))
        return distribute(planned, *given)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name", ["rank", "until", pytest.param("features", marks=pytest.mark.slow)]
)
def test_no_pair_of_a_step_is_cheaper(name: str) -> None:
    text, carry, outputs = LOOPS[name]
    made = program(text, outputs=outputs)
    every = candidates(made.compiled, made.options, MOST)
    for workers, gigabits in CLUSTERS:
        cut = Noted(Network(workers=workers, gigabits=gigabits))
        tried = candidates(made.compiled, made.options, CANDIDATES, cut.network)
        chosen = min(StepPlans(x, carry, tuple(carry), cut).step.again.seconds for x in tried)
        cut.problems.clear()
        for each in every:
            assert StepPlans(each, carry, tuple(carry), cut).step
        least = chosen * 1e9
        for problem, carried in cut.problems:
            least = least_cost(problem, least, carried)
        assert chosen <= 1.1 * least / 1e9, (workers, gigabits)
