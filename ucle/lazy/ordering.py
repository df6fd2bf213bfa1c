"""Top-k along an axis: the greatest and least entries, their positions, and full sorts.

NaN counts as the greatest number, and among equal entries the one at the smaller position comes
first. Nothing is stored for entries that are not requested: the top k of a matrix product are found
while it is computed.
"""

from __future__ import annotations

from typing import Any

from ucle.lazy.axes import AxisLike, find_axis
from ucle.lazy.reductions import first_entries
from ucle.lazy.tensor import FirstEntries, Tensor, as_tensor


def top_k(x: Any, k: int, axis: AxisLike = -1) -> FirstEntries:
    """The k greatest entries along an axis in decreasing order, and their positions.

    Args:
        x: a tensor of real numbers, integers or booleans.
        k: the number of entries, at least 1 and at most the size of the axis.
        axis: the axis, by position or name. If axes have names, the results have an axis ``rank``
            in its place.

    Returns:
        The ``values`` and the ``positions`` of the entries, with the shape of `x`, except that the
        axis has size k. If the coordinates of the axis are names or dates, `to_pandas`, `to_arrow`
        and everything that writes rows return these instead of positions.

    Raises:
        BoundError: there are fewer entries.

    >>> import ucle
    >>> best = ucle.top_k(ucle.array([[0.5, 3.0, 0.0], [1.0, 0.0, 2.0]]), 2)
    >>> best.values.to_numpy().tolist(), best.positions.to_numpy().tolist()
    ([[3.0, 0.5], [2.0, 1.0]], [[1, 0], [2, 0]])
    """
    return as_tensor(x).top_k(k, axis)


def bottom_k(x: Any, k: int, axis: AxisLike = -1) -> FirstEntries:
    """The k smallest entries along an axis in ascending order, with positions; see `top_k`."""
    return as_tensor(x).bottom_k(k, axis)


def among_top_k(x: Any, k: int, axis: AxisLike = -1) -> Tensor:
    """A boolean mask of the k greatest entries along an axis, on the axes of `x`.

    The result has only k true entries along the axis, and keeps the coordinates of all axes.

    >>> import ucle
    >>> ucle.among_top_k(ucle.array([[0.5, 3.0, 0.0], [1.0, 0.0, 2.0]]), 2).to_numpy().tolist()
    [[True, True, False], [True, False, True]]
    """
    return as_tensor(x).among_top_k(k, axis)


def among_bottom_k(x: Any, k: int, axis: AxisLike = -1) -> Tensor:
    """A boolean mask of the k smallest entries along an axis; see `among_top_k`."""
    return as_tensor(x).among_bottom_k(k, axis)


def sort(
    x: Any, /, *, axis: AxisLike = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Sort the entries along an axis; NaN is the greatest number.

    >>> import ucle
    >>> ucle.sort(ucle.array([3, 1, 2])).to_numpy()
    array([1, 2, 3])
    """
    return _order_entries("bottom_k", "top_k", x, axis, descending)


def argsort(
    x: Any, /, *, axis: AxisLike = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The positions that sort the entries along an axis; equal entries keep their order.

    >>> import ucle
    >>> ucle.argsort(ucle.array([3, 1, 2])).to_numpy()
    array([1, 2, 0])
    """
    return _order_entries("arg_bottom_k", "arg_top_k", x, axis, descending)


def _order_entries(least: str, greatest: str, x: Any, axis: AxisLike, descending: bool) -> Tensor:
    """Sort all entries along an axis, or their positions, on axes of the same names."""
    name = "argsort" if least.startswith("arg") else "sort"
    tensor = as_tensor(x).lazy
    place = find_axis(tensor, axis, name)
    size = tensor.axes[place].size
    if size == 0:
        return Tensor(tensor).astype("int64") if name == "argsort" else Tensor(tensor)
    first = greatest if descending else least
    return Tensor(first_entries(first, tensor, axis, size, every=size is None))
