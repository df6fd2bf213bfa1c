"""Trees without recursion: what waits is kept in lists, so that trees may be as deep as memory.

`walk` goes from the top down, `fold` works from the leaves up. A function that hands something down
and waits for answers is a generator: it yields what it would call and is sent what that returns,
and `run` does the calls. All three know of a tree only what the parts of a node are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

N = TypeVar("N")
T = TypeVar("T")

Calls: TypeAlias = Generator[Any, Any, T]
"""A call that is under way, which will return a T."""


def walk(tree: N, parts: Callable[[N], Sequence[N]]) -> Iterator[N]:
    """A tree and all below it, each node before its parts, left to right.

    >>> list(walk((1, (2, 3)), lambda node: node if isinstance(node, tuple) else ()))
    [(1, (2, 3)), 1, (2, 3), 2, 3]
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(parts(node)))


def fold(tree: N, parts: Callable[[N], Sequence[N]], make: Callable[[N, list[T]], T]) -> T:
    """What a tree comes to, from the leaves up and from left to right.

    Args:
        tree: the tree.
        parts: the parts of a node, left to right.
        make: what a node comes to, given what its parts have come to.

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
