"""Programs x decompositions x routes, against NumPy.

Every decomposition of every vertex is a legal plan and must give the same tensor; so must either
route to the kernels, the optimiser's choice, and plain relational SQL. Programs come from a seeded
generator and from a list of classics. The long run has larger programs. A
failing seed can be studied with `random_case(seed)`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import duckdb
import numpy as np
import pytest
from classics import TEXTS, classic
from random_programs.gathers import gathered_case
from random_programs.indices import indexed_case
from random_programs.levels import levelled_case

from ucle.foundation.dtypes import DType
from ucle.language.parse import parse_program
from ucle.language.syntax import accesses
from ucle.options import Optimisations
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import (
    ACCUMULATES,
    CALLS,
    CASTS,
    INFIX,
    Case,
    random_case,
    special_case,
)
from ucle.testing.oracle_operators import FOLDS

# Whatever differs between versions of DuckDB shows in fewer programs than what ucle can do wrong.
NEWEST = not duckdb.__version__.startswith("1.")
# fmt: off
RARE = (
    30, 33, 34, 38, 42, 46, 47, 56, 68, 69, 86, 91, 109, 120, 122, 127, 129, 168, 202, 209, 211,
    212, 228, 254, 278, 281,
)
# fmt: on
"""Seeds of programs that have what the first 30 lack, so that all of the language is drawn."""
RANDOM_PROGRAMS = (*range(30), *RARE)
RUN_PROGRAMS, SAMPLE = (RANDOM_PROGRAMS, 16) if NEWEST else (RANDOM_PROGRAMS[::4], 8)
SPECIAL_PROGRAMS = 16 if NEWEST else 8
LISTED_PROGRAMS = 8
FUZZ_FROM = 1_000_000
FUZZ_SAMPLE = 12


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", TEXTS)
def test_classics(name: str, routes: Routes) -> None:
    check_everywhere(classic(name), routes, seed=0, sample=24)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", RUN_PROGRAMS)
def test_random_programs(seed: int, routes: Routes) -> None:
    check_everywhere(random_case(seed), routes, seed, SAMPLE)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(SPECIAL_PROGRAMS))
def test_random_programs_of_special_values(seed: int, routes: Routes) -> None:
    check_everywhere(special_case(seed), routes, seed, SAMPLE)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(LISTED_PROGRAMS))
def test_tensors_that_cross_joins_take_as_lists(seed: int, routes: Routes) -> None:
    everything = Optimisations(references=0)  # tensors of small programs, too
    check_everywhere(random_case(seed), routes, seed, SAMPLE, everything)


@pytest.mark.fuzz
@pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="UCLE_FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("seed", range(int(os.environ.get("UCLE_FUZZ_PROGRAMS", "1"))))
def test_more_random_programs(seed: int, routes: Routes) -> None:
    size = 16 if seed % 4 == 0 else 8
    check_everywhere(random_case(FUZZ_FROM + seed, size), routes, seed, FUZZ_SAMPLE)


@pytest.mark.fuzz
@pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="UCLE_FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("draw", [levelled_case, indexed_case, gathered_case])
@pytest.mark.parametrize("seed", range(int(os.environ.get("UCLE_FUZZ_PROGRAMS", "1"))))
def test_more_programs_of_levels_and_labels(
    draw: Callable[[int], Case], seed: int, routes: Routes
) -> None:
    check_everywhere(draw(FUZZ_FROM + seed), routes, seed, 6)


def test_the_generator_covers_the_language() -> None:
    """Were the generator to lose a feature, the matrix would be green for the wrong reason."""
    cases = [random_case(seed) for seed in RANDOM_PROGRAMS]
    text = "\n".join(case.text for case in cases)
    for word in (*ACCUMULATES, *INFIX, "<<", ">>"):
        assert f" {word} " in text, word
    for name in (*CALLS, *CASTS, *FOLDS, "where", "clip", "when", "unless", "min", "max"):
        assert re.search(rf"\b{name}[\[(=]", text), name
    assert re.search(r"\bxor\(", text)
    assert re.search(r"< .* <=", text), "no chain of comparisons"
    arrays = [array for case in cases for array in case.arrays.values()]
    assert {array.ndim for array in arrays} == {0, 1, 2, 3, 4, 5}
    assert {array.dtype.name for array in arrays} == {dtype.value for dtype in DType}
    assert {size for array in arrays for size in array.shape} == {0, 1, 2, 3, 4, 5}
    densities = [np.count_nonzero(a) / a.size for a in arrays if a.size > 4]
    assert min(densities) == 0
    assert max(densities) == 1
    inputs = [value for case in cases for value in case.inputs.values()]
    kinds = {type(getattr(value, "relation", value)).__name__ for value in inputs}
    assert kinds >= {"ndarray", "str", "coo_array", "Table", "DataFrame"}
    fills = {getattr(value, "fill", 0) for value in inputs}
    assert len(fills) >= 5
    shared = [
        a.tensor for c in cases for s in parse_program(c.text) for a in accesses(s.expression)
    ]
    assert len(shared) > sum(len(case.arrays) for case in cases)


def test_special_programs_are_special() -> None:
    cases = [special_case(seed) for seed in range(SPECIAL_PROGRAMS)]
    values = np.concatenate(
        [a.ravel() for c in cases for a in c.arrays.values() if a.dtype.kind == "f"]
    )
    assert np.isnan(values).any()
    assert np.isposinf(values).any()
    assert np.isneginf(values).any()


def test_the_compiler_is_deterministic() -> None:
    case = random_case(7)
    with duckdb.connect() as connection:
        case.create_tables(connection)
        assert case.compile(connection).to_sql() == case.compile(connection).to_sql()
