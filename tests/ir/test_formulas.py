"""The SQL and the kernels of every operator against NumPy, where numbers are hard.

Values of all sizes, signs and kinds: what overflows on the way, what vanishes beside 1, zeros of
either sign, NaN and infinity. What an operator does to ordinary tensors stands in
``test_element_types.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from ucle.foundation.dtypes import DType
from ucle.ir.maps import Cast, Map
from ucle.operators import COMBINES, MAPS, REDUCES
from ucle.sqlgen.dialects import DUCKDB_SQL
from ucle.sqlgen.scalar_operators import cast_sql, combine_sql, map_sql, reduce_sql
from ucle.sqlgen.sql_trees import column
from ucle.udf_kernels import typed_name

Array = NDArray[Any]

SMALL = [0.0, 1.0, 0.5, 2.0, 3.0, 0.1, 0.999999, 1.5, 2.5, 10.0, 20.0, 36.7, 50.0, 1e-4]
WIDE = {
    "f": [1e-17, 1e-8, 88.7, 104.0, 1e15 + 0.5, 1e30, 1e-38, 1e-45, 3e38, math.inf],
    "d": [1e-200, 1e200, 400.0, 709.5, 745.0, 1e154, 1.7e308, 5e-324],
}
PARTS = {
    "F": [0.0, 1.0, 0.3, 2.5, 1e-6, 1e-30, 1e30, 50.0, 100.0, 3e38, math.inf],
    "D": [0.0, 1.0, 0.3, 2.5, 1e-12, 1e-200, 1e200, 400.0, 800.0, 1.7e308, 5e-324, math.inf],
}
INTEGERS = [0, 1, 2, 3, 7, 39, 63, 2**31, 3037000499, 2**53 + 1, 2**62, 2**63 - 1]

ULPS = 8
CANCELS, FADES = frozenset({"gelu"}), frozenset({"sigmoid", "silu"})
"""Functions whose formula in NumPy rounds in proportion to the argument, or goes to 0 too early."""


def grid(dtype: DType, *, finite: bool = False) -> Array:
    """Hard values of a type, each with either sign."""
    if dtype is DType.BOOL:
        return np.array([False, True])
    if dtype is DType.INT64:
        return np.array([*INTEGERS, *(-x for x in INTEGERS)])
    kind = dtype.numpy.char
    if dtype.kind == "f":
        values = SMALL + WIDE["f"] + (WIDE["d"] if kind == "d" else [])
        return signed(values, finite).astype(dtype.numpy)
    parts = signed(PARTS[kind], finite)
    return np.array([complex(re, im) for re in parts for im in parts], dtype.numpy)


def signed(values: list[float], finite: bool) -> Array:
    kept = np.array([x for x in values if math.isfinite(x) or not finite])
    return np.concatenate([kept, -kept, [] if finite else [math.nan]])


def as_column(values: Array) -> pa.Array:
    if values.dtype.kind != "c":
        return pa.array(values)
    parts = [pa.array(values.real.copy()), pa.array(values.imag.copy())]
    return pa.StructArray.from_arrays(parts, ["re", "im"])


def as_array(values: Any, dtype: DType) -> Array:
    """A column of DuckDB as an array; a number of another type than its own would show here."""
    values = values.combine_chunks()
    if dtype.kind != "c":
        return np.asarray(values.to_numpy(zero_copy_only=False))
    made = np.empty(len(values), dtype.numpy)
    made.real = values.field("re").to_numpy(zero_copy_only=False)
    made.imag = values.field("im").to_numpy(zero_copy_only=False)
    return made


def evaluated(connection: duckdb.DuckDBPyConnection, sql: Any, dtype: DType, **xs: Array) -> Array:
    """An expression at every row of some columns."""
    names = {name: as_column(values) for name, values in xs.items()}
    cursor = connection.cursor()
    rows = pa.table({"n": pa.array(range(len(next(iter(xs.values()))))), **names})
    cursor.register("hard", rows)
    query = f"SELECT {sql.sql('duckdb')} AS r FROM hard ORDER BY n"
    try:
        return as_array(pa.table(cursor.sql(query))["r"], dtype)
    finally:
        cursor.close()


def reference(function: Any, dtype: DType, *arguments: Array) -> Array:
    """NumPy's answer, computed in 64 bits a part, unless it is about the type at hand."""
    wider = {DType.FLOAT32: "f8", DType.COMPLEX64: "c16"}.get(dtype, dtype.numpy)
    if function in OF_THE_TYPE:
        wider = dtype.numpy
    with np.errstate(all="ignore"):
        return np.asarray(function(*(a.astype(wider) for a in arguments))).astype(dtype.numpy)


