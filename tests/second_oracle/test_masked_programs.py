"""Masks change no answer, whatever is behind them: random programs against the second oracle.

`make fuzz` runs UCLE_FUZZ_PROGRAMS of them, ten times as many as of the other generator.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import assert_close, compiled, handed_over
from draw import Drawn, written
from masked import draw_masked

from ucle.options import Optimisations
from ucle.program import EinsumProgram
from ucle.testing.check_matrix import Routes, recompiled, some_decompositions

PROGRAMS, BATCH = 40, 10
FUZZ = int(os.environ.get("UCLE_FUZZ_PROGRAMS", "0")) * 10
ALWAYS = Optimisations(mask_gain=-math.inf, mask_share=0.7)
"""Masks are passed down wherever they may be, however little that gains."""


def check(drawn: Drawn, seed: int, routes: Routes, folder: Path) -> int:
    """Compare a program with NumPy on both routes; how many masks were passed down."""
    rng = np.random.default_rng([seed, 11])
    with handed_over(drawn, rng, routes, folder) as inputs:
        outputs = None if rng.random() < 0.5 else [drawn.statements[-1][0]]
        program = compiled(written(drawn.statements, rng), inputs, outputs, routes)
        if program is None:
            return 0
        program = recompiled(program, ALWAYS)
        others: list[Any] = ["relational", *some_decompositions(program, seed, 3)]
        other = others[int(rng.integers(len(others)))]
        runs = [(route, None) for route in routes]
        runs.append((str(rng.choice(list(routes))), other))
        for route, way in runs:
            tried = program if way is None else program.with_decomposition(way)
            with tried.execute(routes[route]) as result:
                for name in result:
                    context = f"seed {seed}, {route}, {way}, {name}\n{drawn}\n{inputs}"
                    expected = drawn.expected[name]
                    assert_close(result[name].to_numpy(), expected, drawn.kind, context)
    return len(masks(program))


def masks(program: EinsumProgram) -> tuple[str, ...]:
    pushed = program.compiled.front.lowering.rewrite("masks")
    return () if pushed is None else pushed.lines


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, PROGRAMS, BATCH))
def test_programs(start: int, routes: Routes, tmp_path: Path) -> None:
    passed = [check(draw_masked(x), x, routes, tmp_path) for x in range(start, start + BATCH)]
    assert sum(map(bool, passed)) >= BATCH / 4


@pytest.mark.fuzz
@pytest.mark.skipif(not FUZZ, reason="UCLE_FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("start", range(0, FUZZ, 100))
def test_many_programs(start: int, routes: Routes, tmp_path: Path) -> None:
    for seed in range(start, min(start + 100, FUZZ)):
        check(draw_masked(10_000_000 + seed), seed, routes, tmp_path)
