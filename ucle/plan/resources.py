"""What a plan may use of a machine."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ucle.udf_kernels import kernel_limits


@dataclass(frozen=True)
class Resources:
    """What a plan may use: bytes of memory, and threads that run at once.

    `copies` says that a kernel gets a copy of its operands for every row, as Arrow functions do.
    States of aggregates up to `inline_state` bytes lie in DuckDB's own memory, which it can spill.
    """

    memory: float = math.inf
    threads: int = 1
    copies: bool = False
    inline_state: int = field(default_factory=lambda: kernel_limits().state_bytes)
