"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

# The packages lie in folders of their own, so that walking ucle alone does not find them.
PACKAGES = ["ucle", "ucle.lazy", "ucle.sqlgen", "ucle.stats", "ucle.udf_kernels"]
MODULES = PACKAGES + sorted(
    f"{package}.{module.name}"
    for package in PACKAGES
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
    if module.name not in ("_kernels", "build_kernels")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    examples = [test for name in MODULES for test in finder.find(importlib.import_module(name))]
    assert sum(len(test.examples) for test in examples) > 20
