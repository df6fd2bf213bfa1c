"""Dense products from memory, and Conway's game of life, with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.references.work import Work
from benchmarks.workloads import HERE, load

SIDE, STEPS = 200, 10
"""Side of the board, and number of steps."""


def works() -> Sequence[Work]:
    """Dense attention, a layer, a product of large matrices, and the game of life."""
    return (_attention(), _layer(), _product(), _life())


def _attention() -> Work:
    _, features = load("planetoid_cora")
    rng = np.random.default_rng(0)
    x = features
    wq, wk = (rng.normal(size=(x.shape[1], 1024)) / 32 for _ in range(2))
    return Work(
        "dense attention planetoid_cora, of NumPy",
        (HERE / "programs" / "dense.ein").read_text(encoding="utf-8"),
        {"X": x, "WQ": wq, "WK": wk},
        "Attn",
        lambda: (x @ wq) @ (x @ wk).T * 0.03125,
        1.2,
    )


def _layer() -> Work:
    rng = np.random.default_rng(4)
    x, w = rng.random((60_000, 128)), rng.random((128, 256))
    return Work(
        "dense layer 60,000 x 128 x 256 from memory, of NumPy",
        "Z[i,n] += X[i,m] * W[m,n]",
        {"X": x, "W": w},
        "Z",
        lambda: x @ w,
        1.4,
        stored=False,
    )


def _product() -> Work:
    rng = np.random.default_rng(5)
    a, b = rng.random((2048, 2048)), rng.random((2048, 2048))
    return Work(
        "matmul 2048^3 from memory, of NumPy on two threads",
        "Z[i,k] += A[i,j] * B[j,k]",
        {"A": a, "B": b},
        "Z",
        lambda: a @ b,
        1.2,
        stored=False,
    )


def _life() -> Work:
    """The game of life on a bounded board. Products with a band of ones count the neighbours."""
    board = (np.random.default_rng(6).random((SIDE, SIDE)) < 0.3).astype(np.float64)
    band = (abs(np.subtract.outer(np.arange(SIDE), np.arange(SIDE))) <= 1).astype(np.float64)
    steps = []
    for n in range(STEPS):
        steps.append(f"N{n}[i,j] += S[i,k] * X{n}[k,l] * S[l,j]")
        alive = f"N{n}[i,j] == 3 or (X{n}[i,j] > 0 and N{n}[i,j] == 4)"
        steps.append(f"X{n + 1}[i,j] = {alive}")

    def reference() -> Any:
        x = board
        for _ in range(STEPS):
            rim = np.pad(x, 1)
            down = rim[:-2] + rim[1:-1] + rim[2:]
            count = down[:, :-2] + down[:, 1:-1] + down[:, 2:]
            x = ((count == 3) | ((x > 0) & (count == 4))).astype(np.float64)
        return x

    return Work(
        f"game of life {SIDE} x {SIDE}, {STEPS} steps, of NumPy",
        "\n".join(steps),
        {"X0": board, "S": band},
        f"X{STEPS}",
        reference,
        10.0,
    )
