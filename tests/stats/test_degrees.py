"""Degrees and the chain bound: never below the truth, and as tight as others make it."""

from __future__ import annotations

import math
import os
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ucle.foundation.dtypes import differs_from
from ucle.ir.layouts import Layout
from ucle.stats.degrees import Degrees, both, either
from ucle.testing.generate import random_case

I, J, K, L = 1, 2, 4, 8  # noqa: E741
EDGE = {(0, I | J): 50.0, (I, I | J): 5.0, (J, I | J): 5.0}
TRIANGLE = {
    **EDGE,
    (0, J | K): 50.0,
    (J, J | K): 5.0,
    (K, J | K): 5.0,
    (0, I | K): 50.0,
    (I, I | K): 5.0,
    (K, I | K): 5.0,
}
SMALL = {**TRIANGLE, (0, I | J): 1.0, (I, I | J): 1.0, (J, I | J): 1.0}
THOUSAND = (1000.0,) * 4

# What Finch.jl's tests of Galley's degree statistics expect (test/suites/galley_tests.jl).


@pytest.mark.parametrize(
    ("rank", "constraints", "kept", "expected"),
    [
        (2, {(0, I | J): 50.0}, "ij", 50),
        (3, {(0, I | J): 50.0, (J, J | K): 5.0}, "ijk", 250),
        (4, {(0, I | J): 50.0, (J, J | K): 5.0, (K, K | L): 5.0}, "ijkl", 1250),
        (3, TRIANGLE, "ijk", 250),
        (3, SMALL, "ijk", 5),
        (3, TRIANGLE, "", 1),
        (3, SMALL, "k", 5),
        (3, SMALL, "jk", 5),
    ],
)
def test_bounds_of_products(rank: int, constraints: Any, kept: str, expected: float) -> None:
    degrees = Degrees(THOUSAND[:rank], constraints)
    projected = degrees.project_axes(["ijkl".index(name) for name in kept])
    assert projected.most((1 << len(kept)) - 1) == expected


def entries(sizes: tuple[float, ...], most: float) -> Degrees:
    """A tensor of which only the number of entries is known."""
    return Degrees.from_counts(sizes, most, ())


def test_bounds_of_sums() -> None:
    one = (1000.0,)
    assert either(entries(one, 1), entries(one, 1)).most(I) == 2
    two = (1000.0, 100.0)
    assert either(entries(two, 1), entries(two, 1)).most(I | J) == 2
    first, second = entries((1000.0,), 5).on(two, [0]), entries((100.0,), 10).on(two, [1])
    assert either(first, second).most(I | J) == 10 * 1000 + 5 * 100
    three = (1000.0, 100.0, 1000.0)
    first = entries((1000.0, 100.0), 5).on(three, [0, 1])
    second = entries((100.0, 1000.0), 10).on(three, [1, 2])
    third = entries(three, 10)
    assert either(first, second).most(I | J | K) == 10 * 1000 + 5 * 1000
    assert both(either(first, second), third).most(I | J | K) == 10


# ---- Against relations ----

Relation = set[tuple[int, ...]]


def degrees_of(relation: Relation, sizes: tuple[int, ...]) -> Degrees:
    rank = len(sizes)
    distinct = [len({row[axis] for row in relation}) for axis in range(rank)]
    largest = [
        max((sum(row[axis] == x for row in relation) for x in range(sizes[axis])), default=0)
        for axis in range(rank)
    ]
    return Degrees.from_counts(tuple(map(float, sizes)), len(relation), distinct, largest)


def truth(relation: Relation, wanted: int, given: int) -> int:
    """The most coordinates along some axes that agree on others."""
    rank = max((len(row) for row in relation), default=0)

    def picked(row: tuple[int, ...], axes: int) -> tuple[int, ...]:
        return tuple(row[axis] for axis in range(rank) if axes >> axis & 1)

    found: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for row in relation:
        found.setdefault(picked(row, given), set()).add(picked(row, wanted))
    return max((len(rows) for rows in found.values()), default=0)


