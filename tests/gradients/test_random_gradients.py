"""Gradients of random programs against differences of what the oracle says, along a direction."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import pytest
from random_programs.gathers import gathered_case
from random_programs.indices import indexed_case
from random_programs.slopes import Smooth

from ucle.errors import UnsupportedError
from ucle.testing.check_matrix import Routes, some_decompositions
from ucle.testing.generate import Case, random_case
from ucle.testing.oracle_operators import UndefinedError

DRAWS: dict[str, Callable[[int], Case]] = {
    "expressions": random_case,
    "labels": indexed_case,
    "indices": gathered_case,
}
FEW = 40
"""Seeds of each kind; of about a third a gradient can be told by differences."""


def check(draw: str, seed: int, routes: Routes) -> bool:
    """Compare the gradients of a case; False if there was nothing to compare."""
    case = DRAWS[draw](seed)
    try:
        smooth = Smooth(case, seed)
    except (UndefinedError, ValueError):
        return False
    if not smooth.there or not smooth.finite or re.search("cum(prod|max|min)", case.text):
        return False
    expected = smooth.slope()
    if expected is None:
        return False
    try:
        gradient = smooth.gradient(routes["native"])
    except UnsupportedError as error:
        if "real numbers" not in str(error):  # some part of it is complex
            raise
        return False
    ways: list[Any] = ["auto", "relational", *some_decompositions(gradient, seed, 2)]
    for n, way in enumerate(ways):
        program = gradient if way == "auto" else gradient.with_decomposition(way)
        found = smooth.along(program, routes[("native", "arrow")[n % 2]])
        assert abs(found - expected) <= 3e-5 * (smooth.scale + abs(expected)), (
            f"{found} and not {expected}, seed {seed}, decomposition {way}\n{smooth.text}"
        )
    return True


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWS)
def test_random_programs(draw: str, routes: Routes) -> None:
    assert sum(check(draw, seed, routes) for seed in range(FEW)) >= FEW // 8


@pytest.mark.fuzz
@pytest.mark.skipif("UCLE_FUZZ_PROGRAMS" not in os.environ, reason="`make fuzz` runs it")
@pytest.mark.parametrize("draw", DRAWS)
def test_many_random_programs(draw: str, routes: Routes) -> None:
    for seed in range(FEW, FEW + int(os.environ["UCLE_FUZZ_PROGRAMS"])):
        check(draw, seed, routes)
