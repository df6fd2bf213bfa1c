"""Fitted estimators of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ucle.errors import UcleError, UnsupportedError
from ucle.models.graph import ModelInput, translate
from ucle.models.imported_model import Model
from ucle.models.onnx_files import models_module
from ucle.models.sklearn_converters import converters

OPSET = 21


def from_sklearn(
    estimator: Any,
    *,
    columns: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Model:
    """Read a fitted estimator, transformer or pipeline of scikit-learn.

    Numbers are float64, as in scikit-learn. Features are read by the names of the columns that the
    estimator was fitted on; without names, the model has one input ``features``, a matrix.
    Classifiers have the outputs ``label`` and ``probabilities`` (or ``scores``), regressors and
    transformers have the output ``variable``. If classes are strings, they are the coordinates of
    probabilities, under the label ``class``.

    Args:
        estimator: a fitted estimator, transformer or pipeline.
        columns: ``"float64"``, ``"int64"`` or ``"string"`` by column, for an estimator that was
            fitted on a table; by default, columns that encoders read are strings, and the others
            float64.
        outputs: the outputs to compute; all by default.

    Raises:
        UnsupportedError: the estimator has no converter, or its form is not supported.
        MissingPackageError: scikit-learn or skl2onnx is not installed.
    """
    types = models_module("skl2onnx.common.data_types")
    where = type(estimator).__name__
    names, initial = initial_types(estimator, types, columns, where)
    try:
        model = _to_onnx(estimator, initial)
    except UcleError:
        raise
    except Exception as error:
        raise UnsupportedError(
            "scikit-learn's estimator cannot be converted",
            where=where,
            expected="one that skl2onnx converts in float64",
            found=f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}",
        ) from error
    translation = translate(
        model,
        sizes={},
        constants={},
        outputs=outputs,
        where=where,
        classes=names_of_classes(estimator),
    )
    if names:
        inputs = tuple(_named(x, names) for x in translation.inputs)
        translation = replace(translation, inputs=inputs)
    return Model(translation)


def _to_onnx(estimator: Any, initial: Any) -> Any:
    """Convert; probabilities are a matrix where the estimator has the option."""
    convert = models_module("skl2onnx").convert_sklearn
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    given = {"initial_types": initial, "target_opset": OPSET, **converters()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unable to find operator")  # of our domain
        try:
            return convert(estimator, options={id(last): {"zipmap": False}}, **given)
        except NameError:  # it has no such option
            return convert(estimator, **given)


def names_of_classes(estimator: Any) -> tuple[str, ...]:
    """The names of the classes of a classifier, if they have names."""
    classes = getattr(estimator, "classes_", ())
    kinds = getattr(getattr(classes, "dtype", None), "kind", "")
    named = kinds in ("U", "S") or (kinds == "O" and all(isinstance(x, str) for x in classes))
    return tuple(map(str, classes)) if named else ()


def _named(own: ModelInput, names: Sequence[str]) -> ModelInput:
    return replace(own, columns=tuple(names)) if own.original == "features" else own


def initial_types(
    estimator: Any, types: Any, columns: Mapping[str, str] | None, where: str
) -> tuple[tuple[str, ...], list[tuple[str, Any]]]:
    """The names of the features of a matrix, and the inputs for skl2onnx.

    Raises:
        UnsupportedError: the estimator is not fitted.
    """
    names = tuple(map(str, getattr(estimator, "feature_names_in_", ())))
    mixed = column_kinds(estimator)
    kinds = {"float64": types.DoubleTensorType, "string": types.StringTensorType}
    kinds["int64"] = types.Int64TensorType
    if columns or (mixed and names):
        chosen = {name: (columns or {}).get(name) or mixed.get(name, "float64") for name in names}
        return (), [(name, kinds[kind]([None, 1])) for name, kind in chosen.items()]
    count = getattr(estimator, "n_features_in_", None)
    if count is None:
        raise UnsupportedError("the estimator is not fitted", where=where, expected="fit(...)")
    return names, [("features", types.DoubleTensorType([None, int(count)]))]


def column_kinds(estimator: Any) -> dict[str, str]:
    """The columns that a `ColumnTransformer` reads, with the type of those that encoders know."""
    found: dict[str, str] = {}
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    for step in steps:
        for _, part, chosen in getattr(step, "transformers_", ()):
            names = [chosen] if isinstance(chosen, str) else list(chosen)
            if not all(isinstance(name, str) for name in names):
                continue
            for n, name in enumerate(names):
                found[name] = _category_kind(part, n)
        if found:
            break
    return found


def _category_kind(part: Any, place: int) -> str:
    steps = [step for _, step in part.steps] if hasattr(part, "steps") else [part]
    for step in steps:
        categories = getattr(step, "categories_", None)
        if categories is not None and place < len(categories):
            kind = getattr(categories[place], "dtype", None)
            if kind is not None and kind.kind in "OUS":
                return "string"
            return "int64" if kind is not None and kind.kind in "iu" else "float64"
        statistics = getattr(step, "statistics_", None)
        if getattr(getattr(statistics, "dtype", None), "kind", "f") == "O":
            return "string"
    return "float64"
