"""Vertices too small for any limit are not looked at further: all their decompositions fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from costed_programs import random_program

from ucle.optimiser import limits
from ucle.plan.prices import ENGINE
from ucle.plan.resources import Resources


@pytest.mark.parametrize("copies", [False, True])
def test_all_that_small_vertices_may_do_fits(copies: bool) -> None:
    small = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        costed = random_program(seed, ENGINE, vertices=(1, 3))
        memory = float(10 ** rng.uniform(4, 10))
        resources = Resources(memory, threads=int(rng.choice([1, 2, 8])), copies=copies)
        profile = replace(ENGINE, kernel_bytes=10 ** rng.uniform(3, 8))
        costed = replace(costed, resources=resources, profile=profile)
        for vertex in costed.program.vertices:
            if limits.is_small(costed, vertex):
                small += 1
                for each in costed.decompositions(vertex):
                    assert limits.fits(costed, vertex, each), (seed, str(vertex), each)
    assert small > 100
