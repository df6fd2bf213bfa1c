"""Lazy tensors whose entries go to other places, against NumPy's functions of the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ucle
from ucle.errors import (
    ArgumentTypeError,
    AxisError,
    BoundError,
    LabelError,
    UcleError,
    UnsupportedError,
)
from ucle.language.parse import parse_program
from ucle.testing.random_inputs import random_array

RNG = np.random.default_rng(7)
ARRAYS = {
    "vector": random_array(RNG, (7,), 0.7),
    "matrix": random_array(RNG, (5, 6), 0.6),
    "cube": random_array(RNG, (2, 3, 4), 0.7),
    "long": random_array(RNG, (1, 5), 0.8),
    "tall": random_array(RNG, (4, 1), 0.8, "float32"),
    "one": random_array(RNG, (1,), 1.0),
    "none": np.zeros((0,)),
    "empty": np.zeros((0, 3)),
    "integers": random_array(RNG, (4, 4), 0.6, "int64"),
    "truths": random_array(RNG, (3, 4), 0.5, "bool"),
    "complexes": random_array(RNG, (3, 3), 0.6, "complex128"),
}


def _shift(x: Any, by: int, axis: int, fill: Any) -> Any:
    if isinstance(x, ucle.Tensor):
        return ucle.shift(x, by, axis, fill)
    moved = np.roll(x, by, axis)
    at = np.arange(x.shape[axis]) - by
    outside = (at < 0) | (at >= x.shape[axis])
    shape = [-1 if n == axis % x.ndim else 1 for n in range(x.ndim)]
    return np.where(outside.reshape(shape), np.asarray(fill).astype(x.dtype), moved)


def _running(x: Any, function: np.ufunc, name: str) -> Any:
    if x.dtype.kind == "c":
        raise TypeError("of complex numbers NumPy compares the parts")
    return getattr(ucle, name)(x, 0) if isinstance(x, ucle.Tensor) else function.accumulate(x)


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "shift": lambda np_, x: _shift(x, 2, -1, 0),
    "shift back": lambda np_, x: _shift(x, -1, 0, 7),
    "shift out": lambda np_, x: _shift(x, 9, 0, 0),
    "no shift": lambda np_, x: _shift(x, 0, 0, 0),
    "roll": lambda np_, x: np_.roll(x, 2, -1),
    "roll back": lambda np_, x: np_.roll(x, -8, 0),
    "roll flat": lambda np_, x: np_.roll(x, 3),
    "roll axes": lambda np_, x: np_.roll(x, (1, -1), (0, -1)),
    "roll one axis twice": lambda np_, x: np_.roll(x, (1, 2), (0, 0)),
    "roll axes alike": lambda np_, x: np_.roll(x, 2, (0, -1)),
    "diff": lambda np_, x: np_.diff(x),
    "diff first": lambda np_, x: np_.diff(x, axis=0),
    "diff twice": lambda np_, x: np_.diff(x, n=2),
    "diff not at all": lambda np_, x: np_.diff(x, n=0),
    "diff from a number": lambda np_, x: np_.diff(x, axis=0, prepend=1, append=0),
    "diff to itself": lambda np_, x: np_.diff(x, append=x),
    "pad": lambda np_, x: np_.pad(x, 2),
    "pad before": lambda np_, x: np_.pad(x, (2, 0)),
    "pad with a number": lambda np_, x: np_.pad(x, (1, 2), constant_values=3.5),
    "pad with numbers": lambda np_, x: np_.pad(x, (1, 2), constant_values=(4, 5)),
    "pad nothing": lambda np_, x: np_.pad(x, 0),
    "pad each axis": lambda np_, x: np_.pad(x, [(n, 1) for n in range(x.ndim)]),
    "concat": lambda np_, x: np_.concatenate([x, x]),
    "concat last": lambda np_, x: np_.concatenate([x, x, x], axis=-1),
    "concat flat": lambda np_, x: np_.concatenate([x, x[:1]], axis=None),
    "concat one": lambda np_, x: np_.concatenate([x]),
    "concat of types": lambda np_, x: np_.concatenate([x, 2 * x.astype(np.complex128)]),
    "stack": lambda np_, x: np_.stack([x, x]),
    "stack last": lambda np_, x: np_.stack([x, x, x], axis=-1),
    "flat": lambda np_, x: x.reshape(-1),
    "column": lambda np_, x: np_.reshape(x, (-1, 1)),
    "row": lambda np_, x: np_.reshape(x, (1, x.size if isinstance(x, np.ndarray) else -1)),
    "reversed shape": lambda np_, x: x.reshape(x.shape[::-1]),
    "other shape": lambda np_, x: x.reshape(2, -1, 3),
    "diagonal": lambda np_, x: x.diagonal(),
    "diagonal above": lambda np_, x: np_.diagonal(x, 1),
    "diagonal below": lambda np_, x: np_.diagonal(x, -2),
    "diagonal outside": lambda np_, x: np_.diagonal(x, 9),
    "diagonal of a running sum": lambda np_, x: np_.diagonal(np_.cumsum(x, axis=0)),
    "diagonal of what is made of one": lambda np_, x: (2 * np_.cumsum(x, axis=-1)).diagonal(1) + 1,
    "diagonal of last axes": lambda np_, x: np_.diagonal(x, 1, -1, -2),
    "tril": lambda np_, x: np_.tril(x),
    "tril above": lambda np_, x: np_.tril(x, 2),
    "triu": lambda np_, x: np_.triu(x),
    "triu below": lambda np_, x: np_.triu(x, -1),
    "kron": lambda np_, x: np_.kron(x, np.array([[1, 2], [0, 3]])),
    "kron left": lambda np_, x: np_.kron(np.array([2, 0, 1]), x),
    "after a function": lambda np_, x: np_.roll(np_.pad(np_.exp(x), 1), 1, 0) + 1,
    "of a sum": lambda np_, x: np_.diff(x.sum(0, keepdims=True), axis=-1).sum(),
    "transposed": lambda np_, x: np_.tril(x.T).reshape(-1)[::2],
    "cumsum": lambda np_, x: np_.cumsum(x, axis=0),
    "cumsum last": lambda np_, x: x.cumsum(-1),
    "cumsum flat": lambda np_, x: np_.cumsum(x),
    "cumsum as": lambda np_, x: np_.cumsum(x, axis=0, dtype="complex128"),
    "cumprod": lambda np_, x: np_.cumprod(x + 1, axis=0),
    "running maximum": lambda np_, x: _running(x, np.maximum, "cummax"),
    "running minimum": lambda np_, x: _running(x, np.minimum, "cummin"),
    "of a running sum": lambda np_, x: np_.diff(np_.cumsum(x, axis=-1) * 2, axis=-1),
    "read twice": lambda np_, x: np_.roll(x * x, 1, 0) * (x * x),
}


def _undefined(name: str, array: Any) -> bool:
    """True if NumPy has no answer to compare: too few axes, or results of half precision."""
    if (name, array.dtype.kind) == ("after a function", "b"):  # NumPy's is of half precision
        return True
    two = name.startswith(("diagonal", "tril", "triu", "transposed"))
    return two and array.ndim < 2


@pytest.mark.sample(16)
@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_numpy_agrees(name: str, kind: str) -> None:
    array, operation = ARRAYS[kind], OPERATIONS[name]
    if _undefined(name, array):
        return
    try:
        expected = np.asarray(operation(np, array))
    except (ValueError, TypeError, np.exceptions.AxisError):
        with pytest.raises((UcleError, TypeError)):
            operation(ucle, ucle.array(array)).to_numpy()
        return
    tensor = operation(ucle, ucle.array(array))
    assert tensor.shape == expected.shape
    relational = kind in ("matrix", "cube", "long", "integers")
    for options in ({}, {"decomposition": "relational"})[: 1 + relational]:
        found = tensor.to_numpy(**options)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    parse_program(tensor.program_text())


@pytest.mark.parametrize(
    ("rows", "columns", "k", "dtype"),
    [(3, None, 0, float), (3, 5, 1, int), (4, 2, -1, bool), (1, 1, 0, float), (1, 1, 1, complex),
     (0, 2, 0, float), (1, 4, 2, "float32")],
)  # fmt: skip
def test_eye(rows: int, columns: int | None, k: int, dtype: Any) -> None:
    expected = np.eye(rows, columns, k, dtype)
    found = ucle.eye(rows, columns, k, dtype)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.to_numpy(), expected)
    assert found.to_numpy().dtype == expected.dtype
    product = ucle.array(np.ones((2, rows))) @ found
    np.testing.assert_array_equal(product.to_numpy(), np.ones((2, rows)) @ expected)


def test_numpy_functions_give_lazy_tensors() -> None:
    x = ucle.array(ARRAYS["matrix"])
    assert isinstance(np.cumsum(x, axis=0), ucle.Tensor)
    found = np.maximum.accumulate(x, axis=1)
    assert isinstance(found, ucle.Tensor)
    expected = np.maximum.accumulate(ARRAYS["matrix"], axis=1)
    np.testing.assert_array_equal(found.to_numpy(), expected)
    moved = np.roll(x, 1), np.diff(x), np.pad(x, 1), np.tril(x), np.diagonal(x)
    for made in (*moved, np.concatenate([x, x]), np.stack([x, x]), np.kron(x, x)):
        assert isinstance(made, ucle.Tensor)


def test_named_axes() -> None:
    x = ucle.array(ARRAYS["matrix"], axes=("row", "column"))
    y = ucle.array(ARRAYS["matrix"].T, axes=("column", "row"))
    together = ucle.concat([x, y], "row")
    assert together.axes == ("row", "column")
    np.testing.assert_array_equal(together.to_numpy(), np.concatenate([ARRAYS["matrix"]] * 2))
    stacked = ucle.stack([x, y], -1, name="which")
    assert stacked.axes == ("row", "column", "which")
    np.testing.assert_array_equal(stacked.to_numpy(), np.stack([ARRAYS["matrix"]] * 2, -1))
    diagonal = x.diagonal(1, "row", "column")
    assert diagonal.axes == ("row",)
    np.testing.assert_array_equal(diagonal.to_numpy(), ARRAYS["matrix"].diagonal(1))
    shifted = ucle.shift(x, 1, "row")
    assert "row < 5" in shifted.program_text()
    np.testing.assert_array_equal(
        (x * shifted).to_numpy()[1:], (ARRAYS["matrix"][1:] * ARRAYS["matrix"][:-1])
    )


def test_tables_tell_sizes() -> None:
    """Functions that need no size work on tables that have not stated any."""
    with ucle.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i, j, i + 2.0 * j + 1 v FROM range(4) a(i), range(5) b(j)"
        )
        full = np.add.outer(np.arange(4), 2.0 * np.arange(5)) + 1
        t = ucle.tensor("t", axes=("i", "j"), database=connection)
        np.testing.assert_array_equal(ucle.diff(t, axis="j").to_numpy(), np.diff(full))
        np.testing.assert_array_equal(ucle.tril(t, 1).to_numpy(), np.tril(full, 1))
        shifted = ucle.shift(ucle.array(full), 1).to_numpy()
        np.testing.assert_array_equal(ucle.shift(t, 1).to_numpy(), shifted)
        filled = ucle.shift(ucle.array(full), 1, fill_value=2).to_numpy()
        np.testing.assert_array_equal(ucle.shift(t, 1, fill_value=2).to_numpy(), filled)
        for call in (
            lambda: ucle.roll(t, 1, 0),
            lambda: ucle.pad(t, 1),
        ):
            with pytest.raises(BoundError, match="bounds="):
                call()


X = ucle.array(ARRAYS["matrix"])


@pytest.mark.sample(None)
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ucle.pad(X, 1, mode="edge"), UnsupportedError, "numbers alone"),
        (lambda: ucle.pad(X, -1), ArgumentTypeError, "not a width"),
        (lambda: ucle.pad(X, [(1, 1)] * 3), ArgumentTypeError, "do not fit"),
        (lambda: ucle.diff(X, -1), ArgumentTypeError, "number of times"),
        (lambda: ucle.roll(X, (1, 2, 3), (0, 1)), ArgumentTypeError, "go together"),
        (lambda: ucle.concat([]), ArgumentTypeError, "nothing"),
        (lambda: ucle.concat([X, X.T]), BoundError, "differ"),
        (lambda: ucle.concat([X, X[0]]), AxisError, "different numbers"),
        (lambda: ucle.stack([X, X.T]), BoundError, "different shapes"),
        (lambda: ucle.stack([]), ArgumentTypeError, "nothing"),
        (lambda: ucle.stack([X, X], axis=1.5), ArgumentTypeError, "an integer"),
        (lambda: ucle.stack([X, X], axis="lag"), ArgumentTypeError, "name='lag'"),
        (lambda: ucle.stack([X, X], name="lag"), LabelError, "no names"),
        (lambda: ucle.stack([X.named("a", "b")] * 2), LabelError, "stack(.|\n)*name='lag'"),
        (lambda: X.named("a", "b").expand_dims(0), LabelError, "expand_dims.*name='lag'"),
        (lambda: X.reshape(4, 7), BoundError, "reshaped"),
        (lambda: X.reshape(-1, -1), BoundError, "reshaped"),
        (lambda: X.named("a", "b").reshape(30), LabelError, "unnamed"),
        (lambda: X.diagonal(0, 1, 1), AxisError, "two axes"),
        (lambda: ucle.tril(X[0]), AxisError, "at least two"),
        (lambda: ucle.eye(-1), BoundError, "not a size"),
        (lambda: ucle.kron(X.named("a", "b"), X.named("a", "c")), LabelError, "differently"),
        (lambda: ucle.shift(X, 1, 5), AxisError, "no axis"),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], Any], error: type[UcleError], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_product_that_is_one_number_is_noticed() -> None:
    A = np.arange(9.0).reshape(3, 3)
    t = ucle.array(A, axes=("src", "dst"))
    with pytest.warns(ucle.MeaningWarning, match=r"A.rename\(\{'dst': 'between'\}\)") as caught:
        assert (t @ t).to_numpy() == (A * A).sum()
    assert caught[0].filename == __file__
    product = t.rename({"dst": "between"}) @ t.rename({"src": "between"})
    np.testing.assert_allclose(product.to_numpy(), A @ A)
