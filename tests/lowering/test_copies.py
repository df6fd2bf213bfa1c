"""Statements that give a tensor another name, or its axes another order, are read through."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ucle
from ucle.options import Optimisations
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case

ALWAYS = Optimisations(rewrite_gain=-math.inf, rewrite_effort=math.inf, association_work=math.inf)
"""Sums are rewritten however small the program is."""

DENSE = np.arange(12.0).reshape(3, 4) - 4
SPARSE = np.where(np.arange(12).reshape(3, 4) % 3 == 1, DENSE, 0.0)
CUBE = np.arange(24.0).reshape(2, 3, 4)


def lines(text: str, **inputs: Any) -> list[str]:
    """The lines about copies in `explain`."""
    found = json.loads(ucle.einsum_program(text, inputs=inputs).explain("json"))["copies"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("T[b,a] = X[a,b]; L += T[b,a]", ["T[b,a] is X[a,b]"]),
        ("T[b,a] = X[a,b]; Z[b] += T[b,a]", ["T[b,a] is X[a,b]"]),
        ("T[b,a] = X[a,b]; Z[a,b] = T[b,a] + X[a,b]", ["T[b,a] is X[a,b]"]),
        ("T[b,a] = X[a,b]; Z[a,c] += X[a,b] * T[b,c]", ["T[b,a] is X[a,b]"]),
        ("T[b,a] = X[a,b]; Z[a] max= exp(T[b,a])", ["T[b,a] is X[a,b]"]),
        (
            "T[b,a] = X[a,b]; U[a,b] = T[b,a]; Z[b] += abs(U[a,b])",
            ["T[b,a] is X[a,b]", "U[a,b] is T[b,a]"],
        ),
        ("P[a,b] = 2 * X[a,b]; T[b,a] = P[a,b]; Z[b] += T[b,a]", ["T[b,a] is P[a,b]"]),
        (
            "T[b,a] = X[a,b]; U[a,b] = T[b,a] + X[a,b] * X[a,b]; Z[a] += U[a,b] * w[b]",
            ["T[b,a] is X[a,b]"],
        ),
        (
            "T[b,a] = X[a,b]; Z[a] += (2 * T[b,a] + sqrt(abs(T[b,a]))) * w[b]",
            ["T[b,a] is X[a,b]"],
        ),
        ("T[c,a,b] = Y[a,b,c]; Z[b,c] += T[c,a,b]", ["T[c,a,b] is Y[a,b,c]"]),
        ("T[b,a] = X[a,b]; U[a] = T[a,a]; Z += U[a]", ["T[b,a] is X[a,b]"]),
        # read as it is written: by an index map, a sort, as an output
        ("T[b,a] = X[a,b]; Z[b,a] = T[b+1,a]", []),
        ("T[b,a] = X[a,b]; Z[b,a] = cumsum[a](T[b,a])", []),
        ("T[b,a] = X[a,b]", []),
        # no copies: a diagonal, a new axis, another type, other values
        ("T[a] = S[a,a]; Z += T[a]", []),
        ("T[a,b,c] = X[a,b] + 0 * v[c]; Z[c] += T[a,b,c]", []),
        ("T[b,a] = float32(X[a,b]); Z[b] += T[b,a]", []),
        ("T[b,a] = -X[a,b]; Z[b] += T[b,a]", []),
    ],
)
@pytest.mark.parametrize("data", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_copies_are_read_through(
    text: str, gone: list[str], data: np.ndarray, routes: Routes
) -> None:
    arrays = {"X": data[:, :3] if "T[a,a]" in text else data, "Y": CUBE}
    arrays |= {"S": data[:, :3], "v": np.arange(2.0), "w": np.arange(4.0)}
    arrays = {name: x for name, x in arrays.items() if f"{name}[" in text}
    inputs = {
        name: sp.coo_array(x) if x is data and data is SPARSE else x for name, x in arrays.items()
    }
    assert lines(text, **inputs) == gone
    for optimisations in None, ALWAYS:
        check_everywhere(Case(text, arrays, inputs, {}), routes, 5, 8, optimisations=optimisations)


def test_an_output_is_still_computed_and_read() -> None:
    text = "T[b,a] = X[a,b]; Z[b] += T[b,a]"
    program = ucle.einsum_program(text, X=DENSE, outputs=["T", "Z"])
    assert json.loads(program.explain("json"))["copies"] == []
    with program.execute() as result:
        np.testing.assert_array_equal(result["T"].to_numpy(), DENSE.T)
        np.testing.assert_array_equal(result["Z"].to_numpy(), DENSE.sum(axis=0))


def test_nothing_is_read_through_where_nothing_is_rewritten() -> None:
    text = "T[b,a] = X[a,b]; Z[b] += T[b,a]"
    for options in ({"rewrite": "none"}, {"decomposition": {"T": {"a"}}}):
        program = ucle.einsum_program(text, X=DENSE, **options)
        assert json.loads(program.explain("json"))["copies"] == []


def test_data_that_changes_is_read_through_again(native: Any) -> None:
    native.sql("create or replace table copied (a integer, b integer, v double)")
    native.sql("insert into copied values (0, 1, 2), (0, 2, 1), (2, 0, 3)")
    text = "T[b,a] = X[a,b]; Z[b] += T[b,a]"
    program = ucle.einsum_program(text, X="copied", database=native)
    for more in "", "insert into copied values (5, 7, -1)":
        native.sql(more) if more else None
        with program.execute(native) as result:
            expected = [3, 2, 1] + ([0, 0, 0, 0, -1] if more else [])
            np.testing.assert_array_equal(result["Z"].to_numpy(), expected)
    native.sql("drop table copied")
