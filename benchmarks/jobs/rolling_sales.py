"""Moving averages of seven days and the day before, for each shop; some days are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import ucle

JOB = "moving average and lag by date, 200 shops, 1,000 days"
OTHER = "pandas"


def ucle_side(folder: Path) -> Any:
    table = ucle.table(str(folder / "sales.parquet"), ["shop", "day"], "amount")
    sales = ucle.tensor(table, axes=("shop", "day"))
    mean = sales.rolling(7, axis="day", stored=True).mean()
    before = ucle.lag(sales, 1, axis="day")
    tensors = ucle.compute(mean, before)
    mean, before = (tensor.to_pandas().set_index(["shop", "day"])["val"] for tensor in tensors)
    return pd.DataFrame({"mean": mean, "before": before}).stack().reset_index()


def other_side(folder: Path) -> Any:
    sales = pd.read_parquet(folder / "sales.parquet")
    wide = sales.pivot(index="day", columns="shop", values="amount")
    mean, before = wide.rolling(7, min_periods=1).mean(), wide.shift(1)
    tall = {"mean": mean.unstack(), "before": before.unstack()}
    return pd.DataFrame(tall).stack().reset_index()
