"""Products, traces and norms with NumPy's names, most of them from `numpy.linalg`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ucle.errors import ArgumentTypeError, AxisError
from ucle.lazy import products
from ucle.lazy.axes import AxisLike, find_axes, permute_axes, with_unit_axis
from ucle.lazy.elementwise import elementwise
from ucle.lazy.factorisations import svdvals
from ucle.lazy.reductions import root
from ucle.lazy.tensor import Tensor, as_tensor
from ucle.operators import (
    WHEN,
)

Axes = AxisLike | Sequence[AxisLike] | None


def dot(x: Any, y: Any) -> Tensor:
    """Sum products over the last axis of x and the second last (or only) axis of y.

    If x or y is a number, it multiplies all entries. Tensors with named axes are passed to
    `matmul`.

    >>> import ucle
    >>> ucle.dot([1, 2], [3, 4]).item()
    11
    """
    one, other = as_tensor(x), as_tensor(y)
    if not one.ndim or not other.ndim:
        return one * other
    if one.lazy.named or other.lazy.named:
        return one.matmul(other)
    pair = [one.ndim - 1], [max(other.ndim - 2, 0)]
    return Tensor(products.tensordot(one.lazy, other.lazy, pair))


def trace(
    x: Any, offset: int = 0, axis1: AxisLike = 0, axis2: AxisLike = 1, dtype: Any = None
) -> Tensor:
    """Sum the entries whose positions along two axes differ by `offset`.

    >>> import ucle
    >>> ucle.trace([[1, 2], [3, 4]]).item()
    5
    """
    return as_tensor(x).diagonal(offset, axis1, axis2).sum(-1, dtype)


def norm(x: Any, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Tensor:  # noqa: A002
    """The norm of vectors along one axis, or of matrices along two; by default of all entries.

    Norms of matrices of the orders ``"nuc"``, 2 and -2 are those of their singular values.

    >>> import ucle
    >>> ucle.norm([[3, 0], [0, 4]]).item(), ucle.norm([[3, 0], [1, 4]], 1).item()
    (5.0, 4.0)
    """
    tensor = as_tensor(x)
    if ord is None:
        return vector_norm(tensor, axis=axis, keepdims=keepdims)
    places = find_axes(tensor.lazy, axis, "norm")
    match len(places):
        case 1:
            return vector_norm(tensor, axis=places[0], keepdims=keepdims, ord=ord)
        case 2:
            return _matrix_norm(tensor, places, ord, keepdims)
    raise AxisError(
        "a norm of this order is one of vectors or of matrices",
        where="norm",
        expected="one axis, or two",
        found=f"{len(places)} axes of {tensor.lazy}",
    )


def vector_norm(x: Any, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2) -> Tensor:  # noqa: A002
    """The norm of vectors along one axis, or along several as one; by default of all entries."""
    if isinstance(ord, str):
        raise _no_norm(ord, "a number, also inf and -inf")
    tensor = as_tensor(x) * 1.0
    if ord == 2:
        squares = Tensor(elementwise("size_squared", tensor.lazy))
        return Tensor(root(squares.sum(axis, keepdims=keepdims).lazy))
    size = abs(tensor)
    if math.isinf(ord):
        return size.max(axis, keepdims=keepdims) if ord > 0 else size.min(axis, keepdims=keepdims)
    match ord:
        case 0:
            ones = elementwise("where", (size == 0).lazy, size.lazy, 1.0)  # in the type of x
            return Tensor(ones).sum(axis, keepdims=keepdims)
        case 1:
            return size.sum(axis, keepdims=keepdims)
    power = float(ord)
    if power < 0:
        return (size**power).sum(axis, keepdims=keepdims) ** (1 / power)
    # As in PyTorch, zeros get no gradient, although the derivative of a root is infinite there.
    powers = Tensor(elementwise(WHEN.name, size.lazy, (size**power).lazy))
    total = powers.sum(axis, keepdims=keepdims)
    return Tensor(elementwise(WHEN.name, total.lazy, (total ** (1 / power)).lazy))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:  # noqa: A002
    """The norms of matrices along the last two axes, as for `norm`."""
    tensor = as_tensor(x)
    places = find_axes(tensor.lazy, (-2, -1), "matrix_norm")
    return _matrix_norm(tensor, places, ord, keepdims)


def _matrix_norm(x: Tensor, places: Sequence[int], ord: Any, keepdims: bool) -> Tensor:  # noqa: A002
    row, column = places
    if ord == "fro":
        return vector_norm(x, axis=(row, column), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        return _norm_of_singular_values(x, places, ord, keepdims)
    if ord not in (1, -1, math.inf, -math.inf):
        raise _no_norm(ord, "'fro', 'nuc', 1, 2, -1, -2, inf or -inf")
    summed, other = (row, column) if abs(ord) == 1 else (column, row)
    sums = (abs(x) * 1.0).sum(summed, keepdims=True)
    result = sums.max(other, keepdims=True) if ord > 0 else sums.min(other, keepdims=True)
    return result if keepdims else result.squeeze((row, column))


def _norm_of_singular_values(
    x: Tensor,
    places: Sequence[int],
    ord: Any,  # noqa: A002
    keepdims: bool,
) -> Tensor:
    kept = [n for n in range(x.ndim) if n not in places]
    values = svdvals(Tensor(permute_axes(x.lazy, [*kept, *places])))
    result = values.sum(-1) if ord == "nuc" else values[..., 0 if ord == 2 else -1]
    if keepdims:
        for place in sorted(places):
            result = Tensor(with_unit_axis(result.lazy, place, x.lazy.axes[place].name))
    return result


def _no_norm(ord: Any, expected: str) -> ArgumentTypeError:  # noqa: A002
    return ArgumentTypeError(
        "there is no norm of this order", where="norm", expected=expected, found=repr(ord)
    )
