"""Arrow arrays of numbers from NumPy's and back, which share their buffers.

Arrow's own conversions (`pa.array`, `to_numpy`) import pandas where it is installed, to find out
whether they are given something of it. That takes longer than the rest of a first program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.libraries import pa


def arrow_array(values: NDArray[Any]) -> pa.Array:
    """Convert an array of one axis; NaN stays a number.

    >>> arrow_array(np.array([1, 2])).to_pylist(), arrow_array(np.array([True, False])).to_pylist()
    ([1, 2], [True, False])
    """
    if values.ndim != 1 or values.dtype.kind not in "biuf" or not values.dtype.isnative:
        return pa.array(values)
    stored = np.packbits(values, bitorder="little") if values.dtype.kind == "b" else values
    buffer = pa.py_buffer(np.ascontiguousarray(stored))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, buffer])


def blobs_array(values: Sequence[bytes]) -> pa.Array:
    """Convert BLOBs. Arrow's own function imports pandas, if that is installed, to look at a list.

    >>> blobs_array([b"one", b"", b"two"]).to_pylist()
    [b'one', b'', b'two']
    """
    ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
    joined = values[0] if len(values) == 1 else b"".join(values)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(joined)]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def numpy_array(values: pa.Array) -> NDArray[Any]:
    """Convert an Arrow array, or a chunked one; numbers without NULL are not copied.

    >>> numpy_array(pa.array([1.0, 2.0, 3.0])[1:]), numpy_array(pa.array([False, True])[1:])
    (array([2., 3.]), array([ True]))
    """
    kind = values.type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not plain or values.null_count or not isinstance(values, pa.Array):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    if not len(values):
        return np.empty(0, kind.to_pandas_dtype())
    _, buffer = values.buffers()
    if not pa.types.is_boolean(kind):
        dtype = np.dtype(kind.to_pandas_dtype())
        return np.frombuffer(buffer, dtype, len(values), values.offset * dtype.itemsize)
    bits = np.frombuffer(buffer, np.uint8)
    end = values.offset + len(values)
    return np.unpackbits(bits, count=end, bitorder="little")[values.offset :].view(np.bool_)
