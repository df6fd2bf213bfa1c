"""Recursion that takes no stack: functions that hand their calls on and wait for the answers.

A function of a tree that has to be written from the top down is a generator here. It yields what it
would call and is sent what that returns; `run` keeps those that wait in a list, so that trees may
be as deep as memory allows.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Calls: TypeAlias = Generator[Any, Any, T]
"""A call that is under way, which will return a T."""


def run(call: Calls[T]) -> T:
    """What a call returns, with all those that it hands on.

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