def assert_bounds(degrees: Degrees, relation: Relation, rank: int) -> None:
    for wanted, known in product(range(1 << rank), repeat=2):
        assert degrees.most(wanted, known) >= truth(relation, wanted, known)


@st.composite
def relations(draw: st.DrawFn, sizes: tuple[int, ...]) -> Relation:
    cells = list(product(*map(range, sizes)))
    return set(draw(st.lists(st.sampled_from(cells), max_size=12)))


SIZES = (3, 4, 2)


@given(relations((3, 4)), relations((4, 2)), st.sampled_from([(0, 1, 2), (2, 0), (1,), ()]))
def test_joins_sums_and_projections(left: Relation, right: Relation, kept: tuple[int, ...]) -> None:
    sizes = tuple(map(float, SIZES))
    sides = degrees_of(left, (3, 4)).on(sizes, (0, 1)), degrees_of(right, (4, 2)).on(sizes, (1, 2))
    cells = list(product(*map(range, SIZES)))
    joined = {x for x in cells if x[:2] in left and x[1:] in right}
    summed = {x for x in cells if x[:2] in left or x[1:] in right}
    for degrees, relation in ((both(*sides), joined), (either(*sides), summed)):
        assert_bounds(degrees, relation, 3)
        projected = {tuple(x[axis] for axis in kept) for x in relation}
        assert_bounds(degrees.project_axes(kept), projected, len(kept))


@given(relations((3, 3)))
def test_diagonals(relation: Relation) -> None:
    diagonal = {(x,) for x, y in relation if x == y}
    assert_bounds(degrees_of(relation, (3, 3)).on((3.0,), (0, 0)), diagonal, 1)


@given(st.integers(0, 2**32))
def test_paths_of_many_axes_are_bounds_too(seed: int) -> None:
    """Beyond the axes for which all paths are looked at, no path says less than the cheapest."""
    rng = np.random.default_rng(seed)
    found = {}
    for _ in range(int(rng.integers(1, 12))):
        known, more = rng.integers(0, 1 << 6, 2)
        found[int(known), int(known | more)] = float(rng.integers(1, 50))
    few, many = Degrees((9.0,) * 6, found), Degrees((9.0,) * 12, found)
    for wanted in rng.integers(0, 1 << 6, 5):
        assert many.most(int(wanted)) >= few.most(int(wanted))


# ---- Programs ----

FUZZ = int(os.environ.get("UCLE_FUZZ_PROGRAMS", "0"))


def check_program(seed: int, connection: duckdb.DuckDBPyConnection) -> int:
    """No output has more tuples with an entry, in any layout, than its bound; how many have one."""
    case = random_case(seed)
    case.create_tables(connection)
    try:
        program = case.compile(connection)
        statistics, types = program.compiled.statistics, program.compiled.program.types
        with program.execute(connection) as result:
            found = {name: result[name].to_numpy() for name in result}
    finally:
        case.drop_tables(connection)
    bounded = 0
    for name, array in found.items():
        stored = differs_from(array, types[name].fill)
        axes = range(array.ndim)
        for promoted in product([False, True], repeat=array.ndim):
            others = tuple(axis for axis in axes if not promoted[axis])
            truth = int(np.count_nonzero(stored.any(axis=others)))
            rows = statistics.rows(name, Layout.of(promoted))
            assert truth <= rows.high * (1 + 1e-9), f"seed {seed}, {name}, {promoted}\n{case}"
            bounded += rows.high < math.prod(
                n for n, on in zip(array.shape, promoted, strict=True) if on
            )
    return bounded


@pytest.mark.slow
def test_no_program_has_more_entries_than_its_bound(plain: duckdb.DuckDBPyConnection) -> None:
    assert sum(check_program(seed, plain) for seed in range(60)) > 20


@pytest.mark.fuzz
@pytest.mark.skipif(not FUZZ, reason="UCLE_FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("start", range(0, FUZZ, 100))
def test_no_program_of_many_does(start: int, plain: duckdb.DuckDBPyConnection) -> None:
    for seed in range(start, min(start + 100, FUZZ)):
        check_program(20_000_000 + seed, plain)
