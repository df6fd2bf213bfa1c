"""Several Parquet files as one input: each value in a type that all files have, or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import ucle
from ucle.errors import InputError, ValueTypeError

MONEY = pa.decimal128(9, 2)


def files(folder: Path, *values: tuple[Sequence[Any], pa.DataType]) -> str:
    """A pattern of files `k,v`, numbered through, one for each column of values."""
    begin = 0
    for number, (numbers, type_) in enumerate(values):
        keys = range(begin, begin + len(numbers))
        begin += len(numbers)
        table = pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(numbers, type_)})
        parquet.write_table(table, folder / f"p{number}.parquet")
    return str(folder / "p*.parquet")


def run(text: str, **inputs: Any) -> NDArray[Any]:
    with ucle.einsum_program(text, inputs=inputs).execute() as result:
        return next(iter(result.values())).to_numpy()


HALVES = ([0.5, 0.25], pa.float64())
EXACT: Mapping[str, tuple[tuple[tuple[Sequence[Any], pa.DataType], ...], str]] = {
    "int64, float64": ((([1, 2], pa.int64()), HALVES), "float64"),
    "float64, int64": ((HALVES, ([1, 2], pa.int64())), "float64"),
    "bool, int64": ((([True, True], pa.bool_()), ([5, 7], pa.int64())), "int64"),
    "int32, int64": ((([1, 2], pa.int32()), ([2**40], pa.int64())), "int64"),
    "uint64, int64": ((([2**62], pa.uint64()), ([-1], pa.int64())), "int64"),
    "int32, float32": ((([1, 2], pa.int32()), ([0.5], pa.float32())), "float64"),
    "int8, float32": ((([1, 2], pa.int8()), ([0.5], pa.float32())), "float32"),
    "float32, float64": ((([0.1], pa.float32()), HALVES), "float64"),
    "decimal, int64": ((([Decimal("1.25")], MONEY), ([2], pa.int64())), "float64"),
    "bool, float64": ((([True], pa.bool_()), HALVES), "float64"),
    "three types": ((([1], pa.int8()), ([2], pa.int64()), HALVES), "float64"),
}


@pytest.mark.parametrize("case", EXACT)
def test_files_of_different_types_are_read_by_a_type_of_all(case: str, tmp_path: Path) -> None:
    columns, dtype = EXACT[case]
    pattern = files(tmp_path, *columns)
    expected = [
        np.float32(x) if t == pa.float32() else float(x) if dtype != "int64" else int(x)
        for numbers, t in columns
        for x in numbers
    ]
    found = run("y[k] = A[k]", A=pattern)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)


LARGE = 2**53 + 1
ROUNDED: Mapping[str, tuple[tuple[Sequence[Any], pa.DataType], ...]] = {
    "int64, float64": (([0, LARGE], pa.int64()), HALVES),
    "float64, int64": (HALVES, ([0, LARGE], pa.int64())),
    "decimal, int64": (([Decimal("1.25")], MONEY), ([0, LARGE], pa.int64())),
    "int32, float32": (([0, 2**24 + 1], pa.int32()), ([0.5], pa.float32())),
    "largest": (([0, 2**63 - 1], pa.int64()), HALVES),
}


@pytest.mark.parametrize("case", ROUNDED)
def test_a_number_that_no_type_of_all_has_is_refused(case: str, tmp_path: Path) -> None:
    pattern = files(tmp_path, *ROUNDED[case])
    large = max(max(numbers) for numbers, _ in ROUNDED[case])
    # As integers it is right, and 1.25 is refused.
    others = [] if case.startswith("decimal") else [ucle.table(pattern, dtype="int64")]
    for stated in (pattern, *others):
        with pytest.raises(ValueTypeError, match=rf"{large} in row 1 of .*p\d\.parquet"):
            run("s += A[k]", A=stated)
    if "float32" not in case:
        rounded = run("s += A[k]", A=ucle.table(pattern, dtype=float))
        assert rounded == pytest.approx(float(large), rel=1e-9)


def test_arrays_of_different_types(tmp_path: Path) -> None:
    lists = pa.list_(pa.int64()), pa.list_(pa.float64())
    pattern = files(tmp_path, ([[1, 2]], lists[0]), ([[0.5, 0.25]], lists[1]))
    np.testing.assert_array_equal(run("y[j] += A[k,j]", A=pattern), [1.5, 2.25])
    files(tmp_path, ([[1, LARGE]], lists[0]), ([[0.5, 0.25]], lists[1]))
    with pytest.raises(ValueTypeError, match=str(LARGE)):
        run("y[j] += A[k,j]", A=pattern)


def test_columns_that_do_not_fit_name_their_files(tmp_path: Path) -> None:
    for one, other in (
        ((["a"], pa.string()), ([2], pa.int64())),
        (([2], pa.int64()), (["5"], pa.string())),
        (([2.5], pa.float64()), ([[1.0]], pa.list_(pa.float64()))),
    ):
        pattern = files(tmp_path, one, other)
        with pytest.raises(ValueTypeError, match=r"in .*p0\.parquet, .* in .*p1\.parquet"):
            run("s += A[k]", A=pattern)
    other_keys = pa.table({"k": ["x"], "v": [1.0]})
    files(tmp_path, ([1.0], pa.float64()), ([1.0], pa.float64()))
    parquet.write_table(other_keys, tmp_path / "p1.parquet")
    with pytest.raises(ValueTypeError, match="key column has different types"):
        run("s += A[k]", A=pattern)
    parquet.write_table(pa.table({"k": [1], "w": [1.0]}), tmp_path / "p1.parquet")
    with pytest.raises(InputError, match="have different columns"):
        run("s += A[k]", A=pattern)
    with pytest.raises(InputError, match="no column 'v'"):
        run("s += A[k]", A=ucle.table(pattern, ["k"], "v"))
    assert run("s += A[k]", A=ucle.table(pattern, ["k"], 1)) == 2


def test_keys_of_different_widths(tmp_path: Path) -> None:
    for number, type_ in enumerate((pa.int8(), pa.int64(), pa.uint32())):
        table = pa.table({"k": pa.array([number], type_), "v": [1.0]})
        parquet.write_table(table, tmp_path / f"p{number}.parquet")
    assert run("s += A[k]", A=str(tmp_path / "*.parquet")) == 3


def test_folders_with_values_in_their_names(tmp_path: Path) -> None:
    for year, values in ((1, [1, 2]), (2, [0.5, 0.25])):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        parquet.write_table(pa.table({"k": [0, 1], "v": values}), folder / "p.parquet")
    stated = ucle.table(str(tmp_path / "*" / "p.parquet"), ["year", "k"], "v")
    np.testing.assert_array_equal(run("y[year] += A[year,k]", A=stated), [0, 3, 0.75])


def test_files_are_not_copied(tmp_path: Path) -> None:
    pattern = files(tmp_path, ([1, 2], pa.int64()), HALVES)
    program = ucle.einsum_program("s += A[k]", A=pattern, decomposition="relational")
    assert "union_by_name = TRUE" in program.to_sql()
    same = files(tmp_path, HALVES, HALVES)
    program = ucle.einsum_program("s += A[k]", A=same, decomposition="relational")
    assert "union_by_name" not in program.to_sql()


def test_a_file_of_another_type_that_comes_later(tmp_path: Path) -> None:
    pattern = files(tmp_path, ([1, 2], pa.int64()), ([3], pa.int64()))
    program = ucle.einsum_program("s += A[k]", A=pattern)
    assert program.execute()["s"].to_numpy() == 6
    files(tmp_path, ([1, 2], pa.int64()), ([3], pa.int64()), ([4.0], pa.float64()))
    assert program.execute()["s"].to_numpy() == 10
    files(tmp_path, ([1, 2], pa.int64()), ([3], pa.int64()), ([0.5], pa.float64()))
    with pytest.raises(ValueTypeError, match="none of int64"):
        program.execute()
