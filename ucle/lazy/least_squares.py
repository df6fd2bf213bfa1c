"""Functions of matrices that look at singular values, with the names of `numpy.linalg`.

Least squares, pseudoinverses and ranks neglect singular values that are tiny beside the greatest
one of their matrix, because rounding errors alone may be as large.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ucle.errors import ArgumentTypeError, BoundError, UnsupportedError
from ucle.lazy.axes import replace_axes
from ucle.lazy.factorisations import SVD, decompose, svdvals
from ucle.lazy.functions import where
from ucle.lazy.linear_algebra import matrix_norm
from ucle.lazy.matrices import inv
from ucle.lazy.rearranging import crop_axis
from ucle.lazy.tensor import Tensor, as_tensor

NAMES = ("cond", "lstsq", "matrix_rank", "pinv")
"""The functions' names in `numpy.linalg`."""


class LeastSquares(NamedTuple):
    """Solutions of least squares, sums of squared residuals, ranks, and singular values."""

    x: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def matrix_rank(x: Any, /, tol: Any = None, *, rtol: Any = None) -> Tensor:
    """Count the singular values of matrices that are not negligible.

    Args:
        x: a tensor of at least two axes, of real numbers.
        tol: the greatest negligible value; a number, or one for each matrix.
        rtol: the same, as a fraction of the greatest singular value of the matrix. By default, the
            rounding error of its element type times the larger of its sizes.

    Raises:
        ArgumentTypeError: `tol` and `rtol` are given.
        AxisError: there are fewer than two axes.
        BoundError: only the data of a table determines a size.
        ValueTypeError: the matrices are complex.

    >>> import ucle
    >>> ucle.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).item()
    1
    """
    if tol is not None and rtol is not None:
        raise ArgumentTypeError(
            "two tolerances are given",
            where="linalg.matrix_rank",
            expected="tol or rtol",
            found=f"tol={tol!r}, rtol={rtol!r}",
        )
    tensor = as_tensor(x)
    plain = tensor.unnamed() if tensor.lazy.named else tensor
    values = svdvals(plain)
    limit = _limit(tensor, values, rtol) if tol is None else _each(tol)
    rank = (values > limit).astype("int64").sum(-1)
    return Tensor(replace_axes(rank.lazy, tensor.lazy.axes[:-2]))


