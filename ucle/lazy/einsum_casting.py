"""The type in which NumPy computes an einsum, and the casts that it allows.

NumPy's own functions decide promotions and allowed casts. ucle computes in the nearest of its own
types (`ucle.foundation.dtypes`) and casts the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ucle.errors import ValueTypeError
from ucle.foundation.dtypes import DType, nearest

NumpyType = np.dtype[Any]


def computation_type(
    operands: Sequence[NumpyType | None],
    out: NumpyType | None,
    stated: Any,
    casting: Any,
    viewed: bool = False,
) -> NumpyType | None:
    """Return the type in which NumPy computes.

    Args:
        operands: types of the operands; None for a table, whose type only the database tells.
        out: type of the array for the result, if there is one.
        stated: the type that the caller requests, or None.
        casting: NumPy's name of a set of casts.
        viewed: whether nothing is computed, so that the type is that of the one operand.

    Returns:
        The type; None where nothing is stated and an operand is a table.

    Raises:
        ValueTypeError: there is no such type, ucle has none for it, or a cast is not allowed.

    >>> computation_type([np.dtype("int8"), np.dtype("float32")], None, None, "safe")
    dtype('float32')
    """
    array_types = [dtype for dtype in operands if dtype is not None]
    if stated is None and len(array_types) < len(operands):
        return None
    try:
        compute: NumpyType = (
            np.result_type(*array_types, *([] if out is None else [out]))
            if stated is None
            else np.dtype(stated)
        )
    except TypeError as error:
        raise _no_type(str(error)) from error
    if viewed and array_types:
        compute = array_types[0]
    element_type(compute)
    for number, dtype in enumerate(operands):
        if dtype is not None:
            check_cast(dtype, compute, casting, f"operand {number}")
    if out is not None:
        check_cast(compute, out, casting, "out")
        check_cast(out, compute, casting, "out")  # NumPy also reads what it adds to
    return compute


def element_type(dtype: NumpyType) -> DType:
    """Return the type of ucle that is used where NumPy computes in `dtype`.

    Raises:
        ValueTypeError: it has none.

    >>> element_type(np.dtype("uint8"))
    <DType.INT64: 'int64'>
    """
    if (nearest_type := nearest(dtype)) is None:
        raise _no_type(f"dtype {dtype}")
    return nearest_type


def check_cast(source: NumpyType, target: NumpyType, casting: Any, where: str) -> None:
    """Check that a cast is allowed.

    Raises:
        ValueTypeError: it is not.
    """
    if not np.can_cast(source, target, casting):
        raise ValueTypeError(
            "a value cannot be cast as it must be",
            where=where,
            expected=f"a cast that is {casting!r}",
            found=f"{source} to {target}",
            hint="pass another casting=, or dtype=",
        )


def _no_type(found: str) -> ValueTypeError:
    return ValueTypeError(
        "ucle does not compute with this type",
        where="types of the operands and dtype=",
        expected="booleans, integers, and real or complex numbers of up to 64 bits a part",
        found=found,
    )
