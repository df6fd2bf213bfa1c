"""How far an execution is: what DuckDB knows of the statement that it runs.

DuckDB counts what the scans of a statement have read, if it is told to. It knows nothing of the
statements that will follow, so that an execution tells which of them it is at.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import duckdb

INTERVAL = 0.1
"""Seconds between two looks at a running statement."""

SETTINGS = {"enable_progress_bar": "true", "enable_progress_bar_print": "false"}
"""What has DuckDB count, and keep it to itself."""


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


@contextlib.contextmanager
def counted(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Have DuckDB count for the time of a block; the connection's own settings come back."""
    before = {}
    try:
        with contextlib.suppress(duckdb.Error):
            for name, value in SETTINGS.items():
                ((before[name],),) = connection.execute(
                    "SELECT current_setting(?)", [name]
                ).fetchall()
                connection.execute(f"SET {name} = {value}").fetchall()
        yield
    finally:
        with contextlib.suppress(duckdb.Error):  # an aborted transaction, a closed connection
            for name, value in before.items():
                connection.execute(f"SET {name} = {str(value).lower()}").fetchall()


def share_done(connection: duckdb.DuckDBPyConnection) -> float:
    """How much of the running statement is done; 0 where DuckDB does not know."""
    try:
        percent = float(connection.query_progress())
    except (AttributeError, duckdb.Error):  # an old DuckDB; nothing is running
        return 0.0
    return min(max(percent / 100, 0.0), 1.0)
