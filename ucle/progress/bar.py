"""A progress bar on stderr for executions that take a while, at a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any, TextIO

import click

from ucle.progress.execution import Progress, Watch

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
