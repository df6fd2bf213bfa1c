"""Limits of the addresses of this process (``ulimit -v``), and what DuckDB does under them."""

from __future__ import annotations

import math
import os

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

ALLOCATOR = "DUCKDB_JE_MALLOC_CONF"
"""The variable of the environment from which DuckDB's allocator reads its options."""

GIVES_BACK = "retain:false"
"""The option that returns addresses to the system with the memory behind them."""


def soft_limit(kind: str) -> float:
    """Return a limit of this process that it can see, infinity where there is none.

    Args:
        kind: its name in `resource`, as ``RLIMIT_AS``.
    """
    if resource is None:
        return math.inf
    soft, _ = resource.getrlimit(getattr(resource, kind))
    return math.inf if soft == resource.RLIM_INFINITY else float(soft)


def limits_addresses() -> bool:
    """Return whether the addresses of this process are limited (``ulimit -v``)."""
    return soft_limit("RLIMIT_AS") != math.inf


def give_back_addresses() -> None:
    """Let DuckDB return addresses that it has freed, where they are limited.

    Its allocator keeps them for later blocks of its own. After an attempt that needed too much, the
    next plan would have no addresses for arrays and kernels. DuckDB reads the option when it is
    imported; options that the user has set stay.
    """
    if limits_addresses():
        os.environ.setdefault(ALLOCATOR, GIVES_BACK)
