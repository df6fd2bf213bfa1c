"""Lazy tensors at the entries of others: `take` with indices that are lazy, too."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ucle
from ucle.errors import (
    ArgumentTypeError,
    LabelError,
    PositionError,
    UcleError,
)

RNG = np.random.default_rng(3)
SHAPES = [(5,), (5, 3), (2, 4, 3), (1,), (1, 3), (4, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("picked", [(3,), (2, 3), (1,), (), (0,)])
@pytest.mark.parametrize("dtype", ["float64", "int64", "bool", "complex128"])
def test_like_numpy(shape: tuple[int, ...], picked: tuple[int, ...], dtype: str) -> None:
    x: Any = RNG.integers(-3, 4, size=shape).astype(dtype)
    for axis in range(len(shape)):
        indices = np.asarray(RNG.integers(0, shape[axis], size=picked))
        found = ucle.take(x, ucle.array(indices), axis)
        expected = np.take(x, indices, axis)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found.to_numpy(), expected)
        assert found.to_numpy().dtype == expected.dtype


def test_in_expressions() -> None:
    """Indices that are computed, tensors that are, and gradients of neither: a part of a whole."""
    W, words = RNG.random((6, 4)), np.array([[0, 5, 2], [1, 1, 3]])
    lazy, indices = ucle.array(W), ucle.array(words)
    found = (ucle.exp(lazy)[indices] * 2).sum(axis=1)
    np.testing.assert_allclose(found.to_numpy(), 2 * np.exp(W)[words].sum(axis=1))
    np.testing.assert_array_equal(lazy[(indices + 1) - 1].to_numpy(), W[words])
    np.testing.assert_array_equal(lazy[indices][0].to_numpy(), W[words][0])


def test_named_axes() -> None:
    W, words = RNG.random((6, 4)), np.array([0, 5, 2])
    lazy = ucle.array(W, axes=("token", "feature"))
    found = lazy.take(ucle.array(words, axes=("place",)), "token")
    assert found.axes == ("place", "feature")
    np.testing.assert_array_equal(found.to_numpy(), W[words])
    with pytest.raises(LabelError):
        lazy.take(ucle.array(words, axes=("feature",)), "token")
    with pytest.raises(LabelError):
        lazy.take(ucle.array(words), "token")


@pytest.mark.parametrize("bad", [-1, 5])
def test_outside(bad: int) -> None:
    with pytest.raises(PositionError, match=f"at {bad}"):
        ucle.array(RNG.random(5))[ucle.array([0, bad])].to_numpy()


def test_not_integers() -> None:
    with pytest.raises(ArgumentTypeError, match="a tensor of integers"):
        ucle.array(RNG.random(5))[ucle.array([0.0, 1.0])]


@pytest.mark.parametrize("axis", range(3))
def test_among_slices(axis: int) -> None:
    x = RNG.random((4, 3, 5))
    indices = RNG.integers(0, x.shape[axis], size=(2, 6))
    lazy, at = ucle.array(x), ucle.array(indices)
    before, after = (slice(None),) * axis, (slice(None),) * (2 - axis)
    keys: list[Any] = [(*before, None), (*before, at, ...), (..., at, *after), (None, ..., at)]
    keys += [(*before, at, *after), (*before, at, None, *after), (None, *before, at)]
    keys += [(*[slice(1, None)] * axis, at, *[slice(2)] * (2 - axis)), (..., at, *after, None)]
    for key in keys:
        expected = x[tuple(indices if part is at else part for part in key)]
        np.testing.assert_array_equal(lazy[key].to_numpy(), expected)


SALES = pd.DataFrame({
    "shop": ["a", "a", "b"],
    "day": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-02"]),
    "v": [1.0, 2.0, 3.0],
})  # fmt: skip
DAYS = ("UnsupportedError axis 'day'", "TIMESTAMP", "t.sel(day=[...])", "BETWEEN")
PLACES: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "slice": (lambda x: x[:, 0:2], (*DAYS, "positions 0, 1")),
    "slice behind another": (lambda x: x[:, 0:2] + 0 * x.rename({"day": "d"}), DAYS),
    "position": (lambda x: x[:, 0], DAYS),
    "list": (lambda x: x[:, [1, 0]], (*DAYS, "positions 1, 0")),
    "take": (lambda x: x.take([0], axis="day"), DAYS),
    "names": (lambda x: x[0], ("axis 'shop'", "VARCHAR", "t.sel(shop=[...])")),
    "without names": (lambda x: x.unnamed()[:, 0], ("axis 1", "t.sel({1: [...]})")),
    "from the end": (lambda x: x[:, -1], ("bounds=[", "t.sel(day=[coordinate, ...])")),
    "slice from the end": (lambda x: x[:, -1:], ("bounds=[", "t.sel(day=[coordinate, ...])")),
    "name": (lambda x: x["a"], ("t.sel(shop='a')",)),
    "name of the last": (lambda x: x[..., "2024-01-02"], ("t.sel(day='2024-01-02')",)),
    "date": (lambda x: x[:, datetime.date(2024, 1, 2)], ("t.sel(day=datetime.date(2024, 1, 2))",)),
    "tensors": (lambda x: x[x.argmax("day"), x.argmax("shop")], ("t.take(positions, axis)",)),
    "entries": (lambda x: x[:, x.sum("shop").argmax("day")], ("LabelError", "numbers")),
    "dictionary": (
        lambda x: ucle.tensor(ucle.table(SALES, {"shop": "shop", "d": "day"}, "v",
                                         coordinates={"shop": "shops"}))[0],
        ("t.sel(shop=[coordinate, ...])",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PLACES)
def test_positions_along_coordinates(case: str) -> None:
    """The message names the axis of the tensor, and says how it is selected."""
    act, texts = PLACES[case]
    with pytest.raises(UcleError) as caught:
        act(ucle.tensor(SALES, axes=("shop", "day"))).to_numpy()
    message = f"{type(caught.value).__name__} {caught.value}"
    for text in texts:
        assert text in message
    assert "picked" not in message


@pytest.mark.parametrize("kind", [pd.Timestamp, np.datetime64, datetime.datetime.fromisoformat])
def test_days_of_every_library(kind: Callable[[str], Any]) -> None:
    sales = ucle.tensor(SALES, axes=("shop", "day"))
    days = [kind("2024-01-02"), kind("2024-01-01")]
    np.testing.assert_array_equal(sales.sel(day=days[0]).to_numpy(), [2.0, 3.0])
    np.testing.assert_array_equal(sales.sel(day=days).to_numpy(), [[1.0, 2.0], [0.0, 3.0]])
