"""Random numbers as lazy tensors, arrays or specifications, and initial values made of them.

`ucle.random` and `ucle.init` are the public modules, which say what the numbers depend on. The
numbers themselves are those of `ucle.inputs.random_tensors`. A specification takes its shape from
an input. Limits and deviations of initial values follow from the fan-in and the fan-out of a shape.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ucle.errors import ArgumentError, LabelError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.random_numbers import random_bits
from ucle.inputs.inputs import element_type
from ucle.inputs.random_tensors import (
    BERNOULLI,
    NORMAL,
    UNIFORM,
    RandomTensor,
    check_distribution,
    key_of,
)
from ucle.lazy.random_tensors import check_dtype, named_axes, random_tensor
from ucle.lazy.tensor import Tensor

Shape = Sequence[int]
Names = str | Sequence[str] | None


@overload
def uniform(
    low: float = 0.0, high: float = 1.0, *, seed: int, shape: Shape, axes: Names = None,
    dtype: Any = None,
) -> Tensor: ...  # fmt: skip
@overload
def uniform(
    low: float = 0.0, high: float = 1.0, *, seed: int, dtype: Any = None
) -> RandomTensor: ...
@validated(low=args.real, high=args.real, seed=args.integer, shape=args.shape, axes=args.names)
def uniform(
    low: float = 0.0,
    high: float = 1.0,
    *,
    seed: int,
    shape: Shape | None = None,
    axes: Names = None,
    dtype: Any = None,
) -> Any:
    """Uniformly distributed numbers between two ends, with 53 random bits (24 for float32).

    Args:
        low: the lower end, which may occur.
        high: the upper end, which occurs only by rounding.
        seed: any integer.
        shape: sizes of the axes; without it the result has no shape yet.
        axes: their names.
        dtype: float64 or float32.

    Returns:
        A lazy tensor; without a shape a `RandomTensor`.

    Raises:
        ArgumentError: ``low`` is greater than ``high``, or one is not finite.
        LabelError: names of axes without a shape, or a different number of names than of axes.

    >>> uniform(-1, 1, seed=0, shape=(3,)).to_numpy().round(3)
    array([-0.202,  0.944, -0.961])
    """
    return _make_tensor(UNIFORM, (low, high), seed, shape, axes, dtype)


@overload
def normal(
    mean: float = 0.0, std: float = 1.0, *, seed: int, shape: Shape, axes: Names = None,
    dtype: Any = None,
) -> Tensor: ...  # fmt: skip
@overload
def normal(
    mean: float = 0.0, std: float = 1.0, *, seed: int, dtype: Any = None
) -> RandomTensor: ...
@validated(mean=args.real, std=args.real, seed=args.integer, shape=args.shape, axes=args.names)
def normal(
    mean: float = 0.0,
    std: float = 1.0,
    *,
    seed: int,
    shape: Shape | None = None,
    axes: Names = None,
    dtype: Any = None,
) -> Any:
    """Normally distributed numbers: the quantile at the middle of one of 2^52 intervals.

    The quantile is Wichura's AS 241, with a relative error below 5e-15; numbers lie within 8.3
    standard deviations.

    Args:
        mean: the mean.
        std: the standard deviation.
        seed: any integer.
        shape: sizes of the axes; without it the result has no shape yet.
        axes: their names.
        dtype: float64 or float32.

    Returns:
        A lazy tensor; without a shape a `RandomTensor`.

    >>> normal(seed=0, shape=(3,)).to_numpy().round(3)
    array([-0.256,  1.915, -2.065])
    """
    return _make_tensor(NORMAL, (mean, std), seed, shape, axes, dtype)


@overload
def bernoulli(
    p: float = 0.5, *, seed: int, shape: Shape, axes: Names = None, dtype: Any = None
) -> Tensor: ...
@overload
def bernoulli(p: float = 0.5, *, seed: int, dtype: Any = None) -> RandomTensor: ...
@validated(p=args.real, seed=args.integer, shape=args.shape, axes=args.names)
def bernoulli(
    p: float = 0.5,
    *,
    seed: int,
    shape: Shape | None = None,
    axes: Names = None,
    dtype: Any = None,
) -> Any:
    """Booleans that are true with a given probability: where a uniform number is less than p.

    Args:
        p: the probability of true.
        seed: any integer.
        shape: sizes of the axes; without it the result has no shape yet.
        axes: their names.
        dtype: bool by default; in other types true is 1.

    Returns:
        A lazy tensor; without a shape a `RandomTensor`.

    >>> bernoulli(0.5, seed=0, shape=(4,)).to_numpy()
    array([ True, False,  True, False])
    """
    return _make_tensor(BERNOULLI, (p,), seed, shape, axes, dtype)


@validated(n=args.count(), seed=args.integer)
def permutation(n: int, *, seed: int) -> NDArray[np.int64]:
    """Return the numbers from 0 to n - 1 in random order: the sort order of random integers.

    Args:
        n: the number of integers.
        seed: any integer.

    >>> permutation(5, seed=1)
    array([2, 4, 1, 3, 0])
    """
    return np.argsort(random_bits(key_of(seed), np.arange(n)), kind="stable").astype(np.int64)


@validated(seed=args.integer, parts=args.integer)
def key(seed: int, *parts: int) -> int:
    """Derive a seed for each of several uses, such as layers and epochs, from one seed.

    Args:
        seed: any integer.
        parts: integers that identify the use.

    >>> key(0, 1), key(0, 2)
    (8308833767650725377, 1514449520771899467)
    """
    text = " ".join(map(str, (int(seed), *map(int, parts))))
    digest = hashlib.blake2b(f"key {text}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _make_tensor(
    distribution: str,
    parameters: tuple[float, ...],
    seed: int,
    shape: Shape | None,
    axes: Names,
    dtype: Any,
) -> RandomTensor | Tensor:
    where = f"random.{distribution}"
    numbers = tuple(float(x) for x in parameters)
    check_distribution(distribution, numbers)
    kind = None if dtype is None else element_type(dtype, f"{where}(dtype=...)")
    check_dtype(kind, distribution)
    spec = RandomTensor(distribution, numbers, int(seed), kind)
    if shape is None:
        if axes is not None:
            raise LabelError(
                "names of axes do not say how long these are",
                where=f"{where}(axes=...)",
                expected="also shape=",
                found=", ".join([axes] if isinstance(axes, str) else axes),
            )
        return spec
    names = [axes] if isinstance(axes, str) else axes
    every = named_axes(distribution, tuple(shape), None if names is None else tuple(names))
    return Tensor(random_tensor(spec, every))


@validated(shape=args.shape, seed=args.integer)
def glorot_uniform(shape: Sequence[int], *, seed: int, dtype: Any = "float64") -> NDArray[Any]:
    """Return uniform numbers with absolute values up to sqrt(6 / (in + out)).

    Args:
        shape: sizes of the axes.
        seed: any integer.
        dtype: float64 or float32.

    >>> glorot_uniform((2, 2), seed=0).round(3)
    array([[-0.247,  1.157],
           [-1.177,  0.704]])
    """
    fan_in, fan_out = _fans(shape)
    return _uniform(math.sqrt(6 / (fan_in + fan_out)), shape, seed, dtype)


@validated(shape=args.shape, seed=args.integer)
def glorot_normal(shape: Sequence[int], *, seed: int, dtype: Any = "float64") -> NDArray[Any]:
    """Return normal numbers with variance 2 / (in + out); arguments as for `glorot_uniform`."""
    fan_in, fan_out = _fans(shape)
    return _normal(math.sqrt(2 / (fan_in + fan_out)), shape, seed, dtype)


@validated(shape=args.shape, seed=args.integer)
def he_uniform(shape: Sequence[int], *, seed: int, dtype: Any = "float64") -> NDArray[Any]:
    """Return uniform numbers with absolute values up to sqrt(6 / in); see `glorot_uniform`."""
    return _uniform(math.sqrt(6 / _fans(shape)[0]), shape, seed, dtype)


@validated(shape=args.shape, seed=args.integer)
def he_normal(shape: Sequence[int], *, seed: int, dtype: Any = "float64") -> NDArray[Any]:
    """Return normal numbers with variance 2 / in; arguments as for `glorot_uniform`."""
    return _normal(math.sqrt(2 / _fans(shape)[0]), shape, seed, dtype)


def _uniform(limit: float, shape: Sequence[int], seed: int, dtype: Any) -> NDArray[Any]:
    return uniform(-limit, limit, seed=seed, dtype=dtype).array(shape)


def _normal(deviation: float, shape: Sequence[int], seed: int, dtype: Any) -> NDArray[Any]:
    return normal(0.0, deviation, seed=seed, dtype=dtype).array(shape)


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """Fan-in and fan-out: the inputs of each output, and the outputs of each input.

    Raises:
        ArgumentError: there is no axis, or one without positions.
    """
    sizes = tuple(shape)
    if not sizes or 0 in sizes:
        raise ArgumentError(
            "nothing goes into this shape, or comes out of it",
            where="init, shape",
            expected="at least one axis, of at least one position each",
            found=str(sizes),
        )
    if len(sizes) == 1:
        return sizes[0], sizes[0]
    others = math.prod(sizes[:-2])
    return sizes[-2] * others, sizes[-1] * others
