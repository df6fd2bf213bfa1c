"""Statistics of partitions: T and ranges are exact, bounds are never below the truth."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ucle
from ucle.database.engine import DUCKDB
from ucle.foundation.dtypes import DType
from ucle.partitions.statistics import KEPT, combine_statistics, distinct_of, part_statistics
from ucle.plan.sources import TableName, TableSource

SOURCE = TableSource(
    TableName(("rows",)), ("i", "j"), "val", dtype=DType.FLOAT64, encoded=(False, False)
)


def measured(tables: list[pa.Table]) -> object:
    parts = []
    with ucle.connect(threads=1) as connection:
        session = DUCKDB.open(connection)
        for table in tables:
            connection.register("arrow_rows", table)
            connection.execute("CREATE OR REPLACE TABLE rows AS SELECT * FROM arrow_rows")
            parts.append(part_statistics(session, "A", SOURCE, 0.0))
    return combine_statistics(parts)


def entries(rng: np.random.Generator, rows: int, most: int) -> pa.Table:
    places = rng.choice(most * most, size=rows, replace=False)
    i, j = places // most, places % most
    values = rng.integers(-4, 5, size=rows) / 2
    return pa.table({"i": i.astype("i4"), "j": j.astype("i4"), "val": values})


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 400), st.integers(21, 60))
def test_random_partitions(seed: int, partitions: int, rows: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    whole = entries(rng, rows, most)
    lies = rng.integers(partitions, size=rows)
    tables = [whole.filter(pa.array(lies == part)) for part in range(partitions)]
    got = measured([table for table in tables if len(table)])
    values = whole["val"].to_numpy()
    stored = whole.filter(pa.array(values != 0))
    keys = [stored[name].to_numpy() for name in "ij"]
    assert got.entries == len(stored)
    assert got.sizes == tuple(int(whole[name].to_numpy().max()) + 1 for name in "ij")
    assert got.finite
    if len(stored):
        assert got.extremes == (values[values != 0].min(), values[values != 0].max())
    for axis, key in enumerate(keys):
        largest = np.bincount(key).max(initial=0)
        if got.largest:
            assert got.largest[axis] >= largest
        # Rows that hold the fill are rows, too, so that V may count some coordinates more.
        assert got.distinct[axis] >= min(len(np.unique(key)), got.entries)


def test_degrees_add_up() -> None:
    """The rows of one coordinate may lie anywhere: the maximum of partitions would be too low."""
    one = pa.table({"i": [0, 0], "j": [0, 1], "val": [1.0, 1.0]})
    other = pa.table({"i": [0, 1], "j": [2, 0], "val": [1.0, 1.0]})
    assert measured([one, other]).largest == (3.0, 2.0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("distinct", [10, 1000, 30_000, 300_000])
@pytest.mark.parametrize("partitions", [1, 7])
def test_v_is_estimated_with_the_stated_error(distinct: int, partitions: int) -> None:
    errors = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        hashes = rng.choice(2**63, size=distinct).astype(np.uint64) * np.uint64(2)
        lies = rng.integers(partitions, size=distinct)
        sketches = []
        for part in range(partitions):
            own = np.unique(np.concatenate([hashes[lies == part], hashes[: distinct // 10]]))
            sketches.append([int(x) for x in own[:KEPT]])
        errors.append(distinct_of(sketches) / distinct - 1)
    exact = distinct <= KEPT
    assert max(map(abs, errors)) <= (0 if exact else 4.5 / np.sqrt(KEPT - 2))
    assert np.std(errors) <= (0 if exact else 1.6 / np.sqrt(KEPT - 2))
