"""Discrete Fourier transforms as products with matrices of roots of unity.

A matrix holds cosines and sines of angles that are functions of positions, so that it is a tensor
without stored entries (`ucle.lazy.constants`). Names, arguments and scales are those of
`numpy.fft`; all is computed in double precision, and returned in that of the argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ucle.errors import ArgumentTypeError, AxisError, BoundError, ValueTypeError
from ucle.foundation.dtypes import DType
from ucle.lazy.axes import AxisLike, find_axis
from ucle.lazy.compute import known_type
from ucle.lazy.functions import conj, equal, imag, logical_or, pad, real, where
from ucle.lazy.new_tensors import arange
from ucle.lazy.nodes import Lazy
from ucle.lazy.products import contract_tensors
from ucle.lazy.rearranging import crop_axis, known_size, roll_tensor
from ucle.lazy.standard_functions import cos, remainder, sin
from ucle.lazy.tensor import Tensor, as_tensor, tensor_operand

NAMES = (
    *("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"),
    *("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"),
    *("fftshift", "ifftshift"),
)
"""The functions of tensors, by their names in `numpy.fft`."""

SCALES: dict[str, tuple[float, float]] = {
    "backward": (0, 1),
    "ortho": (0.5, 0.5),
    "forward": (1, 0),
}
"""By ``norm=``, the power of n by which the transform and its inverse are divided."""

OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}

Axes = Sequence[AxisLike] | None


def fft(x: Any, n: int | None = None, axis: AxisLike = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along an axis: sums of ``x[k] * exp(-2j * pi * j * k / n)``.

    Args:
        x: a tensor of any type.
        n: the number of points; the axis is cropped, or padded with zeros. By default its size.
        axis: the axis, by position or name.
        norm: ``"backward"`` (the default) scales the inverse by ``1 / n``, ``"forward"`` the
            transform, and ``"ortho"`` both by ``1 / sqrt(n)``.

    Returns:
        A complex tensor, of complex64 where `x` is of single precision.

    Raises:
        BoundError: there are no points, or only the data of a table determines the size of the
            axis.
        UnsupportedError: the coordinates of the axis are not positions.
        ArgumentTypeError: `norm` is none of these.

    >>> import ucle
    >>> abs(ucle.fft.fft([1, 2, 3, 4]).to_numpy()).round(6).tolist()
    [10.0, 2.828427, 2.0, 2.828427]
    """
    return _transform(x, n, axis, norm, "fft", inverse=False)


def ifft(x: Any, n: int | None = None, axis: AxisLike = -1, norm: str | None = None) -> Tensor:
    """The inverse of `fft`, with the same arguments."""
    return _transform(x, n, axis, norm, "ifft", inverse=True)


