"""Binary trees over the factors of a product: the order in which they are joined.

A leaf is the number of a factor, and an inner node is a pair. This module has the trees themselves,
independent of their factors and of any cost; `ucle.lowering.contraction_orders` has paths, an
equivalent notation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeVar, Union

from ucle.foundation import tree_walk

Tree = Union[int, "tuple[Tree, Tree]"]
"""The association of factors: ``((0, 1), 2)`` is (A * B) * C, ``(0, (1, 2))`` is A * (B * C)."""

Path = tuple[tuple[int, ...], ...]
"""A tree in NumPy's notation: positions of operands, step by step; results go to the end."""

T = TypeVar("T")


def tree_of(steps: Iterable[tuple[int, int]], count: int) -> Tree:
    """Return the tree of a path of pairs: positions of two factors, whose result goes to the end.

    >>> tree_of([(1, 2), (0, 1)], 3)
    (0, (1, 2))
    """
    waiting: list[Tree] = list(range(count))
    for first, second in steps:
        joined = (waiting[first], waiting[second])
        waiting = [tree for at, tree in enumerate(waiting) if at not in (first, second)]
        waiting.append(joined)
    (tree,) = waiting
    return tree


def fold(tree: Tree, leaf: Callable[[int], T], node: Callable[[tuple[Tree, Tree], T, T], T]) -> T:
    """Fold a tree of any depth, from the leaves up and from left to right.

    Args:
        tree: the tree.
        leaf: gives the value of a leaf.
        node: gives the value of an inner node from the node and the values of its sides.

    >>> fold(((0, 1), 2), str, lambda _, left, right: f"({left} {right})")
    '((0 1) 2)'
    """

    def make(part: Tree, sides: list[T]) -> T:
        return leaf(part) if isinstance(part, int) else node(part, *sides)

    return tree_walk.fold(tree, _sides, make)


def _sides(tree: Tree) -> tuple[Tree, ...]:
    return () if isinstance(tree, int) else tree


def leaves(tree: Tree) -> tuple[int, ...]:
    """Return the factors of a tree, left to right."""
    factors: list[int] = []
    fold(tree, factors.append, lambda *_: None)
    return tuple(factors)


def joins(tree: Tree) -> list[tuple[int, int]]:
    """Return the joins of a tree, step by step; a result has the number of its leftmost factor.

    >>> joins((0, (1, 2)))
    [(1, 2), (0, 1)]
    """
    steps: list[tuple[int, int]] = []

    def join(_: Tree, left: int, right: int) -> int:
        steps.append((left, right))
        return left

    fold(tree, int, join)
    return steps


def in_order(tree: Tree) -> Tree:
    """Return the tree with its operands as near to the order of the factors as it lets them be.

    Trees in this form are equal exactly if they associate the factors in the same way.

    >>> in_order((2, (1, 0)))
    ((0, 1), 2)
    """

    def ordered(
        node: tuple[Tree, Tree], one: tuple[int, Tree], other: tuple[int, Tree]
    ) -> tuple[int, Tree]:
        (least, left), (_, right) = sorted((one, other), key=itemgetter(0))
        same = left is node[0] and right is node[1]
        return least, node if same else (left, right)

    return fold(tree, lambda leaf: (leaf, leaf), ordered)[1]


def every_tree(count: int) -> Iterator[Tree]:
    """Yield all trees over `count` factors in a fixed order; the left-deep one comes first.

    >>> list(every_tree(3))
    [((0, 1), 2), ((0, 2), 1), (0, (1, 2))]
    """
    if count == 1:
        yield 0
        return
    for tree in every_tree(count - 1):
        yield from _with_leaf(tree, count - 1)


def _with_leaf(tree: Tree, leaf: int) -> Iterator[Tree]:
    yield (tree, leaf)
    if not isinstance(tree, int):
        left, right = tree
        yield from ((grown, right) for grown in _with_leaf(left, leaf))
        yield from ((left, grown) for grown in _with_leaf(right, leaf))


def rotations(tree: Tree) -> Iterator[Tree]:
    """Yield the trees that differ in one place: (a c) b or (b c) a in place of (a b) c.

    >>> list(rotations(((0, 1), 2)))
    [((0, 2), 1), ((1, 2), 0)]
    """
    waiting: list[tuple[Tree, _Place | None]] = [(tree, None)]
    while waiting:
        part, place = waiting.pop()
        if isinstance(part, int):
            continue
        left, right = part
        for node, other in ((left, right), (right, left)):
            if not isinstance(node, int):
                yield _put(((node[0], other), node[1]), place)
                yield _put(((node[1], other), node[0]), place)
        waiting.append((right, _Place(place, part, on_left=False)))
        waiting.append((left, _Place(place, part, on_left=True)))


class _Place(NamedTuple):
    """One side of a node, and the place of that node; None stands for the root."""

    above: _Place | None
    node: tuple[Tree, Tree]
    on_left: bool


def _put(tree: Tree, place: _Place | None) -> Tree:
    """Return the whole tree with another subtree in a place."""
    while place is not None:
        left, right = place.node
        tree = (tree, right) if place.on_left else (left, tree)
        place = place.above
    return tree


def tree_text(tree: Tree, factors: Sequence[str], join: Callable[[str, str], str]) -> str:
    """Return a tree as a person would write it, with brackets around what is joined first.

    >>> tree_text((0, (1, 2)), "NHW", "{} * {}".format)
    'N * (H * W)'
    """

    def text(node: tuple[Tree, Tree], *sides: str) -> str:
        left, right = (
            f"({side})" if isinstance(part, tuple) else side
            for part, side in zip(node, sides, strict=True)
        )
        return join(left, right)

    return fold(tree, factors.__getitem__, text)
