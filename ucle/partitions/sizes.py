"""What it takes to move a tensor: bytes of its tuples, by the statistics of its program."""

from __future__ import annotations

from ucle.ir.layouts import Coordinates, Layout
from ucle.partitions.choices import Size, Tuples
from ucle.stats.estimate import ProgramStatistics

KEY_BYTES = {Coordinates.INT32: 4.0, Coordinates.INT64: 8.0}
"""Of a key column, for each tuple."""


def sizes_of(statistics: ProgramStatistics) -> Size:
    """Bytes of tensors in their layouts."""
    types = statistics.program.types

    def size(tensor: str, layout: Layout) -> Tuples:
        rows = statistics.rows(tensor, layout).estimate
        axes = types[tensor].axes
        keys = sum(KEY_BYTES[axes[axis].coordinates] for axis in layout.promoted)
        return Tuples(rows, rows * (keys + statistics.payload_bytes(tensor, layout)))

    return size