OF_THE_TYPE = [COMBINES[name].numpy for name in ("nextafter", "remainder", "floor_divide")]
"""Functions that jump where a number is rounded."""


def distance(found: Array, expected: Array) -> Array:
    """Return distances in units of the last place of the greater part."""
    if expected.dtype.kind not in "fc":
        return np.where(found == expected, 0.0, np.inf)
    pairs = [(found.real, expected.real), (found.imag, expected.imag)]
    with np.errstate(all="ignore"):
        sizes = [np.where(np.isfinite(part), np.abs(part), 0) for _, part in pairs]
        unit = np.spacing(np.maximum(*sizes)).astype("f8")
        apart = [np.abs(one.astype("f8") - other.astype("f8")) / unit for one, other in pairs]
    same = [(one == other) | (np.isnan(one) & np.isnan(other)) for one, other in pairs]
    parts = [
        np.where(s, 0.0, np.where(np.isnan(a), np.inf, a)) for s, a in zip(same, apart, strict=True)
    ]
    return np.asarray(np.maximum(*parts))


def check(
    found: Array, expected: Array, slack: Any, *arguments: Array, narrow: Array | None = None
) -> None:
    """Every number is within some units of the last place; exact ones are exact.

    `narrow` is another right answer: NumPy's where each step is rounded to the type.
    """
    assert found.dtype == expected.dtype
    far = distance(found, expected) > slack
    if narrow is not None:
        far &= distance(found, narrow) > slack
    shown = [(*(a[n] for a in arguments), found[n], expected[n]) for n in np.flatnonzero(far)]
    assert not shown, shown[:5]


def slack_of(name: str, x: Array, expected: Array) -> Any:
    if name not in CANCELS | FADES:
        return ULPS
    with np.errstate(all="ignore"):
        lost = np.spacing(np.abs(x)) if name in CANCELS else np.abs(x) * np.finfo(x.dtype).tiny
        return ULPS * np.maximum(1, np.nan_to_num(lost / np.spacing(np.abs(expected))))


def overflows(name: str, x: Array, expected: Array) -> Array:
    """The positions at which NumPy's integers wrap, or complex products vary by processor."""
    if x.dtype.kind == "i" and name in ("abs", "neg", "square"):
        return np.abs(x.astype(object) ** 2) >= 2**63
    if x.dtype.kind == "c" and name == "square":
        return ~np.isfinite(expected)
    return np.zeros(len(x), dtype=bool)


def maps_on_grid(dtype: DType) -> Iterator[tuple[str, Array, Array, Any]]:
    """Every map of a type: its arguments, what NumPy makes of them, and what it may differ by."""
    for name, row in MAPS.items():
        if dtype.kind in row.kinds and row.compiled:
            x = grid(dtype)
            expected = reference(row.numpy, dtype, x)
            kept = ~overflows(name, x, expected)
            x, expected = x[kept], expected[kept]
            yield name, x, expected, slack_of(name, x, expected)


@pytest.mark.parametrize("dtype", DType, ids=lambda t: t.value)
def test_maps(dtype: DType, native: duckdb.DuckDBPyConnection) -> None:
    for name, x, expected, slack in maps_on_grid(dtype):
        sql = map_sql(Map(MAPS[name], dtype), column("x"))
        check(evaluated(native, sql, dtype, x=x), expected, slack, x)


