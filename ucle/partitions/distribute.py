"""Distributes a plan: chooses a placement for every tensor, and cuts the plan where tuples move."""

from __future__ import annotations

from collections.abc import Iterable

from ucle.options import Options
from ucle.partitions.choices import Problem
from ucle.partitions.cut import cut
from ucle.partitions.fragments import DistributedPlan
from ucle.partitions.network import Network
from ucle.partitions.sizes import EstimatedSizes
from ucle.pipeline.artifacts import Compiled, Planned
from ucle.pipeline.replan import cheapest_decompositions, plan_decomposed


def distribute(planned: Planned, network: Network, partitions: int) -> DistributedPlan:
    """Cut the plan of a program into fragments.

    Args:
        planned: the program.
        network: what moving costs.
        partitions: the number of partitions.
    """
    problem = Problem(planned.plan, EstimatedSizes(planned), network, partitions)
    starts = problem.by_dynamic_program(), problem.alone()
    chosen = min(map(problem.improved, starts), key=problem.cost)
    return cut(problem, chosen)


def candidates(compiled: Compiled, options: Options, count: int) -> list[Compiled]:
    """Return a program and its cheapest other decompositions on one machine, `count` in all.

    There are no others where the decomposition was given.
    """
    found = [compiled]
    if options.decomposition == "auto":
        own = compiled.decomposed.decompositions
        found += [
            plan_decomposed(compiled, each, options)
            for each in cheapest_decompositions(compiled, count, options)
            if each.decompositions != own
        ]
    return found


def distribute_cheapest(
    tried: Iterable[Compiled], network: Network, partitions: int
) -> tuple[Compiled, DistributedPlan]:
    """Return the cheapest pair of decomposition and distribution among the candidates."""
    pairs = ((each, distribute(each, network, partitions)) for each in tried)
    return min(pairs, key=lambda pair: pair[1].seconds)
