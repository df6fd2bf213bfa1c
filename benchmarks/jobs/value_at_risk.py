"""The loss of each book of positions that one day in a hundred exceeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import ucle

JOB = "value at risk: 30,000 positions in 300 books, 750 days of 2,000 returns as columns"
OTHER = "pandas"


def ucle_side(folder: Path) -> Any:
    returns = ucle.tensor(ucle.table(str(folder / "returns.parquet"), ["day"], columns_as="paper"))
    positions = ucle.tensor(
        ucle.table(str(folder / "positions.parquet"), ["book", "paper"], "amount"),
        axes=("book", "paper"),
    )
    gains = positions.dot(returns, axis="paper")
    return (-ucle.quantile(gains, 0.01, axis="day")).to_pandas()


def other_side(folder: Path) -> Any:
    returns = pd.read_parquet(folder / "returns.parquet").set_index("day")
    positions = pd.read_parquet(folder / "positions.parquet")
    held = positions.pivot(index="paper", columns="book", values="amount").fillna(0)
    return (-(returns[held.index] @ held).quantile(0.01)).reset_index()
