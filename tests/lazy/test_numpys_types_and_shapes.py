"""Element types and shapes of lazy tensors where NumPy's are no matter of course."""

from __future__ import annotations

import numpy as np
import pytest

import ucle

UNARY = (
    *("abs", "sign", "exp", "expm1", "log1p", "sqrt", "square", "negative", "positive", "floor"),
    *("ceil", "trunc", "round", "sin", "cos", "tanh", "isnan", "isfinite", "signbit"),
    *("logical_not", "real", "imag", "conj", "reciprocal"),
)
ALONG = (
    *("sum", "prod", "mean", "var", "std", "any", "all", "cumsum", "cumprod", "sort"),
    *("argsort", "count_nonzero", "flip", "max", "min", "argmax", "argmin"),
)
NEEDS_ONE = ("max", "min", "argmax", "argmin")


def test_types_of_functions_are_numpys() -> None:
    for dtype in (np.float32, np.float64, np.complex64):
        for shape in ((3, 2), (0, 4)):
            x = np.ones(shape, dtype)
            for name in UNARY:
                if np.iscomplexobj(x) and name not in ("abs", "square", "negative", "conj", "real"):
                    continue
                expected = getattr(np, name)(x).dtype
                assert getattr(ucle, name)(x).dtype == expected, (name, dtype, shape)
            for name in ALONG:
                if np.iscomplexobj(x) and name not in ("sum", "prod", "mean", "var", "std"):
                    continue
                if name in NEEDS_ONE and not shape[0]:
                    continue
                with (
                    np.errstate(all="ignore"),
                    pytest.warns(RuntimeWarning)
                    if (name in ("mean", "var", "std") and not shape[0])
                    else np.errstate(),
                ):
                    expected = getattr(np, name)(x, axis=0).dtype
                assert getattr(ucle, name)(x, axis=0).dtype == expected, (name, dtype, shape)


def test_positions_in_an_empty_axis_are_integers() -> None:
    found = ucle.argsort(np.zeros((0, 4)), axis=0).to_numpy()
    assert (found.dtype, found.shape) == (np.int64, (0, 4))


def test_norms_keep_float32() -> None:
    x = np.array([3, 0, 4], np.float32)
    for order in (0, 1, 2, 3, 0.5, np.inf, -np.inf, -1):
        with np.errstate(divide="ignore"):
            expected = np.linalg.norm(x, order)
        found = ucle.vector_norm(x, ord=order).to_numpy()
        assert found.dtype == np.float32, order
        np.testing.assert_allclose(found, expected, 1e-6)


def test_numbers_of_few_bits_are_as_weak_as_in_numpy() -> None:
    x = np.ones(2, np.float32)
    for number in (np.int8(3), np.uint8(3), np.int16(3), np.int64(3), np.float64(3), np.float32(3)):
        found = (ucle.array(x) + number).to_numpy()
        assert found.dtype == (x + number).dtype, type(number)


def test_diagonals_and_traces_of_any_shape() -> None:
    for shape, offset in (((4, 3), 0), ((3, 4), 0), ((4, 3), -2), ((2, 5), 1), ((5, 2), -4)):
        x = np.arange(1.0, 1 + shape[0] * shape[1]).reshape(shape)
        found = ucle.compute(ucle.diagonal(x, offset), ucle.trace(x, offset))
        assert found[0].to_numpy().tolist() == np.diagonal(x, offset).tolist()
        assert found[1].item() == np.trace(x, offset)


def test_a_vector_on_the_right_of_a_stack_of_matrices() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 3)), rng.normal(size=3)
    found = ucle.linalg.solve(a, b).to_numpy()
    np.testing.assert_allclose(found, np.linalg.solve(a, b), 1e-10)


def test_the_mean_of_integers_whose_sum_is_none() -> None:
    x = np.full(500, 20150515061816532)
    assert ucle.array(x).mean().item() == pytest.approx(x.mean(), rel=1e-15)
    with ucle.einsum_program("m = mean[i](x[i]); n mean= x[i]", x=x).execute() as result:
        assert result["m"].to_numpy() == result["n"].to_numpy() == pytest.approx(x.mean())
    assert ucle.array(np.ones(3, np.float32)).mean().to_numpy().dtype == np.float32
