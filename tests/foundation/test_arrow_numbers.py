"""Conversions between Arrow and NumPy give what Arrow's own give, without its imports."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ucle.foundation.arrow_numbers import arrow_array, numpy_array

TYPES = ("bool", "int8", "uint8", "int32", "uint64", "int64", "float16", "float32", "float64")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [0, 1, 7, 8, 21])
def test_arrays_of_all_types_and_sizes(dtype: str, size: int) -> None:
    values = np.random.default_rng(size).integers(0, 2, size).astype(dtype)
    made = arrow_array(values)
    assert made.equals(pa.array(values))
    made.validate(full=True)
    for start in {0, size // 2, min(3, size)}:
        part = made[start:]
        found = numpy_array(part)
        assert found.dtype == dtype
        assert np.array_equal(found, values[start:])
        assert np.array_equal(found, part.to_numpy(zero_copy_only=False))


def test_arrays_that_are_not_as_arrow_stores_them() -> None:
    values = np.arange(12.0)
    assert arrow_array(values[::2]).to_pylist() == values[::2].tolist()
    assert arrow_array(np.array(["a", "b"])).to_pylist() == ["a", "b"]
    assert np.isnan(arrow_array(np.array([np.nan])).to_pylist()[0])


def test_columns_with_nulls_and_chunks() -> None:
    assert np.isnan(numpy_array(pa.array([1, None]))[1])
    chunks = pa.chunked_array([pa.array([1, 2]), pa.array([3])])
    assert numpy_array(chunks).tolist() == [1, 2, 3]
    assert numpy_array(pa.array(["a"])).tolist() == ["a"]
