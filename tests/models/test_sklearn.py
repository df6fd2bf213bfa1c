"""Estimators of scikit-learn against their own predictions, in float64."""

from __future__ import annotations

import logging
import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

pytest.importorskip("skl2onnx")

from estimators import CASES, fitted

from ucle.errors import UnsupportedError
from ucle.models import Model, from_sklearn
from ucle.testing.check_matrix import Routes

ROUNDED = ("adaptive boosting", "naive Bayes of bits")
"""Estimators of which skl2onnx rounds a constant to float32."""


def read(estimator: Any) -> Model:
    logging.getLogger("skl2onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return from_sklearn(estimator)


def expected(estimator: Any, rows: Any, model: Model) -> list[Any]:
    """What scikit-learn says, output by output."""
    if hasattr(estimator, "transform") and not hasattr(estimator, "predict"):
        return [np.asarray(estimator.transform(rows))]
    values = [estimator.predict(rows)]
    if hasattr(estimator, "predict_proba"):
        values.append(estimator.predict_proba(rows))
    elif type(estimator).__name__ in ("IsolationForest", "OneClassSVM"):
        values.append(estimator.decision_function(rows))
    return values[: len(model.outputs)]


@pytest.mark.parametrize(("kind", "name"), CASES)
@pytest.mark.sample(3)
def test_an_estimator(kind: str, name: str, routes: Routes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator, rows = fitted(kind, name)
    model = read(estimator)
    for connection in routes.values():
        with model.program(rows, database=connection).execute() as result:
            for output, value in zip(model.outputs, expected(estimator, rows, model), strict=False):
                tensor = result[output.name]
                if output.dtype == "string":
                    table = tensor.to_arrow(rows="all").to_pandas().sort_values("rows")
                    assert table["val"].tolist() == value.tolist()
                    continue
                found = tensor.to_numpy().reshape(value.shape)
                if value.dtype.kind in "iu":
                    np.testing.assert_array_equal(found, value)
                loose = 1e-7 if name in ROUNDED else 1e-9
                np.testing.assert_allclose(found, value, rtol=loose, atol=loose)


def test_an_estimator_without_a_converter() -> None:
    manifold = import_module("sklearn.manifold")
    estimator = manifold.Isomap(n_neighbors=3, n_components=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(np.random.default_rng(0).normal(size=(20, 2)))
    with pytest.raises(UnsupportedError, match=r"Isomap.*cannot be converted"):
        from_sklearn(estimator)


def test_an_estimator_that_is_not_fitted() -> None:
    with pytest.raises(UnsupportedError, match="not fitted"):
        from_sklearn(import_module("sklearn.linear_model").LinearRegression())


def test_thresholds_are_compared_with_rounded_features(routes: Routes) -> None:
    """A number just above a threshold is rounded to it, as in scikit-learn."""
    cut = float(np.float32(0.1))
    tree = import_module("sklearn.tree")
    estimator = tree.DecisionTreeRegressor().fit([[0.0, 0.0], [2 * cut, 0.0]], [0.0, 1.0])
    assert estimator.tree_.threshold[0] == cut
    rows = np.array([[cut + 1e-12, 0.0], [cut - 1e-12, 0.0], [cut + 1e-6, 0.0]])
    with read(estimator).program(rows, database=routes["native"]).execute() as result:
        found = result["variable"].to_numpy()
    np.testing.assert_array_equal(found, estimator.predict(rows))
    np.testing.assert_array_equal(found, [0, 0, 1])
