"""Every kernel, on both routes, against its definition in NumPy."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import Route, from_sql

from ucle.udf_kernels import KERNELS
from ucle.udf_kernels.reference import COMBINES, REDUCES, Array

LENGTHS = (0, 1, 2, 3, 5, 8, 17, 64, 131)
SHAPES = ((1, 1, 1), (2, 3, 4), (1, 7, 2), (5, 1, 3), (17, 19, 23), (16, 32, 16), (0, 3, 2))
PLACES = (
    (0, [2, 3], [3, 1]),
    (5, [3], [2]),
    (4, [2, 2], [-1, 2]),
    (1, [], []),
    (0, [0, 2], [9, 9]),
)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e300, -1e-300)

SPECS: tuple[tuple[str, list[int]], ...] = (
    ("ij,jk->ik", [2, 3, 4]),
    ("ij,jk->ik", [17, 19, 23]),
    ("ij,jk->ki", [32, 16, 24]),
    ("ji,jk->ik", [19, 20, 21]),
    ("ij,kj->ik", [20, 19, 21]),
    ("bij,bjk->bik", [3, 16, 17, 18]),
    ("bij,bjk->ik", [3, 16, 17, 18]),
    ("ibj,jkb->kbi", [16, 3, 17, 18]),
    ("ijk,klj->il", [5, 16, 17, 18]),
    ("ii,ij->j", [4, 5]),
    ("iij,jj->i", [3, 4]),
    ("ij,ij->", [6, 7]),
    ("i,->i", [3]),
    (",->", []),
    ("i,j->ij", [4, 9]),
    ("i,j->", [4, 9]),
    ("aBc,cBd->dBa", [2, 3, 4, 5]),
    ("ab,cd->dbca", [2, 3, 4, 5]),
    ("ij,jk->ik", [1, 300, 1]),
    ("ij,jk->ik", [3, 0, 2]),
    ("ij,jk->ik", [0, 3, 2]),
    ("abcdefgh,hgfedcba->ab", [2, 1, 2, 3, 1, 2, 2, 2]),
)
SPECS1: tuple[tuple[str, list[int]], ...] = (
    ("ij->ji", [5, 7]),
    ("ij->i", [5, 300]),
    ("ij->j", [300, 5]),
    ("ii->i", [6]),
    ("ii->", [6]),
    ("iji->j", [4, 3]),
    ("abcd->dbca", [2, 3, 4, 5]),
    ("->", []),
    ("i->", [1]),
    ("ij->i", [2, 0]),
    ("abc->", [3, 4, 5]),
)


def operand_lengths(spec: str, sizes: list[int]) -> list[int]:
    terms = spec.rpartition(" ")[2].split("->")[0].split(",")
    names = dict.fromkeys("".join(terms))
    size = dict(zip(names, sizes, strict=True))
    return [int(np.prod([size[name] for name in term], dtype=int)) for term in terms]


def has_empty_reduction(spec: str, sizes: list[int]) -> bool:
    """Whether min or max would have to reduce nothing."""
    inputs, output = spec.split("->")
    size = dict(zip(dict.fromkeys(inputs.replace(",", "")), sizes, strict=True))
    return 0 in sizes and all(size[name] for name in output)


def tensor(rng: np.random.Generator, length: int, special: bool = False) -> Array:
    values = rng.normal(size=length)
    if special and length:
        where = rng.random(length) < 0.5
        values = np.where(where, rng.choice(SPECIAL, size=length), values)
    return values


def ein_rows(rng: np.random.Generator, specs: Any, prefixes: list[str]) -> Iterator[list[Any]]:
    for spec, sizes in specs:
        for prefix in prefixes:
            if has_empty_reduction(spec, sizes) and prefix[:3] in ("min", "max"):
                continue
            lengths = operand_lengths(spec, sizes)
            # Positive numbers near one: powers are defined and products stay finite.
            yield [prefix + spec, sizes, *(rng.uniform(0.9, 1.1, size=n) for n in lengths)]


def scalar_rows(name: str, rng: np.random.Generator) -> Iterator[list[Any]]:
    """Arguments for one scalar kernel, odd sizes and special values among them."""
    kinds = KERNELS[name].parameters
    if name.startswith("ein"):
        pairs = [f"{r}.{c} " for r in REDUCES for c in COMBINES]
        scalar = "_sca" in name
        specs = SPECS1 if "1" in name else SPECS
        kept = [s for s in specs if not scalar or s[0].endswith(">")]
        yield from ein_rows(
            rng, kept, ["", *([f"{r} " for r in REDUCES] if "1" in name else pairs)]
        )
    elif name == "slice":
        for offset, sizes, strides in PLACES:
            yield [tensor(rng, 12), offset, sizes, strides]
    elif name == "element":
        for length in LENGTHS[1:]:
            yield [tensor(rng, length), int(rng.integers(length))]
    elif name == "full":
        for length in LENGTHS:
            yield [length, float(rng.normal())]
    elif name == "outer_prod":
        for length in LENGTHS[:7]:
            yield [tensor(rng, length), tensor(rng, 3)]
    elif name in ("mat_vec_mult", "vec_mat_mult", "mat_mat_mult"):
        for m, n, k in SHAPES:
            if name == "mat_vec_mult":
                yield [tensor(rng, m * k), tensor(rng, k)]
            elif name == "vec_mat_mult":
                yield [tensor(rng, k), tensor(rng, k * n)]
            else:
                yield [tensor(rng, m * k), tensor(rng, k * n), k]
    elif name in ("any_not", "count_not"):
        for fill in (0.0, -0.0, np.nan, np.inf, 1.0):
            for length in LENGTHS:
                yield [tensor(rng, length, special=True), fill]
                yield [np.full(length, -fill), fill]
    else:
        for length in LENGTHS:
            for special in (False, True) if name not in ("inner_prod",) else (False,):
                values = tensor(rng, length, special)
                if name == "pack":  # DuckDB 1.4 binds a NaN in a Python list as NULL
                    values = np.nan_to_num(values, nan=2.0)
                other = tensor(rng, length, special)
                yield [
                    {"DOUBLE[]": values.tolist(), "BLOB": (values, other)[j % 2]}.get(
                        kind, float(rng.choice(SPECIAL))
                    )
                    for j, kind in enumerate(kinds)
                ]


def assert_same(got: Any, expected: Any, what: str) -> None:
    if isinstance(expected, np.ndarray | float):
        expected = np.asarray(expected, dtype=np.float64)
        got = np.asarray(from_sql(got))
        assert got.shape == expected.shape, what
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-11, err_msg=what)
    else:
        assert got == expected, what


SCALARS = [name for name, kernel in KERNELS.items() if kernel.kind == "scalar"]
AGGREGATES = [name for name, kernel in KERNELS.items() if kernel.kind == "aggregate"]


@pytest.mark.parametrize("name", SCALARS)
def test_scalar_kernel(route: Route, name: str) -> None:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    rows = list(scalar_rows(name, rng))
    for row, got in zip(rows, route.scalar(name, rows), strict=True):
        with np.errstate(all="ignore"):
            expected = KERNELS[name].reference(*row)
        assert_same(got, expected, f"{name}{row}"[:400])


@pytest.mark.parametrize("name", SCALARS)
def test_null_argument_makes_null(route: Route, name: str) -> None:
    row = next(iter(scalar_rows(name, np.random.default_rng(0))))
    holes = [[None if j == i else value for j, value in enumerate(row)] for i in range(len(row))]
    results = route.scalar(name, [*holes, row, *holes])
    assert results[: len(row)] == [None] * len(row) == results[len(row) + 1 :]
    assert results[len(row)] is not None


def aggregate_groups(name: str, rng: np.random.Generator) -> Iterator[list[list[Any]]]:
    """Groups of rows for one aggregate; within a group all states have one length."""
    for count in (1, 2, 7):
        if name == "stack_sca":
            yield [[float(rng.normal()), 2 * i, 15, 0.0] for i in range(count)]
            yield [[float(rng.normal()), i, 15, float("nan")] for i in range(count)]
        elif name == "stack":
            yield [[tensor(rng, 3), 4 * i, 29, np.inf] for i in range(count)]
        elif name == "stack_strided":
            yield [[tensor(rng, 6), i, [2, 3], [30, 8], 60, -1.0] for i in range(count)]
        elif "_ein" in name:
            specs = SPECS1 if name.endswith("1") else SPECS
            for spec, sizes in specs:
                prefix = name[: name.index("_")] + (" " if name.endswith("1") else ".add ")
                for row in ein_rows(rng, [(spec, sizes)], [prefix]):
                    lengths = operand_lengths(spec, sizes)
                    yield [[*row[:2], *(tensor(rng, n) for n in lengths)] for _ in range(count)]
        elif name.endswith("_vec"):
            for length in LENGTHS:
                yield [[tensor(rng, length, special=length > 3)] for _ in range(count)]
        elif name.endswith("vec_sca_mult"):
            for length in LENGTHS:
                yield [[tensor(rng, length), float(rng.normal())] for _ in range(count)]
        elif name == "sum_vec_mult":
            for length in LENGTHS:
                yield [[tensor(rng, length), tensor(rng, length)] for _ in range(count)]
        else:
            scalar = name.removeprefix("sum_")
            for row in scalar_rows(scalar, rng):
                yield [
                    [tensor(rng, len(v)) if isinstance(v, np.ndarray) else v for v in row]
                    for _ in range(count)
                ]


def expected_aggregate(name: str, rows: list[list[Any]]) -> Array:
    kernel = KERNELS[name]
    columns = [
        [row[j] for row in rows] if gathered else rows[0][j]
        for j, gathered in enumerate(kernel.gathered)
    ]
    with np.errstate(all="ignore"):
        return np.asarray(kernel.reference(*columns))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate_kernel(route: Route, name: str, wide: bool) -> None:
    if wide and route.name == "arrow":
        pytest.skip("the Arrow route has no capacities")
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for rows in aggregate_groups(name, rng):
        expected = expected_aggregate(name, rows)
        got = route.aggregate(name, rows, None if wide else len(expected))
        assert_same(got, expected, f"{name}{rows}"[:400])


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate_skips_null_rows(route: Route, name: str) -> None:
    rng = np.random.default_rng(1)
    rows = next(rows for rows in aggregate_groups(name, rng) if len(rows) > 1)
    holed = [[None, *rows[0][1:]] if KERNELS[name].gathered[0] else rows[0], *rows[1:]]
    if KERNELS[name].gathered[0]:
        expected = expected_aggregate(name, rows[1:])
        assert_same(route.aggregate(name, holed, len(expected)), expected, name)
    assert route.aggregate(name, [], 8) is None
