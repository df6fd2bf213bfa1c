"""Idle threads for the next statement: starting a thread takes longer than a small statement.

A thread is lent to one statement at a time. If all are lent, as when a progress function runs a
program itself, a new one is started.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

_idle: deque[ThreadPoolExecutor] = deque()


@contextmanager
def borrowed_thread() -> Iterator[ThreadPoolExecutor]:
    """Lend a pool of one thread until the end of the block.

    Submitted work has to end within the block. If an exception leaves the block, it waits for the
    thread, as the end of an ordinary pool does.

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
        pool.shutdown()
        raise
    _idle.append(pool)


# A forked process has none of these threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)
