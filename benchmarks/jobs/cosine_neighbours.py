"""The ten documents with the greatest cosine, for each of many queries; names are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import ucle

JOB = "cosine nearest neighbours, 10 of 50,000 for 2,000 queries, width 128"
OTHER = "NumPy"


def ucle_side(folder: Path) -> Any:
    program = ucle.einsum_program(
        """
        cosine[q,d] = sum[k](normalize[k](Q[q,k]) * normalize[k](D[d,k]))
        best[q,d] = when(among_top_k[d,rank](cosine[q,d]), cosine[q,d])
        """,
        Q=str(folder / "queries.parquet"),
        D=str(folder / "documents.parquet"),
        bounds={"rank": 10},
        outputs=["best"],
    )
    return program.execute()["best"].to_pandas()


def other_side(folder: Path) -> Any:
    names, units = [], []
    for path in (folder / "queries.parquet", folder / "documents.parquet"):
        table = pq.read_table(path).combine_chunks()
        vectors = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(table), -1)
        names.append(table["name"].to_numpy())
        units.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    cosine = units[0] @ units[1].T
    best = np.argpartition(-cosine, 10, axis=1)[:, :10]
    return pd.DataFrame(
        {
            "q": np.repeat(names[0], 10),
            "d": names[1][best.ravel()],
            "val": np.take_along_axis(cosine, best, axis=1).ravel(),
        }
    )
