"""Traversal of trees without recursion: pending nodes are in lists, so depth is unlimited.

`walk` goes from the top down, `fold` from the leaves up. A function that would call itself and use
the results is written as a generator: it yields the calls and is sent their results, and `run`
executes them. All three access a tree only through the parts of a node.

Where a stage is recursive all the same, Python allows about a thousand nested calls. `limits_depth`
wraps the entry points of the package, so that a `RecursionError` never leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

from ucle.errors import DepthError

N = TypeVar("N")
T = TypeVar("T")

Calls: TypeAlias = Generator[Any, Any, T]
"""A suspended call that will return a T."""


def walk(tree: N, parts: Callable[[N], Sequence[N]]) -> Iterator[N]:
    """Yield a tree and all nodes below it, each node before its parts, left to right.

    >>> list(walk((1, (2, 3)), lambda node: node if isinstance(node, tuple) else ()))
    [(1, (2, 3)), 1, (2, 3), 2, 3]
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(parts(node)))


def fold(tree: N, parts: Callable[[N], Sequence[N]], make: Callable[[N, list[T]], T]) -> T:
    """Reduce a tree to a value, from the leaves up and from left to right.

    Args:
        tree: the tree.
        parts: the parts of a node, left to right.
        make: computes the value of a node from those of its parts.

    >>> fold((1, (2, 3)), lambda node: node if isinstance(node, tuple) else (),
    ...      lambda node, known: sum(known) if known else node)
    6
    """
    order, waiting = list[tuple[N, int]](), [tree]
    while waiting:
        node = waiting.pop()
        below = parts(node)
        order.append((node, len(below)))
        waiting.extend(below)
    results: list[T] = []
    for node, count in reversed(order):  # now each comes after its parts
        first = len(results) - count
        results[first:] = [make(node, results[first:])]
    (whole,) = results
    return whole


def run(call: Calls[T]) -> T:
    """Return the result of a call, after running all calls that it yields.

    >>> def depth(tree):
    ...     deepest = 0
    ...     for part in tree:
    ...         deepest = max(deepest, (yield depth(part)))
    ...     return deepest + 1
    >>> tree = ()
    >>> for _ in range(100_000):
    ...     tree = (tree,)
    >>> run(depth(tree))
    100001
    """
    waiting: list[Calls[Any]] = [call]
    answer: Any = None
    while waiting:
        try:
            called = waiting[-1].send(answer)
        except StopIteration as returned:
            waiting.pop()
            answer = returned.value
        else:
            waiting.append(called)
            answer = None
    result: T = answer
    return result


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
      hint: split it: compute parts of it in separate statements
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
        hint="split it: compute parts of it in separate statements",
    )
