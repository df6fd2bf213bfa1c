"""Values of few tuples: as parameters of a query, and as it returns them.

An array is `bytes`, a number a Python number, a complex one a dict of ``re`` and ``im``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.arrow_numbers import arrow_array, blobs_array
from ucle.foundation.dtypes import DType, Scalar, differs_from
from ucle.foundation.libraries import pa
from ucle.inputs.inputs import value_array
from ucle.ir.layouts import Coordinates, Layout
from ucle.ir.tensor_types import TensorType
from ucle.sqlgen.sql_trees import VALUE, key_columns


def only_value(array: NDArray[Any], type_: TensorType, layout: Layout) -> Any:
    """The value of the tuple that `ucle.run.array_tables.array_table` makes of an array.

    None where that omits the tuple, because it holds only the fill. The layout has no keys.
    """
    entries = array.transpose(layout.dense).reshape(-1)
    stored = type_.entries.full or differs_from(entries, type_.fill).any()
    if not entries.size or not stored:
        return None
    if not layout.scalar:
        return entries.tobytes()
    number = entries[0].item()
    return {"re": number.real, "im": number.imag} if isinstance(number, complex) else number


def is_finite(value: Any, dtype: DType, fill: Scalar) -> bool:
    """True if no number of a value is NaN, or infinite where the fill is another number.

    >>> [is_finite(math.inf, DType.FLOAT64, fill) for fill in (0.0, math.inf, -math.inf)]
    [False, True, False]
    """
    if dtype.kind not in "fc":
        return True
    if isinstance(value, bytes):
        numbers = np.frombuffer(value, dtype.numpy)
        finite = np.isfinite(numbers)
        return bool(finite.all() or (finite | (numbers == fill)).all())
    if isinstance(value, dict):
        return all(map(math.isfinite, value.values()))
    return math.isfinite(value) or value == fill


def numbers_of(values: bytes, dtype: DType) -> list[Any]:
    """The numbers of an array, as a query returns each by itself.

    >>> numbers_of(np.array([1.5, 2]).tobytes(), DType.FLOAT64)
    [1.5, 2.0]
    """
    numbers = np.frombuffer(values, dtype.numpy)
    if dtype.kind == "c":
        return [{"re": x.real, "im": x.imag} for x in numbers.tolist()]
    return list(numbers.tolist())


def dense_array(value: Any, type_: TensorType, layout: Layout) -> NDArray[Any]:
    """The array of the tuple of a tensor without keys; inverse of `only_value`.

    It is a view of the value where that is `bytes`, with the axes in the order of the type.
    """
    if isinstance(value, dict):
        value = complex(value["re"], value["im"])
    if not isinstance(value, bytes):
        return np.array(value, type_.dtype.numpy).reshape(type_.shape)
    blocks = np.frombuffer(value, type_.dtype.numpy).reshape(type_.dense_shape(layout))
    return blocks.transpose(np.argsort(layout.dense))


def rows_batch(
    rows: Sequence[tuple[Any, ...]], type_: TensorType, layout: Layout
) -> pa.RecordBatch:
    """The tuples of a tensor with their keys in order, and `val` as numbers or BLOBs."""
    *keys, values = zip(*rows, strict=True)
    names = key_columns(type_)
    columns = [
        arrow_array(np.array(key, Coordinates.of(type_.shape[axis]).numpy))
        for axis, key in zip(layout.promoted, keys, strict=True)
    ]
    if not layout.scalar:
        columns.append(blobs_array(values))
    elif type_.dtype.kind == "c":
        numbers = [complex(value["re"], value["im"]) for value in values]
        columns.append(value_array(np.array(numbers, type_.dtype.numpy)))
    else:
        columns.append(value_array(np.array(values, type_.dtype.numpy)))
    return pa.RecordBatch.from_arrays(columns, names=[*(names[x] for x in layout.promoted), VALUE])
