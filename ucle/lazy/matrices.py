"""Functions of matrices, or stacks of matrices, with the names of `numpy.linalg`.

Those of dense matrices operate on whole arrays, one for each position of the other axes. They
are not sums of products: a matrix is never a table of entries, whatever it is computed from
(`ucle.ir.axis_functions`). Factorisations are in `ucle.lazy.factorisations`, and what follows from
them in `ucle.lazy.least_squares`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ucle.errors import AxisError, BoundError
from ucle.ir.axis_functions import MATRIX_FUNCTIONS, MatrixShape
from ucle.lazy.axes import with_names
from ucle.lazy.functions import abs as magnitude
from ucle.lazy.functions import broadcast_to, concat, exp, log, pad, sign
from ucle.lazy.nodes import Apply, Lazy, apply
from ucle.lazy.rearranging import crop_axis
from ucle.lazy.tensor import Tensor, as_tensor
from ucle.operators import (
    SQRT,
)

NAMES = (
    "cholesky",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "slogdet",
    "solve",
    "trace",
)
"""The functions' names in `numpy.linalg`."""


class Eigen(NamedTuple):
    """Eigenvalues of symmetric matrices in increasing order, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Determinant(NamedTuple):
    """Signs of determinants, and natural logarithms of their absolute values."""

    sign: Tensor
    logabsdet: Tensor


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """Cholesky factors of positive definite matrices: triangular L with ``x = L @ L.T``.

    Args:
        x: a tensor of at least two axes; only one triangle along the last two axes is read.
        upper: True for the upper triangle, read and returned; by default the lower one.

    Raises:
        BoundError: matrices are not square.
        ValueTypeError: they are complex.
        ExecutionError: at computation, one of them is not positive definite.

    >>> import ucle
    >>> ucle.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).to_numpy().tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    if upper:
        return cholesky(as_tensor(x).mT).mT
    return map_matrices("cholesky", x)


