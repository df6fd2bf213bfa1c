"""Look-ups in sorted tables, and functions whose results have as many entries as the data says.

The latter are refused with what to write: the shape of a lazy tensor never depends on data.
"""

from __future__ import annotations

from typing import Any, Literal, NoReturn

from ucle.errors import ArgumentTypeError, AxisError, UnsupportedError
from ucle.lazy.aggregations import cumsum
from ucle.lazy.aggregations import sum as total
from ucle.lazy.compute import known_type
from ucle.lazy.functions import (
    concat,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    reshape,
    take,
)
from ucle.lazy.ordering import argsort
from ucle.lazy.tensor import Tensor, as_tensor

MOST_COMPARED = 10_000_000
"""Pairs of entries up to which all are compared; more are sorted, which takes a tenth by then."""

MOST_SORTED = 100_000_000
"""Entries up to which they are sorted: all of them are made, also those that are not stored."""


def searchsorted(
    x1: Any, x2: Any, /, side: Literal["left", "right"] = "left", sorter: Any = None
) -> Tensor:
    """The positions in a sorted table before which entries would be inserted.

    Args:
        x1: the table, a vector of real numbers in ascending order, with NaN at the end.
        x2: the entries to look up, of any shape.
        side: ``"left"`` counts the entries of the table that are less, ``"right"`` those that are
            less or equal.
        sorter: the positions that sort `x1`, if it is in another order.

    Returns:
        Positions from 0 to the size of the table, as int64, with the axes of `x2`. They are the
        indices of a gather: ``ucle.take(y, ucle.searchsorted(x, v, side="right") - 1)``.

    Raises:
        AxisError: the table is not a vector.
        ArgumentTypeError: `side` is neither ``"left"`` nor ``"right"``.

    >>> import ucle
    >>> ucle.searchsorted([1.0, 2.0, 2.0, 5.0], [[2.0, 7.0], [0.0, 5.0]]).to_numpy().tolist()
    [[1, 4], [0, 3]]
    """
    if side not in ("left", "right"):
        raise ArgumentTypeError(
            "unknown side", where="searchsorted", expected="'left' or 'right'", found=repr(side)
        )
    table, entries = as_tensor(x1), as_tensor(x2)
    if table.ndim != 1:
        raise AxisError(
            "a table to search is a vector",
            where="searchsorted",
            expected="one axis",
            found=str(table.lazy),
        )
    if sorter is not None:
        table = take(table, sorter, axis=0)
    table, plain = _without_names(table), _without_names(entries)
    sizes = [axis.size for axis in (*table.lazy.axes, *plain.lazy.axes)]
    found = None
    if not any(axis.encoded for axis in plain.lazy.axes):
        found = _sorted_together(table, plain, sizes, side)
    if found is None:
        found = _count_before(table, plain, side)
    return found.named(*filter(None, entries.axes)) if entries.lazy.named else found


def _without_names(tensor: Tensor) -> Tensor:
    return tensor.unnamed() if tensor.lazy.named else tensor


def _count_before(table: Tensor, entries: Tensor, side: str) -> Tensor:
    """Count the entries of a table before others, by comparing all pairs."""
    entries = entries.expand_dims(-1)
    before = (less if side == "left" else less_equal)(table, entries)
    if any(_may_be_nan(each) for each in (table, entries)):  # they come last, as equals
        last = isnan(entries)
        if side == "left":
            last = logical_and(last, logical_not(isnan(table)))
        before = logical_or(before, last)
    return total(before, axis=-1)


def _may_be_nan(tensor: Tensor) -> bool:
    kind = known_type(tensor.lazy)
    return kind is None or kind.kind == "f"


def _sorted_together(
    table: Tensor, entries: Tensor, sizes: list[int | None], side: str
) -> Tensor | None:
    """Count the entries of a table before others in the order of both; None if that is slower."""
    size = sizes[0]
    count: int | None = 1
    for each in sizes[1:]:
        count = None if each is None or count is None else count * each
    if size is None or count is None or not size * count > MOST_COMPARED:
        return None
    if size + count > MOST_SORTED:
        return None
    flat = reshape(entries, (-1,))
    # Of equal entries, the first one comes first.
    first, start = ((flat, table), 0) if side == "left" else ((table, flat), size)
    order = argsort(concat(first))
    from_table = order >= count if side == "left" else order < size
    counts = cumsum(from_table.astype("int64"), axis=0)
    own = argsort(order)[start : start + count]
    return reshape(take(counts, own, axis=0), tuple(sizes[1:]))


# ---- Results whose sizes depend on data ----


def nonzero(x: Any) -> NoReturn:
    """Not available: raise an error that says how the positions of entries are read.

    Raises:
        UnsupportedError: always.
    """
    _refuse_by_data("nonzero", "np.nonzero(x.to_numpy()), or the keys of the rows of x.to_arrow()")


def unique_all(x: Any) -> NoReturn:
    """Not available, like `unique_values`.

    Raises:
        UnsupportedError: always.
    """
    _refuse_by_data("unique_all", "np.unique_all(x.to_numpy())")


def unique_counts(x: Any) -> NoReturn:
    """Not available, like `unique_values`.

    Raises:
        UnsupportedError: always.
    """
    _refuse_by_data(
        "unique_counts",
        "np.unique_counts(x.to_numpy()), or SELECT val, count(*) ... GROUP BY val over the "
        "relation of a result",
    )


def unique_inverse(x: Any) -> NoReturn:
    """Not available, like `unique_values`.

    Raises:
        UnsupportedError: always.
    """
    _refuse_by_data("unique_inverse", "np.unique_inverse(x.to_numpy())")


def unique_values(x: Any) -> NoReturn:
    """Not available: raise an error that says how distinct values are read.

    Raises:
        UnsupportedError: always.
    """
    _refuse_by_data(
        "unique_values",
        "np.unique_values(x.to_numpy()), or SELECT DISTINCT val over the relation of a result",
    )


def _refuse_by_data(name: str, hint: str) -> NoReturn:
    raise UnsupportedError(
        "how many entries there are depends on the data, which no lazy tensor's shape does",
        where=name,
        expected="a function whose result has a known shape",
        found=name,
        hint=hint,
    )