def rfft(x: Any, n: int | None = None, axis: AxisLike = -1, norm: str | None = None) -> Tensor:
    """The first half of `fft` of real numbers, ``n // 2 + 1`` points; the other half mirrors it.

    Raises:
        ValueTypeError: the numbers are complex. Other errors are as for `fft`.

    >>> import ucle
    >>> abs(ucle.fft.rfft([1, 2, 3, 4]).to_numpy()).round(6).tolist()
    [10.0, 2.828427, 2.0]
    """
    tensor, place, points = _points(x, n, axis, "rfft")
    kind = known_type(tensor)
    if kind is not None and kind.kind == "c":
        raise ValueTypeError(
            "the half of a transform tells the whole only of real numbers",
            where="rfft",
            expected="real numbers",
            found=kind.value,
            hint="ucle.fft.fft takes complex numbers",
        )
    scale = _scale(norm, points, 0, "rfft")
    return _of_reals(tensor, place, points, points // 2 + 1, scale, -1)


def irfft(x: Any, n: int | None = None, axis: AxisLike = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`: n real numbers, by default ``2 * (m - 1)`` of m points.

    >>> import ucle
    >>> ucle.fft.irfft(ucle.fft.rfft([1, 2, 3, 4])).to_numpy().round(12).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    tensor = tensor_operand(x)
    place = find_axis(tensor, axis, "irfft")
    points = _checked(2 * (known_size(tensor, place, "irfft") - 1) if n is None else n, "irfft")
    halves = points // 2 + 1
    half = Tensor(_resized(tensor, place, halves))
    # The points between the first and, of an even number, the middle one stand for two each.
    k = arange(halves)
    once = logical_or(equal(k, 0), equal(k * 2, points))
    weights = where(once, 1.0, 2.0) * _scale(norm, points, 1, "irfft")
    angles = _angles(halves, points, points)
    rows = weights.expand_dims(1)
    found = Tensor(_contract(real(half).lazy, place, cos(angles) * rows))
    found = found - Tensor(_contract(imag(half).lazy, place, sin(angles) * rows))
    return _in_precision(found, tensor, DType.FLOAT32)


def hfft(x: Any, n: int | None = None, axis: AxisLike = -1, norm: str | None = None) -> Tensor:
    """The transform, n real numbers, of a signal whose second half mirrors the given first half."""
    return irfft(conj(as_tensor(x)), n, axis, OPPOSITE[_checked_norm(norm, "hfft")])


def ihfft(x: Any, n: int | None = None, axis: AxisLike = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft`: ``n // 2 + 1`` points of real numbers."""
    return conj(rfft(x, n, axis, OPPOSITE[_checked_norm(norm, "ihfft")]))


# ---- Along several axes ----


def fftn(x: Any, s: Any = None, axes: Axes = None, norm: str | None = None) -> Tensor:
    """`fft` along several axes, by default all.

    Args:
        x: a tensor of any type.
        s: the number of points of each of these axes; None takes their sizes.
        axes: the axes; without them, the last ones if `s` is given, and all otherwise.
        norm: as for `fft`.

    Raises:
        ArgumentTypeError: there are not as many sizes as axes. Other errors are as for `fft`.

    >>> import ucle
    >>> ucle.fft.fftn([[1, 2], [3, 4]]).to_numpy().round(12).real.tolist()
    [[10.0, -2.0], [-4.0, 0.0]]
    """
    return _along_each(fft, x, s, axes, norm, "fftn")


def ifftn(x: Any, s: Any = None, axes: Axes = None, norm: str | None = None) -> Tensor:
    """The inverse of `fftn`."""
    return _along_each(ifft, x, s, axes, norm, "ifftn")


def rfftn(x: Any, s: Any = None, axes: Axes = None, norm: str | None = None) -> Tensor:
    """`rfft` along the last of several axes, then `fft` along the others."""
    tensor, sizes, places = _sizes_of_axes(x, s, axes, "rfftn")
    made = rfft(tensor, sizes[-1], places[-1], norm)
    return _along_each(fft, made, sizes[:-1], places[:-1], norm, "rfftn")


def irfftn(x: Any, s: Any = None, axes: Axes = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`."""
    tensor, sizes, places = _sizes_of_axes(x, s, axes, "irfftn")
    made = _along_each(ifft, tensor, sizes[:-1], places[:-1], norm, "irfftn")
    return irfft(made, sizes[-1], places[-1], norm)


def fft2(x: Any, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """`fftn` along two axes, by default the last ones."""
    return fftn(x, s, axes, norm)


def ifft2(x: Any, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `fft2`."""
    return ifftn(x, s, axes, norm)


def rfft2(x: Any, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """`rfftn` along two axes, by default the last ones."""
    return rfftn(x, s, axes, norm)


def irfft2(x: Any, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `rfft2`."""
    return irfftn(x, s, axes, norm)


# ---- Frequencies ----


def fftfreq(n: int, d: float = 1.0) -> Tensor:
    """The frequencies of the points of `fft`, in cycles per unit of the spacing `d`.

    >>> import ucle
    >>> ucle.fft.fftfreq(5, 0.5).to_numpy().tolist()
    [0.0, 0.4, 0.8, -0.8, -0.4]
    """
    points = _checked(n, "fftfreq")
    k = arange(points)
    return where(k > (points - 1) // 2, k - points, k) * (1.0 / (points * d))


def rfftfreq(n: int, d: float = 1.0) -> Tensor:
    """The frequencies of the points of `rfft`, in cycles per unit of the spacing `d`."""
    points = _checked(n, "rfftfreq")
    return arange(points // 2 + 1) * (1.0 / (points * d))


def fftshift(x: Any, axes: AxisLike | Sequence[AxisLike] | None = None) -> Tensor:
    """Move the frequency 0 to the middle of axes, by default of all.

    >>> import ucle
    >>> ucle.fft.fftshift(ucle.fft.fftfreq(5)).to_numpy().tolist()
    [-0.4, -0.2, 0.0, 0.2, 0.4]
    """
    return _shifted(x, axes, "fftshift", lambda size: size // 2)


def ifftshift(x: Any, axes: AxisLike | Sequence[AxisLike] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, "ifftshift", lambda size: -(size // 2))


def _shifted(x: Any, axes: Any, name: str, by: Callable[[int], int]) -> Tensor:
    tensor = tensor_operand(x)
    if axes is None:
        axes = range(len(tensor.axes))
    elif isinstance(axes, str | int):
        axes = (axes,)
    places = [find_axis(tensor, axis, name) for axis in axes]
    if not places:
        return Tensor(tensor)
    shifts = [by(known_size(tensor, place, name)) for place in places]
    return Tensor(roll_tensor(tensor, shifts, places))


# ---- Products ----


def _transform(
    x: Any, n: int | None, axis: AxisLike, norm: str | None, name: str, *, inverse: bool
) -> Tensor:
    tensor, place, points = _points(x, n, axis, name)
    scale, sign = _scale(norm, points, int(inverse), name), 1 if inverse else -1
    kind = known_type(tensor)
    if kind is not None and kind.kind != "c":  # two real products take half of a complex one
        return _of_reals(tensor, place, points, points, scale, sign)
    angles = _angles(points, points, points)
    roots = cos(angles) * scale + sin(angles) * complex(0, sign * scale)
    return _in_precision(Tensor(_contract(tensor, place, roots)), tensor, DType.COMPLEX64)


def _of_reals(tensor: Lazy, place: int, points: int, count: int, scale: float, sign: int) -> Tensor:
    """The first points of a transform of real numbers."""
    angles = _angles(points, count, points)
    even = Tensor(_contract(tensor, place, cos(angles) * scale))
    odd = Tensor(_contract(tensor, place, sin(angles) * scale))
    return _in_precision(even + odd * complex(0, sign), tensor, DType.COMPLEX64)


def _angles(rows: int, columns: int, points: int) -> Tensor:
    """The angles of roots of unity, from -pi to pi: 2 pi j k / n at row j and column k."""
    turns = remainder(arange(rows).expand_dims(1) * arange(columns), points)
    # Small angles have small errors, and those of whole turns none.
    return where(turns * 2 > points, turns - points, turns) * (2 * math.pi / points)


def _contract(tensor: Lazy, place: int, matrix: Tensor) -> Lazy:
    """Multiply an axis by a matrix, whose columns take the place of the axis."""
    plain = Tensor(tensor).unnamed().lazy if tensor.named else tensor
    summed = len(tensor.axes)
    output = range(summed)
    labels = [summed if n == place else n for n in output]
    made = contract_tensors([plain, matrix.lazy], [labels, [summed, place]], output, "fft")
    names = [axis.name for axis in tensor.axes if axis.name is not None]
    return Tensor(made).named(*names).lazy if tensor.named else made


def _in_precision(made: Tensor, source: Lazy, single: DType) -> Tensor:
    """The tensor in single precision, if its source is."""
    narrow = known_type(source) in (DType.FLOAT32, DType.COMPLEX64)
    return made.astype(single.value) if narrow else made


def _points(x: Any, n: int | None, axis: AxisLike, name: str) -> tuple[Lazy, int, int]:
    """A tensor whose axis has as many points as it is to have, the axis, and their number."""
    tensor = tensor_operand(x)
    place = find_axis(tensor, axis, name)
    points = _checked(known_size(tensor, place, name) if n is None else n, name)
    return _resized(tensor, place, points), place, points


def _resized(tensor: Lazy, place: int, points: int) -> Lazy:
    """The tensor with some points along an axis: the first ones, or zeros behind all of them."""
    size = known_size(tensor, place, "fft")
    if points <= size:
        return crop_axis(tensor, place, 0, points)
    widths = [(0, points - size if n == place else 0) for n in range(len(tensor.axes))]
    return pad(Tensor(tensor), widths).lazy


def _along_each(
    transform: Callable[..., Tensor], x: Any, s: Any, axes: Axes, norm: str | None, name: str
) -> Tensor:
    made, sizes, places = _sizes_of_axes(x, s, axes, name)
    for size, place in zip(reversed(sizes), reversed(places), strict=True):
        made = transform(made, size, place, norm)
    return made


def _sizes_of_axes(x: Any, s: Any, axes: Axes, name: str) -> tuple[Tensor, list[Any], list[int]]:
    """The tensor, and the axes of a transform with the points that are asked for."""
    tensor = tensor_operand(x)
    sizes = None if s is None else list(s)
    if axes is None:
        axes = range(-len(tensor.axes if sizes is None else sizes), 0)
    places = [find_axis(tensor, axis, name) for axis in axes]
    if not places and name.startswith(("rfft", "irfft")):
        raise AxisError(
            "there is no axis to transform", where=name, expected="at least one axis", found="none"
        )
    if sizes is None:
        sizes = [None] * len(places)
    if len(sizes) != len(places):
        raise ArgumentTypeError(
            "sizes and axes do not go together",
            where=name,
            expected=f"a size for each of {len(places)} axes",
            found=f"{len(sizes)} sizes",
        )
    return Tensor(tensor), [None if size == -1 else size for size in sizes], places


def _checked(points: Any, name: str) -> int:
    if isinstance(points, bool) or not isinstance(points, int) or points < 1:
        raise BoundError(
            "a transform has at least one point",
            where=name,
            expected="an integer from 1 on",
            found=repr(points),
        )
    return points


def _checked_norm(norm: str | None, name: str) -> str:
    norm = "backward" if norm is None else norm
    if norm not in SCALES:
        raise ArgumentTypeError(
            "unknown norm",
            where=name,
            expected=" or ".join(map(repr, SCALES)),
            found=repr(norm),
        )
    return norm


def _scale(norm: str | None, points: int, direction: int, name: str) -> float:
    """The factor of a transform (direction 0) or of its inverse (1)."""
    return float(points ** -SCALES[_checked_norm(norm, name)][direction])
