"""Converters of our own, where those of skl2onnx round to float32 or refuse float64.

Each writes one node in the domain ``ucle``, whose attributes are float64;
`ucle.models.operators.learned` has the statements. Thresholds of scikit-learn's trees are float64,
and features are rounded to float32 before they are compared, but in histogram boosting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ucle.errors import UnsupportedError
from ucle.models.onnx_files import models_module
from ucle.models.operators.trees import LEAF, MISSING_TRUE, Trees, ordered

DOMAIN = "ucle"
LEQ = 1


def converters() -> dict[str, Any]:
    """Arguments of `skl2onnx.to_onnx`."""
    functions, shapes = {}, {}
    for module, name, convert in _ROWS:
        kind = getattr(models_module(module), name, None)
        if kind is not None:
            functions[kind] = convert
            shapes[kind] = _shape
    return {"custom_conversion_functions": functions, "custom_shape_calculators": shapes}


def _shape(operator: Any) -> None:
    """The shapes of the outputs: rows, and rows by classes, targets or features."""
    types = models_module("skl2onnx.common.data_types")
    estimator, outputs = operator.raw_operator, operator.outputs
    classes = getattr(estimator, "classes_", None)
    if classes is not None and len(outputs) > 1:
        text = np.asarray(classes).dtype.kind in "OUS"
        outputs[0].type = (types.StringTensorType if text else types.Int64TensorType)([None])
        outputs[1].type = types.DoubleTensorType([None, len(classes)])
        return
    for output in outputs:
        output.type = types.DoubleTensorType([None, None])
    if hasattr(estimator, "offset_"):
        outputs[0].type = types.Int64TensorType([None, 1])


def write(operator: Any, scope: Any, container: Any, kind: str, **attributes: Any) -> None:
    """Add one node of the domain ``ucle`` with attributes that are arrays or plain values."""
    onnx = models_module("onnx")
    given = {
        name: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in attributes.items()
    }
    container.add_node(
        kind,
        [each.full_name for each in operator.inputs],
        [each.full_name for each in operator.outputs],
        op_domain=DOMAIN,
        name=scope.get_unique_operator_name(kind),
        **given,
    )


def _classes(estimator: Any) -> dict[str, Any]:
    classes = np.asarray(estimator.classes_)
    if classes.dtype.kind in "OUS":
        return {"classlabels_strings": [str(name) for name in classes]}
    return {"classlabels_ints": [int(n) for n in classes]}


# ---- Trees ----


def trees_of(parts: Sequence[Any], values: Sequence[Any], columns: int) -> Trees:
    """Trees of scikit-learn, one after the other.

    Args:
        parts: objects with the arrays of a ``tree_``.
        values: for each, what each node adds: nodes by outputs.
        columns: the number of outputs.
    """
    feature, threshold, yes, no, code, added, roots, start = [], [], [], [], [], [], [], 0
    for part, value in zip(parts, values, strict=True):
        leaf = part.children_left < 0
        feature.append(np.where(leaf, 0, part.feature))
        threshold.append(np.where(leaf, 0.0, part.threshold))
        yes.append(np.where(leaf, 0, part.children_left + start))
        no.append(np.where(leaf, 0, part.children_right + start))
        left = getattr(part, "missing_go_to_left", None)
        missing = np.zeros(len(leaf), bool) if left is None else np.asarray(left) != 0
        code.append(np.where(leaf, LEAF, LEQ | np.where(missing, MISSING_TRUE, 0)))
        added.append(np.where(leaf[:, None], value.reshape(len(leaf), columns), 0.0))
        roots.append(start)
        start += len(leaf)
    return ordered(
        np.concatenate(feature),
        np.concatenate(threshold),
        np.concatenate(yes),
        np.concatenate(no),
        np.concatenate(code),
        np.concatenate(added),
        roots,
    )


def _write_trees(
    operator: Any,
    scope: Any,
    container: Any,
    trees: Trees,
    *,
    single: bool,
    divide: float = 1.0,
    base: Any = (),
    post: str = "NONE",
    **attributes: Any,
) -> None:
    classifier = hasattr(operator.raw_operator, "classes_")
    write(
        operator,
        scope,
        container,
        "TreeClassifier" if classifier else "TreeRegressor",
        trees=trees.packed(),
        single=int(single),
        divide=np.array(float(divide)),
        base=np.asarray(base, np.float64).reshape(-1),
        post_transform=post,
        **(_classes(operator.raw_operator) if classifier else {}),
        **attributes,
    )


def _check_one_output(estimator: Any) -> None:
    if getattr(estimator, "n_outputs_", 1) != 1 and hasattr(estimator, "classes_"):
        raise UnsupportedError(
            "trees for several targets of classes are not there",
            where=type(estimator).__name__,
            expected="one target",
        )


def convert_trees(scope: Any, operator: Any, container: Any) -> None:
    """Single trees, and forests, whose trees count alike."""
    estimator = operator.raw_operator
    _check_one_output(estimator)
    members = getattr(estimator, "estimators_", [estimator])
    parts = [member.tree_ for member in members]
    columns = parts[0].value.shape[2] if hasattr(estimator, "classes_") else parts[0].n_outputs
    values = []
    for part in parts:
        value = part.value.reshape(part.node_count, -1)
        if hasattr(estimator, "classes_"):
            total = value.sum(1, keepdims=True)
            value = value / np.where(total == 0, 1, total)
        values.append(value)
    trees = trees_of(parts, values, columns)
    _write_trees(operator, scope, container, trees, single=True, divide=len(parts))


def convert_boosting(scope: Any, operator: Any, container: Any) -> None:
    """`GradientBoostingClassifier` and `-Regressor`."""
    estimator = operator.raw_operator
    count = estimator.estimators_.shape[1]
    start = np.zeros((1, estimator.n_features_in_), np.float32)
    if estimator.init_ != "zero" and type(estimator.init_).__name__[:5] != "Dummy":
        raise UnsupportedError(
            "boosting that begins with an estimator is not there",
            where=type(estimator).__name__,
            expected="init=None or init='zero'",
        )
    base = estimator._raw_predict_init(start).reshape(-1)
    parts, values = [], []
    for stage in estimator.estimators_:
        for column, member in enumerate(stage):
            part = member.tree_
            value = np.zeros((part.node_count, count))
            value[:, column] = part.value[:, 0, 0] * estimator.learning_rate
            parts.append(part)
            values.append(value)
    post = "NONE"
    if hasattr(estimator, "classes_"):
        post = "LOGISTIC" if count == 1 else "SOFTMAX"
        if estimator.loss == "exponential":
            post = "LOGISTIC2"
    trees = trees_of(parts, values, count)
    _write_trees(operator, scope, container, trees, single=True, base=base, post=post)


class _Histogram:
    """The nodes of a tree of histogram boosting, under the names of other trees."""

    def __init__(self, nodes: Any, where: str) -> None:
        leaf = nodes["is_leaf"].astype(bool)
        if "is_categorical" in nodes.dtype.names and nodes["is_categorical"].any():
            raise UnsupportedError(
                "categories in histogram boosting are not there", where=where, expected="numbers"
            )
        self.feature = nodes["feature_idx"].astype(np.int64)
        self.threshold = nodes["num_threshold"].astype(np.float64)
        self.children_left = np.where(leaf, -1, nodes["left"].astype(np.int64))
        self.children_right = np.where(leaf, -1, nodes["right"].astype(np.int64))
        self.missing_go_to_left = nodes["missing_go_to_left"]


def convert_histogram(scope: Any, operator: Any, container: Any) -> None:
    """`HistGradientBoostingClassifier` and `-Regressor`."""
    estimator = operator.raw_operator
    where = type(estimator).__name__
    if getattr(estimator, "_preprocessor", None) is not None:
        raise UnsupportedError("categories in histogram boosting are not there", where=where)
    base = np.asarray(estimator._baseline_prediction, np.float64).reshape(-1)
    count = len(estimator._predictors[0])
    parts, values = [], []
    for stage in estimator._predictors:
        for column, member in enumerate(stage):
            value = np.zeros((len(member.nodes), count))
            value[:, column] = member.nodes["value"]
            parts.append(_Histogram(member.nodes, where))
            values.append(value)
    if hasattr(estimator, "classes_"):
        post = "LOGISTIC" if count == 1 else "SOFTMAX"
    else:
        post = "EXP" if estimator.loss in ("poisson", "gamma") else "NONE"
    trees = trees_of(parts, values, count)
    _write_trees(operator, scope, container, trees, single=False, base=base, post=post)


def convert_isolation(scope: Any, operator: Any, container: Any) -> None:
    """`IsolationForest`: the label and the decision."""
    estimator = operator.raw_operator
    ensemble = models_module("sklearn.ensemble._iforest")
    parts, values = [], []
    for member, features in zip(estimator.estimators_, estimator.estimators_features_, strict=True):
        part = member.tree_
        depth = np.zeros(part.node_count)
        for node in range(part.node_count):
            for child in (part.children_left[node], part.children_right[node]):
                if child >= 0:
                    depth[child] = depth[node] + 1
        length = depth + ensemble._average_path_length(part.n_node_samples)
        parts.append(_Renumbered(part, np.asarray(features)))
        values.append(length[:, None])
    scale = len(parts) * float(ensemble._average_path_length([estimator._max_samples])[0])
    write(
        operator,
        scope,
        container,
        "IsolationForest",
        trees=trees_of(parts, values, 1).packed(),
        scale=np.array(scale),
        offset=np.array(float(estimator.offset_)),
    )


class _Renumbered:
    """A tree on some of the features, by their numbers among all."""

    def __init__(self, part: Any, features: Any) -> None:
        self.feature = features[np.maximum(part.feature, 0)]
        self.threshold, self.node_count = part.threshold, part.node_count
        self.children_left, self.children_right = part.children_left, part.children_right
        self.missing_go_to_left = getattr(part, "missing_go_to_left", None)


# ---- Support vectors ----

KERNELS = {"linear": "LINEAR", "rbf": "RBF", "poly": "POLY", "sigmoid": "SIGMOID"}


def _kernel_of(estimator: Any) -> dict[str, Any]:
    if estimator.kernel not in KERNELS:
        raise UnsupportedError(
            "the kernel of support vectors is not there",
            where=type(estimator).__name__,
            expected=", ".join(KERNELS),
            found=str(estimator.kernel),
        )
    params = np.array([estimator._gamma, estimator.coef0, estimator.degree], np.float64)
    return {"kernel_type": KERNELS[estimator.kernel], "kernel_params": params}


def _dense(matrix: Any) -> Any:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, np.float64)


def convert_support_classifier(scope: Any, operator: Any, container: Any) -> None:
    """`SVC` and `NuSVC`."""
    estimator = operator.raw_operator
    attributes = _kernel_of(estimator)
    if getattr(estimator, "probability", False) is True:
        attributes["prob_a"] = np.asarray(estimator.probA_, np.float64)
        attributes["prob_b"] = np.asarray(estimator.probB_, np.float64)
    write(
        operator,
        scope,
        container,
        "SVMClassifier",
        vectors_per_class=[int(n) for n in estimator._n_support],
        support_vectors=_dense(estimator.support_vectors_).reshape(-1),
        coefficients=_dense(estimator._dual_coef_).reshape(-1),
        rho=np.asarray(estimator._intercept_, np.float64),
        **_classes(estimator),
        **attributes,
    )


def _write_support_vectors(scope: Any, operator: Any, container: Any, kind: str) -> None:
    estimator = operator.raw_operator
    vectors = _dense(estimator.support_vectors_)
    write(
        operator,
        scope,
        container,
        kind,
        n_supports=len(vectors),
        support_vectors=vectors.reshape(-1),
        coefficients=_dense(estimator._dual_coef_).reshape(-1),
        rho=np.asarray(estimator._intercept_, np.float64),
        **_kernel_of(estimator),
    )


def convert_support_regressor(scope: Any, operator: Any, container: Any) -> None:
    """`SVR` and `NuSVR`."""
    _write_support_vectors(scope, operator, container, "SVMRegressor")


def convert_one_class(scope: Any, operator: Any, container: Any) -> None:
    """`OneClassSVM`: the label and the decision."""
    _write_support_vectors(scope, operator, container, "OneClass")


# ---- Neighbours ----


def convert_neighbours(scope: Any, operator: Any, container: Any) -> None:
    """`KNeighborsClassifier` and `-Regressor`, by all distances."""
    estimator = operator.raw_operator
    metric, p = estimator.effective_metric_, getattr(estimator, "p", 2)
    if metric == "minkowski":
        metric = {1: "manhattan", 2: "euclidean"}.get(p, metric)
    if metric not in ("euclidean", "manhattan") or callable(estimator.weights):
        raise UnsupportedError(
            "the distance or the weights of neighbours are not there",
            where=type(estimator).__name__,
            expected="euclidean or manhattan, uniform or distance",
            found=f"{metric}, {estimator.weights}",
        )
    targets = np.asarray(estimator._y)
    classes = {}
    if hasattr(estimator, "classes_"):
        if targets.ndim > 1:
            raise UnsupportedError("several targets are not there", where=type(estimator).__name__)
        targets = np.eye(len(estimator.classes_))[targets]
        classes = _classes(estimator)
    write(
        operator,
        scope,
        container,
        "Neighbours",
        points=_dense(estimator._fit_X),
        targets=targets.reshape(len(targets), -1).astype(np.float64),
        count=int(estimator.n_neighbors),
        metric=str(metric),
        weights=str(estimator.weights),
        **classes,
    )


# ---- Linear ----


def _line_of(estimator: Any) -> dict[str, Any]:
    """The coefficients of a linear model, and one intercept for each of its outputs."""
    coefficients = np.atleast_2d(np.asarray(estimator.coef_, np.float64))
    offsets = np.asarray(estimator.intercept_, np.float64).reshape(-1)
    return {
        "coefficients": coefficients.reshape(-1),
        "intercepts": np.broadcast_to(offsets, (len(coefficients),)).copy(),
    }


def convert_linear(scope: Any, operator: Any, container: Any) -> None:
    """Linear regressors, with or without an intercept, of one target or several."""
    line = _line_of(operator.raw_operator)
    write(operator, scope, container, "LinearRegressor", targets=len(line["intercepts"]), **line)


def _write_margins(scope: Any, operator: Any, container: Any, several: str, two: str) -> None:
    estimator = operator.raw_operator
    line = _line_of(estimator)
    write(
        operator,
        scope,
        container,
        "LinearClassifier",
        post_transform=two if len(line["intercepts"]) == 1 else several,
        **line,
        **_classes(estimator),
    )


def convert_margins(scope: Any, operator: Any, container: Any) -> None:
    """`RidgeClassifier` and `LinearSVC`: the class by the greatest margin."""
    _write_margins(scope, operator, container, "NONE", "NONE")


def convert_discriminant(scope: Any, operator: Any, container: Any) -> None:
    """`LinearDiscriminantAnalysis`: the logistic function of margins, or their softmax."""
    _write_margins(scope, operator, container, "SOFTMAX", "LOGISTIC")


def convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """`SimpleImputer` of numbers.

    Raises:
        UnsupportedError: of strings, or with columns that say what was missing.
    """
    estimator = operator.raw_operator
    values = np.asarray(estimator.statistics_)
    if values.dtype.kind not in "fiub" or estimator.add_indicator:
        raise UnsupportedError(
            "this form of the imputer is not there",
            where=type(estimator).__name__,
            expected="numbers, add_indicator=False",
        )
    empty = np.isnan(values.astype(np.float64))
    if empty.any() and not estimator.keep_empty_features:
        raise UnsupportedError(
            "a feature without any value is left out", where=type(estimator).__name__
        )
    write(
        operator,
        scope,
        container,
        "Imputer",
        imputed_value_floats=values.astype(np.float64),
        replaced_value_float=float(estimator.missing_values),
    )


def convert_power(scope: Any, operator: Any, container: Any) -> None:
    """`PowerTransformer`, after Yeo and Johnson or Box and Cox."""
    estimator = operator.raw_operator
    scaler = estimator._scaler if estimator.standardize else None
    count = len(estimator.lambdas_)
    write(
        operator,
        scope,
        container,
        "PowerTransform",
        lambdas=np.asarray(estimator.lambdas_, np.float64),
        method=str(estimator.method),
        offset=np.asarray(scaler.mean_ if scaler is not None else np.zeros(count), np.float64),
        scale=1 / np.asarray(scaler.scale_ if scaler is not None else np.ones(count), np.float64),
    )


def convert_bins(scope: Any, operator: Any, container: Any) -> None:
    """`KBinsDiscretizer`: numbers of bins, or one column for each."""
    estimator = operator.raw_operator
    edges = estimator.bin_edges_
    longest = max(len(each) - 2 for each in edges)
    inner = np.full((len(edges), max(longest, 1)), math.inf)
    for n, each in enumerate(edges):
        inner[n, : len(each) - 2] = each[1:-1]
    write(
        operator,
        scope,
        container,
        "Bins",
        edges=inner,
        counts=[len(each) - 1 for each in edges],
        encode=str(estimator.encode),
    )


def convert_ordinal(scope: Any, operator: Any, container: Any) -> None:
    """`OrdinalEncoder`: columns of names here, those of numbers by skl2onnx."""
    estimator = operator.raw_operator
    categories = [np.asarray(each) for each in estimator.categories_]
    named = all(isinstance(name, str) for each in categories for name in each)
    if not named or estimator.encoded_missing_value == estimator.encoded_missing_value:
        registered = models_module("skl2onnx.common._registration")
        registered.get_converter("SklearnOrdinalEncoder")(scope, operator, container)
        return
    strict = estimator.handle_unknown == "error"
    write(
        operator,
        scope,
        container,
        "OrdinalEncoder",
        categories=[str(name) for each in categories for name in each],
        counts=[len(each) for each in categories],
        strict=int(strict),
        unknown=math.nan if strict else float(estimator.unknown_value),
    )


_FORESTS = ("RandomForest", "ExtraTrees")
_ROWS: tuple[tuple[str, str, Callable[[Any, Any, Any], None]], ...] = (
    *(
        ("sklearn.tree", f"{name}{kind}", convert_trees)
        for name in ("DecisionTree", "ExtraTree")
        for kind in ("Classifier", "Regressor")
    ),
    *(
        ("sklearn.ensemble", f"{name}{kind}", convert_trees)
        for name in _FORESTS
        for kind in ("Classifier", "Regressor")
    ),
    ("sklearn.ensemble", "GradientBoostingClassifier", convert_boosting),
    ("sklearn.ensemble", "GradientBoostingRegressor", convert_boosting),
    ("sklearn.ensemble", "HistGradientBoostingClassifier", convert_histogram),
    ("sklearn.ensemble", "HistGradientBoostingRegressor", convert_histogram),
    ("sklearn.ensemble", "IsolationForest", convert_isolation),
    ("sklearn.svm", "SVC", convert_support_classifier),
    ("sklearn.svm", "NuSVC", convert_support_classifier),
    ("sklearn.svm", "SVR", convert_support_regressor),
    ("sklearn.svm", "NuSVR", convert_support_regressor),
    ("sklearn.svm", "OneClassSVM", convert_one_class),
    ("sklearn.linear_model", "LinearRegression", convert_linear),
    ("sklearn.linear_model", "Ridge", convert_linear),
    ("sklearn.linear_model", "Lasso", convert_linear),
    ("sklearn.linear_model", "ElasticNet", convert_linear),
    ("sklearn.svm", "LinearSVC", convert_margins),
    ("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis", convert_discriminant),
    ("sklearn.impute", "SimpleImputer", convert_imputer),
    ("sklearn.linear_model", "RidgeClassifier", convert_margins),
    ("sklearn.linear_model", "RidgeClassifierCV", convert_margins),
    ("sklearn.neighbors", "KNeighborsClassifier", convert_neighbours),
    ("sklearn.neighbors", "KNeighborsRegressor", convert_neighbours),
    ("sklearn.preprocessing", "PowerTransformer", convert_power),
    ("sklearn.preprocessing", "KBinsDiscretizer", convert_bins),
    ("sklearn.preprocessing", "OrdinalEncoder", convert_ordinal),
)
