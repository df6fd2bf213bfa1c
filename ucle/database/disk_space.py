"""Whether there is room on disk for what nobody has asked for.

DuckDB gives a whole database up, for all who have it open, when the disk is full in the middle of a
checkpoint. So nothing is written unasked unless there is ample room for that.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil

try:
    import resource
except ImportError:  # of Windows
    resource = None  # type: ignore[assignment]

AMPLE = 64 * 2**20
"""Bytes. A checkpoint of a few notes writes some blocks of 256 KiB."""


def has_room(path: str) -> bool:
    """Whether a database file, and its log, may grow by far more than what notes take.

    A checkpoint writes the log into the file, and the description of all tables anew, for which a
    twentieth of the file is plenty. What a quota leaves cannot be seen.

    >>> has_room("/nowhere/data.db")
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
    """Bytes that are free on the disk of a file."""
    return shutil.disk_usage(path).free


def _limit() -> float:
    """Bytes to which a file of this process may grow."""
    if resource is None:
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return math.inf if limit == resource.RLIM_INFINITY else limit
