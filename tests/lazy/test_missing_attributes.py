"""Attributes that users of NumPy, pandas and xarray look for on tensors."""

from __future__ import annotations

import copy
import re

import pytest

import ucle
from ucle.lazy.other_names import HINTS, find_hint

TENSOR = ucle.array([[1.0, 2.0], [3.0, 4.0]], axes=("day", "shop"))


@pytest.mark.parametrize("name", [*HINTS, "diff", "argsort", "median", "round"])
def test_hints(name: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"{name!r}; write ")) as raised:
        getattr(TENSOR, name)
    assert raised.value.name == name


@pytest.mark.parametrize("name", HINTS)
def test_hints_name_what_exists(name: str) -> None:
    assert not hasattr(ucle.Tensor, name)
    hint = find_hint(name) or ""
    methods = re.findall(r"\bx\.(\w+)", hint)
    assert all(hasattr(ucle.Tensor, method) for method in methods), methods
    assert all(hasattr(ucle, function) for function in re.findall(r"\bucle\.(\w+)", hint))


def test_other_attributes() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'sums'$"):
        TENSOR.sums  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(TENSOR, "__array_interface__")
    assert copy.copy(TENSOR).axes == TENSOR.axes
