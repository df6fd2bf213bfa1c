"""A program with sizes: what its tensors take in each layout, by statistics, under resources.

Prices (`ucle.optimiser.pricing`), limits (`ucle.optimiser.limits`) and changes of layout
(`ucle.optimiser.exchange`) are worked out from these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ucle.cost import Profile
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.plan.decomposition import StoredInput
from ucle.plan.resources import Resources
from ucle.stats.estimate import ProgramStatistics


@dataclass(frozen=True, eq=False)
class SizedProgram:
    """A program, what is known of its tensors and where its inputs lie; a profile and resources."""

    program: Program
    statistics: ProgramStatistics
    stored: Mapping[str, StoredInput]
    profile: Profile
    resources: Resources

    def tuple_bytes(self, name: str, layout: Layout) -> float:
        """Bytes of a tuple of a tensor in a layout, with its keys."""
        return self.program.types[name].tuple_bytes(layout) + key_bytes(layout)

    def tuples(self, operand: Operand, decomposition: Decomposition) -> float:
        """Tuples in which a vertex reads an operand."""
        return self.statistics.rows(operand.tensor, decomposition.layout(operand.names)).estimate

    def operand_bytes(self, operand: Operand, decomposition: Decomposition) -> float:
        """Bytes of a tuple in which a vertex reads an operand, with its keys."""
        return self.tuple_bytes(operand.tensor, decomposition.layout(operand.names))

    def array_bytes(self, vertex: Vertex, decomposition: Decomposition) -> list[int]:
        """Bytes of the array that each operand carries; 0 for a number."""
        types = (self.program.types[operand.tensor] for operand in vertex.inputs)
        layouts = (decomposition.layout(operand.names) for operand in vertex.inputs)
        return [
            0 if layout.scalar else type_.tuple_bytes(layout)
            for type_, layout in zip(types, layouts, strict=True)
        ]

    def state_bytes(self, size: float, rows: float, groups: float) -> float:
        """Bytes of the states of an aggregation: those that are inline come in powers of two.

        Of longer ones there are few, and each thread that has rows makes all of them.
        """
        if size > self.resources.inline_state:
            threads = min(
                self.resources.threads, math.ceil(rows / self.resources.limits.rows_a_thread)
            )
            return min(rows, groups * threads) * size
        return groups * float(1 << math.ceil(math.log2(max(size, 1.0))))

    def gathered_rows(self, rows: float, groups: float) -> float:
        """Rows of a vector of groups."""
        return min(groups, self.resources.limits.vector_rows) * rows / groups if groups else 0.0


def key_bytes(layout: Layout) -> int:
    """Bytes of the keys of a tuple."""
    return 4 * len(layout.promoted)
