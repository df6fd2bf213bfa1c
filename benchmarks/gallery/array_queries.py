"""SQL for products and sums of arrays, as queries of several recipes write them."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


def dot(row: str, column: Array) -> str:
    """SQL for the inner product of arrays."""
    return f"array_inner_product({row}, {column.tolist()}::DOUBLE[{len(column)}])"


def times(row: str, matrix: Array) -> str:
    """SQL for an array times a matrix."""
    products = ", ".join(dot(row, column) for column in matrix.T)
    return f"[{products}]::DOUBLE[{matrix.shape[1]}]"


def sums(scale: str, row: str, width: int, by: str = "sum") -> str:
    """SQL for sums of arrays, each times a number; or for means, `by` ``avg``."""
    return f"[{', '.join(f'{by}({scale} * {row}[{n}])' for n in range(1, width + 1))}]"
