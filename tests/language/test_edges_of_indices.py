"""Each expression that computes with labels, on data at the edges of what there may be.

Reads beyond both ends, entries that several indices name, axes of nothing and of one position, NaN,
what is not stored being worth something, and every element type: on decompositions of all kinds and
both routes, against the oracle.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import ucle
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case
from ucle.testing.random_inputs import random_array

SHAPES = {"many": (4, 3), "none": (0, 3), "one": (1, 1), "row": (1, 4), "empty rows": (3, 0)}
VALUES = (
    "float64",
    "float32",
    "int64",
    "bool",
    "complex128",
    "nan",
    "infinite",
    "filled",
    "stored",
)
EXPRESSIONS = (
    "Z[i,j] = X[~(i-1),j]",
    "Z[i,j] = X[i,~(j+2)] + X[~(i-9),j]",
    "Z[i,j] = X[~(2*i-1),~(1-j)]",
    "Z[i,j] = X[~((i-3)//2),j]",
    "Z[i,j] = X[i,~((j-2)%3)]",
    "Z[i,j] = (i <= j) * X[i,j]",
    "Z[i,j] = when(i - j < 5 and i != j, X[i,j])",
    "Z[j] += X[i,j] * (i % 2 == 1)",
    "Z[i] += (i // 2 < j) * X[i,j]",
    "Z[i,j] = (i < -1 or j > 7) * X[i,j]",
    "Z[i,j] = cumsum[i](X[i,j])",
    "Z[i,j] = cumprod[j](X[i,j])",
    "Z[j,i] = cummax[i](X[i,j])",
    "Z[k,j] = X[at[k],j]",
    "Z[k] += X[at[k],j]",
    "Z[k,j] = X[~far[k],j]",
    "H[at[k],j] += X[at[k],j]",
    "H[to[i],j] += X[i,j]",
    "H[to[i]] max= X[i,j]",
    "H[j,to[i]] *= X[i,j]",
    "H[to[i]] count= X[i,j]",
    "D[i,i,j] = X[i,j]",
    "D[i,i] += X[i,j]",
    "Z[i,j,k] = X[i,j]",
)


def case_of(text: str, values: str, shape: tuple[int, int]) -> Case | None:
    """The program over such data; None where there is none, or nothing that it means."""
    rng = np.random.default_rng(len(text) + len(values))
    dtype = values if values in VALUES[:5] else "float64"
    array = random_array(rng, shape, 1.0 if values == "stored" else 0.6, dtype)
    if array.size and values in ("nan", "infinite"):
        array.flat[rng.integers(array.size, size=2)] = math.nan if values == "nan" else math.inf
    fill = 2.0 if values == "filled" else None
    extreme = "cummax" in text or "max=" in text
    if (extreme and dtype == "complex128") or ("max=" in text and 0 in shape):
        return None
    if "at[" in text and not shape[0]:
        return None  # there is nothing to be read
    arrays: dict[str, Any] = {"X": array}
    if "at[" in text:
        arrays["at"] = rng.integers(0, shape[0], 5)
    if "far[" in text:
        arrays["far"] = np.array([-1, 0, shape[0], -(2**40), 2**40])
    if "to[" in text:
        arrays["to"] = rng.integers(0, 3, shape[0])
    inputs = dict(arrays)
    if fill is not None:
        arrays["X"] = np.where(array == 0, fill, array)
        inputs["X"] = ucle.table(arrays["X"], fill=fill)
    bounds = {"i": shape[0], "j": shape[1], "k": 5}
    if re.search(r"\b(at|to)\[\w\]\W.*=", text):
        bounds |= {"at": max(shape[0], 1), "to": 3}
    return Case(text, arrays, inputs, bounds, indexed=True)


@pytest.mark.turns(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_every_value(text: str, routes: Routes) -> None:
    for number, values in enumerate(VALUES):  # other decompositions of each
        case = case_of(text, values, SHAPES["many"])
        assert case is None or check_everywhere(case, routes, seed=number, sample=3)


@pytest.mark.sample(1)
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_every_shape(text: str, routes: Routes) -> None:
    for number, name in enumerate(SHAPES):
        case = case_of(text, VALUES[number % 5], SHAPES[name])
        assert case is None or check_everywhere(case, routes, seed=number, sample=3)
