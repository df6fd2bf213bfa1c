"""Fair comparisons in one process, and the tables that they fill.

The sides of a comparison run in turn, and their medians are compared: machines are shared and
noisy, and a slow minute then hits all sides alike.
"""

from __future__ import annotations

import os
import platform
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import scipy

from ucle.errors import ExecutionError

PAUSE = 0.25
"""Seconds before each run: a BLAS keeps its threads spinning for a while after its last call, and
they would take a core from whoever comes next."""

THREADS = 2
"""Of DuckDB, and of NumPy where it is to have as many."""


@dataclass(frozen=True)
class Table:
    """What one benchmark prints: `rows` measures while it is read."""

    name: str
    title: str
    notes: str
    header: Sequence[str]
    rows: Callable[[int], Iterator[Sequence[str]]]
    """Called with the number of rounds."""

    def lines(self, rounds: int) -> Iterator[str]:
        """The table in Markdown, a line as soon as it is known."""
        yield from [f"# {self.title}", "", *self.notes.split("\n"), "", machine(rounds), ""]
        yield f"| {' | '.join(self.header)} |"
        yield f"|{' --- |' * len(self.header)}"
        for row in self.rows(rounds):
            yield f"| {' | '.join(row)} |"


def machine(rounds: int) -> str:
    """What was measured with."""
    return (
        f"Medians of {rounds} rounds in turn, in seconds; DuckDB {duckdb.__version__} with "
        f"{THREADS} threads, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"{platform.machine()} with {os.cpu_count()} cores."
    )


def race(
    sides: Mapping[str, Callable[[], Any]],
    rounds: int,
    check: Callable[[str, Any], None] | None = None,
) -> dict[str, float]:
    """Run each side in turn, `rounds` times over; the median of seconds of each.

    A first run of each is not counted; `check` gets its result. Results with a `close` are closed
    outside of the time.
    """
    times: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds + 1):
        for side, function in sides.items():
            time.sleep(PAUSE)
            start = time.perf_counter()
            result = function()
            seconds = time.perf_counter() - start
            if number:
                times[side].append(seconds)
            elif check is not None:
                check(side, result)
            if hasattr(result, "close"):
                result.close()
            del result
    return {side: statistics.median(values) for side, values in times.items()}


def capped(connection: duckdb.DuckDBPyConnection, run: Callable[[], Any], cap: float) -> float:
    """The seconds that a run on a connection takes, or the cap, at which it is ended.

    What runs out of memory or of room on the disk counts as the cap, too.
    """
    timer = threading.Timer(cap, connection.interrupt)
    timer.start()
    start = time.perf_counter()
    try:
        run()
    except (ExecutionError, duckdb.Error) as error:
        text = str(error)
        if time.perf_counter() - start < cap and "Out of Memory" not in text:
            raise
        return cap
    finally:
        timer.cancel()
    return time.perf_counter() - start


def expect_close(name: str, found: Any, expected: Any, tolerance: float) -> None:
    """Refuse to time a wrong answer: the largest error, relative to the largest expected value."""
    worst = float(abs(found - expected).max() / abs(expected).max())
    if not worst <= tolerance:
        raise SystemExit(f"{name} is wrong by {worst:.1e}")


def tolerance_of(dtype: Any) -> float:
    """What rounding may do to a sum."""
    return 1e-9 if np.finfo(dtype).bits == 64 else 1e-4


def ratio(value: float) -> str:
    """A ratio with as many digits as mean something."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
