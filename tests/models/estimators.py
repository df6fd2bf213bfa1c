"""Estimators of scikit-learn with their main options, and data that they are fitted on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import (
    cluster,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_selection,
    linear_model,
    mixture,
    naive_bayes,
    neighbors,
    neural_network,
    preprocessing,
    svm,
    tree,
)
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cross_decomposition import PLSRegression
from sklearn.impute import SimpleImputer

Make = Callable[[], Any]

SEED = {"random_state": 0}
LONG = {"max_iter": 1000}

CLASSIFIERS: dict[str, Make] = {
    "logistic": lambda: linear_model.LogisticRegression(**LONG),
    "logistic, no intercept": lambda: linear_model.LogisticRegression(fit_intercept=False, **LONG),
    "logistic, weights": lambda: linear_model.LogisticRegression(class_weight="balanced", **LONG),
    "logistic by folds": lambda: linear_model.LogisticRegressionCV(Cs=3, cv=3, **LONG),
    "ridge": linear_model.RidgeClassifier,
    "stochastic gradient": lambda: linear_model.SGDClassifier(loss="log_loss", **SEED),
    "hinge": lambda: linear_model.SGDClassifier(**SEED),
    "perceptron": lambda: linear_model.Perceptron(**SEED),
    "linear support vectors": lambda: svm.LinearSVC(**SEED),
    "support vectors": svm.SVC,
    "support vectors, linear": lambda: svm.SVC(kernel="linear"),
    "support vectors, polynomial": lambda: svm.SVC(kernel="poly", degree=2, coef0=0.5),
    "support vectors, sigmoid": lambda: svm.SVC(kernel="sigmoid"),
    "support vectors by share": lambda: svm.NuSVC(nu=0.1),
    "tree": lambda: tree.DecisionTreeClassifier(**SEED),
    "tree, shallow": lambda: tree.DecisionTreeClassifier(max_depth=3, **SEED),
    "random tree": lambda: tree.ExtraTreeClassifier(**SEED),
    "forest": lambda: ensemble.RandomForestClassifier(20, **SEED),
    "random trees": lambda: ensemble.ExtraTreesClassifier(20, max_depth=4, **SEED),
    "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=10, **SEED),
    "histogram boosting": lambda: ensemble.HistGradientBoostingClassifier(max_iter=10, **SEED),
    "adaptive boosting": lambda: ensemble.AdaBoostClassifier(n_estimators=8, **SEED),
    "bagging": lambda: ensemble.BaggingClassifier(n_estimators=4, **SEED),
    "voting": lambda: ensemble.VotingClassifier(
        [("a", linear_model.LogisticRegression(**LONG)), ("b", naive_bayes.GaussianNB())],
        voting="soft",
        flatten_transform=False,
    ),
    "neighbours": neighbors.KNeighborsClassifier,
    "neighbours by distance": lambda: neighbors.KNeighborsClassifier(3, weights="distance", p=1),
    "naive Bayes": naive_bayes.GaussianNB,
    "naive Bayes of bits": naive_bayes.BernoulliNB,
    "discriminant": discriminant_analysis.LinearDiscriminantAnalysis,
    "network": lambda: neural_network.MLPClassifier((8, 4), max_iter=50, **SEED),
    "network, tanh": lambda: neural_network.MLPClassifier((5,), "tanh", max_iter=50, **SEED),
    "calibrated": lambda: CalibratedClassifierCV(svm.LinearSVC(**SEED), cv=2),
}
REGRESSORS: dict[str, Make] = {
    "least squares": linear_model.LinearRegression,
    "least squares, no intercept": lambda: linear_model.LinearRegression(fit_intercept=False),
    "ridge": linear_model.Ridge,
    "lasso": lambda: linear_model.Lasso(alpha=0.01),
    "elastic net": lambda: linear_model.ElasticNet(alpha=0.01),
    "Bayesian ridge": linear_model.BayesianRidge,
    "Huber": linear_model.HuberRegressor,
    "quantile": lambda: linear_model.QuantileRegressor(alpha=0.01),
    "Tweedie": lambda: linear_model.TweedieRegressor(power=0),
    "support vectors": svm.SVR,
    "support vectors, polynomial": lambda: svm.SVR(kernel="poly", degree=2),
    "linear support vectors": lambda: svm.LinearSVR(**SEED),
    "tree": lambda: tree.DecisionTreeRegressor(**SEED),
    "forest": lambda: ensemble.RandomForestRegressor(20, **SEED),
    "random trees": lambda: ensemble.ExtraTreesRegressor(10, **SEED),
    "boosting": lambda: ensemble.GradientBoostingRegressor(n_estimators=20, **SEED),
    "boosting, Huber": lambda: ensemble.GradientBoostingRegressor(
        loss="huber", n_estimators=8, **SEED
    ),
    "histogram boosting": lambda: ensemble.HistGradientBoostingRegressor(max_iter=20, **SEED),
    "bagging": lambda: ensemble.BaggingRegressor(n_estimators=4, **SEED),
    "neighbours": neighbors.KNeighborsRegressor,
    "neighbours by distance": lambda: neighbors.KNeighborsRegressor(4, weights="distance"),
    "network": lambda: neural_network.MLPRegressor(hidden_layer_sizes=(6,), max_iter=50, **SEED),
    "partial least squares": lambda: PLSRegression(2),
}
TRANSFORMERS: dict[str, Make] = {
    "standard scaler": preprocessing.StandardScaler,
    "standard scaler, no mean": lambda: preprocessing.StandardScaler(with_mean=False),
    "range scaler": preprocessing.MinMaxScaler,
    "range scaler, clipped": lambda: preprocessing.MinMaxScaler((-1, 1), clip=True),
    "maximum scaler": preprocessing.MaxAbsScaler,
    "robust scaler": preprocessing.RobustScaler,
    "normalizer": preprocessing.Normalizer,
    "normalizer, sum": lambda: preprocessing.Normalizer("l1"),
    "binarizer": lambda: preprocessing.Binarizer(threshold=0.3),
    "polynomials": preprocessing.PolynomialFeatures,
    "polynomials, products": lambda: preprocessing.PolynomialFeatures(
        2, interaction_only=True, include_bias=False
    ),
    "powers": preprocessing.PowerTransformer,
    "powers, not scaled": lambda: preprocessing.PowerTransformer(standardize=False),
    "bins": lambda: preprocessing.KBinsDiscretizer(4, encode="ordinal"),
    "bins, one-hot": lambda: preprocessing.KBinsDiscretizer(3, encode="onehot-dense"),
    "principal components": lambda: decomposition.PCA(3),
    "principal components, white": lambda: decomposition.PCA(3, whiten=True),
    "singular vectors": lambda: decomposition.TruncatedSVD(2, **SEED),
    "incremental components": lambda: decomposition.IncrementalPCA(2),
    "kernel components": lambda: decomposition.KernelPCA(2, **SEED),
    "selection": lambda: feature_selection.SelectKBest(k=2),
    "variance": lambda: feature_selection.VarianceThreshold(0.1),
    "imputer": SimpleImputer,
    "imputer, median": lambda: SimpleImputer(strategy="median"),
}
CLUSTERS: dict[str, Make] = {
    "k-means": lambda: cluster.KMeans(3, n_init=1, **SEED),
    "k-means in batches": lambda: cluster.MiniBatchKMeans(3, n_init=1, **SEED),
    "mixture": lambda: mixture.GaussianMixture(3, **SEED),
    "mixture, spherical": lambda: mixture.GaussianMixture(2, covariance_type="spherical", **SEED),
    "mixture, one": lambda: mixture.GaussianMixture(1, **SEED),
    "isolation": lambda: ensemble.IsolationForest(n_estimators=20, **SEED),
    "one class": svm.OneClassSVM,
}
CASES = [
    (kind, name)
    for kind, table in (
        ("classifier", CLASSIFIERS),
        ("two classes", CLASSIFIERS),
        ("named classes", CLASSIFIERS),
        ("regressor", REGRESSORS),
        ("transformer", TRANSFORMERS),
        ("cluster", CLUSTERS),
    )
    for name in table
]
TABLES = {
    "classifier": CLASSIFIERS,
    "two classes": CLASSIFIERS,
    "named classes": CLASSIFIERS,
    "regressor": REGRESSORS,
    "transformer": TRANSFORMERS,
    "cluster": CLUSTERS,
}


def fitted(kind: str, name: str) -> tuple[Any, Any]:
    """An estimator, fitted, and rows that it has not seen."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 5)) * [1, 2, 0.5, 1, 3] + [0, 1, 0, -1, 2]
    classes = (X[:, 0] + X[:, 1] > 1).astype(int) + (X[:, 3] > -0.5)
    targets: Any = classes * 2 - 1 if kind == "classifier" else (classes > 0).astype(int)
    if kind == "named classes":
        targets = np.array(["high", "low", "middle"])[classes]
    if kind in ("regressor", "transformer"):
        targets = X @ [1, 2, -1, 0.5, 0] + rng.normal(size=150)
    new = rng.normal(size=(40, 5)) * [1, 2, 0.5, 1, 3] + [0, 1, 0, -1, 2]
    if "imputer" in name:
        X[::7, 1], new[::5, 1] = np.nan, np.nan
    if name == "selection":
        targets = classes
    return TABLES[kind][name]().fit(X, targets), new
