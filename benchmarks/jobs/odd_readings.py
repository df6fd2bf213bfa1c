"""Readings of sensors that are far from the mean of the last day, in its standard deviations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import ucle

JOB = "readings beyond 5 rolling standard deviations, 5 sensors, 100,000 times"
OTHER = "pandas"


def ucle_side(folder: Path) -> Any:
    table = ucle.table(str(folder / "readings.parquet"), ["sensor", "time"], "value")
    x = ucle.tensor(table, axes=("sensor", "time"))
    last = x.rolling(288, axis="time", stored=True, min_periods=20)
    score = (x - last.mean()) / last.std()
    return ucle.where(ucle.is_stored(x) & (abs(score) > 5), score, 0).to_pandas()


def other_side(folder: Path) -> Any:
    readings = pd.read_parquet(folder / "readings.parquet")
    wide = readings.pivot(index="time", columns="sensor", values="value")
    last = wide.rolling(288, min_periods=20)
    score = ((wide - last.mean()) / last.std()).unstack()
    return score[score.abs() > 5].rename("val").reset_index()
