"""opt_einsum's tests of contractions, with ucle in the place of NumPy as its backend.

Contractions that a test does not optimise are its references, and stay NumPy's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import checked
import numpy as np
import opt_einsum
import pytest
import recorder
from opt_einsum.backends import dispatch

_reference: ContextVar[bool] = ContextVar("reference", default=False)


def einsum(*operands: Any, **keywords: Any) -> Any:
    """Replacement for `numpy.einsum` in opt_einsum."""
    if _reference.get():
        return checked.NUMPY_EINSUM(*operands, **keywords)
    return checked.einsum(*operands, **keywords)


def tensordot(x: Any, y: Any, axes: tuple[Sequence[int], Sequence[int]]) -> Any:
    """Replacement for `numpy.tensordot` in opt_einsum, by means of einsum."""
    left = list(range(np.ndim(x)))
    right = list(range(np.ndim(x), np.ndim(x) + np.ndim(y)))
    for one, other in zip(*axes, strict=True):
        right[other] = left[one]
    kept = [label for label in (*left, *right) if (label in left) != (label in right)]
    return einsum(x, left, y, right, kept)


def contract(*operands: Any, optimize: Any = True, **keywords: Any) -> Any:
    """`opt_einsum.contract`, which computes a reference by NumPy."""
    token = _reference.set(_reference.get() or optimize is False)
    try:
        return _contract(*operands, optimize=optimize, **keywords)
    finally:
        _reference.reset(token)


# Before the test modules are imported: they import the function.
_contract = opt_einsum.contract
opt_einsum.contract = contract
dispatch._cached_funcs["einsum", "numpy"] = einsum
dispatch._cached_funcs["tensordot", "numpy"] = tensordot
assert sys.modules["opt_einsum.contract"].backends.get_func("einsum", "numpy") is einsum


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    recorder.sample(items, more_than=500, step=8)
