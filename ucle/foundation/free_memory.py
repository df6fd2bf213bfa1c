"""The memory that this process may still take: of the machine, its containers and its own limits.

Linux reports all of it. On other systems nothing is known, and memory counts as free: they move
what is not in use to disk instead of ending processes.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path

from ucle.foundation.address_limit import limits_addresses, soft_limit
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import pa

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

KIB = 1024
"""Bytes of the unit in /proc/meminfo."""

STRICT = "2"
"""The value of Linux's ``overcommit_memory`` under which promised memory is counted as used."""

ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"
"""The variable of the environment that selects Arrow's allocator."""

PER_THREAD = 16 << 20
"""Bytes of addresses that are lost for each thread: the C library cuts them up in arenas of 64 MB,
part of which stays empty (measured: programs take 0 to 70 MB of addresses for two threads more than
they hold, and most less than 30)."""


@dataclass(frozen=True)
class FreeMemory:
    """Bytes that a process may still take, and what limits them.

    `kills` is whether the system may end a process that takes more; otherwise it gets no more.
    """

    size: float
    limit: str
    kills: bool = True


UNLIMITED = FreeMemory(math.inf, "nothing")
"""Free memory where nothing is known about any."""


def free_memory(threads: int = 0, root: Path = Path("/")) -> FreeMemory:
    """Return the bytes that this process may still take.

    Args:
        threads: the number of threads that will allocate. Where addresses are limited, those that
            the C library reserves for threads are not free.
        root: the folder below which the system reports, for tests.

    >>> free_memory().size > 0
    True
    """
    reported = [*_machine(root), *_control_groups(root), *_own_limits(threads, root)]
    return min(reported, key=lambda free: free.size, default=UNLIMITED)


def reserve_no_addresses() -> None:
    """Let Arrow allocate only what it needs, unless another allocator is selected.

    Its own allocator reserves a gigabyte of addresses for the first array. Which one Arrow takes is
    decided when one is asked for first, by a variable of the environment. Where that was before,
    the gigabyte is reserved here, so that it does not count as free.
    """
    selected = ARROW_POOL in os.environ
    os.environ.setdefault(ARROW_POOL, "system")
    try:
        pa.allocate_buffer(1)
    finally:
        if not selected:
            del os.environ[ARROW_POOL]


def _machine(root: Path) -> Iterator[FreeMemory]:
    facts = _table(root / "proc/meminfo")
    if (available := facts.get("MemAvailable")) is not None:
        yield FreeMemory(available * KIB, "the memory of the machine")
    if _read(root / "proc/sys/vm/overcommit_memory") == STRICT and "CommitLimit" in facts:
        promised = facts["CommitLimit"] - facts.get("Committed_AS", 0.0)
        yield FreeMemory(
            max(promised, 0.0) * KIB, "the memory that the machine may promise", kills=False
        )


def _control_groups(root: Path) -> Iterator[FreeMemory]:
    """Yield what is free in the control groups of the process, and in those around them.

    In a container the groups may be named as outside of it, where only the outermost is visible.
    """
    for line in (_read(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            for top in (root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"):
                for group in _and_parents(top, path):
                    yield from _group(group, "memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            for group in _and_parents(root / "sys/fs/cgroup/memory", path):
                names = "memory.limit_in_bytes", "memory.usage_in_bytes"
                yield from _group(group, *names, "total_")


def _and_parents(top: Path, path: str) -> Iterator[Path]:
    parts = [x for x in path.split("/") if x not in ("", "..")]
    for length in range(len(parts), -1, -1):
        if (group := top.joinpath(*parts[:length])).is_dir():
            yield group


def _group(group: Path, limit: str, used: str, prefix: str) -> Iterator[FreeMemory]:
    """Yield what is free in a group; its pages of files are given up before anything else."""
    most, now = _number(group / limit), _number(group / used)
    if most is None or now is None or most >= 1 << 60:  # version 1 writes a number for no limit
        return
    facts = _table(group / "memory.stat")
    files = sum(facts.get(f"{prefix}{x}_file", 0.0) for x in ("active", "inactive"))
    yield FreeMemory(max(most - max(now - files, 0.0), 0.0), f"the control group {group.name}")


def _own_limits(threads: int, root: Path) -> Iterator[FreeMemory]:
    """Yield what the limits of the process leave (``ulimit``)."""
    if limits_addresses():
        reserve_no_addresses()
    if resource is None or (text := _read(root / "proc/self/statm")) is None:
        return
    pages = [float(x) for x in text.split()]
    used = {"RLIMIT_AS": ("-v", pages[0]), "RLIMIT_DATA": ("-d", pages[5])}
    for kind, (option, now) in used.items():
        if (most := soft_limit(kind)) != math.inf:
            left = most - now * resource.getpagesize() - threads * PER_THREAD
            yield FreeMemory(max(left, 0.0), f"ulimit {option}", kills=False)


def _table(path: Path) -> dict[str, float]:
    """Read lines of a name and a number."""
    facts = {}
    for line in (_read(path) or "").splitlines():
        name, *values = line.replace(":", " ").split()
        with contextlib.suppress(ValueError, IndexError):
            facts[name] = float(values[0])
    return facts


def _number(path: Path) -> float | None:
    """Read a number; None where there is none, and where it says that there is no limit."""
    with contextlib.suppress(TypeError, ValueError):
        return float(_read(path))  # type: ignore[arg-type]
    return None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
