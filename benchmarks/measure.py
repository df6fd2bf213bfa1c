"""Fair comparisons in one process, and the tables of their results.

The sides of a comparison run in turn, and their medians are compared: machines are shared and
noisy, and a slow minute then affects all sides alike.
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
"""Seconds before each run: a BLAS' threads spin after its last call and would take a core."""

THREADS = 2
"""Threads of DuckDB, and of NumPy where it should have as many."""


@dataclass(frozen=True)
class Table:
    """The table of one benchmark: `rows` measures while it is read."""

    name: str
    title: str
    notes: str
    header: Sequence[str]
    rows: Callable[[int], Iterator[Sequence[str]]]
    """Yields rows; its argument is the number of rounds."""

    def lines(self, rounds: int) -> Iterator[str]:
        """Yield the table in Markdown, each line as soon as it is known."""
        yield from [f"# {self.title}", "", *self.notes.split("\n"), "", machine(rounds), ""]
        yield f"| {' | '.join(self.header)} |"
        yield f"|{' --- |' * len(self.header)}"
        for row in self.rows(rounds):
            yield f"| {' | '.join(row)} |"


def machine(rounds: int) -> str:
    """Describe the machine and the versions."""
    return (
        f"Medians of {rounds} alternating rounds, in seconds unless stated otherwise; "
        f"DuckDB {duckdb.__version__} with {THREADS} threads, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, {platform.machine()} with {os.cpu_count()} cores."
    )


def race(
    sides: Mapping[str, Callable[[], Any]],
    rounds: int,
    check: Callable[[str, Any], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Run each side in turn, `rounds` times; return the median seconds of each, by the clock.

    A first run of each side is not counted; `check` gets its result. Results with a `close` are
    closed outside the measured time.
    """
    times: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds + 1):
        for side, function in sides.items():
            time.sleep(PAUSE)
            start = clock()
            result = function()
            seconds = clock() - start
            if number:
                times[side].append(seconds)
            elif check is not None:
                check(side, result)
            if hasattr(result, "close"):
                result.close()
            del result
    return {side: statistics.median(values) for side, values in times.items()}


def capped(connection: duckdb.DuckDBPyConnection, run: Callable[[], Any], cap: float) -> float:
    """Return the seconds of a run on a connection, which is interrupted at the cap.

    A run that exhausts memory or disk space counts as the cap, too.
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
    """The relative rounding error that a sum may have."""
    return 1e-9 if np.finfo(dtype).bits == 64 else 1e-4


def ratio(value: float) -> str:
    """Format a ratio with its significant digits."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
