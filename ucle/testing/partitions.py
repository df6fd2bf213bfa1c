"""Runs programs on partitions of this process, for comparison with the whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ucle.compile.prepared import Prepared
from ucle.database.engine import DUCKDB
from ucle.partitions.choices import Problem
from ucle.partitions.cut import cut
from ucle.partitions.distribute import distribute
from ucle.partitions.fragments import DistributedPlan
from ucle.partitions.in_process import InProcess
from ucle.partitions.network import NETWORK, Network
from ucle.partitions.results import result_of
from ucle.partitions.run import run_distributed
from ucle.partitions.sizes import EstimatedSizes
from ucle.pipeline.artifacts import Compiled
from ucle.program import EinsumProgram
from ucle.run.results import Result


def cheapest(compiled: Compiled, partitions: int, network: Network) -> DistributedPlan:
    """Return the distributed plan that is chosen for a compiled program."""
    return distribute(compiled, network, partitions)


def drawn(
    compiled: Compiled, partitions: int, seed: int, network: Network = NETWORK
) -> DistributedPlan:
    """Draw a distributed plan of a compiled program: every choice of ways is legal."""
    random = np.random.default_rng(seed)
    problem = Problem(compiled.plan, EstimatedSizes(compiled), network, partitions)
    choice = {name: every[random.integers(len(every))] for name, every in problem.ways.items()}
    return cut(problem, choice)


def run_on_partitions(
    program: EinsumProgram,
    database: object,
    partitions: int,
    seed: int = 0,
    plan: Callable[[Compiled], DistributedPlan] | None = None,
) -> Result:
    """Run a program on partitions, even where that gains nothing.

    Args:
        program: what runs.
        database: where its tables are.
        partitions: the number of partitions.
        seed: of the initial placement of rows.
        plan: makes the plan; by default one that is drawn from the seed.
    """
    make = plan or partial(drawn, partitions=partitions, seed=seed)

    def run(prepared: Prepared) -> Result:
        compiled = prepared.compiled
        distributed = make(compiled)
        engine = InProcess(compiled, session, partitions, seed)
        frames = run_distributed(distributed, engine)
        tables = {name: engine.collect(frame) for name, frame in frames.items()}
        return result_of(compiled, session, tables, engine.dictionaries(compiled.plan))

    session = DUCKDB.open(database)  # type: ignore[arg-type]
    return Prepared(program.compiled, program.options).attempt(session, run)
