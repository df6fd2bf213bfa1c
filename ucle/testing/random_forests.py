"""Random forests of decision trees, as tensors of six rows for each node (`ucle.ir.forests`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ucle.ir.forests import FIELDS
from ucle.testing.oracle_operators import Array

NAN_HOLDS, IS_ROOT = 8, 16
EVERY = tuple(range(1, 7))
"""All conditions."""


def random_forest(
    rng: np.random.Generator,
    trees: int = 3,
    leaves: int = 9,
    features: int = 4,
    outputs: int = 2,
    codes: Sequence[int] = EVERY,
) -> Array:
    """Return a packed forest, of shape (fields of nodes, outputs).

    Args:
        rng: the generator of random numbers.
        trees: the number of trees.
        leaves: the largest number of leaves of a tree.
        features: the number of features.
        outputs: the number of outputs.
        codes: the conditions that nodes may have.

    >>> random_forest(np.random.default_rng(0), trees=2, leaves=1).shape
    (12, 2)
    """
    made: list[Array] = []
    for _ in range(trees):
        count = int(rng.integers(1, leaves + 1))
        made.append(_random_tree(rng, count, features, outputs, codes, sum(map(len, made))))
    return np.concatenate([*made, np.zeros((0, FIELDS, outputs))]).reshape(-1, outputs)


def random_rows(rng: np.random.Generator, *shape: int, missing: float = 0.1) -> Array:
    """Return features: many of them equal a threshold, and some are NaN."""
    values = rng.choice((-2, -1, -0.5, 0, 0.25, 0.75, 1, 3), shape)
    return np.where(rng.random(shape) < missing, np.nan, values)


def _random_tree(
    rng: np.random.Generator,
    leaves: int,
    features: int,
    outputs: int,
    codes: Sequence[int],
    at: int,
) -> Array:
    """Return a tree whose nodes are numbered from `at` on, each before the nodes below it.

    There are only a few thresholds, so that features often equal them.
    """
    nodes = np.zeros((2 * leaves - 1, FIELDS, outputs))
    free, next_node = [(0, leaves)], 1
    while free:
        number, below = free.pop(rng.integers(len(free)))
        node = nodes[number]
        if below == 1:
            node[5] = rng.integers(-8, 9, outputs) / 4
            node[:4, 0] = rng.choice((0, np.nan, -7), 4)  # of a leaf, these mean nothing
            continue
        left = int(rng.integers(1, below))
        ways = next_node, next_node + 1
        swapped = bool(rng.integers(2))
        node[0, 0] = rng.integers(features)
        odd = rng.random() < 0.1
        node[1, 0] = rng.choice((np.inf, -np.inf, np.nan) if odd else (-1, -0.5, 0, 0.25, 1))
        node[2:4, 0] = np.add(ways[::-1] if swapped else ways, at)
        node[4, 0] = rng.choice(codes) + NAN_HOLDS * rng.integers(2)
        free += [(ways[0], left), (ways[1], below - left)]
        next_node += 2
    nodes[0, 4, 0] += IS_ROOT
    nodes[:, :5, 1:] = rng.normal(size=nodes[:, :5, 1:].shape)  # means nothing
    return nodes
