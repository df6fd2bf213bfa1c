"""The optimiser, which counts how often it runs, in the place of that of the plan cache."""

from __future__ import annotations

from typing import Any

from ucle.pipeline import plan_cache


class Counted:
    """The optimiser, and how often it ran."""

    def __init__(self) -> None:
        self.runs = 0
        self._optimise = plan_cache.optimise

    def __call__(self, *arguments: Any) -> Any:
        self.runs += 1
        return self._optimise(*arguments)
