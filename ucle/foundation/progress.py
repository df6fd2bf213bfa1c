"""The progress of an execution, as DuckDB reports it, and a bar that shows it at a terminal.

DuckDB counts the rows that the scans of a statement have read, if that is switched on. It knows
nothing of the following statements, so that an execution reports which of them is running.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.libraries import click

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


PATIENCE = 1.0
"""Seconds after which a bar is shown."""

FINENESS = 1000
"""Steps of a bar."""


@contextlib.contextmanager
def progress_bar() -> Iterator[Watch | None]:
    """Yield the watch for `execute`; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(sys.stderr)
    try:
        yield bar.show
    finally:
        bar.close()


class _Bar:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()
        self._bar: Any = None

    def show(self, progress: Progress) -> None:
        if time.monotonic() - self._started < PATIENCE:
            return
        if self._bar is None:
            self._bar = click.progressbar(
                length=FINENESS, file=self._stream, show_eta=False, item_show_func=_step
            )
            self._bar.render_progress()
        reached = max(round(FINENESS * progress.total), self._bar.pos)
        self._bar.update(reached - self._bar.pos, progress)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.render_finish()


def _step(progress: Progress | None) -> str | None:
    if progress is None:
        return None
    return f"{progress.step} ({progress.number}/{progress.steps})"
