"""The progress of an execution: DuckDB's progress of the statement that it runs.

DuckDB counts the rows that the scans of a statement have read, if that is switched on. It knows
nothing of the following statements, so that an execution reports which of them is running.
"""

from __future__ import annotations

from collections.abc import Callable

from ucle.foundation.dataclasses import dataclass

INTERVAL = 0.1
"""Seconds between two checks of a running statement."""


@dataclass(frozen=True)
class Progress:
    """The progress of an execution.

    >>> Progress("Z", 2, 4, 0.5).total
    0.375
    """

    step: str
    """The step that is running, as `EinsumProgram.explain` names it."""
    number: int
    """The number of the step, from 1 on."""
    steps: int
    share: float = 0.0
    """The share of the step that is done, between 0 and 1, as reported by DuckDB."""

    @property
    def total(self) -> float:
        """The share of the execution that is done, as if all steps took the same time."""
        return (self.number - 1 + self.share) / self.steps


Watch = Callable[[Progress], object]
"""A function that receives progress, in the thread that waits for the execution."""
