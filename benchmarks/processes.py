"""This process and all below it, such as those of a Spark of this machine (Linux)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """A process as it is now."""

    parent: int
    command: str
    seconds: float
    """Its processor time, with that of its children that have ended."""
    resident: int
    """Bytes in memory, of which several processes may share some."""


def _processes() -> dict[int, Process]:
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
                command = (path / "cmdline").read_text().replace("\0", " ")
            except OSError:  # it has ended
                continue
            found[int(path.name)] = Process(
                int(fields[1]),
                command,
                sum(map(int, fields[11:15])) / TICKS,
                int(fields[21]) * PAGE,
            )
    return found


def family(command: str = "") -> dict[int, Process]:
    """Return this process and all below it; with a `command`, all below those that have it."""
    there = _processes()
    below: dict[int, list[int]] = {}
    for number, process in there.items():
        below.setdefault(process.parent, []).append(number)

    def with_all_below(roots: list[int]) -> dict[int, Process]:
        waiting, found = list(roots), {}
        while waiting:
            number = waiting.pop()
            found[number] = there[number]
            waiting += below.get(number, ())
        return found

    mine = with_all_below([os.getpid()])
    if not command:
        return mine
    return with_all_below([x for x, process in mine.items() if command in process.command])


def processor_seconds() -> float:
    """Processor time of this process, and of all below it."""
    return sum(process.seconds for process in family().values())
