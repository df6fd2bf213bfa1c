"""Threads and forks: the lock that makes forks safe, and idle threads for the next statement.

A forked process has one thread. Locks that other threads held at that moment are never released in
it: neither locks of Python, nor those that DuckDB or the dynamic loader take while a database is
opened. So a thread that opens one holds `opening`, and a fork waits until it is free. The same
holds for late imports, as Python has a lock for each module on which other threads wait.

A fork takes this lock before those of `logging` and `concurrent.futures`, which therefore have to
be imported before this module. A thread that opens a database starts no thread and logs nothing
while it holds the lock.

Starting a thread takes longer than a small statement, so threads are kept. A thread is lent to one
statement at a time. If all are lent, as when a progress function runs a program itself, a new one
is started.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - see above
import functools
import gc
import importlib
import logging  # noqa: F401
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import ModuleType

opening = threading.RLock()
"""The lock. It is reentrant: a signal handler that forks may have interrupted its holder."""


def import_late(name: str) -> ModuleType:
    """Import a module on first use, and not while another thread forks."""
    if (module := sys.modules.get(name)) is not None and not _is_begun(module):
        return module
    with opening, _collector_paused():
        return importlib.import_module(name)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the garbage collector from looking at what modules make as long as more is imported.

    It finds none, as all of it stays, and took up to a quarter of the time of a first statement.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _is_begun(module: ModuleType) -> bool:
    """True if a module is being imported."""
    return bool(getattr(module.__spec__, "_initializing", False))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=opening.acquire, after_in_parent=opening.release, after_in_child=opening.release
    )


def _renew_property_locks() -> None:
    """Renew the locks of cached properties, which a thread of the parent process may have held.

    Up to Python 3.11 a cached property has one lock for all objects of its class.
    """
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "ucle":
            continue
        classes = [x for x in vars(module).values() if isinstance(x, type)]
        for each in (x for owner in classes for x in vars(owner).values()):
            if isinstance(each, functools.cached_property):
                each.lock = threading.RLock()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork") and sys.version_info < (3, 12):
    os.register_at_fork(after_in_child=_renew_property_locks)


_idle: deque[ThreadPoolExecutor] = deque()


@contextmanager
def borrowed_thread() -> Iterator[ThreadPoolExecutor]:
    """Lend a pool of one thread until the end of the block.

    Submitted work has to end within the block. If an exception leaves the block, it waits for the
    thread, as the end of an ordinary pool does. The thread is kept even then: after an error for
    lack of memory, a new one might not get the memory in which C++ keeps an exception of a thread,
    for which the C library ends the process.

    >>> with borrowed_thread() as pool:
    ...     pool.submit(sum, (1, 2)).result()
    3
    """
    try:
        pool = _idle.pop()
    except IndexError:
        pool = ThreadPoolExecutor(1, "ucle")
    try:
        yield pool
    except BaseException:
        try:
            pool.submit(int).result()  # after what was submitted before
        except BaseException:
            pool.shutdown()
        else:
            _idle.append(pool)
        raise
    _idle.append(pool)


# A forked process has none of these threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)
