"""Limits and batch sizes of an engine and of Arrow, in one place.

Those of the kernels are in `ucle.udf_kernels.kernel_limits`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EngineLimits:
    """Limits that apply to plans, prices and readers of results."""

    vector_rows: int
    """Rows that the engine passes to an operator, and returns, at a time."""
    rows_a_thread: int
    """Rows of a table that it assigns to one thread at a time."""
    array_elements: int
    """The most elements of the array in one tuple."""
    column_bytes: int
    """The most bytes of the BLOBs in a returned column, unless the session sets another limit."""


DUCKDB_LIMITS = EngineLimits(
    vector_rows=2048,
    rows_a_thread=122_880,  # a row group
    array_elements=2**31 - 1,
    column_bytes=2**31 - 1,  # Arrow's offsets have 32 bits
)
