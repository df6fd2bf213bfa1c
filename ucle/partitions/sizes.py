"""What it takes to move a tensor: bytes of its tuples, by the statistics of its program."""

from __future__ import annotations

from ucle.ir.layouts import Layout
from ucle.partitions.choices import Size
from ucle.stats.estimate import ProgramStatistics

KEY_BYTES = 8.0
"""Of a key column, for each tuple, as engines write them into shuffles."""


def sizes_of(statistics: ProgramStatistics) -> Size:
    """Bytes of tensors in their layouts."""

    def size(tensor: str, layout: Layout) -> float:
        rows = statistics.rows(tensor, layout).estimate
        return rows * (KEY_BYTES * len(layout.promoted) + statistics.payload_bytes(tensor, layout))

    return size
