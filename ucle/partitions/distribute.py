"""Distributes a plan: chooses where every tensor lies, and cuts the plan where tuples move."""

from __future__ import annotations

from ucle.partitions.choices import Problem, Sizes
from ucle.partitions.cut import cut
from ucle.partitions.fragments import DistributedPlan
from ucle.partitions.network import Network
from ucle.plan.steps import Plan


def distribute(
    plan: Plan, sizes: Sizes, network: Network, partitions: int, *, spread: bool = False
) -> DistributedPlan:
    """Cut a plan of vertices into fragments.

    Args:
        plan: as `ucle.plan.plan_program` makes it.
        sizes: of relations.
        network: what moving costs.
        partitions: how many there are.
        spread: whether it is worth the while whatever it costs, so that tests have something to do:
            then a plan on one partition is not thought of.
    """
    problem = Problem(plan, sizes, network, partitions)
    alone = problem.alone()
    candidates = [problem.improved(problem.by_dynamic_program())]
    if not spread:
        candidates.append(problem.improved(alone))
    chosen = min(candidates, key=problem.cost)
    return cut(problem, chosen, problem.cost(chosen) / 1e9, problem.work / 1e9)
