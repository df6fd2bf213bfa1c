"""Random numbers: Philox's known answers, and the same bits from kernels, SQL and NumPy."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import ucle
from ucle.errors import (
    ArgumentError,
    ArgumentTypeError,
    InputError,
    LabelError,
    ValueTypeError,
)
from ucle.foundation.random_numbers import normal_quantile, philox, random_bits
from ucle.testing.check_matrix import Routes, some_decompositions
from ucle.testing.oracle import evaluate

KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip
"""Counter, key and block of philox4x32-10, from the file kat_vectors of Random123."""

SHAPE = 1000, 100
PLACES = np.arange(math.prod(SHAPE)).reshape(SHAPE)
SEEDS = 7, -3, 2**63 - 1, -(2**63)
WAYS: list[Any] = ["auto", "relational", {"Z": ["i"]}, {"Z": []}]


def uniform(seed: int, position: Any) -> Any:
    return random_bits(seed, position) / 2.0**53


def normal(seed: int, position: Any) -> Any:
    return normal_quantile((np.floor(uniform(seed, position) * 2.0**52) + 0.5) / 2.0**52)


TEXTS = {
    "random_bits(seed[], 100 * i + k)": random_bits,
    "random_uniform(seed[], 100 * i + k)": uniform,
    "random_normal(seed[], 100 * i + k)": normal,
    "random_uniform(seed[], 100 * i + k) < 0.3": lambda seed, n: uniform(seed, n) < 0.3,
    "random_bits(seed[], 2 ^ 40 * i - k)": lambda seed, _: random_bits(
        seed, 2**40 * np.arange(SHAPE[0])[:, None] - np.arange(SHAPE[1])
    ),
}


@pytest.mark.parametrize(("counter", "key", "block"), KNOWN)
def test_known_answers(counter: str, key: str, block: str) -> None:
    words = [np.array([int(x, 16)], np.uint64) for x in f"{counter} {key}".split()]
    made = philox(tuple(words[:4]), (words[4], words[5]))  # type: ignore[arg-type]
    assert " ".join(f"{int(word[0]):08x}" for word in made) == block


@pytest.mark.parametrize("label", "asx")
@pytest.mark.parametrize("tensor", "scx")
def test_names_of_labels_and_tensors_are_any(label: str, tensor: str) -> None:
    """The SQL of the function has names of its own, which are not those."""
    seeds = np.array([3, 4, 5])
    text = f"Z[{label}] = random_bits({tensor}[{label}], {label})"
    program = ucle.einsum_program(text, inputs={tensor: seeds}, decomposition="relational")
    with program.execute() as result:
        expected = [random_bits(int(seed), np.array(n)) for n, seed in enumerate(seeds)]
        np.testing.assert_array_equal(result["Z"].to_numpy(), expected)


@pytest.mark.sample(2)
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("text", TEXTS)
def test_all_bits_are_the_same_everywhere(text: str, way: Any, routes: Routes) -> None:
    for n, seed in enumerate(SEEDS[:2] if "normal" in text else SEEDS):
        connection = routes[("native", "arrow")[n % 2]]
        program = ucle.einsum_program(
            f"Z[i,k] = {text}",
            seed=ucle.parameter(seed),
            bounds={"i": SHAPE[0], "k": SHAPE[1]},
            database=connection,
            decomposition=way,
        )
        with program.execute() as result:
            assert np.array_equal(result["Z"].to_numpy(), TEXTS[text](seed, PLACES))


def test_the_oracle_agrees() -> None:
    text = "Z[i] = random_normal(5, 3 * i)"
    found = ucle.einsum_program(text, bounds={"i": 50}).execute()["Z"].to_numpy()
    expected = evaluate(text, {}, bounds={"i": 50})["Z"]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_mask_of_a_program_in_every_decomposition(routes: Routes) -> None:
    rng = np.random.default_rng(0)
    H, W = rng.normal(size=(6, 5)), rng.normal(size=(5, 4))
    text = (
        "keep[i,k] = random_uniform(seed[], 5*i + k) >= 0.4;"
        "Z[i,l] = sum[k](when(keep[i,k], H[i,k]) * W[k,l] / 0.6)"
    )
    inputs = {"H": H, "W": W, "seed": np.array(3)}
    bounds = {"i": 6, "k": 5}
    expected = evaluate(text, inputs, bounds=bounds)["Z"]
    program = ucle.einsum_program(text, inputs=inputs, bounds=bounds, database=routes["native"])
    for n, way in enumerate(["relational", *some_decompositions(program, 0, 12)]):
        with program.with_decomposition(way).execute(routes[("native", "arrow")[n % 2]]) as result:
            np.testing.assert_allclose(result["Z"].to_numpy(), expected, rtol=1e-12)


def test_quantiles_are_those_of_the_normal_distribution() -> None:
    rng = np.random.default_rng(1)
    p = np.concatenate([rng.random(2000), 10 ** -rng.uniform(0, 300, 500), 1 - rng.random(500) / 9])
    exact = NormalDist()
    ends = np.array([5e-324, 2.0**-64, 2.0**-65, 0.075, 0.925, 1 - 2.0**-53])
    p = np.concatenate([p[(p > 0) & (p < 1)], ends])
    found = normal_quantile(p)
    np.testing.assert_allclose(found, [exact.inv_cdf(x) for x in p], rtol=1e-14, atol=1e-15)
    odd = normal_quantile(np.array([0.0, 1.0, -0.1, 1.1, np.nan, np.inf]))
    np.testing.assert_array_equal(odd, [-np.inf, np.inf, np.nan, np.nan, np.nan, np.nan])


def test_moments() -> None:
    count = 10**6
    u = ucle.random.uniform(2, 5, seed=1).array((count,))
    assert u.min() >= 2
    assert u.max() < 5
    np.testing.assert_allclose([u.mean(), u.var()], [3.5, 9 / 12], atol=5e-3)
    z = ucle.random.normal(1, 2, seed=1).array((count,))
    standard = (z - 1) / 2
    found = [(standard**n).mean() for n in (1, 2, 3, 4)]
    np.testing.assert_allclose(found, [0, 1, 0, 3], atol=2e-2)
    ranks = np.abs(
        np.sort(standard)[:: count // 1000] - normal_quantile((np.arange(1000) + 0.5) / 1000)
    )
    assert ranks[5:-5].max() < 0.05
    yes = ucle.random.bernoulli(0.3, seed=1).array((count,))
    assert yes.dtype == bool
    assert abs(yes.mean() - 0.3) < 2e-3
    # Neighbours, and seeds beside each other, have nothing to do with each other.
    other = ucle.random.normal(1, 2, seed=2).array((count,))
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 5e-3
    assert abs(np.corrcoef(z, other)[0, 1]) < 5e-3


@pytest.mark.parametrize("shape", [(3, 4), (5,), (2, 1, 3), (1, 1), (), (0, 3), (1,)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_lazy_tensors_have_the_numbers_of_arrays(shape: tuple[int, ...], dtype: str) -> None:
    specs = [
        (ucle.random.uniform, (-2, 5), 3),
        (ucle.random.normal, (1, 2), -4),
        (ucle.random.bernoulli, (0.3,), 2**70),
    ]
    for function, parameters, seed in specs:
        expected = function(*parameters, seed=seed, dtype=dtype).array(shape)  # type: ignore[operator]
        lazy = function(*parameters, seed=seed, dtype=dtype, shape=shape)  # type: ignore[operator]
        found = lazy.to_numpy()
        assert found.dtype == expected.dtype == dtype
        assert np.array_equal(found, expected)
        assert found.shape == shape


def test_named_axes_and_products() -> None:
    A = ucle.random.normal(seed=1, shape=(4, 3), axes=("i", "j"))
    B = ucle.random.uniform(seed=2, shape=(3, 2), axes=("j", "k"))
    expected = ucle.random.normal(seed=1).array((4, 3)) @ ucle.random.uniform(seed=2).array((3, 2))
    np.testing.assert_allclose((A @ B).to_numpy(), expected, rtol=1e-14)


def test_an_array_takes_the_type_that_is_asked_for() -> None:
    spec = ucle.random.bernoulli(0.5, seed=0)
    assert spec.array((3,), "float32").tolist() == [1.0, 0.0, 1.0]
    small = ucle.random.uniform(seed=0).array((1000,), np.float32)
    assert small.dtype == np.float32
    assert small.max() < 1


def test_permutations() -> None:
    for n in (0, 1, 2, 1000):
        order = ucle.random.permutation(n, seed=n)
        assert order.dtype == np.int64
        assert sorted(order.tolist()) == list(range(n))
    assert not np.array_equal(
        ucle.random.permutation(50, seed=1), ucle.random.permutation(50, seed=2)
    )


def test_keys_tell_uses_apart() -> None:
    keys = {ucle.random.key(s, *parts) for s in range(9) for parts in ((), (0,), (1,), (0, 1))}
    assert len(keys) == 36
    assert all(-(2**63) <= key < 2**63 for key in keys)


@pytest.mark.parametrize("seed", [5, ucle.parameter(5)], ids=["number", "tensor"])
@pytest.mark.parametrize("rate", [0, 0.25, 1])
def test_dropout(rate: float, seed: Any) -> None:
    x = np.arange(1.0, 13).reshape(3, 4)
    keep = ucle.random.uniform(seed=5).array((3, 4)) >= rate
    expected = np.where(keep, x / (1 - rate) if rate < 1 else 0, 0)
    np.testing.assert_allclose(ucle.dropout(ucle.array(x), rate, seed=seed).to_numpy(), expected)


def test_dropout_passes_back_to_what_is_kept() -> None:
    x = ucle.array(np.ones((3, 4)), name="x")
    slope = ucle.grad(ucle.dropout(x, 0.25, seed=5).sum(), x).to_numpy()
    np.testing.assert_allclose(slope, ucle.dropout(x, 0.25, seed=5).to_numpy())


def test_dropout_of_one_entry() -> None:
    assert ucle.dropout(np.ones((1, 1)), 0.25, seed=4).to_numpy().tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("name", "in_", "low", "spread"),
    [
        ("glorot_uniform", 200, math.sqrt(6 / 300), math.sqrt(2 / 300)),
        ("glorot_normal", 200, None, math.sqrt(2 / 300)),
        ("he_uniform", 200, math.sqrt(6 / 200), math.sqrt(2 / 200)),
        ("he_normal", 200, None, math.sqrt(2 / 200)),
    ],
)
def test_initialisers(name: str, in_: int, low: float | None, spread: float) -> None:
    made = getattr(ucle.init, name)((in_, 100), seed=3)
    assert abs(made.std() / spread - 1) < 0.02
    assert abs(made.mean()) < 0.01 * spread * 3
    if low is not None:
        assert np.abs(made).max() <= low
    assert getattr(ucle.init, name)((3, in_, 100), seed=3, dtype="float32").dtype == np.float32
    np.testing.assert_array_equal(made, getattr(ucle.init, name)((in_, 100), seed=3))


def test_what_cannot_be_random() -> None:
    random = ucle.random
    with pytest.raises(InputError, match="shape of a random tensor is not stated"):
        ucle.array([1.0]) * random.uniform(seed=3)  # type: ignore[operator]
    with pytest.raises(InputError, match="shape of a random tensor is not stated"):
        ucle.einsum_program("y[i] = x[i]", x=random.uniform(seed=3))
    with pytest.raises(LabelError, match="how long"):
        random.uniform(seed=1, axes="a")  # type: ignore[call-overload]
    with pytest.raises(ArgumentTypeError):
        random.normal(seed=1.5)  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="not parameters"):
        random.normal(0, -1, seed=1)
    with pytest.raises(ArgumentError, match="not parameters"):
        random.uniform(0, math.inf, seed=1)
    with pytest.raises(ArgumentError, match="not parameters"):
        random.bernoulli(1.5, seed=1)
    with pytest.raises(ValueTypeError, match="real"):
        random.uniform(seed=1, dtype=int)
    with pytest.raises(ArgumentError, match="probability"):
        ucle.dropout(ucle.array([1.0]), 2, seed=1)
    with pytest.raises(LabelError, match="not known"):
        ucle.dropout(ucle.table("edges", ["a", "b"]), 0.2, seed=1)
    with pytest.raises(LabelError, match="one number"):
        ucle.dropout(ucle.array([1.0, 2.0]), 0.2, seed=ucle.array([1, 2]))
    with pytest.raises(ArgumentError, match="goes into"):
        ucle.init.he_normal((3, 0), seed=1)
    with pytest.raises(ValueTypeError, match="random_bits"):
        ucle.einsum_program("y[i] = random_uniform(x[i], i)", x=[1.5])
