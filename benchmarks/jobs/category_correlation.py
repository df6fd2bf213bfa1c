"""The correlations of numbers and categories, some of which are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import ucle

JOB = "correlation of 12 numbers and 6 categories, 100,000 rows, some NULL"
OTHER = "pandas"
NUMBERS = [f"x{n}" for n in range(12)]


def ucle_side(folder: Path) -> Any:
    values = [*NUMBERS, ucle.one_hot("region"), ucle.one_hot("is_active")]
    path = str(folder / "people.parquet")
    wide = ucle.table(path, ["id"], values, columns_as="feature", nulls="missing")
    return ucle.corrcoef(ucle.tensor(wide), rowvar=False, stored=True).to_numpy()


def other_side(folder: Path) -> Any:
    frame = pd.read_parquet(folder / "people.parquet").set_index("id")
    hot = pd.get_dummies(frame, columns=["region", "is_active"], dtype=float)
    for name in hot.columns:
        if name.startswith("region"):
            hot.loc[frame["region"].isna(), name] = float("nan")
    return hot[sorted(hot.columns)].corr().to_numpy()