@pytest.mark.parametrize("dtype", DType, ids=lambda t: t.value)
def test_kernels_of_maps(dtype: DType, native: duckdb.DuckDBPyConnection) -> None:
    """Maps inside arrays agree; narrow floats are rounded at each step there."""
    for name, x, expected, slack in maps_on_grid(dtype):
        found = kernel(native, f"vec_{name}", dtype, x)
        with np.errstate(all="ignore"):
            narrow = np.asarray(MAPS[name].numpy(x)).astype(dtype.numpy)
        check(found, expected, slack, x, narrow=narrow)


def kernel(connection: duckdb.DuckDBPyConnection, name: str, dtype: DType, *xs: Array) -> Array:
    """A kernel of vectors applied to whole columns."""
    call, pack, unpack = (typed_name(n, dtype.tag) for n in (name, "pack", "vec_to_list"))
    cursor = connection.cursor()
    cursor.register("hard", pa.table({f"x{n}": as_column(x) for n, x in enumerate(xs)}))
    vectors = ", ".join(f"{pack}(list(x{n})::{DUCKDB_SQL.types[dtype]}[])" for n in range(len(xs)))
    query = f"SELECT unnest({unpack}({call}({vectors}))) AS r FROM hard"
    try:
        return as_array(pa.table(cursor.sql(query))["r"], dtype)
    finally:
        cursor.close()


ORDINARY = ("mult", "sparse_mult", "pow")
"""Operators whose results on extreme complex numbers depend on the processor."""


def pairs_of(name: str, dtype: DType) -> tuple[Array, Array]:
    """Every hard value with every other; fewer complex ones."""
    values = grid(dtype, finite=dtype.kind == "c")
    if dtype.kind == "c":
        small, large = (1e-13, 1e13) if name in ORDINARY else (1e-205, 1e205)
        size = np.abs(values)
        values = values[(size == 0) | ((size > small) & (size < large))]
        values = np.random.default_rng(5).permutation(values)[:60]
    return np.repeat(values, len(values)), np.tile(values, len(values))


def fits(name: str, x: Array, y: Array) -> Array:
    """The positions at which integers do not overflow (NumPy's wrap silently) and powers exist."""
    function = {"mult": lambda a, b: a * b, "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
                "floor_divide": lambda a, b: a // b if b else 0,
                "bitwise_left_shift": lambda a, b: a << min(b, 64) if b >= 0 else 0,
                "pow": lambda a, b: a**b if 0 <= b < 64 or abs(a) < 2 <= b else 2**64}  # fmt: skip
    name = name.removeprefix("sparse_")
    if x.dtype.kind != "i" or name not in function:
        return np.ones(len(x), dtype=bool)
    made = [function[name](int(a), int(b)) for a, b in zip(x, y, strict=True)]
    return np.array([-(2**63) <= value < 2**63 for value in made])


