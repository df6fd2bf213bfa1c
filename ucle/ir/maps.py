"""Pointwise functions as steps of a vertex: an operator with its number, or a cast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ucle.foundation.dtypes import DType, Scalar
from ucle.operators import Combine, PointwiseMap


@dataclass(frozen=True)
class Map:
    """A pointwise function of one value.

    `dtype` is the type that it works in; what gives yes or no gives 1 or 0 of that type.

    >>> from ucle.operators import MAPS
    >>> print(Map(MAPS["relu"]))
    relu(x)
    """

    function: PointwiseMap
    dtype: DType = DType.FLOAT64

    @property
    def result(self) -> DType:
        """Type of the function's values."""
        return self.dtype

    def __call__(self, value: Scalar) -> Scalar:
        """The function's value at one point, by NumPy's rules."""
        return self.function.scalar(value, self.dtype)

    def __str__(self) -> str:
        return self.apply_text("x")

    def apply_text(self, argument: str) -> str:
        """How a person would write this function of `argument`."""
        return f"{self.function.name}({argument})"


@dataclass(frozen=True)
class Partial:
    """⊗ of one value and a constant; `dtype` is as in `Map`.

    >>> from ucle.operators import COMBINES
    >>> print(Partial(COMBINES["mult"], 0.5), Partial(COMBINES["div"], 1.0, constant_first=True))
    x * 0.5 1 / x
    """

    combine: Combine
    constant: Scalar
    constant_first: bool = False
    dtype: DType = DType.FLOAT64

    @property
    def result(self) -> DType:
        """Type of the function's values."""
        return self.dtype

    def __call__(self, value: Scalar) -> Scalar:
        """The function's value at one point, by NumPy's rules."""
        pair = (self.constant, value) if self.constant_first else (value, self.constant)
        return self.combine.scalar(*pair, self.dtype)

    def __str__(self) -> str:
        return self.apply_text("x")

    def apply_text(self, argument: str) -> str:
        """How a person would write this function of `argument`."""
        constant = number_text(self.constant)
        if self.combine.infix:
            argument = bracketed(argument)
        left, right = (constant, argument) if self.constant_first else (argument, constant)
        return self.combine.text(left, right)


@dataclass(frozen=True)
class Cast:
    """The change of every entry to another element type.

    >>> print(Cast(DType.FLOAT64, DType.INT64))
    int64(x)
    """

    source: DType
    result: DType

    def __call__(self, value: Scalar) -> Scalar:
        """The value in the new type, by NumPy's rules."""
        with np.errstate(all="ignore"):
            return self.result.scalar(value)

    def __str__(self) -> str:
        return self.apply_text("x")

    def apply_text(self, argument: str) -> str:
        """How a person would write this cast of `argument`."""
        return f"{self.result.value}({argument})"


Pointwise = Map | Partial | Cast


def bracketed(text: str) -> str:
    """A text that an operator may stand beside.

    >>> bracketed("1 - x"), bracketed("exp(1 - x)")
    ('(1 - x)', 'exp(1 - x)')
    """
    return f"({text})" if _is_compound(text) else text


def _is_compound(text: str) -> bool:
    """Whether a text is an operation that brackets do not yet hold together."""
    depth = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == " " and not depth:
            return True
    return False


def number_text(value: Scalar) -> str:
    """A number as a person would write it."""
    if isinstance(value, complex):
        return f"({value:.6g})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
