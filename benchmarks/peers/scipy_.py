"""The task's own steps in memory, with scipy.sparse and NumPy."""

from __future__ import annotations

from typing import Any

from benchmarks.paper.tasks import Task
from benchmarks.peers import SkippedError


class Engine:
    """Inputs as they are."""

    def load(self, task: Task) -> None:
        """Keep the steps."""
        if task.in_memory is None:
            raise SkippedError("no such operation")
        self._steps = task.in_memory
        self._result: Any = None

    def run(self) -> None:
        """Take the steps."""
        self._result = None
        self._result = self._steps()

    def result(self) -> Any:
        """What came out."""
        return self._result

    def close(self) -> None:
        """Nothing is open."""
