"""Tensors without stored entries: constants, and functions of positions.

The value of entries that are not stored is a property of a tensor, its fill: zeros, ones and all
other constants are tables without rows. Consecutive numbers are labels used as values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ucle.errors import BoundError
from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.libraries import pa
from ucle.inputs.table_input import TableInput
from ucle.ir.conditions import Compare, Sign
from ucle.lazy.elementwise import elementwise
from ucle.lazy.nodes import Axes, Axis, Lazy, Leaf, NodeOperand, apply
from ucle.lazy.places import function_of_places, number, position, where
from ucle.operators import (
    ADD,
    MULT,
    UNLESS,
)


def constant(axes: Axes, value: Any, dtype: DType) -> Lazy:
    """Build a constant along axes of known sizes.

    >>> print(constant((Axis(size=10**6), Axis(size=10**6)), 1, DType.FLOAT32))
    (1000000, 1000000)
    """
    worth: Scalar = np.asarray(value).astype(dtype.numpy).item()
    long = tuple(axis for axis in axes if not axis.unit)
    if not long:
        return Lazy(Leaf(np.array(worth, dtype.numpy), (), "full", dtype), axes)
    keys = {f"at{n}": pa.array([], pa.int64()) for n in range(len(long))}
    spec = TableInput(
        pa.table({**keys, "value": pa.array([], _arrow_type(dtype))}),
        tuple(keys),
        "value",
        fill=worth,
        bounds=tuple(axis.size for axis in long),
        dtype=dtype,
    )
    return Lazy(Leaf(spec, long, "full", dtype), axes)


def _arrow_type(dtype: DType) -> Any:
    if dtype.kind != "c":
        return pa.from_numpy_dtype(dtype.numpy)
    part = pa.from_numpy_dtype(dtype.real.numpy)
    return pa.struct([("re", part), ("im", part)])


def everywhere(tensor: Lazy, value: Any, dtype: DType | None) -> Lazy:
    """Build a constant with the axes of a tensor, whose sizes may be those of a table.

    Args:
        tensor: the tensor that supplies the axes.
        value: the number.
        dtype: its type; None for that of the tensor.
    """
    nothing = elementwise(UNLESS.name, True, tensor)
    if dtype is not None:
        nothing = elementwise(dtype.value, nothing)
    return nothing if not value else elementwise(ADD.name, nothing, value)


def make_range(size: int) -> Lazy:
    """The integers from 0 on, each at its position."""
    axes = (Axis(size=size),)
    if size == 1:
        return constant(axes, 0, DType.INT64)
    return apply(None, [function_of_places(position(0), axes)], axes)


def progression(size: int, start: Scalar, step: Scalar, dtype: DType) -> Lazy:
    """Numbers that grow by a constant step from position to position.

    They are computed as in NumPy: the step times the position, plus the start.

    >>> print(progression(3, 0.5, 0.25, DType.FLOAT64))
    (3)
    """
    numbers: Lazy = make_range(size)
    if dtype.kind in "fc":
        wide = DType.COMPLEX128 if dtype.kind == "c" else DType.FLOAT64
        numbers = elementwise(wide.value, numbers)
    if step != 1:
        numbers = elementwise(MULT.name, numbers, step)
    return numbers if not start else elementwise(ADD.name, numbers, start)


def with_last(numbers: Lazy, last: Scalar) -> Lazy:
    """Replace the last entry of a vector of at least two entries."""
    (axis,) = numbers.axes
    at_end = Compare(position(0).plus(number(1 - (axis.size or 0))), Sign.EQUAL)
    read = [where(at_end, numbers.axes), NodeOperand(last), numbers.operand(range(1))]
    return apply("where", read, numbers.axes)


def stretch_tensor(tensor: Lazy, axes: Sequence[Axis], places: Sequence[int]) -> Lazy:
    """Place the axes of a tensor among others, along which it is repeated."""
    every = range(len(axes))
    if set(places).issuperset(n for n in every if not axes[n].unit):
        return apply(None, [tensor.operand(places)], axes)
    nothing = constant(tuple(axes), False, DType.BOOL)
    return apply(ADD.name, [nothing.operand(every), tensor.operand(places)], axes)


def broadcast_to(tensor: Lazy, shape: Sequence[int]) -> Lazy:
    """Broadcast a tensor to a shape, along missing axes and those of size 1.

    Raises:
        BoundError: the tensor cannot be broadcast to the shape.
    """
    axes = tuple(Axis(size=size) for size in shape)
    if tensor.named and len(shape) == len(tensor.axes):
        axes = tuple(replace(a, size=n) for a, n in zip(tensor.axes, shape, strict=True))
    result = elementwise(ADD.name, constant(axes, False, DType.BOOL), tensor)
    if tuple(axis.size for axis in result.axes) != tuple(shape):
        raise BoundError(
            "a tensor cannot be broadcast to that shape",
            where="broadcast_to",
            expected=f"a shape that {tensor} can be stretched to",
            found=f"({', '.join(map(str, shape))})",
        )
    return result
