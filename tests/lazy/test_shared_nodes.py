"""Nodes of lazy tensors that compute the same are computed once, and no others."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd

import ucle
from ucle.lazy.compute import program_of


def lines(*tensors: ucle.Tensor) -> list[str]:
    named = {f"out{n}": tensor.lazy for n, tensor in enumerate(tensors)}
    return str(program_of(named)).splitlines()


def test_functions_of_one_window_count_its_entries_once() -> None:
    x = ucle.array(np.arange(12.0).reshape(6, 2), axes=("t", "k"))
    windows = ucle.rolling(x, 3, "t", where=x > 2, min_periods=2)
    program = lines((x - windows.mean()) / windows.std())
    assert sum("int64(" in line for line in program) == 1
    assert len(program) < len(lines(windows.mean())) + len(lines(windows.std()))


def test_windows_together_are_those_of_pandas(connection: duckdb.DuckDBPyConnection) -> None:
    values = np.random.default_rng(3).normal(size=(40, 3))
    x = ucle.array(values, axes=("t", "k"))
    last = ucle.rolling(x, 7, "t", min_periods=4)
    windows = pd.DataFrame(values).rolling(7, min_periods=4)
    score = (x - last.mean()) / last.std()
    found = ucle.compute(last.mean(), last.std(), score, database=connection)
    mean, std, apart = (tensor.to_numpy() for tensor in found)
    np.testing.assert_allclose(mean, windows.mean())
    np.testing.assert_allclose(std, windows.std())
    np.testing.assert_array_equal(apart, (values - mean) / std)


def test_equal_numbers_of_other_types_and_signs_are_not_the_same() -> None:
    x = ucle.array([1, 2], axes=("i",))
    whole, real = ucle.compute(x * 2, x * 2.0)
    assert whole.to_numpy().dtype == np.int64
    assert real.to_numpy().dtype == np.float64
    y = ucle.array([1.0, 2.0], axes=("i",))
    assert len(lines(y * 0.0 + y * -0.0)) == len(lines(y * 2.0 + y * 3.0))


def test_labels_in_other_places_are_not_the_same() -> None:
    values = np.arange(4.0).reshape(2, 2)
    x = ucle.array(values)
    found = ucle.compute(x - x.T, x - x, x.sum(axis=0) - x.sum(axis=1), x.cumsum(0) - x.cumsum(1))
    expected = (
        values - values.T,
        values - values,
        values.sum(0) - values.sum(1),
        values.cumsum(0) - values.cumsum(1),
    )
    for tensor, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(tensor.to_numpy(), wanted)


def test_gradients_are_by_one_object_and_not_by_what_computes_the_same() -> None:
    x = ucle.array([1.0, 2.0, 3.0])
    one, other = x * 2, x * 2
    loss = (one * other * other).sum()
    by_one, by_other = ucle.grad(loss, [one, other])
    np.testing.assert_array_equal(by_one.to_numpy(), [4.0, 16.0, 36.0])
    np.testing.assert_array_equal(by_other.to_numpy(), [8.0, 32.0, 72.0])
    both = ucle.compute(by_one, by_other, one - other)
    assert [tensor.to_numpy().tolist() for tensor in both] == [[4, 16, 36], [8, 32, 72], [0] * 3]


def test_a_gradient_taken_twice_is_computed_once() -> None:
    x = ucle.array([1.0, 2.0, 3.0])
    loss = (x * x * x).sum()
    assert len(lines(ucle.grad(loss, x) + ucle.grad(loss, x))) == len(lines(ucle.grad(loss, x) * 2))


def test_numbers_of_chance_are_those_of_their_seeds() -> None:
    one, other, again = (ucle.random.normal(seed=seed, shape=(5,)) for seed in (1, 2, 1))
    apart, same = ucle.compute(one - other, one - again)
    assert apart.to_numpy().all()
    assert not same.to_numpy().any()
