"""Loggers: actions of ucle and their durations, for applications that configure `logging`.

| logger | INFO | DEBUG |
| --- | --- | --- |
| ``ucle.compile`` | a program: its decomposition, cost and route | |
| ``ucle.statistics`` | an input that was measured or checked | SQL; what was found or known |
| ``ucle.execute`` | an execution: rows of each output | each statement: SQL and time |
| ``ucle.store`` | an input that was stored in another layout | |
| ``ucle.result`` | a tensor that was written as entries where arrays are much smaller | |

``ucle`` itself warns where kernels cannot be loaded on a connection that allows extensions, once a
connection. Nothing is printed unless the program that uses ucle configures `logging`. Python
warnings are issued by `warn_caller`.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
import warnings
from collections.abc import Iterator

UCLE = logging.getLogger("ucle")
COMPILE = logging.getLogger("ucle.compile")
STATISTICS = logging.getLogger("ucle.statistics")
EXECUTE = logging.getLogger("ucle.execute")
STORE = logging.getLogger("ucle.store")
RESULT = logging.getLogger("ucle.result")

UCLE.addHandler(logging.NullHandler())


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the line that called ucle, however many functions of ucle lie in between."""
    level, frame = 1, sys._getframe()
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(text, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("ucle", "contextlib")


@contextlib.contextmanager
def timed(log: logging.Logger, level: int, text: str, *arguments: object) -> Iterator[None]:
    """Log the duration of a block that ends without an error.

    >>> log = logging.getLogger("ucle.example")
    >>> with timed(log, logging.DEBUG, "counted to %d", 1000):
    ...     count = sum(range(1000))
    """
    started = time.perf_counter()
    yield
    log.log(level, f"{text} (%.3f s)", *arguments, time.perf_counter() - started)
