"""Engines that do the same work, each behind one small protocol.

A module of this package has a class `Engine`. It is made in a process of its own, which loads the
inputs of one task, runs it as often as requested, and returns the last result.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol

from benchmarks.paper.tasks import Task

THREADS = 2
MEMORY = "8GB"
"""Memory limit of DuckDB, for both our side and others."""


class SkippedError(Exception):
    """The engine is not available, or cannot run a task; the message gives the reason."""


class Engine(Protocol):
    """An engine with the inputs of one task."""

    def load(self, task: Task) -> None:
        """Bring the inputs to the engine.

        Raises:
            SkippedError: the task is nothing for the engine.
        """
        ...

    def run(self) -> None:
        """Compute the result; that of an earlier run is dropped."""
        ...

    def result(self) -> Any:
        """Return the result of the last run: an array, a scipy matrix, or `Entries`."""
        ...

    def close(self) -> None:
        """Release all resources."""
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
"""Modules by their names in reports."""


def make_engine(name: str, **options: Any) -> Engine:
    """Return the engine with a name.

    Raises:
        SkippedError: a package that it needs is not installed.
    """
    try:
        module = importlib.import_module(f"benchmarks.peers.{MODULES[name]}")
        made: Engine = module.Engine(**options)
    except ImportError as error:
        raise SkippedError(f"not installed: {str(error).splitlines()[0]}") from error
    return made
