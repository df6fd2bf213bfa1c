"""Covariances and correlations of variables, with NumPy's names."""

from __future__ import annotations

import math
from typing import Any

from ucle.errors import UnsupportedError, ValueTypeError
from ucle.inputs.table_input import TableInput
from ucle.lazy.axes import replace_axes
from ucle.lazy.functions import conj, expand_dims, sqrt
from ucle.lazy.nodes import Axis, Leaf, in_order
from ucle.lazy.rearranging import known_count
from ucle.lazy.tensor import Tensor, as_tensor
from ucle.plan.sources import Nulls


def cov(x: Any, *, rowvar: bool = True, bias: bool = False, ddof: float | None = None) -> Tensor:
    """Compute the covariances of variables.

    Args:
        x: observations of variables: a tensor of at least two axes, or a vector of observations of
            one variable. Tensors of more axes have one set of variables for each position of
            the others.
        rowvar: True if each row along the last two axes is a variable and each column an
            observation, False for the other way round.
        bias: True to divide by the number of observations, and not by one less.
        ddof: what is subtracted from the number of observations instead.

    Returns:
        Covariances in float64, or complex128 for complex numbers: for n variables, n by n; as in
        NumPy, a number for a single variable, unless there are several sets. Of named axes, that
        of variables keeps its name, and the other one gets ``_2`` behind it.

    Raises:
        BoundError: only the data of a table determines the number of observations.
        UnsupportedError: some observations are missing values of a table.

    >>> import ucle
    >>> ucle.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).to_numpy().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    given = as_tensor(x)
    _check_observed(given)
    tensor = given.unnamed() if given.lazy.named else given
    if tensor.ndim < 2:
        return cov(expand_dims(tensor, 0), bias=bias, ddof=ddof)
    tensor = tensor if rowvar else tensor.mT
    observations = known_count(tensor.lazy, tensor.ndim - 1, "cov")
    freedom = observations - (1 - bool(bias) if ddof is None else ddof)
    is_complex = tensor.dtype is not None and tensor.dtype.kind == "c"
    tensor = tensor.astype("complex128" if is_complex else "float64")
    distances = tensor - tensor.mean(-1, keepdims=True)
    conjugated = conj(distances) if is_complex else distances
    made = (distances @ conjugated.mT) * (1 / freedom if freedom > 0 else math.nan)
    if tensor.ndim == 2 and tensor.shape[0] == 1:
        return made[0, 0]
    name = given.lazy.axes[-2 if rowvar else -1].name
    if name is None:
        return made
    ends = Axis(name, made.shape[-1]), Axis(f"{name}_2", made.shape[-1])
    return Tensor(replace_axes(made.lazy, (*given.lazy.axes[:-2], *ends)))


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
                hint="compute sums over the values that ucle.observed selects, as in 'Wide "
                "tables' of docs/inputs_and_results.md",
            )


def corrcoef(x: Any, *, rowvar: bool = True) -> Tensor:
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
    if given.dtype is not None and given.dtype.kind == "c":
        raise ValueTypeError(
            "correlations exist only for real numbers",
            where="corrcoef",
            expected="real numbers, integers or truth values",
            found=str(given.dtype),
            hint="cov computes covariances of complex numbers",
        )
    made = cov(given, rowvar=rowvar)
    plain = made.unnamed() if made.lazy.named else made
    if not plain.ndim:
        return plain / plain
    deviations = sqrt(plain.diagonal(0, -2, -1))
    plain = plain / deviations[..., :, None] / deviations[..., None, :]
    return Tensor(replace_axes(plain.clip(-1.0, 1.0).lazy, made.lazy.axes))
