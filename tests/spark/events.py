"""Read Spark's event log: jobs, and the bytes that shuffles write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def events(folder: Path) -> Iterator[dict[str, Any]]:
    """All events of an event log so far."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:  # it is being written
                    continue


def shuffled(folder: Path) -> int:
    """Bytes that shuffles have written so far."""
    total = 0
    for event in events(folder):
        if event.get("Event") == "SparkListenerTaskEnd":
            metrics = event.get("Task Metrics") or {}
            total += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
    return total


def jobs(folder: Path) -> int:
    """The number of jobs that have begun so far."""
    return sum(event.get("Event") == "SparkListenerJobStart" for event in events(folder))
