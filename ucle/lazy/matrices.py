"""Functions of matrices, or stacks of matrices, with the names of `numpy.linalg`.

Those of dense matrices operate on whole arrays, one for each position of the other axes. They
are not sums of products: a matrix is never a table of entries, whatever it is computed from
(`ucle.ir.axis_functions`). Factorisations are in `ucle.lazy.factorisations`, and what follows from
them in `ucle.lazy.least_squares`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from ucle.errors import AxisError, BoundError, LabelError
from ucle.ir.axis_functions import MATRIX_FUNCTIONS, MatrixShape
from ucle.ir.linear_systems import NAME as SOLVE
from ucle.lazy.axes import with_names
from ucle.lazy.elementwise import check_names, merge_axes
from ucle.lazy.functions import abs as magnitude
from ucle.lazy.functions import exp, log, pad, sign
from ucle.lazy.nodes import Apply, Axis, Lazy, apply
from ucle.lazy.rearranging import crop_axis
from ucle.lazy.tensor import Tensor, as_tensor
from ucle.operators import DIV, SQRT

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
    """Solve systems of linear equations: x with ``a @ x = b``, by elimination with row swaps.

    Args:
        a: matrices along the last two axes.
        b: the right-hand sides: a vector, which all matrices share, or a tensor whose second last
            axis is that of the equations and whose last axis has several right-hand sides. If the
            axes have names, b has exactly one of the last two axes of a, at any place: this is the
            axis of the equations, and the solutions have the other one. All other axes that both
            tensors have are aligned.

    Raises:
        AxisError: a has fewer than two axes.
        BoundError: matrices are not square, or b has the wrong size.
        LabelError: only one of them has names, or b has none or both of the last two axes of a.
        ValueTypeError: they are complex.
        ExecutionError: at computation, one of the matrices is singular.

    >>> import ucle
    >>> ucle.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [1.0, 1.0]).to_numpy().tolist()
    [0.5, 0.25]
    """
    matrix, sides = as_tensor(a).lazy, as_tensor(b).lazy
    if len(matrix.axes) < 2 or not sides.axes:
        raise AxisError(
            "solve needs matrices and right-hand sides",
            where="linalg.solve",
            expected="at least two axes of the one and one of the other",
            found=f"{matrix} and {sides}",
        )
    check_names([matrix, sides], "linalg.solve")
    labels = _names_of_system(matrix, sides) if matrix.named else _places_of_system(matrix, sides)
    return _solve_systems(matrix, sides, *labels)


SystemLabels = tuple[list[Any], list[Any], Any, Any]
"""The labels of matrices and of right-hand sides, and those of equations and of unknowns."""


def _names_of_system(matrix: Lazy, sides: Lazy) -> SystemLabels:
    """The names of axes as labels; the right-hand sides say which axis is that of equations."""
    names, own = [x.name for x in matrix.axes], [x.name for x in sides.axes]
    shared = [name for name in names[-2:] if name in own]
    if len(shared) != 1:
        raise LabelError(
            "right-hand sides have the axis of the equations, and not that of the unknowns",
            where="linalg.solve",
            expected=f"one of the axes {names[-2]!r} and {names[-1]!r}",
            found=str(sides),
            hint="t.rename({'old': 'new'}) gives an axis another name",
        )
    (equations,) = shared
    (unknowns,) = (name for name in names[-2:] if name != equations)
    return names, own, equations, unknowns


def _places_of_system(matrix: Lazy, sides: Lazy) -> SystemLabels:
    """Numbers as labels: those of batches are counted from the last one, as in NumPy."""
    batch = range(len(matrix.axes) - 2, 0, -1)
    labels = [*batch, "equation", "unknown"]
    if len(sides.axes) == 1:
        return labels, ["equation"], "equation", "unknown"
    own = [*range(len(sides.axes) - 2, 0, -1), "equation", "side"]
    return labels, own, "equation", "unknown"


def _solve_systems(
    matrix: Lazy, sides: Lazy, labels: list[Any], own: list[Any], equations: Any, unknowns: Any
) -> Tensor:
    axes: dict[Any, list[Axis]] = {}
    for tensor, of_tensor in ((matrix, labels), (sides, own)):
        for axis, label in zip(tensor.axes, of_tensor, strict=True):
            axes.setdefault(label, []).append(axis)
    square = axes[equations][0], axes[unknowns][0]
    sizes = {axis.size for axis in (*square, *axes[equations])} - {None}
    if len(sizes) > 1:
        raise BoundError(
            "these are not systems of linear equations",
            where="linalg.solve",
            expected="square matrices, and right-hand sides with as many rows",
            found=f"{matrix} and {sides}",
        )
    batch = sorted((label for label in axes if isinstance(label, int)), reverse=True)
    output = [*batch, *(x for x in labels if x not in (*batch, equations))]
    output += [x for x in own if x not in (*batch, *labels)]
    merged = [merge_axes(axes[label], "linalg.solve") for label in output]
    numbers = {label: n for n, label in enumerate((*output, equations))}
    kept = [numbers[label] for label in output]
    if sizes == {1}:  # such axes have no labels
        numbers[equations] = numbers[unknowns]
        matrix = (Tensor(matrix) * 1.0).lazy
    operands = [
        tensor.operand(numbers[x] for x in of_tensor)
        for tensor, of_tensor in ((matrix, labels), (sides, own))
    ]
    if sizes == {1}:
        return Tensor(apply(DIV.name, reversed(operands), merged, kept))
    made = apply(None, operands, merged, kept)
    assert isinstance(made.node, Apply)
    places = numbers[equations], numbers[unknowns]
    return Tensor(Lazy(replace(made.node, along=(SOLVE, places)), made.axes))


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
