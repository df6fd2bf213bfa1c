"""Conversion of numbers in memory to a stated element type, or the error that they do not fit.

A stated type accepts the values that it can hold: integers accept whole numbers within 64 bits,
booleans accept 0 and 1, and floats accept every number within their range, rounded to the nearest
float. The same holds for tables, which `ucle.stats.measure` checks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.errors import ValueTypeError
from ucle.foundation.dtypes import DType, Scalar, is_finite, nearest

HOLDS = {
    "b": "0 or 1",
    "i": "whole numbers within 64 bits",
    "f": "numbers within the range of the type, which may be rounded",
    "c": "numbers within the range of the type, which may be rounded",
}
"""The values that a type accepts, by its kind."""


def typed_numbers(
    name: str, values: NDArray[Any], stated: DType | None
) -> tuple[DType, NDArray[Any]]:
    """Return the element type of an array, and the array in that type.

    Raises:
        ValueTypeError: it holds no numbers, or one that the type does not have.
    """
    dtype = stated or nearest(values.dtype)
    if dtype is None or values.dtype.kind not in "biufc":
        raise ValueTypeError(
            "these are not numbers that ucle has a type for",
            where=f"input {name}",
            expected="an array of "
            + ", ".join(member.value for member in DType)
            + " or of smaller numbers, or another kind of input",
            found=f"dtype {values.dtype}",
            hint="if the values are numbers, use astype(float)",
        )
    if values.dtype.kind == "c" and dtype.kind != "c":
        raise ValueTypeError(
            "complex numbers are not of the type that is stated",
            where=f"input {name}",
            expected=f"real numbers for {dtype.value}",
            found=f"dtype {values.dtype}",
            hint="pass array.real",
        )
    if values.dtype == dtype.numpy or np.can_cast(values.dtype, dtype.numpy, "safe"):
        return dtype, values.astype(dtype.numpy, copy=False)
    with np.errstate(all="ignore"):
        converted = values.astype(dtype.numpy)
    wrong = _inexact(values, converted)
    if wrong.any():
        place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        at = f" at {', '.join(map(str, place))}" if place else ""
        raise ValueTypeError(
            f"a number is none of {dtype.value}",
            where=f"input {name}",
            expected=HOLDS[dtype.kind],
            found=f"{values[place]}{at}",
            hint="pass dtype=float" if stated else "astype(float) rounds it",
        )
    return dtype, converted


def _inexact(values: NDArray[Any], converted: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark the numbers that a cast has changed."""
    if converted.dtype.kind in "fc":
        return np.asarray(np.isfinite(values) & ~np.isfinite(converted))
    with np.errstate(all="ignore"):
        wrong = converted.astype(values.dtype) != values
    if values.dtype.kind == "u" and converted.dtype.kind == "i":
        wrong |= converted < 0  # wraps around both ways
    if values.dtype.kind == "f" and converted.dtype.kind == "i":
        wrong |= (values >= 2.0**63) | (values < -(2.0**63))  # where a cast may saturate
    return np.asarray(wrong)


def exact_scalar(value: Scalar, dtype: DType) -> Scalar | None:
    """Return a number as a value of an element type; None where it does not fit.

    >>> exact_scalar(2.0, DType.INT64), exact_scalar(1.5, DType.INT64), exact_scalar(1j, DType.BOOL)
    (2, None, None)
    """
    if isinstance(value, complex) and dtype.kind != "c":
        if value.imag:
            return None
        value = value.real
    try:
        held = dtype.scalar(value)
    except (OverflowError, ValueError):
        return None
    exact = held == value if dtype.kind in "bi" else is_finite(held) or not is_finite(value)
    return held if exact else None
