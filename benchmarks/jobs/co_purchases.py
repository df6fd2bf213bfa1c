"""The twenty pairs of items that most customers have bought both of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import ucle

JOB = "item-item co-occurrence of 1,000,000 purchases, top 20"
OTHER = "pandas, SciPy"


def ucle_side(folder: Path) -> Any:
    purchases = ucle.table(
        str(folder / "purchases.parquet"), ["customer", "item"], dtype="int64", duplicates="sum"
    )
    program = ucle.einsum_program(
        "P[c,i] = int64(n[c,i] > 0); both[i,j] += P[c,i] * P[c,j]", n=purchases, outputs=["both"]
    )
    pairs = program.execute()["both"].relation
    return pairs.filter("i < j").order("val DESC, i, j").limit(20).df()


def other_side(folder: Path) -> Any:
    bought = pd.read_parquet(folder / "purchases.parquet").drop_duplicates()
    customers, _ = pd.factorize(bought.customer)
    items, names = pd.factorize(bought.item, sort=True)
    matrix = sp.csr_array((np.ones(len(bought), int), (customers, items)))
    both = sp.triu(matrix.T @ matrix, 1).tocoo()
    order = np.lexsort((both.col, both.row, -both.data))[:20]
    return pd.DataFrame(
        {"i": names[both.row[order]], "j": names[both.col[order]], "val": both.data[order]}
    )
