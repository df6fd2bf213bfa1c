"""The covariances of the columns of a wide Parquet file with NULLs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import ucle

JOB = "covariance of a wide Parquet file, 200,000 x 60, 5% NULL"
OTHER = "pandas"


def ucle_side(folder: Path) -> Any:
    path = str(folder / "patients.parquet")
    wide = ucle.table(path, ["id"], columns_as="feature", nulls="missing")
    return ucle.cov(ucle.tensor(wide), rowvar=False, stored=True).to_numpy()


def other_side(folder: Path) -> Any:
    return pd.read_parquet(folder / "patients.parquet").set_index("id").cov().to_numpy()
