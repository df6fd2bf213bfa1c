"""Loggers: what ucle does and how long it takes, for whoever turns `logging` on.

| logger | INFO | DEBUG |
| --- | --- | --- |
| ``ucle.compile`` | a program: its decomposition, cost and route | |
| ``ucle.statistics`` | an input that was measured or checked | SQL; what was found or known |
| ``ucle.execute`` | an execution: rows of each output | each statement: SQL and time |
| ``ucle.store`` | an input that was stored in another layout | |
| ``ucle.result`` | a tensor that was written as entries where arrays are much smaller | |

``ucle`` itself warns where kernels cannot be loaded on a connection that allows extensions, once a
connection. Nothing is printed unless the program that uses ucle configures `logging`.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator

UCLE = logging.getLogger("ucle")
COMPILE = logging.getLogger("ucle.compile")
STATISTICS = logging.getLogger("ucle.statistics")
EXECUTE = logging.getLogger("ucle.execute")
STORE = logging.getLogger("ucle.store")
RESULT = logging.getLogger("ucle.result")

UCLE.addHandler(logging.NullHandler())


@contextlib.contextmanager
def timed(log: logging.Logger, level: int, text: str, *arguments: object) -> Iterator[None]:
    """Log how long a block took, once it has ended well.

    >>> log = logging.getLogger("ucle.example")
    >>> with timed(log, logging.DEBUG, "counted to %d", 1000):
    ...     count = sum(range(1000))
    """
    started = time.perf_counter()
    yield
    log.log(level, f"{text} (%.3f s)", *arguments, time.perf_counter() - started)
