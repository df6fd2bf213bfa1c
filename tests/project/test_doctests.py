"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest
from layers import modules

GENERATORS = Path(__file__).parents[1] / "random_programs"
MODULES = sorted(
    {*modules(), "layers", *(f"random_programs.{file.stem}" for file in GENERATORS.glob("*.py"))}
)


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    examples = [test for name in MODULES for test in finder.find(importlib.import_module(name))]
    assert sum(len(test.examples) for test in examples) > 20
