"""Threads that wait for the next statement: to start one for each takes longer than small ones do.

A thread is lent to one statement at a time. Who needs one while all are lent, as in a function that
is told of progress and runs a program itself, gets a new one.
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
    """A pool of one thread, that is free until the end of the block.

    What was handed over has to have ended by then. When it was left by an exception, the thread is
    waited for, as by a pool of one's own.

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
