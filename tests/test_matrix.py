"""Programs x decompositions x routes, against NumPy.

Every decomposition of every vertex is a legal plan and must give the same tensor; so must either
route to the kernels, the optimiser's choice, and plain relational SQL. Programs come from a seeded
generator and from a list of classics. The long run has
larger programs. A failing seed can be studied with `random_case(seed)`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pytest
from classics import TEXTS, classic
from generate import Case, random_case
from oracle import assert_equal

from ucle.costed import decompositions

ALL_UP_TO = 64
SAMPLE = 24
RANDOM_PROGRAMS = 60
FUZZ_FROM = 1_000_000


def some_decompositions(program: Any, seed: int) -> Iterator[dict[str, frozenset[str]]]:
    """Every decomposition of a compiled program, or a sample where there are too many."""
    vertices = program.compiled.program.vertices
    choices = [list(decompositions(vertex)) for vertex in vertices]
    if math.prod(map(len, choices)) <= ALL_UP_TO:
        picked = list(product(*choices))
    else:
        rng = np.random.default_rng(seed)
        picked = [tuple(c[0] for c in choices), tuple(c[-1] for c in choices)]
        picked += [
            tuple(c[rng.integers(len(c))] for c in choices) for _ in range(SAMPLE - len(picked))
        ]
    for choice in picked:
        yield {vertex.name: promoted for vertex, promoted in zip(vertices, choice, strict=True)}


def check_everywhere(
    case: Case, native: duckdb.DuckDBPyConnection, plain: duckdb.DuckDBPyConnection, seed: int
) -> None:
    """The case gives the oracle's answer in every way there is to run it."""
    expected = case.expected()
    connections = {"native": native, "arrow": plain}
    for connection in connections.values():
        case.create_tables(connection)
    try:
        chosen = case.compile(native)
        ways: list[Any] = ["auto", "relational", *some_decompositions(chosen, seed)]
        for way in ways:
            program = chosen if way == "auto" else case.compile(native, decomposition=way)
            for route, connection in connections.items():
                with program.execute(connection) as result:
                    assert tuple(result) == program.outputs
                    for name in result:
                        context = f"{route}, decomposition {way}, tensor {name}\n{case}"
                        assert_equal(result[name].to_numpy(), expected[name], context)
    finally:
        for connection in connections.values():
            case.drop_tables(connection)


@pytest.mark.parametrize("name", TEXTS)
def test_classics(
    name: str, native: duckdb.DuckDBPyConnection, plain: duckdb.DuckDBPyConnection
) -> None:
    check_everywhere(classic(name), native, plain, seed=0)


@pytest.mark.parametrize("seed", range(RANDOM_PROGRAMS))
def test_random_programs(
    seed: int, native: duckdb.DuckDBPyConnection, plain: duckdb.DuckDBPyConnection
) -> None:
    check_everywhere(random_case(seed), native, plain, seed)


@pytest.mark.fuzz
@pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="UCLE_FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("seed", range(int(os.environ.get("UCLE_FUZZ_PROGRAMS", "1"))))
def test_more_random_programs(
    seed: int, native: duckdb.DuckDBPyConnection, plain: duckdb.DuckDBPyConnection
) -> None:
    check_everywhere(random_case(FUZZ_FROM + seed, size=16), native, plain, seed)


def test_the_generator_covers_the_language() -> None:
    """Were the generator to lose a feature, the matrix would be green for the wrong reason."""
    cases = [random_case(seed) for seed in range(RANDOM_PROGRAMS)]
    text = "\n".join(case.text for case in cases)
    for word in ("+=", " = ", "+ ", "- ", " * ", "/ ", "^", "relu", "sigmoid", "exp", "log", "abs"):
        assert word in text, word
    arrays = [array for case in cases for array in case.arrays.values()]
    assert {array.ndim for array in arrays} == {0, 1, 2, 3, 4}
    assert {size for array in arrays for size in array.shape} == {0, 1, 2, 3, 4, 5}
    densities = [np.count_nonzero(a) / a.size for a in arrays if a.size > 4]
    assert min(densities) == 0
    assert max(densities) == 1
    kinds = {type(getattr(v, "relation", v)).__name__ for c in cases for v in c.inputs.values()}
    assert kinds >= {"ndarray", "str", "coo_array", "Table", "DataFrame"}


def test_the_compiler_is_deterministic() -> None:
    case = random_case(7)
    with duckdb.connect() as connection:
        case.create_tables(connection)
        assert case.compile(connection).to_sql() == case.compile(connection).to_sql()