def pinv(x: Any, /, rcond: Any = None, *, rtol: Any = None) -> Tensor:
    """Pseudoinverses (Moore and Penrose) of the matrices along the last two axes.

    Args:
        x: a tensor of at least two axes, of real numbers.
        rcond: the greatest negligible singular value, as a fraction of the greatest one: a number,
            or one for each matrix. By default, the rounding error of the element type times the
            larger size.
        rtol: the standard's name of `rcond`.

    Raises:
        AxisError: there are fewer than two axes.
        BoundError: only the data of a table determines a size.
        ValueTypeError: the matrices are complex.

    >>> import ucle
    >>> ucle.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]).to_numpy().round(12).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    tensor = as_tensor(x)
    if tensor.lazy.named:
        *batch, row, column = (axis.name or "" for axis in tensor.lazy.axes)
        return pinv(tensor.unnamed(), rcond, rtol=rtol).named(*batch, column, row)
    found = decompose(tensor)
    inverses = _invert(found.S, _limit(tensor, found.S, rcond if rtol is None else rtol))
    return (found.Vh.mT * inverses[..., None, :]) @ found.U.mT


def lstsq(a: Any, b: Any, /, rcond: Any = None) -> LeastSquares:
    """Solve least squares: the smallest of the x that minimise the norm of ``a @ x - b``.

    Args:
        a: matrices along the last two axes, of real numbers.
        b: a vector, which all matrices share, or a tensor whose second last axis is that of the
            rows of a and whose last axis has several right-hand sides.
        rcond: the greatest negligible singular value, as a fraction of the greatest one; by
            default, the rounding error of the element type times the larger size.

    Returns:
        Solutions, sums of the squares of ``a @ x - b``, ranks of the matrices and their singular
        values. NumPy leaves out the sums if the rank of a matrix is less than its number of
        columns, or if it has no more rows than columns; ucle always returns them.

    Raises:
        AxisError: a has fewer than two axes.
        BoundError: b has the wrong size, or only the data of a table determines a size.
        UnsupportedError: axes have names.
        ValueTypeError: the matrices are complex.

    >>> import ucle
    >>> found = ucle.linalg.lstsq([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    >>> found.x.to_numpy().round(12).tolist(), found.rank.item()
    ([1.0, 2.0], 2)
    """
    matrix, sides = as_tensor(a), as_tensor(b)
    if matrix.lazy.named or sides.lazy.named:
        raise UnsupportedError(
            "least squares need axes without names",
            where="linalg.lstsq",
            expected="axes without names",
            found=f"{matrix.lazy} and {sides.lazy}",
            hint="t.unnamed() removes the names; pinv(a) @ b matches axes by name",
        )
    found = decompose(matrix)
    if sides.ndim == 1:
        solved = _solve_least(matrix, sides[:, None], found, rcond)
        return solved._replace(x=solved.x[..., 0], residuals=solved.residuals[..., 0])
    return _solve_least(matrix, sides, found, rcond)


def _solve_least(matrix: Tensor, sides: Tensor, found: SVD, rcond: Any) -> LeastSquares:
    if not sides.ndim or matrix.shape[-2] != sides.shape[-2]:
        raise BoundError(
            "the right-hand sides have another number of rows than the matrices",
            where="linalg.lstsq",
            expected=f"{matrix.shape[-2]} rows, as of {matrix.lazy}",
            found=str(sides.lazy),
        )
    limit = _limit(matrix, found.S, rcond)
    shares = _invert(found.S, limit)[..., None] * (found.U.mT @ sides)
    x = found.Vh.mT @ shares
    left = matrix @ x - sides
    rank = (limit < found.S).astype("int64").sum(-1)
    return LeastSquares(x, (left * left).sum(-2), rank, found.S)


def cond(x: Any, /, p: Any = None) -> Tensor:
    """Compute the condition numbers of matrices: a norm of each, times that of its inverse.

    Args:
        x: a tensor of at least two axes, of real numbers.
        p: the order of the norm (`ucle.matrix_norm`); by default 2, for which matrices need not be
            square and which is infinite for singular ones.

    Raises:
        AxisError: there are fewer than two axes.
        BoundError: only the data of a table determines a size, or matrices are not square.
        ValueTypeError: the matrices are complex.

    >>> import ucle
    >>> ucle.linalg.cond([[4.0, 0.0], [0.0, 2.0]]).item()
    2.0
    """
    tensor = as_tensor(x)
    if p not in (None, 2, -2):
        return matrix_norm(tensor, ord=p) * matrix_norm(inv(tensor), ord=p)
    values = svdvals(tensor.unnamed() if tensor.lazy.named else tensor)
    greatest, least = values[..., 0], values[..., -1]
    if p == -2:
        number = least / greatest
    else:
        number = where(least == 0, math.inf, greatest / where(least == 0, 1.0, least))
    return Tensor(replace_axes(number.lazy, tensor.lazy.axes[:-2]))


def _each(tolerance: Any) -> Tensor:
    """A tolerance for each matrix, beside the axis of singular values."""
    return as_tensor(tolerance)[..., None]


def _limit(matrix: Tensor, values: Tensor, rtol: Any) -> Tensor:
    """The greatest negligible singular value of each matrix; the values are in descending order."""
    place = values.ndim - 1
    greatest = Tensor(crop_axis(values.lazy, place, 0, min(values.shape[-1] or 0, 1)))
    if rtol is not None:
        return greatest * _each(rtol)
    epsilon = float(np.finfo(values.dtype or np.float64).eps)
    return greatest * (max(size or 0 for size in matrix.shape[-2:]) * epsilon)


def _invert(values: Tensor, limit: Tensor) -> Tensor:
    """Reciprocals of singular values, and 0 for those that are negligible."""
    kept = values > limit
    return where(kept, 1 / where(kept, values, 1.0), 0.0)
