"""Distributes a plan: chooses a placement for every tensor, and cuts the plan where tuples move.

The choice depends on the size of a tensor in motion: bytes of its tuples, by the statistics of its
program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Coordinates, Layout
from ucle.optimiser.on_workers import Workers
from ucle.options import Options
from ucle.partitions.choices import ONCE, Network, Problem, Repeated, Tuples
from ucle.partitions.cut import cut
from ucle.partitions.fragments import DistributedPlan
from ucle.partitions.placed_files import PlacedFiles
from ucle.pipeline.artifacts import Compiled, Planned
from ucle.pipeline.replan import cheapest_decompositions, plan_decomposed
from ucle.plan.relation_nodes import TableScan

KEY_BYTES = {Coordinates.INT32: 4.0, Coordinates.INT64: 8.0}
"""Bytes of a key column, for each tuple."""


@dataclass(frozen=True)
class EstimatedSizes:
    """Estimated sizes of a program's relations."""

    planned: Planned

    def tuples(self, tensor: str, layout: Layout) -> Tuples:
        """The tuples of a tensor in a layout."""
        statistics = self.planned.statistics
        rows = statistics.rows(tensor, layout).estimate
        axes = statistics.program.types[tensor].axes
        keys = sum(KEY_BYTES[axes[axis].coordinates] for axis in layout.promoted)
        return Tuples(rows, rows * (keys + statistics.payload_bytes(tensor, layout)))

    def read(self, inputs: Collection[str]) -> float:
        """Bytes of the tables of some inputs, as the program reads them."""
        scans = (step for step in self.planned.plan.steps if isinstance(step.relation, TableScan))
        return sum(
            self.tuples(step.tensor, step.relation.layout).bytes
            for step in scans
            if step.tensor in inputs
        )

    def count_joined(self, vertex: str) -> float:
        """Estimate how many tuples an aggregation of a vertex reads."""
        made = self.planned.decomposed
        return self.planned.statistics.join_rows(
            made.program.by_name[vertex], made.decompositions[vertex]
        )


def distribute(
    planned: Planned,
    network: Network,
    partitions: int,
    repeated: Repeated = ONCE,
    files: Mapping[str, PlacedFiles] | None = None,
) -> DistributedPlan:
    """Cut the plan of a program into fragments.

    Args:
        planned: the program.
        network: what moving costs.
        partitions: the number of partitions.
        repeated: what many runs of it have in common.
        files: those of inputs, in folders that are named by keys.
    """
    sizes = EstimatedSizes(planned)
    problem = Problem(planned.plan, sizes, network, partitions, repeated, files)
    starts = (
        problem.by_dynamic_program(),
        problem.by_dynamic_program(shared=True),
        problem.alone(),
    )
    chosen = min(map(problem.improve_choice, starts), key=problem.cost)
    return cut(problem, chosen)


def candidates(
    compiled: Compiled, options: Options, count: int, network: Network | None = None
) -> list[Compiled]:
    """Return a program and its cheapest other decompositions on one machine, `count` in all.

    With a `network`, as many follow that are the cheapest for its workers, as far as prices without
    placements tell. There are no others where the decomposition was given.
    """
    if options.decomposition != "auto":
        return [compiled]
    tried = cheapest_decompositions(compiled, count, options)
    if network is not None:
        workers = Workers(network.workers, network.price_move(1.0), network.job)
        tried += cheapest_decompositions(compiled, count, options, workers.share)
    found, known = [compiled], []
    if not (compiled.decomposed.multiway or compiled.decomposed.lookups):
        known.append(compiled.decomposed.decompositions)
    for each in tried:
        if each.decompositions not in known:
            known.append(each.decompositions)
            found.append(plan_decomposed(compiled, each, options))
    return found


def distribute_cheapest(
    tried: Iterable[Compiled],
    network: Network,
    partitions: int,
    files: Mapping[str, PlacedFiles] | None = None,
) -> tuple[Compiled, DistributedPlan]:
    """Return the cheapest pair of decomposition and distribution among the candidates."""
    pairs = ((each, distribute(each, network, partitions, files=files)) for each in tried)
    return min(pairs, key=lambda pair: pair[1].seconds)
