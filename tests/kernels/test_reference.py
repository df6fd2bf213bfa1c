"""Every kernel of every element type, on both routes, against its definition in NumPy."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from kernel_meanings import MEANINGS
from kernel_routes import Route, from_sql
from kernel_table import KERNELS, base
from operator_meanings import Array
from samples import aggregate_groups, scalar_rows

from ucle.udf_kernels import ELEMENT_TYPES, Csr
from ucle.udf_kernels.compressed import RUNS

TOLERANCES = {np.dtype("f8"): (1e-10, 1e-11), np.dtype("f4"): (1e-4, 1e-5)}
"""Relative and absolute, by the type of the parts; integers and truth values are exact."""

SCALARS = [
    name for name, kernel in KERNELS.items() if not kernel.is_aggregate and not kernel.variadic
]
AGGREGATES = [name for name, kernel in KERNELS.items() if kernel.is_aggregate]


def result_tag(name: str) -> str:
    """The element type of what a kernel returns."""
    plain = base(name)
    if plain == "hits":
        return "bool"
    return plain.rpartition("_")[2] if plain.startswith("vec_cast_") else KERNELS[name].tag


def assert_same(name: str, got: Any, expected: Any, what: str) -> None:
    if isinstance(expected, Csr):
        assert expected.values.dtype == ELEMENT_TYPES[KERNELS[name].tag].dtype, what
        found = Csr.from_bytes(got, expected.values.dtype)
        assert (found.rows, found.cols) == (expected.rows, expected.cols), what
        np.testing.assert_array_equal(found.ptr, expected.ptr, err_msg=what)
        np.testing.assert_array_equal(found.idx, expected.idx, err_msg=what)
        of_runs = got[12] == RUNS  # which may be written in more ways than one
        assert of_runs or found.to_bytes() == got, what
        got, expected = found.values.tobytes(), expected.values
    if not isinstance(expected, np.ndarray | np.generic):
        assert got == expected, what
        return
    tag = result_tag(name)
    dtype = ELEMENT_TYPES[tag].dtype
    assert expected.dtype == dtype, what
    got = np.asarray(from_sql(got, tag), dtype)
    assert got.shape == expected.shape, what
    if dtype.kind in "ib":
        np.testing.assert_array_equal(got, expected, err_msg=what)
        return
    rtol, atol = TOLERANCES[dtype.type(0).real.dtype]
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, err_msg=what)


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", SCALARS)
def test_scalar_kernel(route: Route, name: str) -> None:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    rows = list(scalar_rows(name, rng))
    for row, got in zip(rows, route.scalar(name, rows), strict=True):
        with np.errstate(all="ignore"):
            expected = MEANINGS[name](*row)
        assert_same(name, got, expected, f"{name}{row}"[:400])


@pytest.mark.sample(150)
@pytest.mark.parametrize("name", SCALARS)
def test_null_argument_makes_null(route: Route, name: str) -> None:
    row = next(iter(scalar_rows(name, np.random.default_rng(0))))
    holes = [[None if j == i else value for j, value in enumerate(row)] for i in range(len(row))]
    results = route.scalar(name, [*holes, row, *holes])
    assert results[: len(row)] == [None] * len(row) == results[len(row) + 1 :]
    assert results[len(row)] is not None


def expected_aggregate(name: str, rows: list[list[Any]]) -> Array | Csr:
    kernel = KERNELS[name]
    columns = [
        [row[j] for row in rows] if gathered else rows[0][j]
        for j, gathered in enumerate(kernel.gathered)
    ]
    with np.errstate(all="ignore"):
        expected = MEANINGS[name](*columns)
    return expected if isinstance(expected, Csr) else np.asarray(expected)


def state_length(expected: Array | Csr) -> int | None:
    """The elements that the state of an aggregate has at least."""
    return None if isinstance(expected, Csr) else len(expected)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate_kernel(route: Route, name: str, wide: bool) -> None:
    if wide and route.name == "arrow":
        pytest.skip("the Arrow route has no capacities")
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for rows in aggregate_groups(name, rng):
        expected = expected_aggregate(name, rows)
        got = route.aggregate(name, rows, None if wide else state_length(expected))
        assert_same(name, got, expected, f"{name}{rows}"[:400])


@pytest.mark.sample(80)
@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate_skips_null_rows(route: Route, name: str) -> None:
    rng = np.random.default_rng(1)
    rows = next(rows for rows in aggregate_groups(name, rng) if len(rows) > 1)
    holed = [[None, *rows[0][1:]] if KERNELS[name].gathered[0] else rows[0], *rows[1:]]
    if KERNELS[name].gathered[0]:
        expected = expected_aggregate(name, rows[1:])
        got = route.aggregate(name, holed, state_length(expected))
        assert_same(name, got, expected, name)
    assert route.aggregate(name, [], 8) is None
