"""The covariances of the columns of a wide Parquet file with NULLs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import ucle

JOB = "covariance of a wide Parquet file, 200,000 x 60, 5% NULL"
OTHER = "pandas"


def ucle_side(folder: Path) -> Any:
    wide = ucle.table(
        str(folder / "patients.parquet"), ["id"], columns_as="feature", nulls="missing"
    )
    program = ucle.einsum_program(
        """
        W[i,f] = float64(M[i,f])
        D[i,f] = (X[i,f] - sum[i](X[i,f]) / sum[i](W[i,f])) * W[i,f]
        n[f,g] += W[i,f] * W[i,g]
        S[f,g] += D[i,f] * W[i,g]
        P[f,g] += D[i,f] * D[i,g]
        cov[f,g] = (P[f,g] - S[f,g] * S[g,f] / n[f,g]) / (n[f,g] - 1)
        """,
        X=wide,
        M=ucle.observed(wide),
        outputs=["cov"],
    )
    return program.execute()["cov"].to_numpy()


def other_side(folder: Path) -> Any:
    return pd.read_parquet(folder / "patients.parquet").set_index("id").cov().to_numpy()
