"""A bar on a terminal while the demo reads modules; nothing where nobody looks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import click

INTERVAL = 0.1
"""Seconds between two looks at how much is done."""

CLEAR = "\r\x1b[K\x1b[?25h"
"""Takes back the line that the cursor is in, and shows the cursor, which bars hide."""


@contextlib.contextmanager
def bar(label: str, length: int, done: Callable[[], int], stream: TextIO) -> Iterator[None]:
    """Show how many of `length` are done, until the caller is; then take the bar away.

    A thread asks `done` and draws, as the caller is busy. It draws at once, so that a bar is there
    from the beginning. A stream that is no terminal gets nothing.
    """
    if not stream.isatty():
        yield
        return
    finished = threading.Event()
    shown: Any = click.progressbar(
        length=length, label=label, file=stream, show_eta=False, show_pos=True, width=30
    )

    def draw() -> None:
        shown.render_progress()
        while not finished.wait(INTERVAL):
            shown.update(min(done(), length) - shown.pos)

    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    try:
        yield
    finally:
        finished.set()
        drawing.join()
        stream.write(CLEAR)
        stream.flush()
