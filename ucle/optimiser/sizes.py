"""A program with sizes: the space of its tensors in each layout, by statistics and resources.

Prices (`ucle.optimiser.pricing`), limits (`ucle.optimiser.limits`) and repartition costs
(`ucle.optimiser.repartition_cost`) are computed from these sizes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import cached_property

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.vertices import Program, Vertex
from ucle.plan.decomposition import StoredInput
from ucle.plan.prices import Profile
from ucle.plan.resources import Resources
from ucle.stats.estimate import ProgramStatistics

KEY_BYTES = 4
"""Bytes of one key."""


@dataclass(frozen=True, eq=False)
class SizedProgram:
    """A program with its statistics, the places of its inputs, a cost profile and resources."""

    program: Program
    statistics: ProgramStatistics
    stored: Mapping[str, StoredInput]
    profile: Profile
    resources: Resources

    @cached_property
    def row_tables(self) -> Mapping[str, Hashable]:
        """The rows of which table the entries of a tensor are in (`ucle.plan.pair_scans`).

        Tensors that are columns of a table are in it, and what is computed from them entry by
        entry.
        """
        found = {x: each.rows for x, each in self.stored.items() if each.rows is not None}
        for vertex in self.program.vertices if found else ():
            if not vertex.is_product or vertex.reduced:
                continue
            rows = {
                found.get(operand.tensor) if operand.names == vertex.names else None
                for operand in vertex.inputs
            }
            if len(rows) == 1 and (table := rows.pop()) is not None:
                found[vertex.name] = table
        return found

    def rows(self, name: str, layout: Layout) -> float:
        """Return the estimated number of tuples of a tensor in a layout."""
        return self.statistics.rows(name, layout).estimate

    def payload_bytes(self, name: str, layout: Layout) -> float:
        """Return the bytes of a tuple's value: an array, a compressed array, or a number."""
        return self.statistics.payload_bytes(name, layout)

    def tuple_bytes(self, name: str, layout: Layout) -> float:
        """Return the bytes of a tuple of a tensor in a layout, with its keys."""
        return self.payload_bytes(name, layout) + key_bytes(layout)

    def array_bytes(self, name: str, layout: Layout) -> float:
        """Return the bytes of a tuple's array; 0 for a number."""
        return 0.0 if layout.scalar else self.payload_bytes(name, layout)

    def operand_bytes(self, vertex: Vertex, decomposition: Decomposition) -> float:
        """Return the bytes of the arrays of all operands in a pair of tuples."""
        read = zip(vertex.inputs, vertex.reads(decomposition), strict=True)
        return sum(self.array_bytes(operand.tensor, layout) for operand, layout in read)

    def state_bytes(self, size: float, rows: float, groups: float) -> float:
        """Return the bytes of an aggregation's states; inline states come in powers of two.

        There are few longer states, and each thread that has rows makes all of them.
        """
        if size > self.resources.inline_state:
            threads = min(
                self.resources.threads, math.ceil(rows / self.resources.limits.rows_a_thread)
            )
            return min(rows, groups * threads) * size
        return groups * float(1 << math.ceil(math.log2(max(size, 1.0))))

    def gathered_rows(self, rows: float, groups: float) -> float:
        """Return the number of rows in a vector of groups."""
        return min(groups, self.resources.limits.vector_rows) * rows / groups if groups else 0.0


def key_bytes(layout: Layout) -> int:
    """Return the bytes of the keys of a tuple."""
    return KEY_BYTES * len(layout.promoted)
