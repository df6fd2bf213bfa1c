"""A tall table as a wide one, and the wide one as a tall one again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import ucle

JOB = "pivot and back, 300,000 sales, 2,000 shops x 300 products"
OTHER = "pandas"


def ucle_side(folder: Path) -> Any:
    sales = ucle.tensor(str(folder / "sales.parquet"), axes=("shop", "product")).compute()
    labels = sales.coordinates("shop").to_pandas(), sales.coordinates("product").to_pandas()
    wide = pd.DataFrame(sales.to_numpy(), *labels).reset_index(names="shop")
    wide = ucle.table(wide, ["shop"], columns_as="product")
    return ucle.tensor(wide).to_pandas()


def other_side(folder: Path) -> Any:
    sales = pd.read_parquet(folder / "sales.parquet")
    wide = sales.pivot(index="shop", columns="product", values="amount")
    return wide.stack().rename("val").reset_index()
