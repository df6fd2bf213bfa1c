"""The array API standard's elementwise functions that `ucle.lazy.functions` does not define.

Names and meanings are NumPy's. Zeros and NaN have no sign here, because entries that are not stored
have none.
"""

from __future__ import annotations

from typing import Any

from ucle.lazy.tensor import Tensor, as_tensor, pointwise
from ucle.operators import (
    ACOS,
    ACOSH,
    ASIN,
    ASINH,
    ATAN,
    ATAN2,
    ATANH,
    BITWISE_LEFT_SHIFT,
    BITWISE_RIGHT_SHIFT,
    COPYSIGN,
    COS,
    COSH,
    EXPM1,
    FLOOR_DIVIDE,
    HYPOT,
    ISINF,
    LOG2,
    LOG10,
    LOGADDEXP,
    NEXTAFTER,
    RECIPROCAL,
    REMAINDER,
    SIN,
    SINH,
    TAN,
    TRUNC,
)


def sin(x: Any) -> Tensor:
    """Sines; NaN for infinities."""
    return pointwise(SIN.name, x)


def cos(x: Any) -> Tensor:
    """Cosines; NaN for infinities."""
    return pointwise(COS.name, x)


def tan(x: Any) -> Tensor:
    """Tangents."""
    return pointwise(TAN.name, x)


def asin(x: Any) -> Tensor:
    """Arc sines; NaN outside [-1, 1]."""
    return pointwise(ASIN.name, x)


def acos(x: Any) -> Tensor:
    """Arc cosines; NaN outside [-1, 1]."""
    return pointwise(ACOS.name, x)


def atan(x: Any) -> Tensor:
    """Arc tangents."""
    return pointwise(ATAN.name, x)


def sinh(x: Any) -> Tensor:
    """Hyperbolic sines."""
    return pointwise(SINH.name, x)


def cosh(x: Any) -> Tensor:
    """Hyperbolic cosines."""
    return pointwise(COSH.name, x)


def asinh(x: Any) -> Tensor:
    """Inverse hyperbolic sines."""
    return pointwise(ASINH.name, x)


def acosh(x: Any) -> Tensor:
    """Inverse hyperbolic cosines; NaN below 1."""
    return pointwise(ACOSH.name, x)


def atanh(x: Any) -> Tensor:
    """Inverse hyperbolic tangents; NaN outside [-1, 1]."""
    return pointwise(ATANH.name, x)


def expm1(x: Any) -> Tensor:
    """``exp(x) - 1``, accurate near 0."""
    return pointwise(EXPM1.name, x)


def log2(x: Any) -> Tensor:
    """Logarithms to the base 2."""
    return pointwise(LOG2.name, x)


def log10(x: Any) -> Tensor:
    """Logarithms to the base 10."""
    return pointwise(LOG10.name, x)


def trunc(x: Any) -> Tensor:
    """Entries rounded towards 0."""
    return pointwise(TRUNC.name, x)


def isinf(x: Any) -> Tensor:
    """A mask that is true where entries are infinite."""
    return pointwise(ISINF.name, x)


def signbit(x: Any) -> Tensor:
    """A mask that is true where entries are less than 0."""
    return pointwise("signbit", x)


def reciprocal(x: Any) -> Tensor:
    """``1 / x``."""
    return pointwise(RECIPROCAL.name, x)


def positive(x: Any) -> Tensor:
    """The tensor unchanged."""
    return as_tensor(x)


def atan2(y: Any, x: Any) -> Tensor:
    """Angles of the points (y, x), from -pi to pi."""
    return pointwise(ATAN2.name, y, x)


def hypot(x: Any, y: Any) -> Tensor:
    """``sqrt(x * x + y * y)``, without intermediate overflow."""
    return pointwise(HYPOT.name, x, y)


def logaddexp(x: Any, y: Any) -> Tensor:
    """``log(exp(x) + exp(y))``, without intermediate overflow."""
    return pointwise(LOGADDEXP.name, x, y)


def copysign(x: Any, y: Any) -> Tensor:
    """The magnitude of x with the sign of y."""
    return pointwise(COPYSIGN.name, x, y)


def nextafter(x: Any, y: Any) -> Tensor:
    """The next representable number from x towards y."""
    return pointwise(NEXTAFTER.name, x, y)


def remainder(x: Any, y: Any) -> Tensor:
    """The remainder of ``floor_divide``, with the sign of y."""
    return pointwise(REMAINDER.name, x, y)


def floor_divide(x: Any, y: Any) -> Tensor:
    """Quotients, rounded down; division of integers by 0 gives 0."""
    return pointwise(FLOOR_DIVIDE.name, x, y)


def bitwise_left_shift(x: Any, y: Any) -> Tensor:
    """``x << y`` of integers; losing bits is an error."""
    return pointwise(BITWISE_LEFT_SHIFT.name, x, y)


def bitwise_right_shift(x: Any, y: Any) -> Tensor:
    """``x >> y`` of integers."""
    return pointwise(BITWISE_RIGHT_SHIFT.name, x, y)
