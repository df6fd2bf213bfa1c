"""Engines that do the same work, each behind one small protocol.

A module of this package has a class `Engine`. It is made in a process of its own, which loads the
inputs of one task, runs it as often as it is asked to, and hands out the last result.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol

from benchmarks.paper.tasks import Task

THREADS = 2
MEMORY = "8GB"
"""What DuckDB may use, ours and theirs."""


class SkippedError(Exception):
    """The engine is not here, or has nothing for a task; the message says why."""


class Engine(Protocol):
    """An engine with the inputs of one task."""

    def load(self, task: Task) -> None:
        """Bring the inputs to where the engine works on them.

        Raises:
            SkippedError: the task is nothing for the engine.
        """
        ...

    def run(self) -> None:
        """Compute the result; what an earlier run has left is dropped."""
        ...

    def result(self) -> Any:
        """The result of the last run: an array, a scipy matrix, or `Entries`."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


MODULES = {
    "ucle": "ucle_",
    "DuckDB, relational": "duckdb_relational",
    "Hyper, relational": "hyper",
    "PostgreSQL, relational": "postgres",
    "SQLite, relational": "sqlite",
    "SciPy / NumPy": "scipy_",
    "PyTorch": "torch_",
    "DGL": "dgl_",
}
"""Modules by the name that reports use."""


def make_engine(name: str, **options: Any) -> Engine:
    """The engine of a name.

    Raises:
        SkippedError: what it needs is not installed.
    """
    try:
        module = importlib.import_module(f"benchmarks.peers.{MODULES[name]}")
        made: Engine = module.Engine(**options)
    except ImportError as error:
        raise SkippedError(f"not installed: {str(error).splitlines()[0]}") from error
    return made
