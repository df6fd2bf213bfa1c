"""Modules are read in the background: first the imports of all, then the identifiers of all.

A `Reading` begins as soon as it is made, in processes of its own, so that a caller can import,
compile and execute meanwhile. Processes are bare interpreters that run `ucle.command.read_source`
as a file: they know nothing of ucle, which takes longer to import than they take to begin.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from ucle.command import read_source
from ucle.command.read_source import Imports, SourceFile, Words

FEW = 256
"""Modules that are read in less time than it takes to begin a process."""

MOST = 8
"""Processes at most."""

Read = TypeVar("Read")


def spare_cores() -> int:
    """How many processes read: those cores that the demo itself leaves, and one at least."""
    return max(1, min((os.cpu_count() or 1) - 1, MOST))


class Reading:
    """What is read of some modules.

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
        # Each takes every so manieth module, as files of one package are of one kind.
        self._processes = [_Process(self.modules[n::workers]) for n in range(workers)]
        self._done = [0, 0]

    def __enter__(self) -> Reading:
        """The reading, which is given up at the end."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the processes."""
        for process in self._processes:
            process.close()

    def imports_done(self) -> int:
        """Of how many modules the imports are known."""
        return self._done[0] + sum(process.done(0) for process in self._processes)

    def words_done(self) -> int:
        """Of how many modules the identifiers are known."""
        return self._done[1] + sum(process.done(1) for process in self._processes)

    def imports(self) -> list[Imports]:
        """What each module imports; waits for those that are not read."""
        found = self._all(0, read_source.read_imports)
        return [tuple(tuple(names) for names in imports) for imports in found]

    def words(self) -> list[Words]:
        """The identifiers of each module; waits for those that are not read."""
        found = self._all(1, read_source.read_words)
        return [tuple((word, count) for word, count in words) for words in found]

    def _all(self, part: int, read: Callable[[SourceFile], Read]) -> list[Read]:
        found: list[Any] = [None] * len(self.modules)
        for number, process in enumerate(self._processes):
            lines = process.lines(part)
            places = range(number, len(self.modules), len(self._processes))
            for place, line in zip(places, lines, strict=False):
                found[place] = json.loads(line)
        for place, module in enumerate(self.modules):
            if found[place] is None:  # no process reads it, or the one that should was killed
                found[place] = read(module)
                self._done[part] += 1
        return found


class _Process:
    """A process that reads some modules, and the thread that takes what it says."""

    def __init__(self, modules: Sequence[SourceFile]) -> None:
        self._modules = modules
        self._lines: tuple[list[str], list[str]] = ([], [])
        self._read = (threading.Event(), threading.Event())
        command = [sys.executable, "-I", "-S", "-X", "utf8", str(read_source.__file__)]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=nowhere, encoding="utf-8"
        )
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self._thread.start()

    def _talk(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            # A process that was killed says less than it was asked.
            with suppress(OSError, ValueError), self._process.stdin as stdin:
                json.dump(self._modules, stdin)
            with suppress(OSError, ValueError):
                for lines, read in zip(self._lines, self._read, strict=True):
                    for line in self._process.stdout:
                        if line.endswith("\n"):
                            lines.append(line)
                        if len(lines) == len(self._modules):
                            break
                    read.set()
        finally:
            for read in self._read:
                read.set()

    def done(self, part: int) -> int:
        return len(self._lines[part])

    def lines(self, part: int) -> list[str]:
        self._read[part].wait()
        return self._lines[part]

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
