"""Sums of each shop and month; months without sales are rows of 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import ucle

JOB = "monthly sums of each shop, missing months as 0, 450,000 sales"
OTHER = "pandas"


def ucle_side(folder: Path) -> Any:
    table = ucle.table(str(folder / "sales.parquet"), ["shop", "day"], "amount", duplicates="sum")
    sales = ucle.tensor(table, axes=("shop", "day"))
    return sales.resample("1mo", axis="day").sum().to_pandas(rows="all")


def other_side(folder: Path) -> Any:
    sales = pd.read_parquet(folder / "sales.parquet")
    month = pd.to_datetime(sales.day).dt.to_period("M").dt.to_timestamp()
    sums = sales.groupby(["shop", month]).amount.sum()
    return sums.unstack(fill_value=0.0).stack().reset_index()
