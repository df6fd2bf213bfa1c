"""Functions of matrices, stacks of them among them, by the names of `numpy.linalg`.

Those of small dense matrices work on whole arrays, one for each position of the other axes, and are
no sums of products: a matrix is never a table of entries, whatever it is made of
(`ucle.ir.matrix_maps`).
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
"""What `numpy.linalg` calls the functions."""


class Eigen(NamedTuple):
    """Eigenvalues of symmetric matrices, the least first, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """The triangles of which positive definite matrices are products with their transposes.

    Args:
        x: at least two axes; of the last two the lower triangle is read, or else the upper one.
        upper: whether the triangle above the diagonal is wanted.

    Raises:
        BoundError: matrices are not square.
        ValueTypeError: they are complex.
        ExecutionError: when it is computed, one of them is not positive definite.

    >>> import ucle
    >>> ucle.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).to_numpy().tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    if upper:
        return cholesky(as_tensor(x).mT).mT
    return _mapped("cholesky", x)


def inv(x: Any, /) -> Tensor:
    """The inverses of matrices, which the last two axes are.

    Raises:
        BoundError: they are not square.
        ValueTypeError: they are complex.
        ExecutionError: when it is computed, one of them is singular.

    >>> import ucle
    >>> ucle.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).to_numpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    made = _mapped("inv", x).lazy
    *others, rows, columns = made.axes  # those of what it takes back, under their names
    return Tensor(Lazy(made.node, (*others, columns, rows)))


def eigh(x: Any, /) -> Eigen:
    """Eigenvalues and eigenvectors of symmetric matrices, of which the lower triangle is read.

    The greatest component of each vector is positive. Raises what `inv` does.

    >>> import ucle
    >>> values, vectors = ucle.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])
    >>> values.to_numpy().tolist(), vectors.to_numpy().tolist()
    ([1.0, 2.0], [[0.0, 1.0], [1.0, 0.0]])
    """
    return Eigen(eigvalsh(x), _mapped("eigenvectors", x))


def eigvalsh(x: Any, /) -> Tensor:
    """Eigenvalues of symmetric matrices, as of `eigh`."""
    return _mapped("eigenvalues", x).diagonal(0, -2, -1)


def solve(a: Any, b: Any, /) -> Tensor:
    """What systems of linear equations come to: x where ``a @ x`` is b.

    By inverses, and one step of refinement, which takes back what these are off.

    Args:
        a: matrices, the last two axes.
        b: right sides: the only axis, for each of the matrices, or the second last one, of which
            the last one has several.

    Raises:
        BoundError: matrices are not square, or b is of another size.
        ValueTypeError: they are complex.
        ExecutionError: when it is computed, one of the matrices is singular.

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
    """Entries whose positions along the last two axes differ by `offset`."""
    return as_tensor(x).diagonal(offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sums of such entries.

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
"""What the functions are of matrices of one number."""


def _mapped(name: str, x: Any) -> Tensor:
    """A function of the matrices that the last two axes are."""
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