def powers(x: Array, y: Array) -> Array:
    """NumPy's powers of integers go through no float, and neither do these."""
    return np.array([int(a) ** int(b) for a, b in zip(x, y, strict=True)])


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", DType, ids=lambda t: t.value)
def test_combines(dtype: DType, native: duckdb.DuckDBPyConnection) -> None:
    names = [name for name, row in COMBINES.items() if dtype.kind in row.kinds and row.compiled]
    for name in names:
        x, y = pairs_of(name, dtype)
        kept = fits(name, x, y)
        x, y = x[kept], y[kept]
        function = powers if (name, dtype.kind) == ("pow", "i") else COMBINES[name].numpy
        expected = reference(function, dtype, x, y)
        slack = np.full(len(x), float(ULPS))
        if name == "pow" and dtype.kind == "c":  # what rounds is the exponent of e
            with np.errstate(all="ignore"):
                slack *= 1 + np.nan_to_num(np.abs(y * np.log(x)))
        if name == "logaddexp":  # the greater term, and what is added to it, may cancel
            with np.errstate(all="ignore"):
                lost = np.spacing(np.maximum(abs(x), abs(y)) + 1) / np.spacing(abs(expected))
                slack *= np.maximum(1, np.nan_to_num(lost))
        if dtype.kind == "c":
            kept = np.isfinite(expected) | (x == 0) | (y == 0)
            x, y, expected, slack = x[kept], y[kept], expected[kept], slack[kept]
        sql = combine_sql(COMBINES[name], column("x"), column("y"), dtype)
        check(evaluated(native, sql, dtype, x=x, y=y), expected, slack, x, y)
        stem = f"vec_{COMBINES[name].stem}"
        check(kernel(native, stem, dtype, x, y), expected, slack, x, y)


GROUPS: dict[str, list[list[Any]]] = {
    "b": [[True, False], [True], [False, False]],
    "i": [
        [2**62, 2**62, -(2**62), -(2**62) + 1],
        [2**40, 0, 2**40],
        [3] * 39,
        [-(2**62), 2],
        [2**62, 2, -1],
        [5],
    ],
    "f": [
        [0.1] * 100,
        [1e30, 1e30, 1e-30],
        [1e-30] * 3,
        [math.nan, 1.0],
        [1.0, math.nan, -math.inf],
        [math.inf, -math.inf],
        [-0.5, 3.0],
        [3e38, 3e38],
    ],
    "c": [[1 + 2j, -0.5j], [1e30, 1e30j], [3e38 + 1j, 3e38], [0.5, 0.25j, -1]],
}
"""Groups whose sums and products overflow on the way, or at the end; some hold NaN."""


@pytest.mark.parametrize("dtype", DType, ids=lambda t: t.value)
def test_reduces(dtype: DType, native: duckdb.DuckDBPyConnection) -> None:
    groups = GROUPS[dtype.kind]
    x = np.concatenate([np.array(group, dtype.numpy) for group in groups])
    g = np.repeat(range(len(groups)), [len(group) for group in groups])
    rows = pa.table({"g": g, "x": as_column(x)})
    for name in (name for name, row in REDUCES.items() if dtype.kind in row.kinds and row.compiled):
        cursor = native.cursor()
        cursor.register("hard", rows)
        sql = reduce_sql(REDUCES[name], column("x"), dtype).sql("duckdb")
        function = {"sum": sum, "prod": math.prod} if dtype.kind == "i" else {}
        expected = [
            reference(REDUCES[name].numpy, dtype, np.array(group, dtype.numpy))
            if name not in function
            else function[name](group)
            for group in groups
        ]
        kept = [n for n, e in enumerate(expected) if dtype.kind != "i" or -(2**63) <= e < 2**63]
        one = f"SELECT {sql} AS r FROM hard WHERE g IN {(*kept, -1)} GROUP BY g ORDER BY g"
        found = as_array(pa.table(cursor.sql(one))["r"], dtype)
        cursor.close()
        longest = max(len(groups[n]) for n in kept)  # DuckDB adds one by one, NumPy in pairs
        check(found, np.array([expected[n] for n in kept], dtype.numpy), max(ULPS, longest))


@pytest.mark.parametrize("source", ["float64", "complex128"])
def test_casts_to_narrow_types(source: str, native: duckdb.DuckDBPyConnection) -> None:
    """Numbers too large for 32 bits a part become infinite, as in NumPy; DuckDB's cast refuses."""
    x = grid(DType(source))
    for result in (DType.FLOAT32, DType.COMPLEX64):
        with np.errstate(all="ignore"):
            expected = (x if result.kind == "c" else x.real).astype(result.numpy)
        sql = cast_sql(Cast(DType(source), result), column("x"))
        check(evaluated(native, sql, result, x=x), expected, 0, x)
