"""Random programs for the runner of mutations: many, each in few ways.

`tests/whole_programs/test_matrix.py` runs fewer programs in more ways.
"""

from __future__ import annotations

import pytest

from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import random_case

FIRST = 7000
PROGRAMS = 150
DECOMPOSITIONS = 3


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + PROGRAMS))
def test_random_programs(seed: int, routes: Routes) -> None:
    check_everywhere(random_case(seed, size=5), routes, seed, sample=DECOMPOSITIONS)
