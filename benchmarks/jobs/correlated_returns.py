"""For each ticker, the one with the most correlated daily returns; some prices are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ucle

JOB = "most correlated of 300 tickers, 1,000 days of closing prices from CSV, 1% missing"
OTHER = "pandas"


def ucle_side(folder: Path) -> Any:
    axes = ("date", "ticker")
    path = str(folder / "closes.csv")
    table = ucle.table(path, [*axes], "close", nulls="missing", fill=np.nan)
    close = ucle.tensor(table, axes=axes)
    returns = close / ucle.lag(close, 1, axis="date", fill_value=np.nan) - 1
    corr = ucle.corrcoef(returns, rowvar=False, where=~ucle.isnan(returns))
    best = ucle.where(ucle.eye_like(corr) == 1, 0, corr).top_k(1, "ticker_2")
    values, names = ucle.compute(best.values, best.positions)
    found = names.to_pandas(columns="rank").rename(columns={0: "other"})
    found["val"] = values.to_pandas(columns="rank")[0]
    return found.reset_index()


def other_side(folder: Path) -> Any:
    close = pd.read_csv(folder / "closes.csv", parse_dates=["date"])
    wide = close.pivot(index="date", columns="ticker", values="close")
    corr = wide.pct_change(fill_method=None).corr()
    corr = corr.mask(np.eye(len(corr), dtype=bool), 0)
    found = {"other": corr.idxmax(axis=1), "val": corr.max(axis=1)}
    return pd.DataFrame(found).rename_axis("ticker").reset_index()
