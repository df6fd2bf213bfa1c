"""Ten films for somebody new, by the cosines between films."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import ucle

JOB = "ten films for a new user, 1,000,000 ratings"
OTHER = "pandas, SciPy"


def ucle_side(folder: Path) -> Any:
    program = ucle.einsum_program(
        """
        X[u,f] = R[u,f] / max(sqrt(sum[u](square(R[u,f]))), 1e-300)
        score[g] = sum[u,f](X[u,g] * X[u,f] * mine[f])
        new[g] = when(mine[g] == 0, score[g])
        best[g] = when(among_top_k[g,rank](new[g]), new[g])
        """,
        R=ucle.table(str(folder / "ratings.parquet"), ["person", "film"], "stars", dtype=float),
        mine=ucle.table(str(folder / "mine.csv"), ["film"], "stars", dtype=float),
        bounds={"rank": 10},
        outputs=["best"],
    )
    return program.execute()["best"].to_pandas()


def other_side(folder: Path) -> Any:
    ratings = pd.read_parquet(folder / "ratings.parquet")
    people, _ = pd.factorize(ratings.person)
    films, names = pd.factorize(ratings.film)
    matrix = sp.csr_array((ratings.stars.astype(float), (people, films)))
    units = matrix / np.sqrt((matrix**2).sum(axis=0))
    mine = pd.read_csv(folder / "mine.csv").set_index("film").stars
    stars = mine.reindex(names, fill_value=0).to_numpy()
    scores = pd.Series(units.T @ (units @ stars), names)[stars == 0].nlargest(10)
    return scores.rename_axis("g").rename("val").reset_index()
