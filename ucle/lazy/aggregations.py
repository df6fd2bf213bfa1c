"""Aggregations and running aggregations of lazy tensors along axes, with NumPy's names.

They take what the functions of `ucle.lazy.functions` take, and call the methods of the tensor.
"""

from __future__ import annotations

from typing import Any

from ucle.lazy.axes import AxisLike
from ucle.lazy.reductions import Along, along_axes
from ucle.lazy.tensor import Tensor, as_tensor


def sum(x: Any, axis: Along = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    """Sums along axes."""
    return as_tensor(x).sum(axis, dtype, keepdims=keepdims)


def prod(x: Any, axis: Along = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    """Products along axes."""
    return as_tensor(x).prod(axis, dtype, keepdims=keepdims)


def mean(
    x: Any,
    axis: Along = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    where: Any = None,
    stored: bool = False,
) -> Tensor:
    """Means along axes, by default over all entries, stored or not.

    Args:
        x: a tensor.
        axis: the axes, by position or name; by default all.
        dtype: the type in which to compute.
        keepdims: True to keep the aggregated axes, with size 1.
        where: a boolean tensor that is true for the entries to aggregate, as in NumPy.
        stored: True to aggregate only the entries that the input stores: those with a row in a
            table, or with an element in a sparse array, even if it is 0. Dense arrays store all of
            their entries.

    Returns:
        The means; NaN where there are no entries to aggregate. `std`, `var`, `median`, `quantile`
        and `count` take the same arguments.

    Raises:
        UnsupportedError: ``stored=True``, and the tensor is computed from inputs. Only renaming,
            permuting, casting, shifting and selecting are possible.

    >>> import pyarrow as pa
    >>> import ucle
    >>> ratings = ucle.table(
    ...     pa.table({"user": ["ann", "ann", "bob"], "item": [1, 7, 7], "stars": [4, 0, 5]}),
    ...     {"user": "user", "item": "item"}, "stars",
    ... )
    >>> ucle.mean(ratings, "item", stored=True).to_numpy()
    array([2., 5.])
    """
    return as_tensor(x).mean(axis, dtype, keepdims=keepdims, where=where, stored=stored)


def max(x: Any, axis: Along = None, *, keepdims: bool = False) -> Tensor:
    """The greatest entries along axes."""
    return as_tensor(x).max(axis, keepdims=keepdims)


def min(x: Any, axis: Along = None, *, keepdims: bool = False) -> Tensor:
    """The smallest entries along axes."""
    return as_tensor(x).min(axis, keepdims=keepdims)


def any(x: Any, axis: Along = None, *, keepdims: bool = False) -> Tensor:
    """True where at least one entry along axes is not 0."""
    return as_tensor(x).any(axis, keepdims=keepdims)


def all(x: Any, axis: Along = None, *, keepdims: bool = False) -> Tensor:
    """True where no entry along axes is 0."""
    return as_tensor(x).all(axis, keepdims=keepdims)


def count_nonzero(x: Any, axis: Along = None, *, keepdims: bool = False) -> Tensor:
    """The number of entries along axes that are not 0."""
    return as_tensor(x).count_nonzero(axis, keepdims=keepdims)


def logsumexp(x: Any, axis: Along = None, *, keepdims: bool = False) -> Tensor:
    """Logarithms of sums of exponentials along axes, without overflow."""
    return as_tensor(x).logsumexp(axis, keepdims=keepdims)


def var(
    x: Any,
    axis: Along = None,
    *,
    correction: float = 0,
    ddof: float = 0,
    keepdims: bool = False,
    where: Any = None,
    stored: bool = False,
) -> Tensor:
    """Variances along axes; `correction` is subtracted from the number of entries.

    The entries are those that `where` or `stored` states, as for `mean`.
    """
    subtracted = correction or ddof
    return as_tensor(x).var(axis, ddof=subtracted, keepdims=keepdims, where=where, stored=stored)


def std(
    x: Any,
    axis: Along = None,
    *,
    correction: float = 0,
    ddof: float = 0,
    keepdims: bool = False,
    where: Any = None,
    stored: bool = False,
) -> Tensor:
    """Standard deviations along axes: roots of `var`."""
    subtracted = correction or ddof
    return as_tensor(x).std(axis, ddof=subtracted, keepdims=keepdims, where=where, stored=stored)


def argmax(x: Any, axis: AxisLike | None = None, *, keepdims: bool = False) -> Tensor:
    """Positions of the greatest entries along an axis; of equal entries, the first."""
    return as_tensor(x).argmax(axis, keepdims=keepdims)


def argmin(x: Any, axis: AxisLike | None = None, *, keepdims: bool = False) -> Tensor:
    """Positions of the smallest entries along an axis; of equal entries, the first."""
    return as_tensor(x).argmin(axis, keepdims=keepdims)


def softmax(x: Any, axis: AxisLike = -1) -> Tensor:
    """Exponentials divided by their sum along an axis."""
    return as_tensor(x).softmax(axis)


def log_softmax(x: Any, axis: Along = -1) -> Tensor:
    """Logarithms of `softmax`, accurate even where `softmax` itself underflows to 0.

    >>> import ucle
    >>> ucle.log_softmax([0.0, 800.0]).to_numpy()
    array([-800.,    0.])
    """
    return Tensor(along_axes("log_softmax", as_tensor(x).lazy, axis))


def layer_norm(x: Any, axis: Along = -1) -> Tensor:
    """Entries minus their mean along axes, divided by the root of their variance plus 1e-5.

    Source: `torch.nn.functional.layer_norm` without weight and bias.

    >>> import ucle
    >>> ucle.layer_norm([1.0, 3.0]).to_numpy().round(3)
    array([-1.,  1.])
    """
    return Tensor(along_axes("layer_norm", as_tensor(x).lazy, axis))


def normalize(x: Any, axis: Along = -1) -> Tensor:
    """Entries divided by their Euclidean length along axes; vectors of length 0 stay unchanged.

    >>> import ucle
    >>> ucle.normalize([3.0, 4.0]).to_numpy()
    array([0.6, 0.8])
    """
    return Tensor(along_axes("normalize", as_tensor(x).lazy, axis))


def standardize(x: Any, axis: Along = -1) -> Tensor:
    """Entries minus their mean along axes, divided by their standard deviation.

    >>> import ucle
    >>> ucle.standardize([1.0, 3.0]).to_numpy()
    array([-1.,  1.])
    """
    return Tensor(along_axes("standardize", as_tensor(x).lazy, axis))


def cumsum(x: Any, axis: AxisLike | None = None, dtype: Any = None) -> Tensor:
    """Sums up to each position of an axis; without an axis, of all entries in order.

    >>> import ucle
    >>> ucle.cumsum(ucle.array([[1, 2], [3, 4]]), axis=1).to_numpy()
    array([[1, 3],
           [3, 7]])
    """
    return as_tensor(x).cumsum(axis, dtype)


def cumprod(x: Any, axis: AxisLike | None = None, dtype: Any = None) -> Tensor:
    """Products up to each position of an axis; without an axis, of all entries in order."""
    return as_tensor(x).cumprod(axis, dtype)


def cummax(x: Any, axis: AxisLike | None = None) -> Tensor:
    """The greatest entries up to each position of an axis: `numpy.maximum.accumulate`."""
    return as_tensor(x).cummax(axis)


def cummin(x: Any, axis: AxisLike | None = None) -> Tensor:
    """The smallest entries up to each position of an axis: `numpy.minimum.accumulate`."""
    return as_tensor(x).cummin(axis)
