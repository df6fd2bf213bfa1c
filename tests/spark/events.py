"""Read Spark's event log: jobs, and the bytes that shuffles write."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class _Totals:
    """Totals of the events of a file, up to a place in it: it grows, and is large after a while."""

    place: int = 0
    shuffled: int = 0
    jobs: int = 0
    places: list[tuple[int, str, str]] = field(default_factory=list)

    def read_on(self, path: Path) -> _Totals:
        """Count the events that were written since."""
        with path.open("rb") as file:
            file.seek(self.place)
            for line in file:
                if not line.endswith(b"\n"):  # it is being written
                    break
                self.place += len(line)
                self._count(line)
        return self

    def _count(self, line: bytes) -> None:
        if b'"SparkListenerJobStart"' in line[:60]:
            self.jobs += 1
        elif b'"SparkListenerTaskEnd"' in line[:60]:
            event = json.loads(line)
            task, metrics = event["Task Info"], event.get("Task Metrics") or {}
            self.places.append((task["Index"], task["Executor ID"], task["Locality"]))
            self.shuffled += metrics.get("Shuffle Write Metrics", {}).get(
                "Shuffle Bytes Written", 0
            )


_files: dict[Path, _Totals] = {}


def _totals(folder: Path) -> list[_Totals]:
    paths = (x for x in folder.rglob("*") if x.is_file() and not x.name.startswith("."))
    return [_files.setdefault(path, _Totals()).read_on(path) for path in paths]


def shuffled(folder: Path) -> int:
    """Bytes that shuffles have written so far."""
    return sum(each.shuffled for each in _totals(folder))


def places(folder: Path) -> list[tuple[int, str, str]]:
    """The partitions of tasks that have ended so far, with their executors and their localities."""
    return [place for each in _totals(folder) for place in each.places]


def jobs(folder: Path) -> int:
    """The number of jobs that have begun so far."""
    return sum(each.jobs for each in _totals(folder))
