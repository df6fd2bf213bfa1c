"""The chance that a visit of a shop ends with a payment, from each of its pages (Markov chain)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ucle

JOB = "chance of a payment from each of 46 pages, by a Markov chain of 100,000 visits"
OTHER = "pandas, NumPy"


def ucle_side(folder: Path) -> Any:
    axes = ("visit", "step", "page")
    table = ucle.table(
        str(folder / "clicks.parquet"), [*axes], value=1, coordinates={"page": "page"}
    )
    clicks = ucle.tensor(table, axes=axes)
    following = ucle.lead(clicks, 1, axis="step").rename({"page": "next"})
    moves = clicks.dot(following, axis=("visit", "step"))
    total = moves.sum("next")
    chance = moves / ucle.maximum(total, 1)
    stays = chance * (total > 0).rename({"page": "next"})
    paid = ucle.linalg.solve(ucle.eye_like(stays) - stays, chance.sel(next="pay"))
    return paid.to_pandas()


def other_side(folder: Path) -> Any:
    clicks = pd.read_parquet(folder / "clicks.parquet").sort_values(["visit", "step"])
    clicks["next"] = clicks.groupby("visit")["page"].shift(-1)
    moves = pd.crosstab(clicks["page"], clicks["next"])
    chance = moves.div(moves.sum(axis=1), axis=0)
    stays = chance.reindex(columns=chance.index, fill_value=0)
    paid = np.linalg.solve(np.eye(len(stays)) - stays, chance["pay"])
    return pd.DataFrame({"next": stays.index, "val": paid})
