"""Aggregations other than the sum: every decomposition, both routes, partly stored fibres."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.errors import BoundError
from ucle.optimiser.pricing import decompositions

RANDOM = np.random.default_rng(11)
X = RANDOM.normal(size=(3, 4, 2)) * (RANDOM.random((3, 4, 2)) < 0.4)
Y = RANDOM.normal(size=(4, 2)) * (RANDOM.random((4, 2)) < 0.5)
X[0] = np.abs(X[0])  # a fibre of nothing negative: its minimum is the fill
X[1] = -np.abs(X[1])
FULL = RANDOM.normal(size=(3, 4, 2))
HOLED = np.where(RANDOM.random((3, 4, 2)) < 0.3, np.nan, FULL)

PROGRAMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "s[i] max= X[i,j,k]": lambda t: t["X"].max((1, 2)),
    "s[i] min= X[i,j,k]": lambda t: t["X"].min((1, 2)),
    "s[j] *= X[i,j,k]": lambda t: t["X"].prod((0, 2)),
    "s[i,k] *= X[i,j,k] + 1.5": lambda t: (t["X"] + 1.5).prod(1),
    "s max= X[i,j,k] - Y[j,k]": lambda t: (t["X"] - t["Y"]).max(),
    "s[i] max= (X[i,j,k] - Y[j,k])^2": lambda t: ((t["X"] - t["Y"]) ** 2).max((1, 2)),
    "s[i] min= -2 * X[i,j,k] * Y[j,k]": lambda t: (-2 * t["X"] * t["Y"]).min((1, 2)),
    "s[i,m] max= X[i,j,k] * Y[j,k] * Y[m,k]": lambda t: np.max(
        t["X"][:, :, :, None] * t["Y"][None, :, :, None] * t["Y"].T[None, None], axis=(1, 2)
    ),
    "a[i,k] = X[i,j,k]; s[i,j,k] = max(a[i,k], min(Y[j,k], 0.25))": lambda t: np.maximum(
        t["X"].sum(1)[:, None], np.minimum(t["Y"], 0.25)[None]
    ),
}


@pytest.fixture(scope="module", params=["native", "arrow"])
def connection(request: pytest.FixtureRequest) -> Any:
    return ucle.connect() if request.param == "native" else duckdb.connect()


@pytest.mark.sample(3)
@pytest.mark.parametrize("data", [X, FULL, HOLED], ids=["sparse", "full", "nan"])
@pytest.mark.parametrize("text", PROGRAMS)
def test_every_decomposition(text: str, data: Any, connection: Any) -> None:
    inputs = {name: value for name, value in {"X": data, "Y": Y}.items() if f"{name}[" in text}
    expected = PROGRAMS[text]({"X": data, "Y": Y})
    vertices = ucle.einsum_program(text, **inputs).compiled.program.vertices
    choices = list(itertools.product(*(decompositions(vertex) for vertex in vertices)))
    picked = np.random.default_rng(5).permutation(len(choices))[:16]
    for number in picked:
        chosen = {v.name: c.promoted for v, c in zip(vertices, choices[number], strict=True)}
        program = ucle.einsum_program(text, decomposition=chosen, database=connection, **inputs)
        with program.execute() as result:
            found = result["s"].to_numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=str(chosen))


def shortest_paths(weights: Any) -> Any:
    """Floyd and Warshall's answer."""
    distances = weights.copy()
    for middle in range(len(distances)):
        distances = np.minimum(distances, distances[:, [middle]] + distances[[middle]])
    return distances


@pytest.mark.sample(8)
@pytest.mark.parametrize("promoted", ["", "i", "j", "ij", "ijk"])
def test_min_plus_shortest_paths(promoted: str, connection: Any) -> None:
    random = np.random.default_rng(3)
    weights = np.where(random.random((9, 9)) < 0.25, random.random((9, 9)), np.inf)
    np.fill_diagonal(weights, 0.0)
    text = """
    two[i,k]  min= W[i,j] + W[j,k]
    four[i,k] min= two[i,j] + two[j,k]
    all[i,k]  min= four[i,j] + four[j,k]
    """
    program = ucle.einsum_program(
        text,
        W=ucle.table(weights, fill=np.inf),
        decomposition=dict.fromkeys(("two", "four", "all"), promoted),
        database=connection,
    )
    with program.execute() as result:
        np.testing.assert_allclose(result["all"].to_numpy(), shortest_paths(weights))
        assert result["all"].fill == np.inf
        # Whole tensors are arguments of each other's calls, or met as they are.
        assert promoted or " ON " not in " ".join(program.to_sql().split())
        assert "LEFT" not in program.to_sql(), "+ annihilates on inf: no outer join is needed"


@pytest.mark.parametrize("assign", ["max=", "min="])
def test_nothing_has_no_extreme(assign: str) -> None:
    with pytest.raises(BoundError, match="is not defined"):
        ucle.einsum_program(f"s[i] {assign} X[i,j]", X=np.zeros((3, 0)))


def test_product_of_nothing_is_one() -> None:
    with ucle.einsum_program("s[i] *= X[i,j]", X=np.zeros((3, 0))).execute() as result:
        np.testing.assert_array_equal(result["s"].to_numpy(), np.ones(3))
