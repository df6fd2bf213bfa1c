"""Scores of a graph convolutional network with known weights, on columns of arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import scipy.sparse as sp

import ucle

JOB = "GCN inference on DOUBLE[], 50,000 papers, 500,000 citations"
OTHER = "pandas, SciPy"


def ucle_side(folder: Path) -> Any:
    weights = np.load(folder / "weights.npz")
    program = ucle.einsum_program(
        """
        L[i,j] = max(A[i,j], A[j,i]) + (i == j)
        degree[i] = sum[j](L[i,j])
        S[i,j] = L[i,j] / sqrt(degree[i]) / sqrt(degree[j])
        hidden[i,k] = relu(sum[j,f](S[i,j] * X[j,f] * W1[f,k]))
        score[i,c] = sum[j,k](S[i,j] * hidden[j,k] * W2[k,c])
        """,
        A=ucle.table("cites", value=1),
        X="papers",
        W1=weights["W1"],
        W2=weights["W2"],
        outputs=["score"],
        database=str(folder / "papers.duckdb"),
    )
    return program.execute()["score"].to_pandas()


def other_side(folder: Path) -> Any:
    weights = np.load(folder / "weights.npz")
    with duckdb.connect(str(folder / "papers.duckdb"), read_only=True) as connection:
        papers, cites = connection.sql("FROM papers").df(), connection.sql("FROM cites").df()
    index, features = pd.Index(papers.paper), np.stack(papers.x)
    ends = index.get_indexer(cites.citing), index.get_indexer(cites.cited)
    one_way = sp.csr_array((np.ones(len(cites)), ends), shape=(len(index),) * 2)
    links = one_way.maximum(one_way.T) + sp.eye_array(len(index))
    scale = sp.diags_array(1 / np.sqrt(links.sum(axis=1)))
    smooth = scale @ links @ scale
    hidden = np.maximum(smooth @ (features @ weights["W1"]), 0)
    scores = smooth @ (hidden @ weights["W2"])
    return pd.DataFrame(scores, index.rename("i")).rename_axis(columns="c").stack().reset_index()
