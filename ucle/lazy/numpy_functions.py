"""NumPy's functions for lazy tensors: they call ucle's functions of the same names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from ucle.lazy import (
    aggregations,
    covariances,
    factorisations,
    fourier,
    functions,
    least_squares,
    linear_algebra,
    manipulation,
    matrices,
    new_tensors,
    ordering,
    searching,
    standard_functions,
    statistics,
)
from ucle.lazy.tensor import NUMPY_FUNCTIONS, Tensor

OTHER_NAMES = {
    "amax": aggregations.max,
    "amin": aggregations.min,
    "arcsin": standard_functions.asin,
    "arccos": standard_functions.acos,
    "arctan": standard_functions.atan,
    "arcsinh": standard_functions.asinh,
    "arccosh": standard_functions.acosh,
    "arctanh": standard_functions.atanh,
    "arctan2": standard_functions.atan2,
    "left_shift": standard_functions.bitwise_left_shift,
    "right_shift": standard_functions.bitwise_right_shift,
}
"""NumPy's names of functions that have other names in the array API standard."""

NEW = ("full_like", "zeros_like", "ones_like", "empty_like", "meshgrid")
"""Functions that make tensors from tensors."""


def _public(module: ModuleType) -> Iterable[Callable[..., Any]]:
    """Yield the public functions that a module defines."""
    for name, value in vars(module).items():
        own = getattr(value, "__module__", None) == module.__name__
        if callable(value) and own and not name.startswith("_"):
            yield value


def _clear_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Drop arguments of NumPy's version that have no meaning for a lazy tensor."""

    def like(*arguments: Any, order: str = "K", subok: bool = True, **options: Any) -> Any:
        options = {name: value for name, value in options.items() if value is not None}
        return function(*arguments, **options)

    return like


def _in_order(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adapt a sorting function to NumPy's signature; every kind of sort is stable here."""

    def like(x: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Tensor:
        if axis is None:
            x, axis = functions.reshape(x, (-1,)), 0
        made: Tensor = function(x, axis=axis)
        return made

    return like


for module in (
    aggregations,
    covariances,
    standard_functions,
    manipulation,
    linear_algebra,
    searching,
    statistics,
):
    NUMPY_FUNCTIONS.update({x.__name__: x for x in _public(module)})
NUMPY_FUNCTIONS.update({name: _clear_of(getattr(new_tensors, name)) for name in NEW})
NUMPY_FUNCTIONS.update(sort=_in_order(ordering.sort), argsort=_in_order(ordering.argsort))
NUMPY_FUNCTIONS.update(OTHER_NAMES)
NUMPY_FUNCTIONS.update(unique=searching.unique_values)
for own in (matrices, factorisations, least_squares):
    NUMPY_FUNCTIONS.update({f"linalg.{name}": getattr(own, name) for name in own.NAMES})
NUMPY_FUNCTIONS.update({f"fft.{name}": getattr(fourier, name) for name in fourier.NAMES})
