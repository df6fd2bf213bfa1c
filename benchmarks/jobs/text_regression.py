"""A ridge regression on TF-IDF weights of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import Ridge

import ucle

JOB = "TF-IDF and ridge, 10,000 documents, 2,000 words"
OTHER = "scikit-learn"


def ucle_side(folder: Path) -> Any:
    program = ucle.einsum_program(
        """
        docs[] = sum[d](sum[w](n[d,w]) > 0)
        has[w] = sum[d](n[d,w] > 0)
        raw[d,w] = n[d,w] * (log((1 + docs[]) / (1 + has[w])) + 1)
        X[d,w] = raw[d,w] / max(sqrt(sum[w](square(raw[d,w]))), 1e-300)
        gram[v,w] = sum[d](X[d,v] * X[d,w]) + (v == w)
        coefficient[v] = solve[w,v](gram[w,v], sum[d](X[d,w] * y[d]))
        """,
        n=ucle.table(str(folder / "counts.parquet"), ["doc", "word"], "n", dtype=float),
        y=str(folder / "scores.parquet"),
        outputs=["coefficient"],
    )
    return program.execute()["coefficient"].to_pandas()


def other_side(folder: Path) -> Any:
    counts, scores = (pd.read_parquet(folder / f"{x}.parquet") for x in ("counts", "scores"))
    words, places = np.unique(counts.word, return_inverse=True)
    rows = pd.Index(scores.doc).get_indexer(counts.doc)
    matrix = TfidfTransformer().fit_transform(sp.csr_array((counts.n, (rows, places))))
    ridge = Ridge(alpha=1, fit_intercept=False, tol=1e-9).fit(matrix, scores.score)
    return pd.DataFrame({"v": words, "val": ridge.coef_})
