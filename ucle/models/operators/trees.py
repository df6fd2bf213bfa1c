"""Decision trees, forests and boosted trees: `TreeEnsembleClassifier` and `-Regressor`.

All nodes of all trees are packed into one matrix, which the function ``forest`` of the language
walks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ucle.errors import ModelError
from ucle.foundation.dataclasses import dataclass
from ucle.models.calls import Call, Operator
from ucle.models.operators.preprocessing import (
    as_real,
    classes_of,
    classified,
    transform_scores,
    two_classes,
)
from ucle.models.values import Array, Outputs, Value
from ucle.models.views import Atom, Position, View
from ucle.models.writer import number

FIELDS = 6
"""Rows of the packed matrix for each node."""
LEAF, ROOT, MISSING_TRUE = 0, 16, 8
CODES = {
    "LEAF": LEAF,
    "BRANCH_LEQ": 1,
    "BRANCH_LT": 2,
    "BRANCH_GTE": 3,
    "BRANCH_GT": 4,
    "BRANCH_EQ": 5,
    "BRANCH_NEQ": 6,
}


@dataclass(frozen=True)
class Trees:
    """Nodes of trees, each after its parent.

    Args:
        feature: of each node.
        threshold: of each node.
        yes: the node that follows if the condition holds; 0 for leaves.
        no: the node that follows if not.
        code: the condition, as in `CODES`, and the flags `ROOT` and `MISSING_TRUE`.
        values: what a leaf adds to each output: nodes by outputs.
    """

    feature: Array
    threshold: Array
    yes: Array
    no: Array
    code: Array
    values: Array

    def packed(self) -> Array:
        """The matrix that ``forest`` reads: six rows for a node, and a column for each output."""
        count, outputs = self.values.shape
        packed = np.zeros((count, FIELDS, outputs))
        for n, field in enumerate((self.feature, self.threshold, self.yes, self.no, self.code)):
            packed[:, n, 0] = field
        packed[:, FIELDS - 1] = self.values
        return packed.reshape(count * FIELDS, outputs)


def ordered(
    feature: Array,
    threshold: Array,
    yes: Array,
    no: Array,
    code: Array,
    values: Array,
    roots: Sequence[int],
) -> Trees:
    """Trees whose nodes are in any order, so that each node lies behind its parent.

    Raises:
        ModelError: a node has two parents, or is its own ancestor.
    """
    order, seen = [], np.zeros(len(feature), bool)
    leaf = (code & 7) == LEAF
    for root in roots:
        stack = [int(root)]
        while stack:
            node = stack.pop()
            if not 0 <= node < len(feature) or seen[node]:
                raise ModelError(
                    "the nodes are no trees", expected="one parent for each node", found=str(node)
                )
            seen[node] = True
            order.append(node)
            if not leaf[node]:
                stack += [int(no[node]), int(yes[node])]
    chosen = np.asarray(order, np.int64)
    place = np.zeros(len(feature), np.int64)
    place[chosen] = np.arange(len(chosen))
    inner = ~leaf[chosen]
    flags = code[chosen].copy()
    flags[place[np.asarray(roots, np.int64)]] |= ROOT
    return Trees(
        feature[chosen],
        threshold[chosen],
        np.where(inner, place[np.where(inner, yes[chosen], 0)], 0),
        np.where(inner, place[np.where(inner, no[chosen], 0)], 0),
        flags,
        values[chosen],
    )


def walk(call: Call, x: View, trees: Trees, wish: str) -> View:
    """The sums of the leaves of all trees: rows by outputs, in float64."""
    return walk_packed(call, x, trees.packed(), wish)


def walk_packed(call: Call, x: View, trees: Array, wish: str) -> View:
    """The same for trees that are packed."""
    writer = call.writer
    plain = writer.stored(writer.flatten(x, [x.rank - 1]))
    if not plain.axes[-1]:
        raise call.refuse("trees of one feature", "at least two features")
    packed = writer.name(f"{wish}_trees")
    writer.weights[packed] = trees
    writer.extents[packed] = trees.shape
    place, output = Atom(trees.shape[0]), Atom(trees.shape[1])
    axes, feature = (*plain.axes[:-1], (output,)), plain.axes[-1][0]

    def expression(reading: Callable[[View], str]) -> str:
        labels = writer.labels([*(a for axis in axes for a in axis), feature, place])
        f, p, k = labels[feature], labels[place], labels[output]
        return f"forest[{f},{p}]({reading(plain)}, {packed}[{p},{k}])"

    made = writer.emit(wish, axes, expression, "float64", summed=[feature, place])
    if output.size != 1:
        return made
    first = made.substitute({made.axes[-1][0]: Position(0)})
    return View(made.tensor, first, (*made.axes[:-1], ()), made.dtype)


def attribute_trees(call: Call, outputs: int, kind: str) -> Trees:
    """The trees in the attributes of `TreeEnsembleClassifier` or `-Regressor`.

    Raises:
        ModelError: lists have different lengths, or nodes are missing.
    """
    prefix = "class" if kind == "classifier" else "target"

    def listed(name: str, dtype: Any) -> Array:
        tensor = call.get(f"{name}_as_tensor")
        return np.asarray(tensor if tensor is not None else call.get(name) or [], dtype)

    tree, node = listed("nodes_treeids", np.int64), listed("nodes_nodeids", np.int64)
    feature, threshold = listed("nodes_featureids", np.int64), listed("nodes_values", np.float64)
    yes, no = listed("nodes_truenodeids", np.int64), listed("nodes_falsenodeids", np.int64)
    modes = call.get("nodes_modes") or []
    missing = listed("nodes_missing_value_tracks_true", np.int64)
    if (
        not len(tree)
        == len(node)
        == len(feature)
        == len(threshold)
        == len(yes)
        == len(no)
        == len(modes)
    ):
        raise ModelError("the lists of nodes have different lengths")
    unknown = [mode for mode in modes if mode not in CODES]
    if unknown:
        raise call.refuse(f"the condition {unknown[0]} is not there", ", ".join(CODES))
    code = np.array([CODES[mode] for mode in modes], np.int64)
    if len(missing) == len(code):
        code |= np.where((missing != 0) & (code != LEAF), MISSING_TRUE, 0)
    index = {key: n for n, key in enumerate(zip(tree.tolist(), node.tolist(), strict=True))}
    roots = [n for n, key in enumerate(tree.tolist()) if n == tree.tolist().index(key)]
    inner = code & 7 != LEAF
    try:
        go = [
            np.array(
                [
                    index[t, c] if i else 0
                    for t, c, i in zip(tree.tolist(), x.tolist(), inner, strict=True)
                ]
            )
            for x in (yes, no)
        ]
        places = [
            index[key]
            for key in zip(
                listed(f"{prefix}_treeids", np.int64).tolist(),
                listed(f"{prefix}_nodeids", np.int64).tolist(),
                strict=True,
            )
        ]
    except KeyError as error:
        raise ModelError("a node is missing", found=str(error)) from None
    values = np.zeros((len(code), outputs))
    columns = listed(f"{prefix}_ids", np.int64)
    if columns.size and (columns.min() < 0 or columns.max() >= outputs):
        raise ModelError("an output does not exist", found=str(columns.max()))
    np.add.at(
        values, (np.asarray(places, np.int64), columns), listed(f"{prefix}_weights", np.float64)
    )
    return ordered(feature, threshold, go[0], go[1], code, values, roots)


def base_values(call: Call) -> Array:
    """What is added to the sums of the trees."""
    tensor = call.get("base_values_as_tensor")
    return np.asarray(tensor if tensor is not None else call.get("base_values") or [], np.float64)


def regressor(call: Call) -> Outputs:
    """`TreeEnsembleRegressor`.

    Raises:
        UnsupportedError: the least or the greatest of the trees is asked for.
    """
    x = as_real(call)
    outputs = int(call.get("n_targets", 1))
    trees = attribute_trees(call, outputs, "regressor")
    rule = call.get("aggregate_function", "SUM")
    if rule not in ("SUM", "AVERAGE"):
        raise call.refuse(f"the aggregation {rule} of trees is not there", "SUM, AVERAGE")
    count = int((trees.code & ROOT != 0).sum())
    sums = walk(call, x, trees, f"{call.name}_sums")
    return transform_scores(
        call, _based(call, sums, count if rule == "AVERAGE" else 1, x), call.name
    )


def _based(call: Call, sums: View, count: int, x: View) -> View:
    base = base_values(call)
    divided = "" if count == 1 else f" / {number(float(count))}"
    kind = "float32" if x.dtype == np.float32 else "float64"
    values: list[Value] = [sums, base[None, :]] if base.size else [sums]
    return call.writer.pointwise(
        f"{call.name}_based",
        values,
        lambda s, b="": f"{kind}({s}{divided}{f' + {b}' if b else ''})",
        kind,
    )


def classifier(call: Call) -> Outputs:
    """`TreeEnsembleClassifier`."""
    x = as_real(call)
    classes = classes_of(call)
    columns = np.asarray(call.get("class_ids") or [], np.int64)
    binary = len(classes) == 2 and len(set(columns.tolist())) == 1
    attributes = {**call.attributes, "class_ids": [0] * len(columns)} if binary else call.attributes
    one = Call(call.operator, call.inputs, attributes, call.names, call.version, call.writer)
    trees = attribute_trees(one, 1 if binary else len(classes), "classifier")
    scores = _based(call, walk(call, x, trees, f"{call.name}_sums"), 1, x)
    if not binary:
        return classified(call, scores, classes, binary=False)
    weights = call.get("class_weights_as_tensor")
    weights = np.asarray(weights if weights is not None else call.get("class_weights") or [0.0])
    if call.get("post_transform", "NONE") == "NONE" and weights.min() >= 0:
        return two_classes(call, scores, classes, "0.5", "1 - {}")  # the share of the second
    return classified(call, scores, classes, binary=True)


OPERATORS: dict[str, Operator] = {
    "TreeEnsembleClassifier": classifier,
    "TreeEnsembleRegressor": regressor,
}
