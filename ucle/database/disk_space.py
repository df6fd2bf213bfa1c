"""A check for free disk space before ucle writes anything on its own initiative.

If the disk is full in the middle of a checkpoint, DuckDB invalidates the whole database for all of
its users. So nothing is written without a request unless there is ample space.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

AMPLE = 64 * 2**20
"""Bytes; a checkpoint of a few notes writes some blocks of 256 KiB."""


def has_space(path: str) -> bool:
    """True if a database file and its log can grow by far more than notes need.

    A checkpoint writes the log into the file and rewrites the description of all tables, for which
    a twentieth of the file is plenty. Disk quotas are not considered.

    >>> has_space("/nowhere/data.db")
    False
    """
    try:
        size, log = os.path.getsize(path), 0
        with contextlib.suppress(FileNotFoundError):
            log = os.path.getsize(f"{path}.wal")
        needed = AMPLE + 2 * log + size // 20
        return _free(path) >= needed and _limit() >= max(size, log) + needed
    except (OSError, ValueError):
        return False


def _free(path: str) -> float:
    """The free bytes on the disk of a file."""
    return shutil.disk_usage(path).free


def _limit() -> float:
    """The number of bytes to which a file of this process may grow."""
    if resource is None:
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return math.inf if limit == resource.RLIM_INFINITY else limit
