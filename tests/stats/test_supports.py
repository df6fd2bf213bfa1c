"""Tensors that lie within the places of one input meet where it has entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ucle
from ucle.ir.layouts import Layout

SIZES = (3000, 200, 300)


def _lines() -> Any:
    rng = np.random.default_rng(0)
    keys = [rng.integers(0, size, SIZES[0]) for size in SIZES[1:]]
    return sp.coo_array((np.ones(SIZES[0]), (np.arange(SIZES[0]), *keys)), shape=SIZES)


def _estimate(text: str, **inputs: Any) -> float:
    """The estimated entries of y."""
    program = ucle.einsum_program(text, association="as-written", rewrite="none", **inputs)
    statistics = program.compiled.statistics
    rank = program.compiled.program.types["y"].rank
    return float(statistics.rows("y", Layout.of([True] * rank)).estimate)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("M[s,p] = any[i](L[i,s,p] != 0); y[i,s,p] = L[i,s,p] * M[s,p]", SIZES[0]),
        ("M[s,p] += L[i,s,p]; y[i,s,p] = L[i,s,p] * (M[s,p] * a[s])", SIZES[0]),
        ("M[s,p] += L[i,s,p]; y[i,s,p] = L[i,s,p] * (M[s,p] * a[s] + M[s,p] * b[p])", SIZES[0]),
        ("y[i,s,p] = L[i,s,p] * L[i,s,p]", SIZES[0]),
    ],
)
def test_a_tensor_meets_its_own_projections(text: str, entries: float) -> None:
    rng = np.random.default_rng(1)
    inputs = {"a": 1 + rng.random(SIZES[1]), "b": 1 + rng.random(SIZES[2])}
    used = {name: value for name, value in inputs.items() if f"{name}[" in text.replace("abs", "")}
    found = _estimate(text.replace(";", "\n"), L=_lines(), **used)
    assert entries / 1.5 < found < entries * 1.5


def test_other_tensors_meet_by_chance() -> None:
    rng = np.random.default_rng(2)
    A, B = (sp.random_array((500, 400), density=0.01, rng=rng) for _ in range(2))
    for text in ("y[i,j] = A[i,j] * B[i,j]", "y[i,j] = A[i,j] * C[j,i]"):
        inputs = {"A": A, "B": B} if "B[" in text else {"A": A, "C": B.T}
        assert _estimate(text, **inputs) < 0.3 * A.nnz
