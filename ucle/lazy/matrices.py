"""Functions of matrices, or stacks of matrices, with the names of `numpy.linalg`.

Those of dense matrices operate on whole arrays, one for each position of the other axes. They
are not sums of products: a matrix is never a table of entries, whatever it is computed from
(`ucle.ir.axis_functions`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from ucle.errors import AxisError, BoundError
from ucle.lazy.nodes import Apply, Lazy, apply
from ucle.lazy.tensor import Tensor, as_tensor
from ucle.operators import (
    SQRT,
)

NAMES = ("cholesky", "diagonal", "eigh", "eigvalsh", "inv", "solve", "trace")
"""The functions' names in `numpy.linalg`."""


class Eigen(NamedTuple):
    """Eigenvalues of symmetric matrices in increasing order, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


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
    return _map_matrices("cholesky", x)


def inv(x: Any, /) -> Tensor:
    """Invert the matrices along the last two axes.

    Raises:
        BoundError: they are not square.
        ValueTypeError: they are complex.
        ExecutionError: at computation, one of them is singular.

    >>> import ucle
    >>> ucle.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).to_numpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    made = _map_matrices("inv", x).lazy
    *others, rows, columns = made.axes  # the inverse swaps rows and columns, with their names
    return Tensor(Lazy(made.node, (*others, columns, rows)))


def eigh(x: Any, /) -> Eigen:
    """Eigenvalues and eigenvectors of symmetric matrices; only lower triangles are read.

    The largest component of each vector is positive. Errors are as for `inv`.

    >>> import ucle
    >>> values, vectors = ucle.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])
    >>> values.to_numpy().tolist(), vectors.to_numpy().tolist()
    ([1.0, 2.0], [[0.0, 1.0], [1.0, 0.0]])
    """
    return Eigen(eigvalsh(x), _map_matrices("eigenvectors", x))


def eigvalsh(x: Any, /) -> Tensor:
    """Eigenvalues of symmetric matrices, as for `eigh`."""
    return _map_matrices("eigenvalues", x).diagonal(0, -2, -1)


def solve(a: Any, b: Any, /) -> Tensor:
    """Solve systems of linear equations: x with ``a @ x = b``.

    Uses inverses, and one step of refinement that corrects their rounding errors.

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
    if sides.ndim == 1 and matrix.ndim > 2 and not matrix.lazy.named:
        return solve(matrix, sides[:, None])[..., 0]
    inverse = inv(matrix)
    found = inverse.matmul(sides)
    return found + inverse.matmul(sides - matrix.matmul(found))


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
}
"""The functions for matrices with one entry."""


def _map_matrices(name: str, x: Any) -> Tensor:
    """Apply a function to the matrices along the last two axes."""
    tensor = as_tensor(x).lazy
    axes = tensor.axes
    if len(axes) < 2:
        raise AxisError(
            f"{name} is of matrices",
            where=f"linalg.{name}",
            expected="at least two axes",
            found=f"{len(axes)}",
        )
    rows, columns = axes[-2:]
    if None not in (rows.size, columns.size) and rows.size != columns.size:
        raise BoundError(
            f"{name} is of square matrices",
            where=f"linalg.{name}",
            expected="two last axes of one size",
            found=str(tensor),
        )
    if rows.unit or columns.unit:
        return ONE_BY_ONE[name](Tensor(tensor) * 1.0)
    labels = range(len(axes))
    made = apply(None, [tensor.operand(labels)], axes, labels)
    assert isinstance(made.node, Apply)
    return Tensor(Lazy(replace(made.node, along=(name, tuple(labels[-2:]))), axes))
