"""Operators of the domain ``ucle``: estimators of scikit-learn in float64.

`ucle.models.sklearn_converters` writes these nodes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ucle.models.calls import Call, Operator
from ucle.models.operators.preprocessing import (
    classes_of,
    classified,
    imputer,
    linear_classifier,
    linear_regressor,
    pick,
    svm_classifier,
    svm_regressor,
)
from ucle.models.operators.reductions import position_of, reduce_axes
from ucle.models.operators.shapes import join
from ucle.models.operators.trees import walk_packed
from ucle.models.values import Outputs, Value
from ucle.models.views import Position, Size, View, new_axis
from ucle.models.writer import number


def _features(call: Call, *, single: bool) -> View:
    """The features as the trees compare them: rounded to float32 or not."""
    x = call.view(0)
    if not single or x.dtype == np.float32:
        return x
    return call.writer.pointwise(f"{call.name}_single", [x], "float32({})".format, "float32")


def _sums(call: Call) -> View:
    x = _features(call, single=bool(call.get("single")))
    sums = walk_packed(call, x, call.get("trees"), f"{call.name}_sums")
    divide, base = float(call.get("divide", 1.0)), np.asarray(call.get("base"))
    values: list[Value] = [sums, base[None, :]] if base.any() else [sums]
    if len(values) == 1 and divide == 1:
        return sums
    divided = "" if divide == 1 else f" / {number(divide)}"
    return call.writer.pointwise(
        f"{call.name}_raw",
        values,
        lambda s, b="": f"{s}{divided}{f' + {b}' if b else ''}",
        "float64",
    )


def tree_regressor(call: Call) -> Outputs:
    """Trees of a regressor."""
    sums = _sums(call)
    if call.get("post_transform") == "EXP":
        return call.writer.pointwise(call.name, [sums], "exp({})".format, "float64")
    return sums


def tree_classifier(call: Call) -> Outputs:
    """Trees of a classifier: shares of classes, or scores before a transform."""
    classes, sums = classes_of(call), _sums(call)
    if call.get("post_transform") == "LOGISTIC2":  # exponential loss
        sums = call.writer.pointwise(f"{call.name}_twice", [sums], "2 * {}".format, "float64")
        attributes = {**call.attributes, "post_transform": "LOGISTIC"}
        call = replace(call, attributes=attributes)
    return classified(call, sums, classes, binary=sums.shape[1].number == 1)


def isolation_forest(call: Call) -> Outputs:
    """Labels 1 and -1, and the decision."""
    x = _features(call, single=True)
    sums = walk_packed(call, x, call.get("trees"), f"{call.name}_sums")
    scale, offset = number(float(call.get("scale"))), number(float(call.get("offset")))
    wish = call.names[1] if len(call.names) > 1 else f"{call.name}_scores"
    scores = call.writer.pointwise(
        wish, [sums], lambda s: f"-(2 ^ (-{s} / {scale})) - {offset}", "float64"
    )
    label = call.writer.pointwise(call.name, [scores], lambda s: f"where({s} < 0, -1, 1)", "int64")
    return label, scores


def one_class(call: Call) -> Outputs:
    """Labels 1 and -1, and the decision."""
    wish = call.names[1] if len(call.names) > 1 else f"{call.name}_scores"
    inner = Call(call.operator, call.inputs, call.attributes, (wish,), call.version, call.writer)
    scores: Any = svm_regressor(inner)
    label = call.writer.pointwise(call.name, [scores], lambda s: f"where({s} < 0, -1, 1)", "int64")
    return label, scores


def neighbours(call: Call) -> Outputs:
    """The nearest of some points: their classes or the mean of their values."""
    writer = call.writer
    x = writer.flatten(call.view(0), [1])
    points = writer.view(np.asarray(call.get("points")), f"{call.name}_points")
    targets = writer.view(np.asarray(call.get("targets")), f"{call.name}_targets")
    features, all_points = x.axes[1], points.axes[0]
    shared = {a: Position(0, ((b, 1),)) for a, b in zip(points.axes[1], features, strict=True)}
    points = replace(points, positions=points.substitute(shared))
    euclidean = call.get("metric") == "euclidean"
    rows = x.axes[0]

    def distance(reading: Any) -> str:
        labels = writer.labels([*rows, *all_points, *features])
        inner = ",".join(labels[atom] for atom in features)
        difference = f"{reading(x)} - {reading(points)}"
        one = f"square({difference})" if euclidean else f"abs({difference})"
        return f"sum[{inner}]({one})" if inner else one

    far = writer.emit(
        f"{call.name}_distance", (rows, all_points), distance, "float64", summed=features
    )
    rank = new_axis(Size(int(call.get("count"))))

    def among(reading: Any) -> str:
        labels = writer.labels([*rows, *all_points, *rank])
        return f"among_bottom_k[{labels[all_points[0]]},{labels[rank[0]]}]({reading(far)})"

    near = writer.emit(f"{call.name}_near", far.axes, among, "bool", summed=rank)
    if call.get("weights") == "distance":
        weight = _inverse_distances(call, far, near, euclidean=euclidean)
    else:
        weight = writer.pointwise(f"{call.name}_weight", [near], "float64({})".format, "float64")
    columns, (rows, all_points) = targets.axes[1], weight.axes
    aligned = {a: Position(0, ((b, 1),)) for a, b in zip(targets.axes[0], all_points, strict=True)}
    targets = replace(targets, positions=targets.substitute(aligned))
    sums = writer.emit(
        f"{call.name}_sums",
        (rows, columns),
        lambda reading: f"{reading(weight)} * {reading(targets)}",
        "float64",
        accumulate="+=",
        summed=all_points,
    )
    total = reduce_axes(call, weight, [1], "sum", wish=f"{call.name}_total")
    if not (call.get("classlabels_ints") or call.get("classlabels_strings")):
        return writer.pointwise(call.name, [sums, total], "{} / {}".format, "float64")
    wish = call.names[1] if len(call.names) > 1 else "probabilities"
    shares = writer.pointwise(wish, [sums, total], "{} / {}".format, "float64")
    label = Call(call.operator, (), {}, (call.names[0],), call.version, writer)
    flat = writer.flatten(sums, [1])
    positions = position_of(label, flat, 1, "argmax", keep=False, wish=f"{call.name}_position")
    return pick(label, classes_of(call), positions), shares


def _inverse_distances(call: Call, far: View, near: View, *, euclidean: bool) -> View:
    """1 / distance for the nearest points; where one is at 0, those at 0 alone count."""
    writer = call.writer
    axes, (d, n) = writer.broadcast([far, near], call.name)
    zero = writer.emit(f"{call.name}_zero", axes, lambda r: f"{r(n)} and {r(d)} == 0", "bool")
    some = reduce_axes(call, zero, [1], "any", wish=f"{call.name}_some")
    size = "sqrt({})" if euclidean else "{}"
    return writer.pointwise(
        f"{call.name}_weight",
        [far, near, zero, some],
        lambda x, y, z, s: f"where({s}, float64({z}), when({y}, 1 / {size.format(x)}))",
        "float64",
    )


def power_transform(call: Call) -> Outputs:
    """A power of each feature, then standardised."""
    x, lambdas = call.view(0), np.asarray(call.get("lambdas"))[None, :]
    offset, scale = (np.asarray(call.get(name))[None, :] for name in ("offset", "scale"))

    def write(v: str, p: str, o: str, s: str) -> str:
        if call.get("method") == "box-cox":
            power = f"where({p} == 0, log({v}), ({v} ^ {p} - 1) / one_if_zero({p}))"
        else:
            up, down = f"max({v}, 0)", f"max(-{v}, 0)"
            high = f"where({p} == 0, log1p({up}), ((1 + {up}) ^ {p} - 1) / one_if_zero({p}))"
            q = f"(2 - {p})"
            low = f"where({q} == 0, log1p({down}), ((1 + {down}) ^ {q} - 1) / one_if_zero({q}))"
            power = f"where({v} >= 0, {high}, -{low})"
        return f"({power} - {o}) * {s}"

    values = [call.writer.view(v, f"{call.name}_c") for v in (lambdas, offset, scale)]
    return call.writer.pointwise(call.name, [x, *values], write, "float64")


def bins(call: Call) -> Outputs:
    """The number of the bin of each feature, or a column for each bin."""
    writer = call.writer
    x = writer.flatten(call.view(0), [1])
    edges = writer.view(np.asarray(call.get("edges")), f"{call.name}_edges")
    shared = {a: Position(0, ((b, 1),)) for a, b in zip(edges.axes[0], x.axes[1], strict=True)}
    edges = replace(edges, positions=edges.substitute(shared))
    inner = edges.axes[1]

    def count(reading: Any) -> str:
        labels = writer.labels([*(a for axis in x.axes for a in axis), *inner])
        above = f"{reading(edges)} <= {reading(x)}"
        return f"sum[{labels[inner[0]]}]({above})" if inner else f"int64({above})"

    number_of = writer.emit(f"{call.name}_bin", x.axes, count, "int64", summed=inner)
    if call.get("encode") == "ordinal":
        return writer.pointwise(call.name, [number_of], "float64({})".format, "float64")
    parts = []
    for n, size in enumerate(call.get("counts")):
        column = replace(
            number_of,
            positions=number_of.substitute({a: Position(n) for a in number_of.axes[1]}),
            axes=(number_of.axes[0], ()),
        )
        numbers = np.arange(int(size))[None, :]
        parts.append(
            writer.pointwise(
                f"{call.name}_{n}",
                [column, numbers],
                lambda a, b: f"float64({a} == {b})",
                "float64",
            )
        )
    return join(call, parts, 1, call.name)


OPERATORS: dict[str, Operator] = {
    "Bins": bins,
    "Imputer": imputer,
    "IsolationForest": isolation_forest,
    "LinearClassifier": linear_classifier,
    "LinearRegressor": linear_regressor,
    "Neighbours": neighbours,
    "OneClass": one_class,
    "PowerTransform": power_transform,
    "SVMClassifier": svm_classifier,
    "SVMRegressor": svm_regressor,
    "TreeClassifier": tree_classifier,
    "TreeRegressor": tree_regressor,
}
