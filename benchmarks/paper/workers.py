"""Engines in processes of their own, with limits of time and memory.

A `Worker` starts a process, has it load a task, and has it run as often as wanted, so that engines
can take turns. A run that takes too long is ended (TLE, time limit exceeded); one that needs more
memory than allowed fails (OOM, out of memory). The first result is compared before any time counts.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import resource
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.paper.catalogue import make_task
from benchmarks.peers import SkippedError, make_engine
from benchmarks.peers.tables import Entries

TOLERANCE = 1e-9
LOADING = 300.0
"""Seconds within which inputs have to be made and loaded."""
MEMORY_WORDS = ("memory", "bad_alloc", "Cannot allocate")
"""Words in the error messages of engines that are out of memory."""


@dataclass(frozen=True)
class Limits:
    """Seconds of one run, and bytes of address space; None for no limit."""

    seconds: float
    memory: int | None = None


@dataclass(frozen=True)
class Reply:
    """The answer of a worker: ``ok``, ``skipped``, ``TLE``, ``OOM`` or ``failed``."""

    status: str
    value: Any = None
    note: str = ""


class Worker:
    """A process for one engine, restarted after it was ended."""

    def __init__(self, engine: str, limits: Limits, **options: Any) -> None:
        self._limits = limits
        self._arguments = engine, limits, options
        self._process: Any = None
        self._pipe: Any = None

    @property
    def seconds(self) -> float:
        """The time limit of one run."""
        return self._limits.seconds

    def ask(self, command: str, *arguments: Any, seconds: float | None = None) -> Reply:
        """Send a command to the process, which is ended if it does not finish in time."""
        if self._process is None:
            self._start()
        seconds = self._limits.seconds if seconds is None else seconds
        try:
            self._pipe.send((command, arguments))
            if not self._pipe.poll(seconds):
                self.close()
                return Reply("TLE", note=f"more than {seconds:g} s")
            reply: Reply = self._pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join(5)
            code = self._process.exitcode
            self._process = None
            killed = code is not None and code < 0
            return Reply("OOM" if killed else "failed", note=f"the process ended with {code}")
        return reply

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, *self._arguments))
        self._process.start()
        other.close()

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            self._pipe.send(None)
            self._process.join(1)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process = None


def _serve(pipe: Connection, engine: str, limits: Limits, options: Any) -> None:
    """Execute commands in the worker's process until there are no more."""
    if limits.memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    service = _Service(engine, options)
    while (asked := pipe.recv()) is not None:
        command, arguments = asked
        try:
            reply = Reply("ok", getattr(service, command)(*arguments))
        except SkippedError as error:
            reply = Reply("skipped", note=str(error))
        except MemoryError as error:
            reply = Reply("OOM", note=str(error))
        except Exception as error:  # every engine has errors of its own
            reply = _failure(error)
        pipe.send(reply)
    service.unload()


def _failure(error: Exception) -> Reply:
    text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    if "statement timeout" in text:
        return Reply("TLE", note=text)
    return Reply("OOM" if any(word in text for word in MEMORY_WORDS) else "failed", note=text)


class _Service:
    """The commands of a worker."""

    def __init__(self, name: str, options: Any) -> None:
        self._name = name
        self._options = options
        self._engine: Any = None

    def load(self, task: str) -> float:
        """Load the inputs; return the seconds, without those for making the inputs."""
        self.unload()
        engine = make_engine(self._name, **self._options)
        made = make_task(task)
        start = time.perf_counter()
        engine.load(made)
        self._engine = engine
        return time.perf_counter() - start

    def run(self) -> float:
        """Run once; return the seconds."""
        start = time.perf_counter()
        self._engine.run()
        return time.perf_counter() - start

    def check(self, truth: Path) -> float:
        """Return the largest error of the last result, relative to the largest number."""
        return error_of(self._engine.result(), load_truth(truth))

    def call(self, module: str, function: str, *arguments: Any) -> Any:
        """Call any function of the benchmarks."""
        return getattr(importlib.import_module(module), function)(*arguments)

    def unload(self) -> None:
        """Close the engine."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None


def save_truth(value: Any, folder: Path) -> Path:
    """Write an expected result to a file that workers read."""
    if sp.issparse(value):
        path = folder / "truth.npz"
        sp.save_npz(path, sp.csr_array(value), compressed=False)
    else:
        path = folder / "truth.npy"
        np.save(path, value)
    return path


def load_truth(path: Path) -> Any:
    """Read a result that `save_truth` has written."""
    return sp.load_npz(path) if path.suffix == ".npz" else np.load(path)


def error_of(found: Any, expected: Any) -> float:
    """Return the largest error, relative to the largest expected number."""
    if sp.issparse(expected):
        if isinstance(found, Entries):
            keys = tuple(np.asarray(key, dtype=np.int64) for key in found.coordinates)
            found = sp.coo_array((found.values, keys), shape=expected.shape)
        return float(abs(sp.csr_array(found) - expected).max() / abs(expected).max())
    if isinstance(found, Entries):
        found = found.dense(expected.shape)
    elif sp.issparse(found):
        found = found.toarray()
    return float(np.abs(np.asarray(found) - expected).max() / np.abs(expected).max())
