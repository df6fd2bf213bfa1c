"""The resources of a machine that a plan may use."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ucle.foundation.engine_limits import DUCKDB_LIMITS, EngineLimits
from ucle.udf_kernels.kernel_limits import kernel_limits


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
