"""Values of tensors without keys: as parameters of a query, and as it returns them.

An array is `bytes`, a number a Python number, a complex one a dict of ``re`` and ``im``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dtypes import DType, differs_from
from ucle.foundation.libraries import pa
from ucle.inputs.inputs import value_array
from ucle.ir.layouts import Layout
from ucle.ir.tensor_types import TensorType
from ucle.run.array_tables import blob_array
from ucle.sqlgen.sql_trees import VALUE


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


def is_finite(value: Any, dtype: DType) -> bool:
    """True if no number of a value is NaN or infinite."""
    if dtype.kind not in "fc":
        return True
    if isinstance(value, bytes):
        return bool(np.isfinite(np.frombuffer(value, dtype.numpy)).all())
    return all(map(math.isfinite, value.values() if isinstance(value, dict) else (value,)))


def row_batch(value: Any, type_: TensorType, layout: Layout) -> pa.RecordBatch:
    """The tuple of a tensor without keys, with `val` as a number or a BLOB."""
    if layout.scalar:
        number = complex(value["re"], value["im"]) if isinstance(value, dict) else value
        column = value_array(np.array([number], type_.dtype.numpy))
    else:
        column = blob_array(np.frombuffer(value, np.uint8).reshape(1, -1))
    return pa.RecordBatch.from_arrays([column], names=[VALUE])
