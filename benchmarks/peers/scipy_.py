"""The task's own steps in memory, with scipy.sparse and NumPy."""

from __future__ import annotations

from typing import Any

from benchmarks.paper.tasks import Task
from benchmarks.peers import SkippedError


class Engine:
    """Inputs in memory, unchanged."""

    def load(self, task: Task) -> None:
        """Keep the steps of the task."""
        if task.in_memory is None:
            raise SkippedError("no such operation")
        self._steps = task.in_memory
        self._result: Any = None

    def run(self) -> None:
        """Run the steps."""
        self._result = None
        self._result = self._steps()

    def result(self) -> Any:
        """Return the result."""
        return self._result

    def close(self) -> None:
        """Do nothing, as nothing is open."""
