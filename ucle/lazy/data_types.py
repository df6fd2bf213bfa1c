"""Element types and constants with the array API standard's names, and queries about types.

Types are NumPy's of the same names; no others are supported.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from ucle.errors import ArgumentTypeError
from ucle.foundation.dtypes import DType, nearest
from ucle.inputs.inputs import element_type
from ucle.inputs.table_input import TableInput
from ucle.lazy.inputs import as_scalar
from ucle.lazy.tensor import DEVICE, Tensor, as_tensor

Type = np.dtype[Any]

e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None
int64, float32, float64 = (x.numpy for x in (DType.INT64, DType.FLOAT32, DType.FLOAT64))
complex64, complex128 = DType.COMPLEX64.numpy, DType.COMPLEX128.numpy


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Return True if the type (or a tensor's type) can be cast without loss, as in NumPy.

    >>> import ucle
    >>> ucle.can_cast(ucle.int64, ucle.float64), ucle.can_cast(ucle.float64, int)
    (True, False)
    """
    return builtins.bool(np.can_cast(_type_of(from_, "can_cast"), _type_of(to, "can_cast")))


def finfo(type: Any, /) -> Any:  # noqa: A002 - the standard's name
    """The limits of a floating-point type, or of the parts of complex numbers, as in NumPy.

    >>> import ucle
    >>> ucle.finfo(ucle.float32).bits
    32
    """
    return np.finfo(_type_of(type, "finfo"))


def iinfo(type: Any, /) -> Any:  # noqa: A002 - the standard's name
    """The limits of an integer type, as in NumPy."""
    return np.iinfo(_type_of(type, "iinfo"))


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Return True if a type is of a kind (``"real floating"``), equals a type, or one of several.

    >>> import ucle
    >>> ucle.isdtype(ucle.float32, ("integral", "real floating"))
    True
    """
    return builtins.bool(np.isdtype(np.dtype(dtype), kind))


def result_type(*arrays_and_dtypes: Any) -> Type:
    """The result type of tensors, types and numbers; Python's numbers are weakly typed.

    Raises:
        ArgumentTypeError: only the data of a table determines the type of a tensor.

    >>> import ucle
    >>> ucle.result_type(ucle.array([1, 2]), ucle.float32)
    dtype('float64')
    """
    parts: list[Any] = []
    for value in arrays_and_dtypes:
        number = None if isinstance(value, type | np.dtype | str) else as_scalar(value)
        parts.append(_type_of(value, "result_type") if number is None else number)
    found = nearest(np.result_type(*parts))
    assert found is not None
    return found.numpy


def _type_of(value: Any, where: str) -> Type:
    if not isinstance(value, Tensor | TableInput | np.ndarray):
        return element_type(value, where).numpy
    dtype = as_tensor(value).dtype
    if dtype is None:
        raise ArgumentTypeError(
            "only the data of a table tells the type of its values",
            where=where,
            expected="a tensor of a known type",
            found=repr(value)[:80],
            hint="ucle.table(..., dtype=...) states it",
        )
    return dtype


bool = DType.BOOL.numpy  # noqa: A001 - the standard's name


class __array_namespace_info__:  # noqa: N801 - the array standard's name
    """The supported parts of the array API standard: types, devices, and capabilities.

    >>> import ucle
    >>> sorted(ucle.__array_namespace_info__().dtypes(kind="real floating"))
    ['float32', 'float64']
    """

    def capabilities(self) -> dict[str, Any]:
        """Capabilities: no result shape depends on data, and there is no boolean indexing."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": None}

    def default_device(self) -> str:
        """The only device."""
        return DEVICE

    def devices(self) -> list[str]:
        """All devices."""
        return [DEVICE]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Type]:
        """The types that Python's numbers become."""
        return {
            "real floating": float64,
            "complex floating": complex128,
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Type]:
        """The supported types, of one kind or of all kinds."""
        every = {dtype.value: dtype.numpy for dtype in DType}
        if kind is None:
            return every
        return {name: dtype for name, dtype in every.items() if np.isdtype(dtype, kind)}
