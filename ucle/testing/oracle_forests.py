"""The meaning of forests of decision trees, evaluated row by row and tree by tree."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from ucle.testing.oracle_operators import Array, UndefinedError

CONDITIONS: tuple[Callable[[float, float], bool], ...] = (
    operator.le,
    operator.lt,
    operator.ge,
    operator.gt,
    operator.eq,
    operator.ne,
)
"""The conditions of nodes by their codes, from 1 on."""

FIELDS, HOLDS_FOR_NAN, IS_ROOT = 6, 8, 16


def sum_forest(features: Array, packed: Array) -> Array:
    """Return the sums of the leaves that rows of features reach (`ucle.ir.forests`).

    Args:
        features: the features along the last axis.
        packed: the forest, of shape (fields of nodes, outputs).

    Raises:
        UndefinedError: the array is not a packed forest.

    >>> one_leaf = np.array([[0, 0], [0, 0], [0, 0], [0, 0], [16, 0], [0.25, 0.75]])
    >>> sum_forest(np.zeros((1, 3)), one_leaf)
    array([[0.25, 0.75]])
    """
    rows, count = packed.shape
    whole = np.zeros((-(-rows // FIELDS) * FIELDS, count))
    whole[:rows] = packed
    nodes = whole.reshape(-1, FIELDS, count)
    flat = features.reshape(-1, features.shape[-1]).astype(np.float64)
    for number in range(len(nodes)):
        _check_node(nodes, number, flat.shape[1])
    sums = np.zeros((len(flat), count))
    for n, row in enumerate(flat):
        for root in np.flatnonzero(nodes[:, 4, 0] >= IS_ROOT) if count else ():
            sums[n] += _find_leaf(nodes, int(root), row)
    return sums.reshape(*features.shape[:-1], count)


def _check_node(nodes: Array, number: int, features: int) -> None:
    if not nodes.shape[2]:
        return
    feature, _, yes, no, code, _ = nodes[number, :, 0].tolist()
    if code not in range(2 * IS_ROOT) or code % HOLDS_FOR_NAN > len(CONDITIONS):
        raise UndefinedError(f"a node of code {code}")
    later = range(number + 1, len(nodes))
    if code % HOLDS_FOR_NAN and not (feature in range(features) and yes in later and no in later):
        raise UndefinedError(f"node {number}, {nodes[number]}")


def _find_leaf(nodes: Array, number: int, row: Array) -> Array:
    while True:
        feature, threshold, yes, no, code, _ = nodes[number, :, 0].tolist()
        condition = int(code) % HOLDS_FOR_NAN
        if not condition:
            leaf: Array = nodes[number, 5]
            return leaf
        x = float(row[int(feature)])
        holds = CONDITIONS[condition - 1](x, threshold)
        if np.isnan(x):
            holds = bool(int(code) & HOLDS_FOR_NAN)
        number = int(yes if holds else no)
