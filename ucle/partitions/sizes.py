"""The size of a tensor in motion: bytes of its tuples, by the statistics of its program."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ucle.ir.layouts import Coordinates, Layout
from ucle.partitions.choices import Tuples
from ucle.pipeline.artifacts import Planned
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
