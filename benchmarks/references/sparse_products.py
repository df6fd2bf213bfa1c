"""Products of sparse matrices with dense ones, with vectors and with each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.references.work import Work, human
from benchmarks.workloads import load, power_law

CHAIN = 600
"""Rows and columns of the chain's matrices; A and B have one entry in ten."""


def works() -> Sequence[Work]:
    """SpMM, SpMV, a chain whose last factor is nearly empty, SpGEMM, and triangles."""
    photo, _ = load("amazon_photo")
    large = power_law(169_343, 1_166_243, np.float64)
    return (
        _spmm("amazon_photo", photo, 64, 1.5),
        _spmm("amazon_photo", photo, 256, 1.1),
        _spmm("169k nodes, 1.17M edges", large, 128, 0.6),
        _spmv(large),
        _chain(),
        _triangles(),
        _spgemm(),
    )


def _spmm(name: str, a: Any, width: int, reach: float) -> Work:
    h = np.random.default_rng(1).random((a.shape[1], width))
    text = "Z[i,k] += A[i,j] * H[j,k]"
    return Work(f"SpMM {name}, width {width}", text, {"A": a, "H": h}, "Z", lambda: a @ h, reach)


def _spmv(a: Any) -> Work:
    x = np.random.default_rng(2).random(a.shape[1])
    text = "y[i] += A[i,j] * x[j]"
    return Work("SpMV 1.17M edges", text, {"A": a, "x": x}, "y", lambda: a @ x, 3.0)


def _chain() -> Work:
    rng = np.random.default_rng(3)
    shape = (CHAIN, CHAIN)
    a, b = (sp.random_array(shape, density=0.1, rng=rng, format="csr") for _ in range(2))
    c = sp.random_array(shape, density=1e-4, rng=rng, format="csr")
    text = "Z[i,l] += A[i,j] * B[j,k] * C[k,l]"
    inputs = {"A": a, "B": b, "C": c}
    return Work("matrix chain, C at 1e-4", text, inputs, "Z", lambda: a @ (b @ c), 1.5)


def _triangles() -> Work:
    """Each triangle counted six times, once for each order of its corners."""
    a = human()
    text = "t += A[i,j] * A[j,k] * A[i,k]"
    reference = lambda: np.float64((a @ a).multiply(a).sum())  # noqa: E731
    return Work("triangles human", text, {"A": a}, "t", reference, 0.5)


def _spgemm() -> Work:
    a = human()
    text = "Z[i,k] += A[i,j] * A[j,k]"
    return Work("SpGEMM human", text, {"A": a}, "Z", lambda: a @ a, 2.5)
