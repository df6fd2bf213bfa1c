"""Pointwise functions as steps of a vertex: a map, an operator with a constant, or a cast."""

from __future__ import annotations

import numpy as np

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.operators import Combine, PointwiseMap


@dataclass(frozen=True)
class Map:
    """A pointwise function of one value.

    `dtype` is the type that the function works in; a predicate gives 1 or 0 of that type.

    >>> from ucle.operators import MAPS
    >>> print(Map(MAPS["relu"]))
    relu(x)
    """

    function: PointwiseMap
    dtype: DType = DType.FLOAT64

    @property
    def result(self) -> DType:
        """The type of the function's values."""
        return self.dtype

    def __call__(self, value: Scalar) -> Scalar:
        """Return the function's value at one point, by NumPy's rules."""
        return self.function.scalar(value, self.dtype)

    def __str__(self) -> str:
        return self.apply_text("x")

    def apply_text(self, argument: str) -> str:
        """Return the function of `argument` as a person would write it."""
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
        """The type of the function's values."""
        return self.dtype

    def __call__(self, value: Scalar) -> Scalar:
        """Return the function's value at one point, by NumPy's rules."""
        pair = (self.constant, value) if self.constant_first else (value, self.constant)
        return self.combine.scalar(*pair, self.dtype)

    def __str__(self) -> str:
        return self.apply_text("x")

    def apply_text(self, argument: str) -> str:
        """Return the function of `argument` as a person would write it."""
        constant = number_text(self.constant)
        if self.combine.infix:
            argument = bracket_text(argument)
        left, right = (constant, argument) if self.constant_first else (argument, constant)
        return self.combine.text(left, right)


@dataclass(frozen=True)
class Cast:
    """A conversion of every entry to another element type.

    >>> print(Cast(DType.FLOAT64, DType.INT64))
    int64(x)
    """

    source: DType
    result: DType

    def __call__(self, value: Scalar) -> Scalar:
        """Return the value in the new type, by NumPy's rules."""
        with np.errstate(all="ignore"):
            return self.result.scalar(value)

    def __str__(self) -> str:
        return self.apply_text("x")

    def apply_text(self, argument: str) -> str:
        """Return the cast of `argument` as a person would write it."""
        return f"{self.result.value}({argument})"


Pointwise = Map | Partial | Cast


def bracket_text(text: str) -> str:
    """Return a text that an operator may stand beside: bracketed if it is an operation.

    >>> bracket_text("1 - x"), bracket_text("exp(1 - x)")
    ('(1 - x)', 'exp(1 - x)')
    """
    return f"({text})" if _is_compound(text) else text


def _is_compound(text: str) -> bool:
    """Return whether a text is an operation that is not yet enclosed in brackets."""
    depth = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == " " and not depth:
            return True
    return False


def number_text(value: Scalar) -> str:
    """Return a number as a person would write it."""
    if isinstance(value, complex):
        return f"({value:.6g})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
