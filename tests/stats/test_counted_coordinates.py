"""Statistics of sparse arrays in memory are those of a table of the same entries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ucle
from ucle.foundation.dtypes import DType
from ucle.plan.sources import TableName, TableSource
from ucle.stats import coordinates
from ucle.stats.arrays import by_numpy
from ucle.stats.coordinates import measure_coordinates
from ucle.stats.measure import MeasuredInput, measure

SPECIAL = [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, -2.5]


def _entries(seed: int) -> tuple[list[Any], Any, Any, DType]:
    """Coordinates, none twice, with values of a type and a fill."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 9, size=rng.integers(1, 4)))
    dtype = (DType.FLOAT64, DType.FLOAT32, DType.INT64, DType.BOOL)[seed % 4]
    chosen = np.flatnonzero(rng.random(np.prod(shape)) < rng.choice([0.0, 0.2, 0.8]))
    keys = list(np.unravel_index(chosen, shape))
    if dtype.kind == "f":
        values = rng.choice(SPECIAL, size=len(chosen)) if seed % 3 else rng.normal(size=len(chosen))
        fill = float(rng.choice([0.0, np.inf, np.nan, 1.0]))
    else:
        values, fill = rng.integers(-2, 3, size=len(chosen)), int(rng.integers(0, 2))
    return keys, values.astype(dtype.numpy), dtype.numpy.type(fill).item(), dtype


def _by_queries(keys: list[Any], values: Any, fill: Any, dtype: DType) -> MeasuredInput:
    names = [f"k{axis}" for axis in range(len(keys))]
    with ucle.connect() as connection:
        columns = ", ".join(f"{name} INTEGER" for name in names)
        sql = {"bool": "BOOLEAN", "int64": "BIGINT", "float32": "FLOAT", "float64": "DOUBLE"}
        connection.execute(f"CREATE TABLE entries ({columns}, val {sql[dtype.value]})")
        rows = [[*map(int, row[:-1]), row[-1].item()] for row in zip(*keys, values, strict=True)]
        if rows:
            marks = ", ".join("?" * (len(keys) + 1))
            connection.executemany(f"INSERT INTO entries VALUES ({marks})", rows)
        source = TableSource(TableName(("entries",)), tuple(names), "val", dtype=dtype)
        n = len(names)
        source = replace(source, key_types=("INTEGER",) * n, encoded=(False,) * n)

        def fetch(query: str) -> Any:
            return connection.execute(query).fetchall()

        return measure(fetch, by_numpy(lambda *_: ()), "A", source, fill)


@pytest.mark.parametrize("seed", range(60))
def test_they_are_those_that_queries_find(seed: int) -> None:
    keys, values, fill, dtype = _entries(seed)
    assert measure_coordinates(keys, values, fill) == _by_queries(keys, values, fill, dtype)


@pytest.mark.parametrize("seed", range(20))
def test_long_axes_are_counted_without_a_counter_for_each_position(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, values, fill, _ = _entries(seed)
    expected = measure_coordinates(keys, values, fill)
    monkeypatch.setattr(coordinates, "MOST_COUNTERS", -1)
    monkeypatch.setattr(coordinates, "_PER_ENTRY", 0)
    assert measure_coordinates(keys, values, fill) == expected
