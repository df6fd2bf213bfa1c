"""What looks alike to prices has equal prices: each known one is the one computed anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ucle
from ucle.ir.layouts import Layout
from ucle.ir.vertices import Vertex
from ucle.optimiser.choose_decomposition import price_program
from ucle.optimiser.known_prices import Prices
from ucle.optimiser.pricing import CostedProgram
from ucle.stats.estimate import MeasuredInputs
from ucle.stats.estimators import DEFAULT, ESTIMATORS

FORMS = (
    "{t}[i,k] = relu({a}[i,k])",
    "{t}[i,k] = exp({a}[i,k])",
    "{t}[i,k] = 1 - {a}[i,k]",
    "{t}[i,k] = {a}[i,k] * {b}[i,k]",
    "{t}[i,k] = {a}[i,k] + {b}[i,k]",
    "{t}[i,k] = max({a}[i,k], {b}[i,k])",
    "{t}[i,k] = {a}[i,k] / (1 + square({b}[i,k]))",
    "{t}[i,k] += G[i,j] * {a}[j,k]",
    "{t}[i,k] max= G[i,j] + {a}[j,k]",
    "{t}[i,k] = {a}[i,k] * sum[j]({b}[j,k])",
    "{t}[i,k] = sum[l]({a}[i,l] * W[l,k])",
)


def _unrolled(seed: int, steps: int = 24) -> CostedProgram:
    """A program of a few forms of statements, many times: dense and sparse, with many fills."""
    rng = np.random.default_rng(seed)
    inputs: dict[str, Any] = {
        "G": sp.random_array((40, 40), density=0.05, rng=rng, format="coo"),
        "H": sp.random_array((40, 6), density=0.2, rng=rng, format="coo"),
        "X": rng.random((40, 6)),
        "Y": rng.random((40, 6)),
        "W": rng.random((6, 6)),
    }
    few = rng.choice(len(FORMS), size=4, replace=False)
    names, lines = ["H", "X", "Y"], []
    for number in range(steps):
        a, b = (names[-int(rng.integers(1, 4))] for _ in "ab")
        lines.append(FORMS[few[number % 4]].format(t=f"T{number}", a=a, b=b))
        names.append(f"T{number}")
    if seed % 2:
        inputs["X"] = ucle.parameter(inputs["X"])
    text = "\n".join(lines)
    read = {name: each for name, each in inputs.items() if f"{name}[" in text}
    return _costed(text, read, runs=1 + seed % 2)


def _costed(
    text: str, inputs: Mapping[str, Any], runs: int = 1, estimator: str = DEFAULT
) -> CostedProgram:
    program = ucle.einsum_program(text, inputs=inputs)
    compiled, options = program.compiled, replace(program.options, runs=runs)
    counts = {name: each.statistics for name, each in compiled.inputs.items()}
    statistics = MeasuredInputs(counts, ESTIMATORS[estimator]).of(compiled.program)
    return price_program(compiled.program, compiled.inputs, statistics, options)


def _anew(costed: CostedProgram) -> CostedProgram:
    return replace(costed, prices=Prices())


def _layouts(vertex: Vertex) -> Iterator[Layout]:
    return map(Layout.of, product((False, True), repeat=len(vertex.labels)))


def _check_all(costed: CostedProgram) -> int:
    """Compare all known prices with those computed anew; return how many vertices have."""
    asked = 0
    for vertex in costed.program.vertices:
        for each in costed.decompositions(vertex):
            anew = _anew(costed)
            assert costed.vertex_cost(vertex, each) == anew.vertex_cost(vertex, each), str(vertex)
            assert costed.fits(vertex, each) == anew.fits(vertex, each), str(vertex)
            asked += each.deferred is None
        for pair in product(_layouts(vertex), repeat=2):
            known = costed.repartition_cost(vertex.name, *pair)
            assert known == _anew(costed).repartition_cost(vertex.name, *pair), vertex.name
    return asked


@pytest.mark.sample(1)
@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_known_prices_are_those_computed_anew(seed: int, copies: bool) -> None:
    costed = _unrolled(seed)
    costed = replace(costed, resources=replace(costed.resources, copies=copies, memory=2e6))
    asked = _check_all(costed)
    assert len(costed.prices.vertices) < 0.8 * asked, "nothing was looked up"
    assert costed.priced == asked


SIZE = 40
EVEN = sp.coo_array((np.ones(79), (np.arange(79) // 2, np.arange(79) % SIZE)))
"""Two entries in each row and in each column, but one."""
UNEVEN = sp.coo_array(
    (
        np.ones(79),
        (np.r_[np.arange(SIZE), np.zeros(SIZE - 1, int)], np.r_[np.arange(SIZE), 1:SIZE]),
    )
)
"""As many, in as many rows and columns, and half of them in one row."""


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_degrees_are_told_apart(estimator: str) -> None:
    text = """
    A[i,j] = exp(E[i,j]) - 1
    B[i,j] = exp(U[i,j]) - 1
    P[i,k] += A[j,i] * A[j,k]
    Q[i,k] += B[j,i] * B[j,k]
    """
    _check_all(_costed(text, {"E": EVEN, "U": UNEVEN}, estimator=estimator))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_places_of_entries_are_told_apart(estimator: str) -> None:
    """Both have as many entries and coordinates; only in some layouts they have other tuples."""
    text = """
    P[i,j,k] = E[i,j] * v[k]
    Q[i,j,k] = E[i,k] * v[j]
    R[i,j,k] = P[i,j,k] * P[i,j,k]
    S[i,j,k] = Q[i,j,k] * Q[i,j,k]
    """
    inputs = {"E": EVEN, "v": np.ones(SIZE)}
    _check_all(_costed(text, inputs, estimator=estimator))
