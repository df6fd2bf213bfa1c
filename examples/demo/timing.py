"""Time the demo's programs: several in turn, in bounded time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from ucle.errors import UcleError
from ucle.program import EinsumProgram

ROUNDS = 3
"""Executions of which the fastest counts."""

LIMIT = 5.0
"""Seconds after which an execution is interrupted, if nobody says otherwise."""

BUDGET = 1.0
"""Seconds after which a program is not executed once more."""


def fastest(
    programs: tuple[EinsumProgram, ...], connection: duckdb.DuckDBPyConnection, limit: float
) -> list[float]:
    """Seconds of the fastest execution of each; infinite where `limit` seconds did not do.

    Programs take turns, so that all of them meet what else the machine does.
    """
    times: list[list[float]] = [[] for _ in programs]
    for _ in range(ROUNDS):
        for program, seconds in zip(programs, times, strict=True):
            if sum(seconds) < BUDGET:
                seconds.append(execution_time(program, connection, limit))
    return [min(seconds) for seconds in times]


def versus(seconds: list[float], limit: float) -> tuple[str, str, str]:
    """The times of a program as chosen and as relational SQL, and how much longer that took.

    >>> versus([0.2, 1.5], 5.0)
    ('0.200 s', '1.500 s', '7.5 times as long')
    >>> versus([0.2, math.inf], 5.0)
    ('0.200 s', '> 5 s', 'more than 25 times as long')
    """
    chosen, plain = (f"{x:.3f} s" if x < math.inf else f"> {limit:g} s" for x in seconds)
    if seconds[0] == math.inf:
        return chosen, plain, ""
    ratio = (
        min(seconds[1], limit) / seconds[0] if seconds[1] == math.inf else seconds[1] / seconds[0]
    )
    more = "more than " if seconds[1] == math.inf else ""
    return chosen, plain, f"{more}{ratio:.3g} times as long" if ratio > 1.05 else ""


def execution_time(
    program: EinsumProgram, connection: duckdb.DuckDBPyConnection, limit: float
) -> float:
    """Seconds of one execution; infinite if it was interrupted at the limit."""
    start = time.perf_counter()
    try:
        with interrupted_after(connection, limit), program.execute(connection):
            return time.perf_counter() - start
    except UcleError as error:  # whatever it was that DuckDB did for the execution
        if isinstance(error.__cause__, duckdb.InterruptException):
            return math.inf
        raise


@contextmanager
def interrupted_after(connection: duckdb.DuckDBPyConnection, limit: float) -> Iterator[None]:
    """Interrupt whatever the connection runs once `limit` seconds have passed."""
    finished = threading.Event()

    def watch() -> None:
        # More than once, as an interrupt that strikes between two statements is lost.
        wait = limit
        while not finished.wait(wait):
            connection.interrupt()
            wait = 0.1

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()
