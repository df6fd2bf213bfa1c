"""Random programs against a second oracle, which shares neither code nor author's habits with
`ucle.testing`: it evaluates trees that the generator draws, and never parses the text that ucle
compiles. Inputs are handed over in every way that people have them.

`make fuzz` runs UCLE_FUZZ_PROGRAMS of them, ten times as many as of the other generator.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from comparing import assert_close, compiled, handed_over
from draw import Drawn, draw, written
from storage import WAYS

from ucle.testing.check_matrix import Routes, some_decompositions

PROGRAMS, BATCH = 120, 10
FUZZ = int(os.environ.get("UCLE_FUZZ_PROGRAMS", "0")) * 10


def check(drawn: Drawn, seed: int, routes: Routes, folder: Path) -> int:
    """Compare a program with NumPy on both routes and a few decompositions."""
    rng = np.random.default_rng([seed, 7])
    compared = 0
    with handed_over(drawn, rng, routes, folder) as inputs:
        outputs = list(drawn.expected) if rng.random() < 0.5 else None
        program = compiled(written(drawn.statements, rng), inputs, outputs, routes)
        if program is None:
            return 1
        others = ["relational", *some_decompositions(program, seed, 3)]
        ways = [None, others[int(rng.integers(len(others)))]]
        for way in ways:
            tried = program if way is None else program.with_decomposition(way)
            for route, connection in routes.items():
                with tried.execute(connection) as result:
                    assert set(result) <= set(drawn.expected)
                    for name in result:
                        context = (
                            f"seed {seed}, {route}, decomposition {way}, {name}\n{drawn}\n{inputs}"
                        )
                        assert_close(
                            result[name].to_numpy(), drawn.expected[name], drawn.kind, context
                        )
                        compared += 1
    return compared


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, PROGRAMS, BATCH))
def test_programs(start: int, routes: Routes, tmp_path: Path) -> None:
    for seed in range(start, start + BATCH):
        assert check(draw(seed), seed, routes, tmp_path)


@pytest.mark.fuzz
@pytest.mark.skipif(not FUZZ, reason="UCLE_FUZZ_PROGRAMS is not set")
@pytest.mark.parametrize("start", range(0, FUZZ, 100))
def test_many_programs(start: int, routes: Routes, tmp_path: Path) -> None:
    for seed in range(start, min(start + 100, FUZZ)):
        check(draw(10_000_000 + seed), seed, routes, tmp_path)


def test_the_generator_draws_everything() -> None:
    """Were it to lose a feature, the comparison would be green for the wrong reason."""
    drawn = [draw(seed) for seed in range(PROGRAMS)]
    text = "\n".join(written(x.statements, np.random.default_rng(0)) for x in drawn)
    for word in ("max=", "mean=", "count=", "+=", "any[", "prod[", "where(", "clip(", "log(", "**"):
        assert word in text, word
    arrays = [array for x in drawn for array in x.arrays.values()]
    assert {0, 1, 2, 3, 4, 7} == {size for array in arrays for size in array.shape}
    assert {array.dtype.kind for array in arrays} == set("fibc")
    assert any(fill not in (0, 1) for x in drawn for fill in x.fills.values())
    assert any(np.isnan(array).any() for array in arrays)
    assert len(WAYS) == 11
