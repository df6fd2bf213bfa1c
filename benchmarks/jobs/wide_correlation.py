"""The correlations of the columns of a wide Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

import ucle

JOB = "correlation of wide columns, 200,000 x 60"
OTHER = "pandas"


def ucle_side(folder: Path) -> Any:
    path = folder / "patients.parquet"
    bounds = [pq.read_metadata(path).num_rows, None]
    wide = ucle.table(str(path), ["id"], columns_as="feature", bounds=bounds)
    return ucle.corrcoef(ucle.tensor(wide), rowvar=False).to_numpy()


def other_side(folder: Path) -> Any:
    return pd.read_parquet(folder / "patients.parquet").set_index("id").corr().to_numpy()
