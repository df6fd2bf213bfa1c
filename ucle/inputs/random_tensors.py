"""Random tensors that are not computed yet: a distribution and a seed, until a shape is known.

Each entry depends on its position in row-major order, whatever the layout is.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.errors import ArgumentError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.random_numbers import normal_quantile, random_bits

UNIFORM, NORMAL, BERNOULLI = "uniform", "normal", "bernoulli"

SINGLE = 2.0**24
"""The number of equal parts of [0, 1) that float32 can tell apart everywhere."""


def key_of(seed: int) -> int:
    """The key of a seed: the seed if it fits into int64, otherwise 64 bits of its digest.

    >>> key_of(7), key_of(2**64 + 7) == key_of(7)
    (7, False)
    """
    number = int(seed)
    if -(2**63) <= number < 2**63:
        return number
    digest = hashlib.blake2b(str(number).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@dataclass(frozen=True)
class RandomTensor:
    """A random tensor without a shape yet; made by `ucle.random`.

    If it replaces an input of a program, it takes its shape and element type from that input.
    """

    distribution: str
    """``"uniform"``, ``"normal"`` or ``"bernoulli"``."""
    parameters: tuple[float, ...]
    """The ends of the interval; mean and standard deviation; or the probability of True."""
    seed: int
    dtype: DType | None = None
    """None for the default: bool for Bernoulli, float64 otherwise."""

    @property
    def element_type(self) -> DType:
        """The element type, with the default applied."""
        if self.dtype is not None:
            return self.dtype
        return DType.BOOL if self.distribution == BERNOULLI else DType.FLOAT64

    def array(self, shape: Sequence[int] = (), dtype: Any = None) -> NDArray[Any]:
        """Compute the tensor in a given shape, as an array.

        Args:
            shape: sizes of the axes.
            dtype: the element type; by default its own.

        >>> RandomTensor("uniform", (0.0, 1.0), 7).array((2, 2)).round(3)
        array([[0.955, 0.407],
               [0.006, 0.39 ]])
        """
        numbers = np.arange(math.prod(shape)).reshape(tuple(shape))
        wanted = self.element_type.numpy if dtype is None else np.dtype(dtype)
        bits = random_bits(key_of(self.seed), numbers)
        return self._of_bits(bits, single=wanted.itemsize == 4).astype(wanted)

    def _of_bits(self, bits: NDArray[np.int64], *, single: bool) -> NDArray[Any]:
        uniform = bits.astype(np.float64) * 2.0**-53
        match self.distribution:
            case "bernoulli":
                return uniform < self.parameters[0]
            case "normal":
                mean, deviation = self.parameters
                middle = (np.floor(uniform * 2.0**52) + 0.5) * 2.0**-52
                return normal_quantile(middle) * deviation + mean
        low, high = self.parameters
        if single:
            uniform = np.floor(uniform * SINGLE) * (1 / SINGLE)
        return uniform * (high - low) + low

    def __str__(self) -> str:
        numbers: tuple[Scalar, ...] = self.parameters
        return f"{self.distribution}({', '.join(map(str, numbers))}, seed={self.seed})"


def check_distribution(distribution: str, parameters: tuple[float, ...]) -> None:
    """Check the parameters of a distribution.

    Raises:
        ArgumentError: they are not valid.
    """
    if not all(map(math.isfinite, parameters)):
        fits, expected = False, "finite numbers"
    elif distribution == UNIFORM:
        fits, expected = parameters[0] <= parameters[1], "low <= high"
    elif distribution == NORMAL:
        fits, expected = parameters[1] >= 0, "a standard deviation of at least 0"
    else:
        fits, expected = 0 <= parameters[0] <= 1, "a probability from 0 to 1"
    if not fits:
        raise ArgumentError(
            f"these are not parameters of the {distribution} distribution",
            where=f"random.{distribution}",
            expected=expected,
            found=", ".join(map(str, parameters)),
        )
