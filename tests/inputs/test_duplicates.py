"""Rows that claim the same coordinates, added up: numbers, and arrays element by element."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.udf_kernels.element_types import ELEMENT_TYPES


def rows_of(dtype: str) -> tuple[pa.Table, Any]:
    """Rows of arrays with keys that repeat, and the tensor that they add up to."""
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 6, 40)
    arrays = rng.integers(-3, 4, (40, 5)).astype(dtype)
    if dtype.startswith("complex"):
        arrays = arrays * (1 + 0.5j)
    arrays = arrays.astype(dtype)
    total = np.zeros((6, 5), dtype)
    for key, array in zip(keys, arrays, strict=True):
        total[key] = total[key] | array if dtype == "bool" else total[key] + array
    from ucle.inputs.inputs import value_array

    offsets = pa.array(np.arange(0, 201, 5), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, value_array(arrays.reshape(-1)))
    return pa.table({"k": keys, "val": lists}), total


@pytest.mark.parametrize("dtype", [element.dtype.name for element in ELEMENT_TYPES.values()])
@pytest.mark.parametrize("decomposition", ["auto", "relational", {"B": "i"}, {"B": "j"}])
@pytest.mark.parametrize("route", [duckdb.connect, ucle.connect])
def test_arrays_are_added(dtype: str, decomposition: Any, route: Any) -> None:
    data, total = rows_of(dtype)
    with route() as connection:
        program = ucle.einsum_program(
            "B[i,j] = A[i,j]",
            A=ucle.table(data, duplicates="sum"),
            database=connection,
            decomposition=decomposition,
        )
        np.testing.assert_array_equal(program.execute()["B"].to_numpy(), total)
        statistics = program.compiled.statistics.tensor("A")
        assert statistics.entries == np.count_nonzero(total)


def test_arrays_without_keys_are_added() -> None:
    data = pa.table({"val": [[1.0, 2.0], [3.0, -2.0]]})
    for given, expected in ((data, [4.0, 0.0]), (data.slice(0, 1), [1.0, 2.0])):
        tensor = ucle.table(given, [], "val", duplicates="sum", shape=[2])
        found = ucle.einsum_program("B[i] = A[i] * 2", A=tensor).execute()["B"].to_numpy()
        np.testing.assert_array_equal(found, 2 * np.array(expected))


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("value", [1.0, [1.0, 2.0]])
def test_nothing_without_keys_adds_up_to_nothing(value: Any, kernels: bool) -> None:
    """The sum of no rows is NULL in SQL."""
    data = pa.table({"val": pa.array([value])})
    label, shape = ("i", [2]) if isinstance(value, list) else ("", [])
    decomposition = "auto" if kernels else "relational"
    for rows in (0, 1):
        tensor = ucle.table(data.slice(0, rows), [], "val", duplicates="sum", shape=shape)
        program = ucle.einsum_program(
            f"B[{label}] = A[{label}] + 1", A=tensor, decomposition=decomposition
        )
        found = program.execute()["B"].to_numpy()
        np.testing.assert_array_equal(found, np.ones(shape) + (value if rows else 0.0))


def test_many_arrays_are_measured_as_they_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where V is estimated; arrays that cancel are no entries where everything is counted."""
    monkeypatch.setattr("ucle.stats.measure.EXACT_ENTRIES", 10)
    data, total = rows_of("float64")
    program = ucle.einsum_program("B[i,j] = A[i,j]", A=ucle.table(data, duplicates="sum"))
    np.testing.assert_array_equal(program.execute()["B"].to_numpy(), total)
    assert program.compiled.statistics.tensor("A").distinct[0] <= 7
