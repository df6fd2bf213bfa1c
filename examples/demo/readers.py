"""Modules are read in the background: first the imports of all, then the identifiers of all.

A `Reading` begins as soon as it is made, in processes of its own, so that a caller can import,
compile and execute meanwhile. Processes are bare interpreters that run `ucle.demo.read_source`
as a file: they know nothing of ucle, which takes longer to import than they take to begin.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from ucle.demo import read_source
from ucle.demo.read_source import Imports, SourceFile, Words

FEW = 256
"""Modules that are read in less time than it takes to begin a process."""

MOST = 8
"""Processes at most."""

Read = TypeVar("Read")


def spare_cores() -> int:
    """The number of reading processes: the cores that the demo leaves free, at least one."""
    return max(1, min((os.cpu_count() or 1) - 1, MOST))


class Reading:
    """A reading of some modules, in other processes.

    Args:
        modules: to be read.
        workers: processes that read them. With none, or for few modules, they are read when
            somebody asks for what they hold.
    """

    def __init__(self, modules: Sequence[SourceFile], workers: int | None = None) -> None:
        """Begin to read."""
        self.modules = tuple(modules)
        workers = spare_cores() if workers is None else workers
        if len(modules) < FEW or not _can_begin_processes():
            workers = 0
        # Each takes every nth module of n processes, as files of a package are alike.
        self._processes = [_Process(self.modules[n::workers]) for n in range(workers)]
        self._done = [0, 0]  # by the caller itself
        self._imports: list[Imports] | None = None

    def __enter__(self) -> Reading:
        """Return the reading, whose processes end with the context."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the processes."""
        self.close()

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.close()

    def imports_done(self) -> int:
        """The number of modules whose imports are known."""
        return self._count(0)

    def words_done(self) -> int:
        """The number of modules whose identifiers are known."""
        return self._count(1)

    def imports(self) -> list[Imports]:
        """The imports of each module; waits for modules that are not read yet."""
        if self._imports is None:
            found = self._all(0, read_source.read_imports)
            self._imports = [tuple(tuple(names) for names in imports) for imports in found]
        return self._imports

    def words(self) -> list[Words]:
        """The identifiers of each module; waits for those that are not read."""
        found = self._all(1, read_source.read_words)
        self.close()  # What the caller has read itself needs no process any more.
        return [tuple((word, count) for word, count in words) for words in found]

    def _count(self, part: int) -> int:
        return self._done[part] + sum(process.count_done(part) for process in self._processes)

    def _all(self, part: int, read: Callable[[SourceFile], Read]) -> list[Read]:
        """Collect the results of all modules; while it waits, reads them from the other end."""
        count = max(len(self._processes), 1)
        found: list[Any] = [None] * len(self.modules)
        with _no_collections():
            for place in reversed(range(len(self.modules))):
                process = self._processes[place % count] if self._processes else None
                if process is None or process.count_done(part) <= place // count:
                    found[place] = read(self.modules[place])
                    self._done[part] += 1
        for number, process in enumerate(self._processes):
            places = range(number, len(found), count)
            for place, line in zip(places, process.lines(part), strict=False):
                if found[place] is None:
                    found[place] = json.loads(line)
        return found


@contextmanager
def _no_collections() -> Iterator[None]:
    """Looks for no garbage in circles meanwhile: `ucle.demo.read_source.main` says why."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Process:
    """A process that reads some modules, and the thread that takes what it says."""

    def __init__(self, modules: Sequence[SourceFile]) -> None:
        self._modules = modules
        self._lines: list[str] = []
        command = [sys.executable, "-I", "-S", "-X", "utf8", str(read_source.__file__)]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=nowhere, encoding="utf-8"
        )
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self._thread.start()

    def _talk(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # A killed process neither reads all of its input nor prints all results.
        with suppress(OSError, ValueError), self._process.stdin as stdin:
            json.dump(self._modules, stdin)
        with suppress(OSError, ValueError):
            for line in self._process.stdout:
                if line.endswith("\n"):
                    self._lines.append(line)

    def count_done(self, part: int) -> int:
        """The number of its modules whose imports (0) or identifiers (1) it has read."""
        count = len(self._modules)
        return min(max(len(self._lines) - part * count, 0), count)

    def lines(self, part: int) -> list[str]:
        """The lines that it has printed about a part."""
        count = len(self._modules)
        return self._lines[part * count : (part + 1) * count]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _can_begin_processes() -> bool:
    return bool(sys.executable) and Path(read_source.__file__ or "").is_file()