def inv(x: Any, /) -> Tensor:
    """Invert the matrices along the last two axes.

    If the axes have names, those of rows and columns are exchanged: the inverse of a matrix with
    the axes (page, next) has the axes (next, page).

    Raises:
        BoundError: they are not square.
        ValueTypeError: they are complex.
        ExecutionError: at computation, one of them is singular.

    >>> import ucle
    >>> ucle.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).to_numpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    made = map_matrices("inv", x).lazy
    *others, rows, columns = (axis.name for axis in made.axes)
    return Tensor(with_names(made, [*others, columns, rows]))


def eigh(x: Any, /) -> Eigen:
    """Eigenvalues and eigenvectors of symmetric matrices; only lower triangles are read.

    The largest component of each vector is positive. Errors are as for `inv`.

    >>> import ucle
    >>> values, vectors = ucle.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])
    >>> values.to_numpy().tolist(), vectors.to_numpy().tolist()
    ([1.0, 2.0], [[0.0, 1.0], [1.0, 0.0]])
    """
    return Eigen(eigvalsh(x), map_matrices("eigenvectors", x))


def eigvalsh(x: Any, /) -> Tensor:
    """Eigenvalues of symmetric matrices, as for `eigh`."""
    return map_matrices("eigenvalues", x).diagonal(0, -2, -1)


def slogdet(x: Any, /) -> Determinant:
    """Signs and logarithms of determinants, which do not overflow; see `det`.

    The sign of a singular matrix is 0, and its logarithm is minus infinity.

    >>> import ucle
    >>> sign, logarithm = ucle.linalg.slogdet([[0.0, 2.0], [3.0, 0.0]])
    >>> sign.item(), round(logarithm.item(), 12)
    (-1.0, 1.791759469228)
    """
    pivots = map_matrices("pivots", x).diagonal(0, -2, -1)
    return Determinant(sign(pivots).prod(-1), log(magnitude(pivots)).sum(-1))


def det(x: Any, /) -> Tensor:
    """Compute the determinants of the matrices along the last two axes, by elimination.

    Raises:
        BoundError: matrices are not square.
        ValueTypeError: they are complex.

    >>> import ucle
    >>> round(ucle.linalg.det([[1.0, 2.0], [3.0, 4.0]]).item(), 12)
    -2.0
    """
    made = slogdet(x)
    return made.sign * exp(made.logabsdet)


def solve(a: Any, b: Any, /) -> Tensor:
    """Solve systems of linear equations: x with ``a @ x = b``.

    Uses elimination with row swaps. For named axes, and if only the data of a table determines
    sizes, it uses inverses, and one step of refinement that corrects their rounding errors.

    Args:
        a: matrices along the last two axes.
        b: the right-hand sides: a vector, which all matrices share, or a tensor whose second last
            axis is that of the equations and whose last axis has several right-hand sides.

    Raises:
        BoundError: matrices are not square, or b has the wrong size.
        ValueTypeError: they are complex.
        ExecutionError: at computation, one of the matrices is singular.

    >>> import ucle
    >>> ucle.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [1.0, 1.0]).to_numpy().tolist()
    [0.5, 0.25]
    """
    matrix, sides = as_tensor(a), as_tensor(b)
    named = matrix.lazy.named or sides.lazy.named
    if sides.ndim == 1 and matrix.ndim > 1 and not named:
        return solve(matrix, sides[:, None])[..., 0]
    shapes = [[size for size in x.shape if size is not None] for x in (matrix, sides)]
    known = [len(shape) for shape in shapes] == [matrix.ndim, sides.ndim]
    if named or not known or min(matrix.ndim, sides.ndim) < 2:
        inverse = inv(matrix)
        found = inverse.matmul(sides)
        return found + inverse.matmul(sides - matrix.matmul(found))
    return _solve_systems(matrix, sides, *shapes)


def _solve_systems(
    matrix: Tensor, sides: Tensor, shape: Sequence[int], other_shape: Sequence[int]
) -> Tensor:
    """Solve systems of unnamed axes with known sizes."""
    (*batch, rows, columns), (*other_batch, equations, count) = shape, other_shape
    if rows != columns or rows != equations:
        raise BoundError(
            "these are not systems of linear equations",
            where="linalg.solve",
            expected="square matrices, and as many right-hand sides in the second last axis",
            found=f"{matrix.lazy} and {sides.lazy}",
        )
    if rows == 1:
        return sides / (matrix * 1.0)
    both = np.broadcast_shapes(tuple(batch), tuple(other_batch))
    wanted = (matrix, (*both, rows, rows)), (sides, (*both, rows, count))
    parts = [x if x.shape == whole else broadcast_to(x, whole) for x, whole in wanted]
    solved = map_matrices("solve", concat(parts, -1)).lazy
    return Tensor(crop_axis(solved, len(both) + 1, rows, count))


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The entries whose positions along the last two axes differ by `offset`."""
    return as_tensor(x).diagonal(offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sum the entries whose positions along the last two axes differ by `offset`.

    >>> import ucle
    >>> ucle.linalg.trace([[[1, 2], [3, 4]]]).to_numpy().tolist()
    [5]
    """
    return diagonal(x, offset=offset).sum(-1, dtype)


ONE_BY_ONE: dict[str, Callable[[Tensor], Tensor]] = {
    "cholesky": lambda x: x.map(SQRT.name),
    "inv": lambda x: 1 / x,
    "eigenvalues": lambda x: x,
    "eigenvectors": lambda x: x * 0 + 1,
    "pivots": lambda x: x,
}
"""The functions of square matrices for those with one entry."""


def crop_matrices(x: Tensor, rows: int | None, columns: int | None) -> Tensor:
    """Keep the first rows and columns of matrices; all of them where the number is None."""
    tensor = x.lazy
    for place, count in ((-2, rows), (-1, columns)):
        if count is not None:
            tensor = crop_axis(tensor, len(tensor.axes) + place, 0, count)
    return Tensor(tensor)


def map_matrices(name: str, x: Any) -> Tensor:
    """Apply a function to the matrices along the last two axes.

    Args:
        name: one of `ucle.ir.axis_functions.MATRIX_MAPS`.
        x: the matrices; the result has their shape.

    Raises:
        AxisError: there are fewer than two axes.
        BoundError: the matrices have another shape than the function demands.
    """
    tensor = as_tensor(x).lazy
    axes = tensor.axes
    if len(axes) < 2:
        raise AxisError(
            f"{name} needs matrices",
            where=f"linalg.{name}",
            expected="at least two axes",
            found=f"{len(axes)}",
        )
    rows, columns = axes[-2:]
    square = MATRIX_FUNCTIONS[name].shape is MatrixShape.SQUARE
    if square and None not in (rows.size, columns.size) and rows.size != columns.size:
        raise BoundError(
            f"{name} needs square matrices",
            where=f"linalg.{name}",
            expected="two last axes of one size",
            found=str(tensor),
        )
    if square and (rows.unit or columns.unit):
        return ONE_BY_ONE[name](Tensor(tensor) * 1.0)
    if rows.unit or columns.unit:  # such an axis has no label; zeros change no other entries
        widths = [(0, 0)] * (len(axes) - 2) + [(0, int(axis.unit)) for axis in axes[-2:]]
        padded = map_matrices(name, pad(Tensor(tensor), widths))
        return crop_matrices(padded, rows.size, columns.size)
    labels = range(len(axes))
    made = apply(None, [tensor.operand(labels)], axes, labels)
    assert isinstance(made.node, Apply)
    return Tensor(Lazy(replace(made.node, along=(name, tuple(labels[-2:]))), axes))
