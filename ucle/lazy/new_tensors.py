"""Lazy tensors from sizes and numbers only, with the array API standard's names.

Nothing is stored for them, whatever their sizes: see `ucle.lazy.constants`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ucle.errors import ArgumentError, ArgumentTypeError, UnsupportedError
from ucle.foundation.dtypes import DType, Scalar, nearest
from ucle.inputs.inputs import element_type
from ucle.ir.conditions import Compare, Sign
from ucle.language.bounds import checked_size
from ucle.lazy import constants
from ucle.lazy.creation import array
from ucle.lazy.elementwise import elementwise
from ucle.lazy.nodes import Axis, Lazy, apply
from ucle.lazy.places import position, where
from ucle.lazy.tensor import DEVICE, Tensor, as_tensor, tensor_operand
from ucle.lazy.types import node_types
from ucle.operators import (
    FLOOR,
    WHEN,
)

Shape = int | Sequence[int]


def full(shape: Shape, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A constant tensor, by default with the type of the number.

    >>> import ucle
    >>> ucle.full((1_000_000, 1_000_000), 0.5).sum().item()
    500000000000.0
    """
    _check_device(device, "full")
    return Tensor(constants.constant(_axes(shape, "full"), fill_value, _type_of(fill_value, dtype)))


def zeros(shape: Shape, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of zeros."""
    return full(shape, 0, dtype=dtype or float, device=device)


def ones(shape: Shape, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of ones.

    >>> import ucle
    >>> ucle.ones((2, 3), dtype=int).to_numpy()
    array([[1, 1, 1],
           [1, 1, 1]])
    """
    return full(shape, 1, dtype=dtype or float, device=device)


def empty(shape: Shape, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of zeros: a lazy tensor has no memory that could stay uninitialised."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Any, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A constant tensor with the axes of another tensor, and by default with its type.

    >>> import ucle
    >>> ucle.full_like(ucle.array([[1, 2], [3, 4]], axes=("row", "column")), 7)
    <Tensor (row: 2, column: 2)>
    out[row,column] = full[row,column]
    """
    _check_device(device, "full_like")
    tensor = tensor_operand(x)
    own = None if dtype is None else element_type(dtype, "full_like")
    known = own or node_types([tensor.node])[tensor.node]
    sized = all(axis.size is not None and not axis.encoded for axis in tensor.axes)
    if known is not None and sized:
        return Tensor(constants.constant(tensor.axes, fill_value, known))
    return Tensor(constants.everywhere(tensor, fill_value, own))


def zeros_like(x: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of zeros with the axes and the type of a tensor."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of ones with the axes and the type of a tensor."""
    return full_like(x, 1, dtype=dtype, device=device)


def eye_like(x: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """The identity matrix with the last two axes of a tensor, which may have names.

    Args:
        x: a tensor of at least two axes; the result has one such matrix for each position of the
            other axes, like `ones_like`.
        dtype: the element type, by default that of `x`.
        device: None or ``"duckdb"``.

    >>> import ucle
    >>> gram = ucle.array([[2.0, 1.0], [1.0, 2.0]], axes=("a", "b"))
    >>> (gram + 0.5 * ucle.eye_like(gram)).to_numpy().tolist()
    [[2.5, 1.0], [1.0, 2.5]]
    """
    ones = ones_like(x, dtype=dtype, device=device).lazy
    if len(ones.axes) < 2:
        raise ArgumentError(
            "a matrix has two axes",
            where="eye_like",
            expected="a tensor of at least two axes",
            found=str(ones),
        )
    row, column = len(ones.axes) - 2, len(ones.axes) - 1
    same = where(Compare(position(row).plus(position(column), -1), Sign.EQUAL), ones.axes)
    own = ones.operand(range(len(ones.axes)))
    return Tensor(apply(WHEN.name, [same, own], ones.axes))


def empty_like(x: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of zeros with the axes and the type of a tensor, as for `empty`."""
    return zeros_like(x, dtype=dtype, device=device)


def arange(
    start: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: str | None = None
) -> Tensor:
    """Numbers from a start up to a stop in equal steps; with one argument, from 0 up to it.

    >>> import ucle
    >>> ucle.arange(1, 8, 3).to_numpy(), ucle.arange(1_000_000).sum().item()
    (array([1, 4, 7]), 499999500000)
    """
    _check_device(device, "arange")
    if stop is None:
        start, stop = 0, start
    for value in (start, stop, step):
        _check_number(value, "arange")
    if not step:
        raise ArgumentTypeError(
            "the step is 0", where="arange", expected="another step", found=repr(step)
        )
    size = max(math.ceil((stop - start) / step), 0)
    found = nearest(np.result_type(start, stop, step))
    assert found is not None
    own = found if dtype is None else element_type(dtype, "arange")
    if found.kind == "f":  # NumPy's step is the difference of its first two numbers
        step = (start + step) - start
    made = Tensor(constants.progression(size, start, step, found))
    return made if own is DType.INT64 and found is own else made.astype(own.value)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    *,
    dtype: Any = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """Evenly spaced numbers from a start up to a stop.

    >>> import ucle
    >>> ucle.linspace(0, 1, 5).to_numpy()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    _check_device(device, "linspace")
    num = checked_size(num, "linspace, num")
    gaps = num - 1 if endpoint else num
    complexes = isinstance(start, complex) or isinstance(stop, complex)
    kind = DType.COMPLEX128 if complexes else DType.FLOAT64
    first, last = kind.scalar(start), kind.scalar(stop)
    apart: Scalar = (last - first) / gaps if gaps else 0.0
    numbers = constants.progression(num, first, apart, kind)
    if endpoint and num > 1:
        numbers = constants.with_last(numbers, last)
    own = kind if dtype is None else element_type(dtype, "linspace")
    if own.kind == "i":
        numbers = elementwise(FLOOR.name, numbers)
    return Tensor(numbers if own is kind else elementwise(own.value, numbers))


def asarray(
    obj: Any, *, dtype: Any = None, device: str | None = None, copy: bool | None = None
) -> Tensor:
    """Convert any tensor-like object to a lazy tensor; data in memory is not copied.

    Raises:
        UnsupportedError: a copy is requested.
    """
    _check_device(device, "asarray")
    if copy:
        raise UnsupportedError(
            "a lazy tensor has no data of its own",
            where="asarray",
            expected="copy=None or copy=False",
            found="copy=True",
            hint="copy the array: ucle.array(x.copy())",
        )
    made = obj if isinstance(obj, Tensor) else _lift_operand(obj)
    return made if dtype is None else made.astype(dtype)


def _lift_operand(obj: Any) -> Tensor:
    return array(obj) if isinstance(obj, str) else as_tensor(obj)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """Make a lazy tensor from another library's array, which is read at computation.

    With ``copy=True``, the data is copied now, and the copy is read.

    >>> import ucle
    >>> ucle.from_dlpack(np.array([1.0, 2.0])).sum().item()
    3.0
    """
    _check_device(device, "from_dlpack")
    read = np.from_dlpack(x)
    return array(read.copy() if copy else read)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Broadcast each vector to a grid of all their axes.

    >>> import ucle
    >>> [x.to_numpy().tolist() for x in ucle.meshgrid([1, 2, 3], [4, 5])]
    [[[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [5, 5, 5]]]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentTypeError(
            "this is not an order of axes",
            where="meshgrid",
            expected="'xy' or 'ij'",
            found=indexing,
        )
    vectors = [tensor_operand(x) for x in arrays]
    for vector in vectors:
        if len(vector.axes) > 1 or vector.named:
            raise ArgumentTypeError(
                "a grid needs vectors",
                where="meshgrid",
                expected="one axis, without a name",
                found=str(vector),
            )
    order = list(range(len(vectors)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    axes = [vectors[n].axes[0] if vectors[n].axes else Axis(size=1) for n in order]
    return tuple(
        Tensor(constants.stretch_tensor(vector, axes, [order.index(n)][: len(vector.axes)]))
        for n, vector in enumerate(vectors)
    )


def _check_device(device: Any, where: str) -> None:
    """Check that a device is the only one that exists.

    Raises:
        UnsupportedError: it is another one.
    """
    if device not in (None, DEVICE):
        raise UnsupportedError(
            "lazy tensors have only one device",
            where=f"{where}(device=...)",
            expected=f"None or {DEVICE!r}",
            found=repr(device),
        )


def _axes(shape: Shape, where: str) -> tuple[Axis, ...]:
    sizes = shape if isinstance(shape, Sequence | np.ndarray) else (shape,)
    return tuple(Axis(size=checked_size(operator.index(n), f"{where}, shape")) for n in sizes)


def _type_of(value: Any, dtype: Any) -> DType:
    if dtype is not None:
        return element_type(dtype, "full")
    _check_number(value, "full")
    found = nearest(np.asarray(value).dtype)
    assert found is not None
    return found


def _check_number(value: Any, where: str) -> None:
    if (
        isinstance(value, Lazy | Tensor | str)
        or np.ndim(value)
        or nearest(np.asarray(value).dtype) is None
    ):
        raise ArgumentTypeError(
            "this is not a number", where=where, expected="a number", found=repr(value)[:80]
        )
