"""Entries that a condition excludes add nothing to a gradient, whatever their derivative is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ucle

X = np.array([0.0, 2.0, 3.0])


def gradient(text: str, **inputs: Any) -> Any:
    """The gradient of the tensor ``loss`` by x."""
    program = ucle.einsum_program(text, inputs=inputs)
    with program.gradient("loss", ["x"]).execute() as result:
        return result["d_x"].to_numpy()


def test_a_log_that_is_left_out_at_0() -> None:
    one = [0, 1 / 2, 1 / 3]
    for text in (
        "loss = sum[i](when(x[i] > 0, log(x[i])))",
        "loss = sum[i](unless(x[i] == 0, log(x[i])))",
        "y[i] = log(x[i]); z[i] = y[i] * 1; loss = sum[i](when(x[i] > 0, z[i]))",
        "loss = sum[i](relu(log(x[i])))",
        "y[i] = log(x[i]); loss = sum[i](max(y[i], -5))",
    ):
        np.testing.assert_allclose(gradient(text, x=X), one, err_msg=text)


def test_conditions_of_labels_that_are_summed() -> None:
    c = np.array([[0, 0], [1, 0], [1, 1.0]])
    text = "loss = sum[i,k](when(c[i,k], log(x[i])))"
    np.testing.assert_allclose(gradient(text, x=X, c=c), [0, 1 / 2, 2 / 3])
    text = "y[i] = log(x[i]); loss = sum[i,k](when(c[i,k], y[i] * w[k]))"
    np.testing.assert_allclose(gradient(text, x=X, c=c, w=[1.0, 10.0]), [0, 1 / 2, 11 / 3])


def test_factors_that_are_infinite_where_they_are_left_out() -> None:
    w = np.array([np.inf, 4.0, np.nan])
    text = "loss = sum[i](when(isfinite(w[i]), x[i] * w[i]))"
    assert gradient(text, x=X, w=w).tolist() == [0, 4, 0]
    text = "loss = sum[i](where(x[i] > 0, x[i] * log(x[i]), 0))"
    np.testing.assert_allclose(gradient(text, x=X), [0, 1 + np.log(2), 1 + np.log(3)])


def test_gathered_entries_that_are_left_out() -> None:
    text = "y[i] = log(x[i]); loss = sum[j](when(k[j], y[p[j]]))"
    found = gradient(text, x=X, p=np.array([0, 1, 1, 2]), k=np.array([0, 1, 1, 0]))
    np.testing.assert_allclose(found, [0, 1, 0])


def test_products_with_masks_are_ordinary_ones_of_finite_numbers() -> None:
    rng = np.random.default_rng(0)
    inputs = {"x": rng.normal(size=(6, 5)), "W": rng.normal(size=(5, 4))}
    text = "H[i,h] = relu(x[i,f] * W[f,h]); loss = sum[i,h](square(H[i,h]))"
    program = ucle.einsum_program(text, inputs=inputs).gradient("loss", ["x", "W"])
    names = {v.combine.name for v in program.compiled.program.vertices if v.combine is not None}
    assert "mult" in names
    assert "sparse_mult" not in names


def test_second_derivatives_of_products_with_zeros() -> None:
    for numbers in ([0.0, 2, 3], [0.0, 0, 3], [0.0, 0, 0, 0], [1.0, 2, 3]):
        x = ucle.array(numbers, name="x")
        second = ucle.grad(ucle.grad(x.prod(), x).sum(), x).to_numpy()
        size = len(numbers)
        expected = [
            sum(
                np.prod([numbers[k] for k in range(size) if k not in (i, j)])
                for j in range(size)
                if j != i
            )
            for i in range(size)
        ]
        np.testing.assert_allclose(second, expected, err_msg=str(numbers))


MAPS = (
    "u.log(v)",
    "u.sqrt(v)",
    "1 / v",
    "v * u.log(v)",
    "u.exp(v)",
    "v * v",
    "u.tanh(v)",
    "v**1.5",
)
MASKS = ("x > 0.1", "(x >= 0.2) & (w != 0)")
OUTER = ("w != 0", "x >= 0", "x < 1")


def masked(rng: np.random.Generator) -> str:
    """A random expression of x, parts of which are defined above 0, and left out elsewhere."""

    def part() -> str:
        inner = "x" if rng.random() < 0.6 else "(x * x * x)"
        function = rng.choice(MAPS).replace("v", inner)
        return f"u.where({rng.choice(MASKS)}, {function}, {rng.integers(3)} * x)"

    return f"u.where({rng.choice(OUTER)}, {part()} {rng.choice(['+', '*', '-'])} {part()}, 0)"


def derivatives(text: str, x: Any, w: Any) -> list[ucle.Tensor]:
    """First and second derivatives of an expression at each entry of x."""
    tensor = ucle.array(x, name="x")
    value = eval(text, {"u": ucle, "x": tensor, "w": ucle.array(w, name="w")})
    first = ucle.grad(value.sum(), tensor)
    return [first, ucle.grad(first.sum(), tensor)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("start", [0, 3, 6])
def test_second_derivatives_of_random_masked_expressions(start: int) -> None:
    """Against differences of first ones, where nothing bends; no NaN where it does."""
    x = np.array([-1.5, -0.4, 0.0, 0.7, 1.3, 2.1])
    w = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 2.0])
    step = 1e-6 * (x != 0)
    for seed in range(start, start + 3):
        text = masked(np.random.default_rng(seed))
        (ahead, _), (behind, _) = derivatives(text, x + step, w), derivatives(text, x - step, w)
        made = ucle.compute(*derivatives(text, x, w)[1:], ahead, behind)
        second, above, below = (tensor.to_numpy() for tensor in made)
        away = x != 0
        expected = (above - below)[away] / (2 * step[away])
        np.testing.assert_allclose(second[away], expected, 1e-5, 1e-5, err_msg=text)
        assert np.isfinite(second).all(), text
