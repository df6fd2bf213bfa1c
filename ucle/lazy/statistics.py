"""Counts and quantiles of entries, and the mask of the entries that an input stores."""

from __future__ import annotations

from typing import Any

from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.lazy.axes import AxisLike
from ucle.lazy.quantiles import quantile_along
from ucle.lazy.reductions import Along
from ucle.lazy.stored import count_entries, stored_entries
from ucle.lazy.tensor import Tensor, as_tensor, mask_of


def is_stored(x: Any) -> Tensor:
    """True for the entries that the input of a tensor stores, even if they are 0; see `mean`.

    Raises:
        UnsupportedError: the tensor is computed from inputs.

    >>> import scipy.sparse
    >>> x = scipy.sparse.coo_array(([0.0, 2.0], ([0, 1], [0, 0])), shape=(2, 2))
    >>> is_stored(x).to_numpy().tolist()
    [[True, False], [True, False]]
    """
    return Tensor(stored_entries(as_tensor(x).lazy, "is_stored"))


@validated(axis=args.along, keepdims=args.flag, stored=args.flag)
def count(
    x: Any, axis: Along = None, *, keepdims: bool = False, where: Any = None, stored: bool = False
) -> Tensor:
    """The number of entries along axes: all, those of a mask, or those that the input stores.

    Arguments are those of `mean`. For entries that are not 0, see `count_nonzero`.

    >>> import numpy as np
    >>> import scipy.sparse
    >>> x = scipy.sparse.coo_array(([0.0, 2.0], ([0, 1], [0, 0])), shape=(2, 3))
    >>> count(x, 1, stored=True).to_numpy(), count(x, 1).to_numpy()
    (array([1, 1]), array([3, 3]))
    """
    tensor = as_tensor(x)
    mask = mask_of(tensor, where, stored, "count")
    return Tensor(count_entries(tensor.lazy, mask, axis, keepdims))


def quantile(
    x: Any,
    q: float,
    axis: AxisLike | None = None,
    *,
    keepdims: bool = False,
    where: Any = None,
    stored: bool = False,
) -> Tensor:
    """A quantile of the entries along an axis, or of all entries, by NumPy's method ``linear``.

    Args:
        x: a tensor of real numbers.
        q: the fraction of the entries that are not greater than the quantile, from 0 to 1.
        axis: an axis, by position or name; None for all entries.
        keepdims: True to keep the axis, with size 1.
        where: a mask of the entries, as for `mean`.
        stored: True for the entries that the input stores, as for `mean`.

    Raises:
        ArgumentError: `q` is not from 0 to 1.

    >>> import ucle
    >>> ucle.quantile([1.0, 2.0, 4.0, 8.0], 0.25).item()
    1.75
    """
    return _quantile_of(x, q, axis, keepdims, where, stored, "quantile")


@validated(q=args.real, axis=args.optional(args.axis), keepdims=args.flag, stored=args.flag)
def _quantile_of(
    x: Any, q: float, axis: AxisLike | None, keepdims: bool, where: Any, stored: bool, function: str
) -> Tensor:
    tensor = as_tensor(x)
    mask = mask_of(tensor, where, stored, function)
    return Tensor(quantile_along(tensor.lazy, mask, q, axis, keepdims, function))


def median(
    x: Any,
    axis: AxisLike | None = None,
    *,
    keepdims: bool = False,
    where: Any = None,
    stored: bool = False,
) -> Tensor:
    """The median of the entries along an axis, or of all entries: ``quantile(x, 0.5)``.

    >>> import scipy.sparse
    >>> x = scipy.sparse.coo_array(([0.0, 2.0, 6.0], ([0, 0, 0], [0, 1, 2])), shape=(1, 9))
    >>> median(x, 1, stored=True).to_numpy(), median(x, 1).to_numpy()
    (array([2.]), array([0.]))
    """
    return _quantile_of(x, 0.5, axis, keepdims, where, stored, "median")
