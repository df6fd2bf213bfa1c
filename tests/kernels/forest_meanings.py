"""Forests of decision trees in NumPy: what `forest_pack` makes of one, and how it is walked.

The packed form is that of ``csrc/forest.h``: sizes, nodes, trees and the values of leaves. Each
condition is ``x <= t`` or ``x == t`` there, with the branches swapped for those that say the
opposite.
"""

from __future__ import annotations

import numpy as np
from operator_meanings import Array

SIZES = np.dtype([(x, "<u8") for x in ("features", "outputs", "nodes", "trees", "leaves")])
NODE = np.dtype(
    [("threshold", "<f8"), ("next", "<u4", 2), ("feature", "<u4"), ("more", "<u4")], align=False
)
TREE = np.dtype([("root", "<u4"), ("plain", "<u4")])

FIELDS, NAN_HOLDS, IS_ROOT = 6, 8, 16
AT_MOST, BELOW, AT_LEAST, ABOVE, EQUAL, UNEQUAL = range(1, 7)
MORE_NAN, MORE_EQUAL = 1, 2


def forest_pack(v: Array, features: int, outputs: int) -> Array:
    """A forest as the kernel walks it, of a tensor of six rows for each node."""
    rows = v.reshape(-1, outputs) if outputs else np.zeros((0, 0))
    whole = np.zeros((-(-len(rows) // FIELDS) * FIELDS, outputs))
    whole[: len(rows)] = rows
    fields = whole.reshape(-1, FIELDS, outputs)
    first = fields[:, :, 0] if outputs else np.zeros((0, FIELDS))
    codes = first[:, 4].astype(int)
    nodes, leaves = np.zeros(len(fields), NODE), []
    for n, (feature, threshold, yes, no, _, _) in enumerate(first):
        condition = codes[n] % NAN_HOLDS
        if not condition:
            nodes[n] = 0, (n, n), 0, len(leaves)
            leaves.append(fields[n, 5])
            continue
        more, ways = MORE_NAN * bool(codes[n] & NAN_HOLDS), [no, yes]
        known = not np.isnan(threshold)
        if condition == UNEQUAL or (condition in (AT_LEAST, ABOVE) and known):
            more, ways = more ^ MORE_NAN, ways[::-1]
        if condition in (EQUAL, UNEQUAL) and known:
            more |= MORE_EQUAL
        if condition in (BELOW, AT_LEAST):
            below = np.nextafter(threshold, -np.inf)
            nodes[n] = np.nan if threshold == -np.inf else below, ways, feature, more
        else:
            nodes[n] = threshold, ways, feature, more
    roots = np.flatnonzero(codes & IS_ROOT)
    trees = np.zeros(len(roots), TREE)
    ends = np.append(roots, len(nodes))[1:]
    for t, (root, end) in enumerate(zip(roots, ends, strict=True)):
        own = nodes[root:end]
        inner = own[own["next"][:, 0] != np.arange(root, end)]
        plain = (inner["next"] < end).all() and not (inner["more"] & MORE_EQUAL).any()
        trees[t] = root, plain
    sizes = np.array([(features, outputs, len(nodes), len(trees), len(leaves))], SIZES)
    values = np.array(leaves, np.float64).reshape(-1)
    parts = sizes, nodes, trees, values
    return np.frombuffer(b"".join(x.tobytes() for x in parts), np.float64)


def forest(x: Array, packed: Array) -> Array:
    """The sums of the leaves to which rows of features come."""
    blob = packed.tobytes()
    (sizes,) = np.frombuffer(blob, SIZES, 1)
    start = SIZES.itemsize
    nodes = np.frombuffer(blob, NODE, sizes["nodes"], start)
    start += nodes.nbytes
    trees = np.frombuffer(blob, TREE, sizes["trees"], start)
    count = int(sizes["leaves"] * sizes["outputs"])
    values = np.frombuffer(blob, np.float64, count, start + trees.nbytes)
    values = values.reshape(int(sizes["leaves"]), int(sizes["outputs"]))
    rows = x.reshape(-1, int(sizes["features"]))
    sums = np.zeros((len(rows), values.shape[1]))
    for n, row in enumerate(rows):
        for root in trees["root"]:
            sums[n] += values[_find_leaf(nodes, int(root), row)]
    return sums.reshape(-1)


def _find_leaf(nodes: Array, at: int, row: Array) -> int:
    while nodes[at]["next"][0] != at:
        threshold, ways, feature, more = nodes[at]
        value = row[feature]
        equal = bool(more & MORE_EQUAL)
        holds = value == threshold if equal else value <= threshold
        if np.isnan(value):
            holds = bool(more & MORE_NAN)
        at = int(ways[int(holds)])
    return int(nodes[at]["more"])
