"""The meaning of the kernels ``multiway`` in NumPy: a product of dense arrays, summed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ucle.udf_kernels import Csr
from ucle.udf_kernels.element_types import ELEMENT_TYPES


def multiway(tag: str, program: str, *operands: Any) -> Any:
    """Return the sum as an array over the labels of the result, the outermost label first.

    `operands` are compressed matrices and vectors.
    """
    numbers = iter(map(int, program.split()))

    def some() -> list[int]:
        return [next(numbers) for _ in range(next(numbers))]

    count, output = next(numbers), next(numbers)
    factors: list[tuple[Any, tuple[int, ...]]] = [(operands[n], (0,)) for n in some()]
    lists = []
    for _ in range(next(numbers)):
        binder, _label, source, matrix = (next(numbers) for _ in range(4))
        lists.append((binder, source, operands[matrix], [operands[n] for n in some()]))
    for label in range(1, count):
        _parent, number = next(numbers), next(numbers)
        while number >= 0:
            binder, number, matrix, scales = lists[number]
            factors.append((dense(matrix), (binder, label)))
            factors += [(vector, (label,)) for vector in scales]
    wide = {"f": np.float64, "i": object, "b": np.int64}[ELEMENT_TYPES[tag].dtype.kind]
    arguments = [x for array, labels in factors for x in (array.astype(wide), labels)]
    result = () if output < 0 else (0,) if output == 0 else (0, output)
    total = np.einsum(*arguments, result)
    return (total > 0) if tag == "bool" else total


def dense(x: Csr) -> Any:
    """Return a compressed matrix as an array, zero where it has no entry."""
    made = np.zeros((x.rows, x.cols), x.values.dtype)
    made[x.row, x.idx] = x.values
    return made
