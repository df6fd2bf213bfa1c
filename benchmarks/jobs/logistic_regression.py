"""Coefficients of a logistic regression without a penalty, to convergence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sklearn.linear_model import LogisticRegression

import ucle

JOB = "logistic regression to convergence, 100,000 x 20"
OTHER = "scikit-learn"


def ucle_side(folder: Path) -> Any:
    program = ucle.einsum_program(
        """
        p[i] = sigmoid(sum[a](X[i,a] * w[a]))
        gradient[a] = sum[i](X[i,a] * (bought[i] - p[i]))
        hessian[a,b] = sum[i](p[i] * (1 - p[i]) * X[i,a] * X[i,b])
        move[a] = sum[b](inv[a,b](hessian[a,b]) * gradient[b])
        next[a] = w[a] + move[a]
        moved[] = max[a](abs(move[a]))
        """,
        X=ucle.table("customers", ["name"], "features"),
        bought=ucle.table("customers", ["name"], "bought"),
        w=ucle.parameter(np.zeros(20)),
        outputs=["next"],
        database=str(folder / "shop.duckdb"),
    )
    return program.iterate({"w": "next"}, until="moved[] < 1e-9")["next"].to_numpy()


def other_side(folder: Path) -> Any:
    with duckdb.connect(str(folder / "shop.duckdb"), read_only=True) as connection:
        customers = connection.sql("FROM customers").df()
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", fit_intercept=False, tol=1e-9)
    return model.fit(np.stack(customers.features), customers.bought).coef_[0]
