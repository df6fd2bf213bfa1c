"""Prices of decompositions on several workers, which share what has keys.

The cheapest decompositions on one machine may all exchange keys for others, which moves a tensor
from worker to worker. These prices say so. They know nothing of placements, which decide what moves
(`ucle.partitions.choices`): they find decompositions whose placements are worth a search.
"""

from __future__ import annotations

from dataclasses import field, fields

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.vertices import Vertex
from ucle.optimiser.known_prices import Prices
from ucle.optimiser.pricing import CostedProgram
from ucle.plan.decomposition import VertexCost
from ucle.plan.placement_rules import find_kept_axes


@dataclass(frozen=True)
class Workers:
    """Workers that compute at once: how many, and the nanoseconds of what they do together.

    A byte that is moved between them takes `byte`, and a stage that starts `stage`.
    """

    count: int
    byte: float
    stage: float

    def share(self, costed: CostedProgram) -> SharedProgram:
        """Return a program with prices on these workers."""
        own = {each.name: getattr(costed, each.name) for each in fields(costed)}
        return SharedProgram(**{**own, "prices": Prices()}, workers=self)


@dataclass(frozen=True, eq=False)
class SharedProgram(CostedProgram):
    """A program that prices decompositions of its vertices on workers."""

    workers: Workers = field(default_factory=lambda: Workers(1, 0.0, 0.0))

    def vertex_cost(self, vertex: Vertex, decomposition: Decomposition) -> VertexCost:
        """Return the cost of a vertex: shared if it has keys; partial results take a stage."""
        own = super().vertex_cost(vertex, decomposition)
        if not decomposition.promoted:
            return own
        shared = own.spread_over(self.workers.count)
        if vertex.makes(decomposition).promoted:
            return shared
        combined = shared.aggregate + self.workers.stage
        return VertexCost(shared.join, shared.kernel, combined, shared.repartition)

    def repartition_cost(self, name: str, source: Layout | None, target: Layout) -> float:
        """Return the cost of a repartition; without a key that stays, a vertex's result moves."""
        own = super().repartition_cost(name, source, target) / self.workers.count
        if name in self.stored or source is None or source == target:
            return own
        if find_kept_axes(source, target):
            return own
        copies = 1 if target.promoted else self.workers.count
        size = self.rows(name, source) * self.tuple_bytes(name, source)
        return own + self.workers.stage + copies * size * self.workers.byte

    def least_repartition_cost(self, name: str, source: Layout, target: Layout) -> float:
        """Return a lower bound of a repartition's cost, quickly."""
        return super().least_repartition_cost(name, source, target) / self.workers.count
