"""The DuckDB of a worker process, which its tasks share one after the other.

Spark keeps Python workers between tasks (``spark.python.worker.reuse``). Opening a DuckDB and
loading the kernels takes longer than a small task, so an idle DuckDB waits for the next one. Sail
runs several tasks in one process at once; each then has a DuckDB of its own.

A loop reads the same fixed inputs in each step. Spark holds their rows (`ucle.spark.engine`), and
the tables that a task has made of them stay in its DuckDB, for later steps that come to this
process.
"""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from ucle.database.engine import DUCKDB
from ucle.sqlgen.script import sql_text
from ucle.sqlgen.sql_trees import identifier

MOST_KEPT = 8
"""The number of fragments of loops whose fixed tables a process holds."""

_idle: list[Worker] = []
_lock = threading.Lock()


class Worker:
    """A DuckDB with one thread, and the tables that it has from earlier tasks."""

    def __init__(self, memory: str | None) -> None:
        """Open a DuckDB; `memory` limits it."""
        self.memory = memory
        self.process = os.getpid()
        self.kept: OrderedDict[str, set[int]] = OrderedDict()
        """Partitions whose fixed tables are complete, by the key of their fragment."""
        # DuckDB creates the folder when it spills; where workers end at once, nothing is left.
        self._folder = Path(tempfile.gettempdir()) / f"ucle_{self.process}_{secrets.token_hex(8)}"
        self.session = DUCKDB.open(":memory:")
        self.session.interruptible = False
        self.offered = self.session.capabilities
        self.session.run(f"SET temp_directory = '{self._folder}'", "worker")
        self.session.run("SET threads = 1", "worker")
        if memory:
            self.session.run(f"SET memory_limit = '{memory}'", "worker")
        # Spark collects garbage after each task. To go through all that is imported takes longer
        # than a small task, and none of it will be garbage.
        gc.collect()
        gc.freeze()

    @property
    def has_spilled(self) -> bool:
        """True if files of it are on disk."""
        return self._folder.exists()

    def holds(self, key: str | None, part: int) -> bool:
        """True if the fixed tables of a partition are there from an earlier task."""
        return key is not None and part in self.kept.get(key, ())

    def keep(self, key: str, part: int) -> None:
        """Record that the fixed tables of a partition are complete; the oldest ones make way."""
        self.kept.setdefault(key, set()).add(part)
        self.kept.move_to_end(key)

    def tidy(self) -> None:
        """Drop the tables of a task, and those of fragments that were not met for long."""
        while len(self.kept) > MOST_KEPT:
            self.kept.popitem(last=False)
        for schema, name, kind in self.session.read(_OWN, "worker"):
            key, _, _ = name.partition(" ")
            if key not in self.kept:
                place = ".".join(sql_text(identifier(x)) for x in ("temp", schema, name))
                self.session.run(f"DROP {kind} IF EXISTS {place}", "worker")

    def close(self) -> None:
        """Close the DuckDB, and delete what it has spilled."""
        self.session.close()
        shutil.rmtree(self._folder, ignore_errors=True)


_OWN = (
    "SELECT schema_name, view_name, 'VIEW' FROM duckdb_views() "
    "WHERE database_name = 'temp' AND NOT internal UNION ALL "
    "SELECT schema_name, table_name, 'TABLE' FROM duckdb_tables() WHERE database_name = 'temp'"
)
"""The views and tables of tasks, views first."""


@contextlib.contextmanager
def open_worker(memory: str | None = None) -> Iterator[Worker]:
    """Lend a DuckDB of this process for a task, or open one; after an error it is closed."""
    worker = _take(memory) or Worker(memory)
    try:
        yield worker
        worker.session.capabilities = worker.offered
        worker.tidy()
    except BaseException:
        worker.close()
        raise
    if worker.has_spilled:
        worker.close()
        return
    with _lock:
        _idle.append(worker)


def _take(memory: str | None) -> Worker | None:
    """Return an idle DuckDB with this limit; one that a forked process has inherited is not its."""
    with _lock:
        for number, worker in enumerate(_idle):
            if worker.memory == memory and worker.process == os.getpid():
                return _idle.pop(number)
    return None
