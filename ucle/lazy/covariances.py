"""Covariances and correlations of variables, with NumPy's names."""

from __future__ import annotations

import math
from typing import Any

from ucle.errors import ArgumentError, UnsupportedError, ValueTypeError
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.table_input import TableInput
from ucle.lazy.axes import replace_axes
from ucle.lazy.functions import conj, expand_dims, maximum, sqrt
from ucle.lazy.functions import where as choose
from ucle.lazy.nodes import Axis, Leaf, in_order
from ucle.lazy.rearranging import known_count
from ucle.lazy.stored import chosen_entries, mask_along
from ucle.lazy.tensor import Tensor, as_tensor
from ucle.plan.sources import Nulls

ROUNDING = 1e-13
"""The share of a sum of squares that may be rounding: a variable with less does not vary."""


@validated(rowvar=args.flag, bias=args.flag, stored=args.flag, where=args.anything)
def cov(
    x: Any,
    *,
    rowvar: bool = True,
    bias: bool = False,
    ddof: float | None = None,
    stored: bool = False,
    where: Any = None,
) -> Tensor:
    """Compute the covariances of variables.

    Args:
        x: observations of variables: a tensor of at least two axes, or a vector of observations of
            one variable. A tensor with more axes has one set of variables for each position of the
            other axes.
        rowvar: True if each row along the last two axes is a variable and each column an
            observation, False for the other way round.
        bias: True to divide by the number of observations instead of this number minus 1.
        ddof: a number that is subtracted from the number of observations, in place of `bias`.
        stored: True to leave out entries that the input does not store, such as missing values. As
            in pandas, each covariance is then that of the observations that have both variables.
        where: a boolean mask: entries where it is False are left out in the same way, whatever
            their value. Example: ``where=~ucle.isnan(x)``.

    Returns:
        Covariances in float64, or complex128 for complex numbers: an n by n matrix for n variables.
        As in NumPy, a single variable gives a number, unless there are several sets. If axes have
        names, the axis of variables keeps its name, and the other axis of the matrix has this name
        with the suffix ``_2``.

    Raises:
        ArgumentError: both `stored` and `where` are given.
        BoundError: only the data of a table determines the number of observations; not with
            ``stored=True`` and ``where=``, which count them.
        UnsupportedError: some observations are missing values of a table, or `stored` is True and
            `x` is computed from inputs.

    >>> import ucle
    >>> ucle.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).to_numpy().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    given = as_tensor(x)
    lost = 1 - bool(bias) if ddof is None else ddof
    if (mask := _mask(given, where, stored, "cov")) is not None:
        pairs = _Pairs.of(given if stored else choose(mask, given, 0), mask, rowvar)
        free = pairs.count - lost
        found = pairs.products / choose(free > 0, free, 1.0)
        return _named(choose(free > 0, found, math.nan), given, rowvar)
    _check_observed(given)
    tensor = given.unnamed() if given.lazy.named else given
    if tensor.ndim < 2:
        return cov(expand_dims(tensor, 0), bias=bias, ddof=ddof)
    tensor = tensor if rowvar else tensor.mT
    observations = known_count(tensor.lazy, tensor.ndim - 1, "cov")
    freedom = observations - lost
    is_complex = tensor.dtype is not None and tensor.dtype.kind == "c"
    tensor = tensor.astype("complex128" if is_complex else "float64")
    distances = tensor - tensor.mean(-1, keepdims=True)
    conjugated = conj(distances) if is_complex else distances
    made = (distances @ conjugated.mT) * (1 / freedom if freedom > 0 else math.nan)
    if tensor.ndim == 2 and tensor.shape[0] == 1:
        return made[0, 0]
    return _named(made, given, rowvar)


def _mask(given: Tensor, where: Any, stored: bool, function: str) -> Tensor | None:
    """True for the observations that count; None for all. Errors are those of `cov`."""
    chosen = None if where is None else as_tensor(where).lazy
    mask = chosen_entries(given.lazy, chosen, stored, function)
    if mask is None:
        return None
    _check_real(given, f"{function}({'stored=True' if stored else 'where=...'})")
    if given.ndim < 2:
        raise ArgumentError(
            "a single variable has no pairs",
            where=f"{function}({'stored=True' if stored else 'where=...'})",
            expected="a tensor of at least two axes",
            found=str(given.lazy),
            hint=f"ucle.var(x, ddof=1, {'stored=True' if stored else 'where=...'})",
        )
    return Tensor(mask_along(given.lazy, mask))


def _named(made: Tensor, given: Tensor, rowvar: bool) -> Tensor:
    """A matrix of variables with the names of their axis, if it has one."""
    name = given.lazy.axes[-2 if rowvar else -1].name
    if name is None:
        return made
    ends = Axis(name, made.shape[-1]), Axis(f"{name}_2", made.shape[-1])
    return Tensor(replace_axes(made.lazy, (*given.lazy.axes[:-2], *ends)))


@dataclass(frozen=True)
class _Pairs:
    """Sums over the observations that have two variables, for all pairs of these."""

    count: Tensor
    products: Tensor
    """Of the distances of both variables from their means in these observations."""
    squares: Tensor
    """Of the distances of the first one."""

    @staticmethod
    def of(given: Tensor, mask: Tensor, rowvar: bool) -> _Pairs:
        """Aggregate the observations at which a mask is true; others have to be finite."""
        x, there = (t.unnamed() if t.lazy.named else t for t in (given, mask))
        x, there = (t if rowvar else t.mT for t in (x.astype("float64"), there.astype("float64")))
        # Distances from any number do; those from the mean of all observations lose few digits.
        mean = (x * there).sum(-1, keepdims=True) / maximum(there.sum(-1, keepdims=True), 1.0)
        distances = (x - mean) * there
        count, sums = there @ there.mT, distances @ there.mT
        some, from_mean = maximum(count, 1.0), (distances * distances) @ there.mT
        squares = from_mean - sums * sums / some
        return _Pairs(
            count,
            distances @ distances.mT - sums * sums.mT / some,
            choose(squares > ROUNDING * from_mean, squares, 0.0),
        )


def _check_real(tensor: Tensor, where: str) -> None:
    """Refuse complex observations.

    Raises:
        ValueTypeError: they are complex.
    """
    if tensor.dtype is not None and tensor.dtype.kind == "c":
        raise ValueTypeError(
            "correlations exist only for real numbers",
            where=where,
            expected="real numbers, integers or truth values",
            found=str(tensor.dtype),
            hint="cov computes covariances of complex numbers",
        )


def _check_observed(tensor: Tensor) -> None:
    """Refuse observations some of which are missing: each would count as the fill."""
    for node in in_order([tensor.lazy.node]):
        value = node.value if isinstance(node, Leaf) else None
        if isinstance(value, TableInput) and value.nulls is Nulls.MISSING:
            raise UnsupportedError(
                "covariances would count missing values as numbers",
                where=f"cov or corrcoef, {tensor.lazy}",
                expected="a table without nulls='missing'",
                found="a table some of whose values are missing",
                hint="stored=True leaves missing values out, pair by pair, as pandas does",
            )


@validated(rowvar=args.flag, stored=args.flag, where=args.anything)
def corrcoef(x: Any, *, rowvar: bool = True, stored: bool = False, where: Any = None) -> Tensor:
    """Compute the correlation coefficients (Pearson) of variables; arguments are as for `cov`.

    The coefficients of a variable that does not vary are NaN.

    Raises:
        BoundError: only the data of a table determines the number of observations.
        ValueTypeError: the observations are complex.

    >>> import ucle
    >>> ucle.corrcoef([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]).to_numpy().round(12).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    given = as_tensor(x)
    _check_real(given, "corrcoef")
    if (mask := _mask(given, where, stored, "corrcoef")) is not None:
        pairs = _Pairs.of(given if stored else choose(mask, given, 0), mask, rowvar)
        spread = sqrt(pairs.squares * pairs.squares.mT)
        found = (pairs.products / choose(spread > 0, spread, 1.0)).clip(-1.0, 1.0)
        return _named(choose(spread > 0, found, math.nan), given, rowvar)
    made = cov(given, rowvar=rowvar)
    plain = made.unnamed() if made.lazy.named else made
    if not plain.ndim:
        return plain / plain
    deviations = sqrt(plain.diagonal(0, -2, -1))
    plain = plain / deviations[..., :, None] / deviations[..., None, :]
    return Tensor(replace_axes(plain.clip(-1.0, 1.0).lazy, made.lazy.axes))
