"""A typed error for programs that are nested too deeply, whatever stage fails.

Expressions are trees, and the stages traverse them recursively, while Python allows about a
thousand nested calls. `limits_depth` wraps the entry points of the package, so that a
`RecursionError` never leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from ucle.errors import DepthError

P = ParamSpec("P")
R = TypeVar("R")


def limits_depth(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function raise ucle's error for programs that are nested too deeply.

    >>> @limits_depth
    ... def endless(n):
    ...     return endless.__wrapped__(n + 1)  # without its checks
    >>> endless(0)
    Traceback (most recent call last):
    ...
    ucle.errors.DepthError: the program is nested too deeply
      expected: expressions of some hundred levels, and sums of some hundred terms
      hint: give parts of it a name, each in a statement of its own
    """

    @wraps(function)
    def call_limited(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            pass  # the error would keep a thousand calls alive
        raise build_depth_error()

    return call_limited


def build_depth_error(where: str | None = None) -> DepthError:
    """Return the error for programs that are nested too deeply."""
    return DepthError(
        "the program is nested too deeply",
        where=where,
        expected="expressions of some hundred levels, and sums of some hundred terms",
        hint="give parts of it a name, each in a statement of its own",
    )
