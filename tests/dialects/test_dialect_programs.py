"""Random programs on other engines, against NumPy."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cache

import pytest
from sql_engines import SqlEngine, check

from ucle.testing.generate import random_case

PROGRAMS = 60


@cache
def drawn() -> list[int]:
    """Seeds of programs whose inputs are not complex; the programs are only made to be run."""
    seeds: list[int] = []
    for seed in itertools.count():
        if len(seeds) == PROGRAMS:
            return seeds
        kinds = {array.dtype.kind for array in random_case(seed).arrays.values()}
        if "c" not in kinds:
            seeds.append(seed)
    raise AssertionError("there is no end of seeds")


@pytest.fixture(scope="session")
def outcomes() -> dict[str, Counter[str]]:
    return {}


@pytest.mark.sample(None)
@pytest.mark.parametrize("number", range(PROGRAMS))
def test_random_programs(number: int, engine: SqlEngine, outcomes: dict[str, Counter[str]]) -> None:
    outcome = check(engine, random_case(drawn()[number]))
    outcomes.setdefault(engine.name, Counter())[outcome] += 1


def test_most_random_programs_run(engine: SqlEngine, outcomes: dict[str, Counter[str]]) -> None:
    seen = outcomes.get(engine.name, Counter())
    if seen.total() < PROGRAMS:
        pytest.skip("not all programs of this engine have run in this process")
    assert seen["ran"] >= PROGRAMS / 2, seen
