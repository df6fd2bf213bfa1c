"""NaN in Parquet files, whose statistics leave it out: DuckDB must not take them at their word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import ucle
from ucle.testing.check_matrix import Routes

VALUES = np.array([1.0, 1.0, -3.0, np.nan, 4.0, 0.5, np.nan, 4.0])
PROGRAMS = {
    "isnan(1 * abs(A[i]))": np.isnan,
    "A[i] > 4": lambda x: x > 4,
    "A[i] <= 4": lambda x: x <= 4,
    "A[i] != 4": lambda x: x != 4,
    "max(A[i], 5)": lambda x: np.maximum(x, 5),
    "where(A[i] > 4, 1.0, A[i])": lambda x: np.where(x > 4, 1.0, x),
}


@pytest.mark.parametrize("fill", [0.0, 4.0])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("text", [*PROGRAMS, "max[i](A[i])", "min[i](A[i])", "sum[i](A[i])"])
def test_nan_is_found(text: str, dtype: str, fill: float, routes: Routes, tmp_path: Path) -> None:
    values = VALUES.astype(dtype)
    stored = np.flatnonzero(values != fill)
    path = tmp_path / "nan.parquet"
    parquet.write_table(pa.table({"i": stored, "v": values[stored]}), path)
    statistics = parquet.read_metadata(path).row_group(0).column(1).statistics
    assert not np.isnan(statistics.max)
    reduced = "[i](" in text
    program = f"T[] = {text}" if reduced else f"T[i] = {text}"
    expected = getattr(np, text[:3])(values) if reduced else PROGRAMS[text](values)
    for connection in routes.values():
        table = ucle.table(str(path), bounds=(len(values),), fill=fill)
        with ucle.einsum_program(program, A=table, database=connection).execute() as result:
            np.testing.assert_array_equal(result["T"].to_numpy(), expected)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("operator", ["max", "min", "sum"])
@pytest.mark.parametrize(
    "values", [[1.0], [1.0, 2.0], [-3.0, -3.0, -3.0], [2.0, np.inf], [1.0, np.nan, 3.0]]
)
def test_extremes_of_a_whole_file(
    values: list[float], operator: str, dtype: str, tmp_path: Path
) -> None:
    """DuckDB answers max(x) by statistics, which hold NaN where there may be some."""
    path = tmp_path / "values.parquet"
    array = np.array(values, dtype)
    parquet.write_table(pa.table({"k": np.arange(array.size), "x": array}), path)
    expected = getattr(np, operator)(array)
    program = ucle.einsum_program(f"m[] = {operator}[k](x[k])", x=str(path))
    for way in ("auto", "relational"):
        found = program.with_decomposition(way).execute()["m"].to_numpy()
        np.testing.assert_array_equal(found, expected)
