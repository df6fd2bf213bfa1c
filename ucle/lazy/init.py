"""Initial values of trained parameters; `ucle.init` is the public module, with the sources.

Limits and deviations follow from the fan-in and the fan-out of a shape; the numbers are those of
`ucle.lazy.random`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ucle.errors import ArgumentError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.lazy.random import normal, uniform


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
