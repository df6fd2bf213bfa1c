"""Entries and rows that a mask keeps, with the names of their axes."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

import ucle
from ucle.errors import ArgumentTypeError, LabelError, UnsupportedError


@pytest.mark.parametrize("seed", range(6))
def test_random_masks(seed: int, routes: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, size=(4, 3)) * [1, 0.5][seed % 2]
    x = ucle.array(values, axes=("row", "column"))
    columns = rng.random(3) < 0.5
    route = list(routes.values())[seed % 2]
    for mask, expected in (
        (x > 1, np.where(values > 1, values, 0)),
        (ucle.array(columns, axes=("column",)), np.where(columns, values, 0)),
        ((x > 1).T, np.where(values > 1, values, 0)),
        (x.sum("column") > 0, np.where(values.sum(1, keepdims=True) > 0, values, 0)),
    ):
        kept = x[mask]
        assert kept.axes == x.axes
        np.testing.assert_array_equal(kept.to_numpy(database=route), expected)


def test_rows_of_names(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE stars AS SELECT * FROM "
        "(VALUES ('ann', 'hat', 5), ('ann', 'shoe', 1), ('bob', 'hat', 2)) t(who, what, n)"
    )
    stars = ucle.tensor("stars", axes=("who", "what"), database=connection)
    rows = stars[stars.sum("what") > 3].to_arrow().to_pylist()
    assert sorted(row["what"] for row in rows) == ["hat", "shoe"]
    assert {row["who"] for row in rows} == {"ann"}
    (row,) = stars[stars > 3].to_arrow().to_pylist()
    assert row == {"who": "ann", "what": "hat", "val": 5}


def test_errors() -> None:
    x = ucle.array([[1.0, 2.0]], axes=("row", "column"))
    with pytest.raises(LabelError, match="lacks"):
        x[ucle.array([True], axes=("other",))]
    with pytest.raises(LabelError, match="without"):
        x[ucle.array([True, False])]
    bare = x.unnamed()
    with pytest.raises(ArgumentTypeError, match=r"mask(.|\n)*axes with names(.|\n)*ucle\.where"):
        bare[bare > 1]
    with pytest.raises(UnsupportedError, match=r"mask(.|\n)*ucle\.where"):
        bare[np.array([[True, False]])]
    with pytest.raises(ArgumentTypeError, match=r"one of float64(.|\n)*astype"):
        bare[bare]
