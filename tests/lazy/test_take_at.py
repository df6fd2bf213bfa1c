"""Lazy tensors at the entries of others: `take` with indices that are lazy, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ucle
from ucle.errors import ArgumentTypeError, LabelError, PositionError

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
