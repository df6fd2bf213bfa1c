"""Limits and batch sizes of an engine, and the resources of a machine that a plan may use.

The limits of the kernels are in `ucle.udf_kernels.kernel_limits`.
"""

from __future__ import annotations

import math
from dataclasses import field

from ucle.foundation.dataclasses import dataclass
from ucle.udf_kernels.kernel_limits import kernel_limits


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


@dataclass(frozen=True)
class Resources:
    """The resources of a plan: bytes of memory, and threads that run at once.

    `kernels` is True if kernels are available; without them all labels are promoted. `copies` is
    True if a kernel gets a copy of its operands for every row, as Arrow functions do. Aggregate
    states of up to `inline_state` bytes lie in the engine's own memory, which it can spill;
    `limits` are the limits of the engine.
    """

    memory: float = math.inf
    threads: int = 1
    kernels: bool = True
    copies: bool = False
    limits: EngineLimits = DUCKDB_LIMITS
    inline_state: int = field(default_factory=lambda: kernel_limits().state_bytes)
