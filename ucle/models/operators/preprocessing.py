"""Operators of `ai.onnx.ml` for pipelines: encoders, scalers, linear models, support vectors.

Attributes of these operators are float32 in ONNX. They are used as they are; what scikit-learn's
own numbers need is in `ucle.models.sklearn_converters`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.models.calls import Call, Operator
from ucle.models.operators.elementwise import dtype_of
from ucle.models.operators.look_ups import gather
from ucle.models.operators.products import contract
from ucle.models.operators.reductions import along, position_of, reduce_axes
from ucle.models.operators.shapes import join
from ucle.models.text_columns import indicators, known_indicators
from ucle.models.values import Array, Names, Outputs, TextColumns, Value
from ucle.models.views import View
from ucle.models.writer import language_type, number


def floats(call: Call, attribute: str, like: Any = np.float32) -> Array:
    """An attribute that is a list of numbers, as an array of some type."""
    value = call.get(attribute)
    return np.asarray([] if value is None else value, like)


def real(value: Value) -> Any:
    """The element type in which numbers are computed: integers become float32."""
    dtype = dtype_of(value)
    return dtype if dtype.kind == "f" else np.dtype(np.float32)


def as_real(call: Call, place: int = 0) -> View:
    """An operand as floats."""
    view, dtype = call.view(place), real(call.operand(place))
    if view.dtype == dtype:
        return view
    kind = language_type(dtype)
    return call.writer.pointwise(f"{call.name}_real", [view], f"{kind}({{}})".format, dtype)


def extract_features(call: Call) -> Outputs:
    """`ArrayFeatureExtractor`: entries at some positions of the last axis."""
    source, indices = call.operand(0), call.operand(1)
    if isinstance(source, np.ndarray) and isinstance(indices, View):
        return pick(call, source.reshape(-1), indices)
    if isinstance(indices, np.ndarray):
        indices = indices.reshape(-1)
        if isinstance(source, TextColumns):
            return TextColumns(tuple(source.names[int(n)] for n in indices))
        if not isinstance(source, tuple) and call.view(0).rank == 1:
            indices = indices[None, :]
    inputs, attributes = (source, indices), {"axis": -1}
    return gather(Call("Gather", inputs, attributes, call.names, call.version, call.writer))


def pick(call: Call, source: Array, positions: View) -> Value:
    """The entries of a short list at computed positions."""
    if source.dtype.kind in "OUS":
        return Names(positions, source)
    if np.array_equal(source, np.arange(len(source))):
        return cast_view(call, positions, source.dtype)
    values = call.writer.view(source, f"{call.name}_values")
    axes = positions.axes
    inner = values.axes[0]

    def expression(reading: Any) -> str:
        labels = call.writer.labels([*(a for axis in axes for a in axis), *inner])
        own = labels[inner[0]] if inner else "0"
        return f"when({reading(positions)} == {own}, {reading(values)})"

    return call.writer.emit(
        call.name, axes, expression, source.dtype, accumulate="+=", summed=inner
    )


def cast_view(call: Call, view: View, dtype: Any) -> View:
    """A tensor in another element type."""
    if language_type(view.dtype) == language_type(dtype):
        return view
    kind = language_type(dtype)
    return call.writer.pointwise(call.name, [view], f"{kind}({{}})".format, dtype)


def scaler(call: Call) -> Outputs:
    """`Scaler`: less an offset, times a scale."""
    x = as_real(call)
    offset, scale = floats(call, "offset", x.dtype), floats(call, "scale", x.dtype)
    return call.writer.pointwise(
        call.name, [x, offset, scale], lambda v, o, s: f"({v} - {o}) * {s}", x.dtype
    )


def normalizer(call: Call) -> Outputs:
    """`Normalizer`: rows by their maximum, their sum or their Euclidean length."""
    x = as_real(call)
    norm = call.get("norm", "MAX")
    inner = {"MAX": "abs(x)", "L1": "abs(x)", "L2": "square(x)"}[norm]
    outer = "sqrt(x)" if norm == "L2" else "x"
    name = "max" if norm == "MAX" else "sum"
    size = reduce_axes(call, x, [x.rank - 1], name, inner, outer, wish=f"{call.name}_norm")
    return call.writer.pointwise(
        call.name, [x, size], lambda v, n: f"{v} / one_if_zero({n})", x.dtype
    )


def binarizer(call: Call) -> Outputs:
    """`Binarizer`: 1 above a threshold."""
    x = call.view(0)
    threshold = number(float(call.get("threshold", 0.0)))
    kind = language_type(x.dtype)
    return call.writer.pointwise(call.name, [x], lambda v: f"{kind}({v} > {threshold})", x.dtype)


def imputer(call: Call) -> Outputs:
    """`Imputer`: a number of each feature in the place of missing ones."""
    x = call.view(0)
    if x.dtype.kind == "f":
        values = floats(call, "imputed_value_floats", x.dtype)
        missing = float(call.get("replaced_value_float", 0.0))
    else:
        values = floats(call, "imputed_value_int64s", np.int64)
        missing = int(call.get("replaced_value_int64", 0))
    test = "isnan({x})" if np.isnan(missing) else f"{{x}} == {number(missing)}"
    return call.writer.pointwise(
        call.name,
        [x, values],
        lambda v, w: f"where({test.format(x=v)}, {w}, {v})",
        x.dtype,
    )


def feature_vectorizer(call: Call) -> Outputs:
    """`FeatureVectorizer`: columns side by side, as float32."""
    views = [as_real(call, n) for n in range(len(call.inputs))]
    views = [view if view.rank > 1 else view.with_axes((*view.axes, ())) for view in views]
    return join(call, views, 1, call.name)


# ---- Categories ----


def label_encoder(call: Call) -> Outputs:
    """`LabelEncoder`: each value in the place of another, with a default.

    Raises:
        UnsupportedError: numbers are mapped to names that are not the classes of the model.
    """
    keys, values, default = None, None, None
    for kind in ("strings", "int64s", "floats"):
        keys = call.get(f"keys_{kind}") if keys is None else keys
        values = call.get(f"values_{kind}") if values is None else values
    keys = call.get("keys_tensor") if keys is None else keys
    values = call.get("values_tensor") if values is None else values
    if keys is None or values is None:
        raise call.refuse("a list of keys or values is missing")
    targets = np.asarray(values)
    names = {"U": "default_string", "O": "default_string", "i": "default_int64"}
    default = call.get("default_tensor")
    if default is None:
        default = call.get(names.get(targets.dtype.kind, "default_float"))
    if default is None:
        default = {"i": -1, "f": -0.0}.get(targets.dtype.kind, "_Unused")
    default = np.asarray(default).reshape(-1)[0]
    source = call.operand(0)
    if isinstance(source, Names):
        source_positions, known = source.positions, list(map(str, source.names))
        if isinstance(targets[0], str):
            return Names(source_positions, _by_position(known, keys, targets, default))
        return pick(call, _by_position(known, keys, targets, default), source_positions)
    if isinstance(source, TextColumns):
        parts = [
            _encode_column(call, column, list(keys), targets, default, f"{call.name}_{n}")
            for n, column in enumerate(source.names)
        ]
        return parts[0] if len(parts) == 1 else join(call, parts, 1, call.name)
    return _encode_numbers(call, np.asarray(keys), targets, default)


def _by_position(known: Sequence[str], keys: Any, targets: Array, default: Any) -> Array:
    by_key = dict(zip(map(str, np.asarray(keys).tolist()), targets.tolist(), strict=True))
    return np.asarray([by_key.get(name, default) for name in known])


def _encode_column(
    call: Call, column: str, keys: Sequence[Any], values: Array, default: Any, wish: str
) -> View:
    """A column of strings by the values of its names: rows, and an axis of size 1."""
    if values.dtype.kind not in "if":
        raise call.refuse("names are mapped to names", "numbers")
    hits = indicators(call.writer, column, keys, f"{wish}_is", "float64")
    kind = language_type(values.dtype)
    # Unknown names have no hit, so that the default is what is added to all.
    moved = call.writer.view(values.astype(np.float64) - float(default), f"{wish}_values")
    rows = hits.axes[0]
    product = contract(call.writer, f"{wish}_sum", hits, moved, np.dtype(np.float64))
    made = call.writer.pointwise(
        wish, [product], lambda x: f"{kind}({x} + {number(float(default))})", values.dtype
    )
    return made.with_axes((rows, ()) if made.rank == 1 else made.axes)


def _encode_numbers(call: Call, keys: Array, values: Array, default: Any) -> Value:
    x = call.view(0)
    if values.dtype.kind in "OUS":
        if not np.array_equal(np.sort(keys), keys):
            raise call.refuse("numbers are mapped to names", "keys in ascending order")
        positions = _encode_numbers(call, keys, np.arange(len(keys)), -1)
        return Names(call.writer.view(positions), values)
    knots = call.writer.view(keys, f"{call.name}_keys")
    moved = call.writer.view(values - values.dtype.type(default), f"{call.name}_values")
    inner = knots.axes[0]
    moved = moved.with_axes((inner,))
    moved = replace(moved, positions=knots.positions)
    axes = x.axes
    made = call.writer.emit(
        f"{call.name}_sum",
        axes,
        lambda reading: f"when({reading(x)} == {reading(knots)}, {reading(moved)})",
        values.dtype,
        accumulate="+=",
        summed=inner,
    )
    if not default:
        return made
    return call.writer.pointwise(
        call.name, [made], lambda v: f"{v} + {number(default)}", values.dtype
    )


def one_hot_encoder(call: Call) -> Outputs:
    """`OneHotEncoder`: a 1 at the category of each entry, and zeros for unknown ones.

    Raises:
        UnsupportedError: unknown categories are an error in the model.
    """
    names, numbers = call.get("cats_strings"), call.get("cats_int64s")
    source: Any = call.operand(0)
    strict = not call.get("zeros", 1)
    if names is not None and isinstance(source, TextColumns):
        encode = known_indicators if strict else indicators
        parts = [
            encode(call.writer, column, names, f"{call.name}_{n}", "float32")
            for n, column in enumerate(source.names)
        ]
        shaped = [part.with_axes((part.axes[0], (), part.axes[1])) for part in parts]
        return shaped[0] if len(shaped) == 1 else join(call, shaped, 1, call.name)
    if strict:
        raise call.refuse("unknown numbers are an error", "handle_unknown='ignore'")
    if numbers is None:
        raise call.refuse("categories are names, and the operand has numbers")
    x = call.view(0)
    knots = call.writer.view(np.asarray(numbers, np.int64), f"{call.name}_categories")
    axes = (*x.axes, knots.axes[0])
    return call.writer.emit(
        call.name,
        axes,
        lambda reading: f"float32({reading(x)} == {reading(knots)})",
        "float32",
    )


def zip_map(call: Call) -> Outputs:
    """`ZipMap`: the probabilities stay a matrix; its columns are in the order of the classes."""
    return call.operand(0)


# ---- Linear models ----


def transform_scores(call: Call, scores: View, wish: str) -> View:
    """Scores after ``post_transform``."""
    kind = call.get("post_transform", "NONE")
    if kind == "NONE":
        return scores
    if kind == "SOFTMAX":
        named = Call(call.operator, (), {}, (wish,), call.version, call.writer)
        plain = call.writer.flatten(scores, [scores.rank - 1])
        return along(named, plain, plain.axes[-1], "softmax")
    texts = {"LOGISTIC": "sigmoid({})", "PROBIT": "normal_quantile({})"}
    if kind not in texts:
        raise call.refuse(f"the transform {kind} is not there", "NONE, LOGISTIC, SOFTMAX, PROBIT")
    return call.writer.pointwise(wish, [scores], texts[kind].format, scores.dtype)


def linear_regressor(call: Call) -> Outputs:
    """`LinearRegressor`."""
    x = as_real(call)
    targets = int(call.get("targets", 1))
    scores = _linear(call, x, targets)
    return transform_scores(call, scores, call.name)


def _linear(call: Call, x: View, count: int) -> View:
    weights = floats(call, "coefficients", x.dtype).reshape(count, -1).T
    offsets = floats(call, "intercepts", x.dtype)
    wish = f"{call.name}_product"
    product = contract(
        call.writer, wish, x, call.writer.view(weights, f"{call.name}_coefficients"), x.dtype
    )
    if not offsets.size:
        return product
    return call.writer.pointwise(
        f"{call.name}_scores", [product, offsets], "{} + {}".format, x.dtype
    )


def classes_of(call: Call) -> Array:
    """The classes of a classifier."""
    for name in ("classlabels_ints", "classlabels_strings", "classlabels_int64s"):
        if call.get(name) is not None:
            return np.asarray(call.get(name))
    raise call.refuse("the model has no classes")


def two_classes(
    call: Call, second: View, classes: Array, middle: str, first: str
) -> tuple[Value, Value]:
    """The label and the scores of two classes, by the score of the second.

    Args:
        call: the node.
        second: rows by one column.
        classes: both.
        middle: the number above which the second is the label.
        first: the score of the first, as a text with a place for that of the second.
    """
    writer = call.writer
    label = Call(call.operator, (), {}, (call.names[0],), call.version, writer)
    positions = writer.pointwise(
        f"{call.name}_position",
        [second.with_axes(second.axes[:1])],
        lambda x: f"int64({x} > {middle})",
        "int64",
    )
    other = writer.pointwise(f"{call.name}_first", [second], first.format, second.dtype)
    wish = call.names[1] if len(call.names) > 1 else "scores"
    return pick(label, classes, positions), join(label, [other, second], 1, wish)


def classified(call: Call, scores: View, classes: Array, *, binary: bool) -> tuple[Any, Value]:
    """The label and the scores of a classifier.

    Args:
        call: the node.
        scores: rows by classes, before ``post_transform``; one column for two classes if `binary`.
        classes: the classes.
        binary: whether the one column is that of the second class.
    """
    writer = call.writer
    label = Call(call.operator, (), {}, (call.names[0],), call.version, writer)
    if binary:
        kind = call.get("post_transform", "NONE")
        shown = transform_scores(call, scores, f"{call.name}_second")
        middle = "0.5" if kind == "LOGISTIC" else "0"
        first = "1 - {}" if kind in ("LOGISTIC", "PROBIT") else "-{}"
        return two_classes(call, shown, classes, middle, first)
    plain = writer.flatten(scores, [1])
    positions = position_of(label, plain, 1, "argmax", keep=False, wish=f"{call.name}_position")
    wish = call.names[1] if len(call.names) > 1 else "scores"
    return pick(label, classes, positions), transform_scores(call, plain, wish)


def linear_classifier(call: Call) -> Outputs:
    """`LinearClassifier`."""
    x = as_real(call)
    classes = classes_of(call)
    offsets = floats(call, "intercepts")
    rows = len(offsets) or len(call.get("coefficients")) // x.shape[-1].number
    scores = _linear(call, x, rows)
    return classified(call, scores, classes, binary=rows == 1 and len(classes) == 2)


# ---- Support vectors ----


def kernel(call: Call, x: View, vectors: Array, wish: str) -> View:
    """The kernel of each row with each support vector."""
    writer = call.writer
    gamma, coef0, degree = (*floats(call, "kernel_params", np.float64), 0.0, 0.0, 0.0)[:3]
    kind = call.get("kernel_type", "LINEAR")
    right = writer.view(np.ascontiguousarray(vectors), f"{call.name}_vectors")
    turned = right.with_axes((right.axes[1], right.axes[0]))
    product = contract(writer, f"{wish}_products", x, turned, x.dtype)
    if kind == "LINEAR":
        return product
    g, c, d = number(float(gamma)), number(float(coef0)), number(float(degree))
    if kind == "RBF":
        squares = reduce_axes(call, x, [1], "sum", "square(x)", wish=f"{wish}_squares")
        own = np.asarray((vectors.astype(np.float64) ** 2).sum(1), x.dtype)[None, :]
        return writer.pointwise(
            wish,
            [product, squares, own],
            lambda p, s, o: f"exp(-{g} * max({s} + {o} - 2 * {p}, 0))",
            x.dtype,
        )
    text = f"({g} * {{}} + {c}) ^ {d}" if kind == "POLY" else f"tanh({g} * {{}} + {c})"
    return writer.pointwise(wish, [product], text.format, x.dtype)


def svm_regressor(call: Call) -> Outputs:
    """`SVMRegressor`."""
    x = as_real(call)
    count = int(call.get("n_supports", 0))
    weights = floats(call, "coefficients", x.dtype)
    rho = number(float(floats(call, "rho", np.float64)[0]))
    if count:
        vectors = floats(call, "support_vectors", x.dtype).reshape(count, -1)
        near = kernel(call, x, vectors, f"{call.name}_kernel")
    else:
        near = x
    line = call.writer.view(weights.reshape(-1, 1), f"{call.name}_coefficients")
    product = contract(call.writer, f"{call.name}_sum", near, line, x.dtype)
    if call.get("one_class", 0):
        return call.writer.pointwise(
            call.name, [product], lambda s: f"where({s} + {rho} > 0, 1, -1)", x.dtype
        )
    return call.writer.pointwise(call.name, [product], lambda s: f"{s} + {rho}", x.dtype)


def slices_of(sizes: Sequence[int]) -> list[slice]:
    """The parts of a list by their sizes."""
    ends = np.cumsum([0, *sizes])
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]


def pair_weights(
    coefficients: Array, sizes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> Array:
    """The weights of support vectors in the decision between each two classes.

    Args:
        coefficients: classes less one, by support vectors (libsvm's dual coefficients).
        sizes: how many support vectors each class has.
        pairs: of classes.
    """
    parts = slices_of(sizes)
    weights = np.zeros((sum(sizes), len(pairs)), coefficients.dtype)
    for n, (i, j) in enumerate(pairs):
        weights[parts[i], n] = coefficients[j - 1, parts[i]]
        weights[parts[j], n] = coefficients[i, parts[j]]
    return weights


def votes(call: Call, decisions: View, count: int, wish: str) -> View:
    """How many of the decisions between two classes each class wins."""
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    won, lost = np.zeros((len(pairs), count)), np.zeros((len(pairs), count))
    for n, (i, j) in enumerate(pairs):
        won[n, i], lost[n, j] = 1, 1
    positive = call.writer.pointwise(
        f"{wish}_first", [decisions], lambda d: f"float64({d} > 0)", "float64"
    )
    # The loser of a pair gets what the winner does not: won p + lost (1 - p).
    product = contract(
        call.writer,
        f"{wish}_won",
        positive,
        call.writer.view(won - lost, f"{wish}_pairs"),
        np.dtype(np.float64),
    )
    return call.writer.pointwise(wish, [product, lost.sum(0)[None, :]], "{} + {}".format, "float64")


def svm_classifier(call: Call) -> Outputs:
    """`SVMClassifier`, by votes; with probabilities, by coupling those of pairs.

    Raises:
        UnsupportedError: the probabilities of more than two classes are asked for.
    """
    x = as_real(call)
    classes = classes_of(call)
    sizes = [int(n) for n in floats(call, "vectors_per_class", np.int64)]
    if not sizes:
        scores = _linear(call, x, len(classes) if len(classes) > 2 else 1)
        return classified(call, scores, classes, binary=len(classes) == 2)
    vectors = floats(call, "support_vectors", x.dtype).reshape(sum(sizes), -1)
    coefficients = floats(call, "coefficients", x.dtype).reshape(len(classes) - 1, -1)
    pairs = [(i, j) for i in range(len(classes)) for j in range(i + 1, len(classes))]
    near = kernel(call, x, vectors, f"{call.name}_kernel")
    weights = call.writer.view(
        pair_weights(coefficients, sizes, pairs), f"{call.name}_coefficients"
    )
    sums = contract(call.writer, f"{call.name}_sums", near, weights, x.dtype)
    rho = floats(call, "rho", x.dtype)[None, :]
    decisions = call.writer.pointwise(
        f"{call.name}_decisions", [sums, rho], "{} + {}".format, x.dtype
    )
    if call.get("prob_a") is not None:
        return _probable(call, decisions, classes)
    won = votes(call, decisions, len(classes), f"{call.name}_votes")
    label = Call(call.operator, (), {}, (call.names[0],), call.version, call.writer)
    positions = position_of(label, won, 1, "argmax", keep=False, wish=f"{call.name}_position")
    return pick(label, classes, positions), decisions


def _probable(call: Call, decisions: View, classes: Array) -> tuple[Any, ...]:
    if len(classes) > 2:
        raise call.refuse("probabilities of more than two classes", "two classes")
    a, b = (number(float(floats(call, name, np.float64)[0])) for name in ("prob_a", "prob_b"))
    first = call.writer.pointwise(
        f"{call.name}_first",
        [decisions.with_axes((decisions.axes[0], ()))],
        lambda d: f"1 / (1 + exp({a} * {d} + {b}))",
        decisions.dtype,
    )
    second = call.writer.pointwise(f"{call.name}_second", [first], "1 - {}".format, first.dtype)
    wish = call.names[1] if len(call.names) > 1 else "scores"
    both = join(call, [first, second], 1, wish)
    label = Call(call.operator, (), {}, (call.names[0],), call.version, call.writer)
    positions = call.writer.pointwise(
        f"{call.name}_position",
        [first.with_axes(first.axes[:1])],
        lambda p: f"int64({p} < 0.5)",
        "int64",
    )
    return pick(label, classes, positions), both


OPERATORS: dict[str, Operator] = {
    "ArrayFeatureExtractor": extract_features,
    "Binarizer": binarizer,
    "FeatureVectorizer": feature_vectorizer,
    "Imputer": imputer,
    "LabelEncoder": label_encoder,
    "LinearClassifier": linear_classifier,
    "LinearRegressor": linear_regressor,
    "Normalizer": normalizer,
    "OneHotEncoder": one_hot_encoder,
    "SVMClassifier": svm_classifier,
    "SVMRegressor": svm_regressor,
    "Scaler": scaler,
    "ZipMap": zip_map,
}
