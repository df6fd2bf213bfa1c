"""Facts about arrays in memory: block by block, in whatever order their elements lie."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ucle.foundation.dtypes import DType, differs_from
from ucle.stats import model

LAID_OUT: dict[str, Callable[[Any], Any]] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: x[::-1],
    "turned": lambda x: np.moveaxis(x, 0, -1),
}


def facts(array: Any, fill: Any) -> tuple[Any, ...]:
    """The facts, by the whole array at once."""
    stored = differs_from(array, fill)
    entries = array[stored]
    places = np.nonzero(stored)
    distinct = tuple(float(len(np.unique(x))) for x in places)
    finite = bool(np.isfinite(entries).all())
    bounded = finite and entries.size and entries.dtype.kind != "c"
    ends = (entries.min().item(), entries.max().item()) if bounded else None
    return float(entries.size), distinct, finite or not entries.size, ends


@pytest.mark.parametrize("way", LAID_OUT)
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("block", [4, 7, 1000])
def test_facts(
    way: str, dtype: str, seed: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "BLOCK", block)
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 3, (5, 1, 6) if seed % 2 else (3, 11)).astype(dtype)
    if array.dtype.kind in "fc":
        array[array == 2] = rng.choice([np.nan, np.inf, -np.inf, 5, -0.0][: 1 + seed])
    array = LAID_OUT[way](array)
    fill = array.dtype.type(rng.choice([0, 1, 7])).item()
    statistics, values = model.array_facts(array, fill, DType(dtype))
    entries, distinct, finite, ends = facts(array, fill)
    assert (statistics.entries, statistics.distinct) == (entries, distinct)
    assert statistics == model.array_statistics(array, fill)
    assert values.finite == finite
    if ends is not None:
        assert (values.low, values.high) == ends
    if not finite:
        assert not math.isfinite(values.low or math.inf)


def test_no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is a view, but of arrays whose elements lie anyhow and that fit into one."""
    monkeypatch.setattr(model, "BLOCK", 8)
    array = np.arange(600.0).reshape(20, 5, 6)
    for way, arrange in LAID_OUT.items():
        given = arrange(array)
        blocks = list(model._blocks(given))
        assert sum(x.size for x in blocks) == given.size, way
        assert all(np.shares_memory(x, given) for x in blocks), way
