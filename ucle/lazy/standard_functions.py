"""The array API standard's elementwise functions that `ucle.lazy.functions` does not define.

Names and meanings are NumPy's. Zeros and NaN have no sign here, because entries that are not stored
have none.
"""

from __future__ import annotations

from typing import Any

from ucle.lazy.tensor import Tensor, as_tensor, pointwise


def sin(x: Any) -> Tensor:
    """Sines; NaN for infinities."""
    return pointwise("sin", x)


def cos(x: Any) -> Tensor:
    """Cosines; NaN for infinities."""
    return pointwise("cos", x)


def tan(x: Any) -> Tensor:
    """Tangents."""
    return pointwise("tan", x)


def asin(x: Any) -> Tensor:
    """Arc sines; NaN outside [-1, 1]."""
    return pointwise("asin", x)


def acos(x: Any) -> Tensor:
    """Arc cosines; NaN outside [-1, 1]."""
    return pointwise("acos", x)


def atan(x: Any) -> Tensor:
    """Arc tangents."""
    return pointwise("atan", x)


def sinh(x: Any) -> Tensor:
    """Hyperbolic sines."""
    return pointwise("sinh", x)


def cosh(x: Any) -> Tensor:
    """Hyperbolic cosines."""
    return pointwise("cosh", x)


def asinh(x: Any) -> Tensor:
    """Inverse hyperbolic sines."""
    return pointwise("asinh", x)


def acosh(x: Any) -> Tensor:
    """Inverse hyperbolic cosines; NaN below 1."""
    return pointwise("acosh", x)


def atanh(x: Any) -> Tensor:
    """Inverse hyperbolic tangents; NaN outside [-1, 1]."""
    return pointwise("atanh", x)


def expm1(x: Any) -> Tensor:
    """``exp(x) - 1``, accurate near 0."""
    return pointwise("expm1", x)


def log2(x: Any) -> Tensor:
    """Logarithms to the base 2."""
    return pointwise("log2", x)


def log10(x: Any) -> Tensor:
    """Logarithms to the base 10."""
    return pointwise("log10", x)


def trunc(x: Any) -> Tensor:
    """Entries rounded towards 0."""
    return pointwise("trunc", x)


def isinf(x: Any) -> Tensor:
    """A mask that is true where entries are infinite."""
    return pointwise("isinf", x)


def signbit(x: Any) -> Tensor:
    """A mask that is true where entries are less than 0."""
    return pointwise("signbit", x)


def reciprocal(x: Any) -> Tensor:
    """``1 / x``."""
    return pointwise("reciprocal", x)


def positive(x: Any) -> Tensor:
    """The tensor unchanged."""
    return as_tensor(x)


def atan2(y: Any, x: Any) -> Tensor:
    """Angles of the points (y, x), from -pi to pi."""
    return pointwise("atan2", y, x)


def hypot(x: Any, y: Any) -> Tensor:
    """``sqrt(x * x + y * y)``, without intermediate overflow."""
    return pointwise("hypot", x, y)


def logaddexp(x: Any, y: Any) -> Tensor:
    """``log(exp(x) + exp(y))``, without intermediate overflow."""
    return pointwise("logaddexp", x, y)


def copysign(x: Any, y: Any) -> Tensor:
    """The magnitude of x with the sign of y."""
    return pointwise("copysign", x, y)


def nextafter(x: Any, y: Any) -> Tensor:
    """The next representable number from x towards y."""
    return pointwise("nextafter", x, y)


def remainder(x: Any, y: Any) -> Tensor:
    """The remainder of ``floor_divide``, with the sign of y."""
    return pointwise("remainder", x, y)


def floor_divide(x: Any, y: Any) -> Tensor:
    """Quotients, rounded down; division of integers by 0 gives 0."""
    return pointwise("floor_divide", x, y)


def bitwise_left_shift(x: Any, y: Any) -> Tensor:
    """``x << y`` of integers; losing bits is an error."""
    return pointwise("bitwise_left_shift", x, y)


def bitwise_right_shift(x: Any, y: Any) -> Tensor:
    """``x >> y`` of integers."""
    return pointwise("bitwise_right_shift", x, y)
