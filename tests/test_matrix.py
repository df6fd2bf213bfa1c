"""Programs x decompositions x routes, against NumPy.

Every decomposition of every vertex is a legal plan and must give the same tensor; so must either
route to the kernels, the optimiser's choice, and plain relational SQL. Programs come from a seeded
generator and from a list of classics. The long run has larger programs. A
failing seed can be studied with `random_case(seed)`.
"""

from __future__ import annotations

import os

import duckdb
import numpy as np
import pytest
from classics import TEXTS, classic

from ucle.testing.everywhere import Routes, check_everywhere
from ucle.testing.generate import random_case, special_case

RANDOM_PROGRAMS = 60
SPECIAL_PROGRAMS = 25
FUZZ_FROM = 1_000_000


@pytest.mark.parametrize("name", TEXTS)
def test_classics(name: str, routes: Routes) -> None:
    check_everywhere(classic(name), routes, seed=0)


@pytest.mark.parametrize("seed", range(RANDOM_PROGRAMS))
def test_random_programs(seed: int, routes: Routes) -> None:
    check_everywhere(random_case(seed), routes, seed)


@pytest.mark.parametrize("seed", range(SPECIAL_PROGRAMS))
def test_random_programs_of_special_values(seed: int, routes: Routes) -> None:
    check_everywhere(special_case(seed), routes, seed)


@pytest.mark.fuzz
@pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="UCLE_FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("seed", range(int(os.environ.get("UCLE_FUZZ_PROGRAMS", "1"))))
def test_more_random_programs(seed: int, routes: Routes) -> None:
    check_everywhere(random_case(FUZZ_FROM + seed, size=16), routes, seed)


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
