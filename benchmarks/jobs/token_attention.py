"""Self-attention over a table of tokens, in each sentence apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import ucle

JOB = "attention over a token table, 500 sentences of 64, width 64"
OTHER = "NumPy"


def ucle_side(folder: Path) -> Any:
    program = ucle.einsum_program(
        """
        q[s,t,k] = X[s,t,f] * Q[f,k]
        k[s,t,k] = X[s,t,f] * K[f,k]
        v[s,t,k] = X[s,t,f] * V[f,k]
        weight[s,t,u] = softmax[u](sum[k](q[s,t,k] * k[s,u,k]) / 8)
        out[s,t,k] = sum[u](weight[s,t,u] * v[s,u,k])
        """,
        inputs=dict(np.load(folder / "weights.npz")),
        X="tokens",
        database=str(folder / "text.duckdb"),
    )
    return program.execute()["out"].to_numpy()


def other_side(folder: Path) -> Any:
    weights = np.load(folder / "weights.npz")
    with duckdb.connect(str(folder / "text.duckdb"), read_only=True) as connection:
        tokens = connection.sql("FROM tokens ORDER BY sentence, position").df()
    x = np.stack(tokens.x).reshape(500, 64, 64)
    q, k, v = (x @ weights[name] for name in "QKV")
    scores = q @ k.transpose(0, 2, 1) / 8
    weight = np.exp(scores - scores.max(axis=2, keepdims=True))
    return weight / weight.sum(axis=2, keepdims=True) @ v
