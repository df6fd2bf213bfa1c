"""A ridge regression on numbers and categories of customers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ucle

JOB = "ridge with one-hot categories, 200,000 customers, 2 numbers, 3 categories"
OTHER = "pandas, NumPy"


def ucle_side(folder: Path) -> Any:
    path = str(folder / "customers.parquet")
    categories = map(ucle.one_hot, ("region", "plan", "is_member"))
    wide = ucle.table(path, ["customer"], ["age", "visits", *categories], columns_as="feature")
    X = ucle.tensor(wide)
    y = ucle.tensor(ucle.table(path, ["customer"], "spent"), axes=("customer",))
    gram = X.rename({"feature": "other"}).dot(X, axis="customer")
    sides = X.rename({"feature": "other"}).dot(y, axis="customer")
    return ucle.linalg.solve(gram + ucle.eye_like(gram), sides).to_pandas()


def other_side(folder: Path) -> Any:
    frame = pd.read_parquet(folder / "customers.parquet").set_index("customer")
    y, categories = frame.pop("spent"), ["region", "plan", "is_member"]
    X = pd.get_dummies(frame, columns=categories, dtype=float)
    weights = np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ y)
    return pd.DataFrame({"feature": X.columns, "val": weights})
