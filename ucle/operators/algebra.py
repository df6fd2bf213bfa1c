"""Predicates and ends of types in which the algebra of operators is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ucle.foundation.dtypes import DType, Scalar

LOWEST: Mapping[str, Scalar] = {"b": False, "i": -(2**63)}
"""The maximum of nothing, by kind of number; of floats it is -inf."""
HIGHEST: Mapping[str, Scalar] = {"b": True, "i": 2**63 - 1}
"""The minimum of nothing, by kind of number; of floats it is inf."""

# Rows of ⊗ name aggregations, as the rows of these need theirs.
SUMS = frozenset({"sum", "any"})
"""The aggregations over which products distribute."""
DISJUNCTIONS = frozenset({"any"})
"""The aggregation over which conjunctions distribute."""
CONJUNCTIONS = frozenset({"all"})
"""The aggregation over which disjunctions distribute."""


def lowest(dtype: DType) -> Scalar:
    """Return the maximum of nothing in a type.

    >>> lowest(DType.FLOAT64), lowest(DType.BOOL)
    (-inf, False)
    """
    return LOWEST.get(dtype.kind, -math.inf)


def highest(dtype: DType) -> Scalar:
    """Return the minimum of nothing in a type.

    >>> highest(DType.FLOAT64), highest(DType.BOOL)
    (inf, True)
    """
    return HIGHEST.get(dtype.kind, math.inf)


def is_one_of(*values: Scalar) -> Callable[[Scalar], bool]:
    """Return a predicate that is true of these values.

    >>> is_one_of(0, 1)(1.0), is_one_of(0)(2)
    (True, False)
    """
    return lambda value: value in values


def is_end(of_floats: float, of_integers: int) -> Callable[[Scalar], bool]:
    """Return a predicate of the end of a type; a float may equal that of the integers.

    >>> is_end(math.inf, 2**63 - 1)(float(2**63 - 1)), is_end(math.inf, 2**63 - 1)(2**63 - 1)
    (False, True)
    """
    return lambda value: value == (of_floats if isinstance(value, float) else of_integers)


def is_integer(number: int) -> Callable[[Scalar], bool]:
    """Return a predicate of one integer; a float or a boolean is none.

    >>> is_integer(0)(0), is_integer(0)(0.0), is_integer(0)(False)
    (True, False, False)
    """
    return lambda value: type(value) is int and value == number


def is_not(number: Scalar) -> Callable[[Scalar], bool]:
    """Return a predicate of all values but one.

    >>> is_not(0)(2), is_not(0)(0.0)
    (True, False)
    """
    return lambda value: value != number


def drop_zero_signs(x: Any) -> Any:
    """Return an array or a number with no sign before its zeros; complex ones stay as they are.

    A number of Python's stays one, as its type is weak.

    >>> drop_zero_signs(-0.0), drop_zero_signs(-2)
    (0.0, -2)
    """
    if np.iscomplexobj(x):
        return x
    return x + (np.zeros_like(x) if isinstance(x, np.ndarray | np.generic) else type(x)(0))
