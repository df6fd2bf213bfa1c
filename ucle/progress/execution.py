"""How far an execution is: what DuckDB knows of the statement that it runs.

DuckDB counts what the scans of a statement have read, if it is told to. It knows nothing of the
statements that will follow, so that an execution tells which of them it is at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

INTERVAL = 0.1
"""Seconds between two looks at a running statement."""


@dataclass(frozen=True)
class Progress:
    """Where an execution is.

    >>> Progress("Z", 2, 4, 0.5).total
    0.375
    """

    step: str
    """The step that is running, as `EinsumProgram.explain` names it."""
    number: int
    """Which one it is, from 1 on."""
    steps: int
    share: float = 0.0
    """How much of the step is done, between 0 and 1, as far as DuckDB knows."""

    @property
    def total(self) -> float:
        """How much of the execution is done, if all steps took the same time."""
        return (self.number - 1 + self.share) / self.steps


Watch = Callable[[Progress], object]
"""What is told about an execution, in the thread that waits for it."""
