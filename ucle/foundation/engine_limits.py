"""What an engine and Arrow do at most, or at a time: the one place for such facts.

What the kernels take at most is `ucle.udf_kernels.kernel_limits`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EngineLimits:
    """Numbers that plans, prices and readers of results have to keep to."""

    vector_rows: int
    """Rows that the engine sends through an operator, and hands over, at a time."""
    rows_a_thread: int
    """Rows of a table that it gives to one thread."""
    array_elements: int
    """Elements of the array in one tuple."""
    column_bytes: int
    """Bytes of the BLOBs in a column that is handed over, unless the session says otherwise."""


DUCKDB_LIMITS = EngineLimits(
    vector_rows=2048,
    rows_a_thread=122_880,  # a row group
    array_elements=2**31 - 1,
    column_bytes=2**31 - 1,  # Arrow's offsets have 32 bits
)
