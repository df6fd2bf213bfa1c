"""A regression from the sums of a star schema, whose join is never built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ucle

JOB = "regression over a star schema, 1,000,000 sales"
OTHER = "pandas, NumPy"


def ucle_side(folder: Path) -> Any:
    sales, keys = str(folder / "sales.parquet"), ["store", "product"]
    program = ucle.einsum_program(
        """
        n[s,p] = sold[s,p]
        one[] = sum[s,p](n[s,p])
        S1[a] += n[s,p] * S[s,a]
        P1[b] += n[s,p] * P[p,b]
        SS[a,c] += n[s,p] * S[s,a] * S[s,c]
        SP[a,b] += n[s,p] * S[s,a] * P[p,b]
        PP[b,d] += n[s,p] * P[p,b] * P[p,d]
        y1[] = sum[s,p](amount[s,p])
        Sy[a] += amount[s,p] * S[s,a]
        Py[b] += amount[s,p] * P[p,b]
        """,
        sold=ucle.table(sales, keys, value=1, duplicates="sum"),
        amount=ucle.table(sales, keys, "amount", duplicates="sum"),
        S=ucle.table(str(folder / "stores.parquet"), ["store"], columns_as="feature"),
        P=ucle.table(str(folder / "products.parquet"), ["product"], columns_as="feature"),
    )
    found = {name: tensor.to_numpy() for name, tensor in program.execute().items()}
    one, s, p = found["one"].reshape(1, 1), found["S1"][None], found["P1"][None]
    gram = np.block(
        [[one, s, p], [s.T, found["SS"], found["SP"]], [p.T, found["SP"].T, found["PP"]]]
    )
    return np.linalg.solve(gram, np.r_[found["y1"], found["Sy"], found["Py"]])


def other_side(folder: Path) -> Any:
    sales, stores, products = (
        pd.read_parquet(folder / f"{name}.parquet") for name in ("sales", "stores", "products")
    )
    joined = sales.merge(stores, on="store").merge(products, on="product")
    features = joined[["area", "rent", "price", "weight"]].assign(one=1.0)
    x = features[["one", "area", "rent", "price", "weight"]].to_numpy()
    return np.linalg.lstsq(x, joined.amount.to_numpy())[0]
