"""Element types of tensors, in NumPy and in the kernels.

There are six types. `nearest` maps every other numeric type of NumPy to one of them. A value of a
type outside an array (a fill, a constant) is a plain Python number.
"""

from __future__ import annotations

import cmath
import math
from enum import Enum
from typing import Any, cast

import numpy as np

Scalar = bool | int | float | complex


class DType(Enum):
    """Element type of a tensor; the value is its name in NumPy."""

    BOOL = "bool"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"

    # Types are parts of many keys, and the default hash of an enum is several times slower.
    __hash__ = object.__hash__

    def __init__(self, name: str) -> None:
        self.numpy: np.dtype[Any] = np.dtype(name)
        """The type in NumPy."""
        self.bytes = self.numpy.itemsize
        """Size of one element in bytes."""
        self.kind: str = self.numpy.kind
        """NumPy's letter for the kind of number: b, i, f or c."""

    @property
    def tag(self) -> str:
        """The part of kernels' names that stands for the type."""
        return _TAGS[self]

    @property
    def real(self) -> DType:
        """The type of the parts of a complex number; for other types the type itself."""
        return {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}.get(self, self)

    def scalar(self, value: Any) -> Scalar:
        """Return a number as a Python value of this type, with the rounding of the type.

        Raises:
            OverflowError: an integer beyond 64 bits.
            ValueError: a NaN or an infinity as an integer.

        >>> DType.FLOAT32.scalar(0.1), DType.INT64.scalar(2.0), DType.BOOL.scalar(3)
        (0.10000000149011612, 2, True)
        """
        if isinstance(value, complex) and self.kind != "c":
            value = value if self is DType.BOOL else value.real
        if self is DType.INT64:
            number = int(value)
            if not -(2**63) <= number < 2**63:
                raise OverflowError(f"{value} does not fit 64 bits")
            return number
        if self not in _SINGLE:
            return cast(Scalar, self.numpy.type(value).item())
        with np.errstate(over="ignore"):
            return cast(Scalar, self.numpy.type(value).item())


_SINGLE = DType.FLOAT32, DType.COMPLEX64
"""The types that a Python number may overflow without an error."""

_TAGS = {
    DType.BOOL: "bool",
    DType.INT64: "i64",
    DType.FLOAT32: "f32",
    DType.FLOAT64: "f64",
    DType.COMPLEX64: "c64",
    DType.COMPLEX128: "c128",
}


def nearest(dtype: np.dtype[Any]) -> DType | None:
    """Return the element type that holds the values of a NumPy type; None where none does.

    Small integers become int64 and half floats float32. Types wider than the widest one here (long
    doubles; also 64-bit unsigned integers, which the caller has to check) are not rounded silently.

    >>> nearest(np.dtype("uint8")), nearest(np.dtype("object"))
    (<DType.INT64: 'int64'>, None)
    """
    if dtype.kind in "iu":
        return DType.INT64
    if dtype.kind == "f" and dtype.itemsize < 4:
        return DType.FLOAT32
    return next((member for member in DType if member.numpy == dtype.newbyteorder("=")), None)


def promote(one: DType, other: DType) -> DType:
    """Return the smallest type that holds the values of both, by NumPy's rules.

    >>> promote(DType.INT64, DType.FLOAT32)
    <DType.FLOAT64: 'float64'>
    """
    return DType(np.result_type(one.numpy, other.numpy).name)


def is_finite(value: Scalar) -> bool:
    """True if a number is neither NaN nor infinite."""
    return cmath.isfinite(value)


def same_value(one: Scalar, other: Scalar) -> bool:
    """True if two fills are equal: NaN equals NaN, and -0.0 equals 0.0."""
    if one == other:
        return True
    return _nan(one) and _nan(other)


def _nan(value: Scalar) -> bool:
    return cmath.isnan(value) if isinstance(value, complex) else math.isnan(value)


def differs_from(array: Any, fill: Scalar) -> Any:
    """Return a mask of the elements that differ from the fill; NaN is a fill like any other."""
    return ~np.isnan(array) if _nan(fill) else array != fill
