"""QR and singular value decompositions of matrices, with the names of `numpy.linalg`.

Matrices of any shape stand along the last two axes, one for each position of the others. Kernels
compute all results of a decomposition in one call; there are no gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ucle.errors import ArgumentTypeError, AxisError, UnsupportedError
from ucle.lazy.axes import replace_axes
from ucle.lazy.functions import concat, pad
from ucle.lazy.matrices import crop_matrices, map_matrices
from ucle.lazy.nodes import Axis
from ucle.lazy.rearranging import crop_axis, known_size
from ucle.lazy.tensor import Tensor, as_tensor

NAMES = ("qr", "svd", "svdvals")
"""The functions' names in `numpy.linalg`."""

COMPONENT = "component"
"""The name of an axis of singular values, or of columns of Q, if axes have names."""


class QR(NamedTuple):
    """Orthonormal columns, and the upper triangles that they are multiplied by."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """Left singular vectors as columns, singular values, and right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def qr(x: Any, /, mode: str = "reduced") -> Any:
    """QR decompositions: orthonormal columns Q and upper triangles R with ``x = Q @ R``.

    Args:
        x: a tensor of at least two axes, of real numbers.
        mode: ``"reduced"`` for as many columns of Q and rows of R as the smaller of the two sizes,
            ``"complete"`` for as many as there are rows, and ``"r"`` for R alone. The signs are
            those of LAPACK, and therefore those of NumPy.

    Returns:
        Q and R, a named tuple, or R. If axes have names, the new ones are called ``component``.

    Raises:
        AxisError: there are fewer than two axes.
        BoundError: only the data of a table determines a size.
        ValueTypeError: the matrices are complex.
        ExecutionError: at computation, entries are not finite.

    >>> import ucle
    >>> q, r = ucle.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
    >>> q.to_numpy().round(3).tolist(), r.to_numpy().round(3).tolist()
    ([[-0.6, -0.8], [-0.8, 0.6]], [[-5.0, -2.2], [0.0, 0.4]])
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentTypeError(
            "there is no such mode",
            where="linalg.qr",
            expected="'reduced', 'complete' or 'r'",
            found=repr(mode),
        )
    tensor, rows, columns = _plain(x, "qr")
    count = rows if mode == "complete" else min(rows, columns)
    framed = _add_columns(tensor, max(rows - columns, 0)) if mode == "complete" else tensor
    triangle = crop_matrices(map_matrices("qr_r", framed), count, columns)
    given = as_tensor(x)
    axes = given.lazy.axes
    r = _named(triangle, given, (*_names(axes[:-2]), COMPONENT, axes[-1].name))
    if mode == "r":
        return r
    orthonormal = crop_matrices(map_matrices("qr_q", framed), None, count)
    return QR(_named(orthonormal, given, (*_names(axes[:-1]), COMPONENT)), r)


def svd(
    x: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Singular value decompositions: U, S and Vh with ``x = (U * S) @ Vh`` if these are reduced.

    Args:
        x: a tensor of at least two axes, of real numbers.
        full_matrices: False for as many columns of U and rows of Vh as there are singular values;
            by default, they are completed to square matrices, as in NumPy.
        compute_uv: False for singular values alone, as `svdvals` returns them.
        hermitian: has to be False; `eigh` is for symmetric matrices.

    Returns:
        U, S in descending order and Vh, a named tuple, or S. The largest component of each row of
        a reduced Vh is positive. If axes have names, the new ones are called ``component``.

    Raises:
        AxisError: there are fewer than two axes.
        BoundError: only the data of a table determines a size.
        UnsupportedError: `hermitian` is true.
        ValueTypeError: the matrices are complex.
        ExecutionError: at computation, entries are not finite.

    >>> import ucle
    >>> u, s, vh = ucle.linalg.svd([[0.0, 3.0], [2.0, 0.0]])
    >>> [part.to_numpy().round(12).tolist() for part in (u, s, vh)]
    [[[1.0, 0.0], [0.0, 1.0]], [3.0, 2.0], [[0.0, 1.0], [1.0, 0.0]]]
    """
    if hermitian:
        raise UnsupportedError(
            "hermitian=True is not supported for singular values",
            where="linalg.svd",
            expected="hermitian=False",
            found="hermitian=True",
            hint="eigh decomposes symmetric matrices",
        )
    return decompose(x, full_matrices=full_matrices) if compute_uv else svdvals(x)


def decompose(x: Any, *, full_matrices: bool = False) -> SVD:
    """Return singular values and vectors; see `svd`."""
    tensor, rows, columns = _plain(x, "svd")
    count = min(rows, columns)
    u = crop_matrices(map_matrices("svd_u", tensor), None, count)
    s = crop_matrices(map_matrices("svd_s", tensor), count, count).diagonal(0, -2, -1)
    vh = crop_matrices(map_matrices("svd_vh", tensor), count, None)
    if full_matrices:
        u, vh = _complete_columns(u), _complete_columns(vh.mT).mT
    given = as_tensor(x)
    axes = given.lazy.axes
    batch = _names(axes[:-2])
    return SVD(
        _named(u, given, (*batch, axes[-2].name, COMPONENT)),
        _named(s, given, (*batch, COMPONENT)),
        _named(vh, given, (*batch, COMPONENT, axes[-1].name)),
    )


def svdvals(x: Any, /) -> Tensor:
    """Singular values in descending order; errors are as for `svd`.

    >>> import ucle
    >>> ucle.linalg.svdvals([[0.0, 3.0, 0.0], [2.0, 0.0, 0.0]]).to_numpy().round(12).tolist()
    [3.0, 2.0]
    """
    tensor, rows, columns = _plain(x, "svdvals")
    count = min(rows, columns)
    values = crop_matrices(map_matrices("singular_values", tensor), count, count)
    values = values.diagonal(0, -2, -1)
    given = as_tensor(x)
    return _named(values, given, (*_names(given.lazy.axes[:-2]), COMPONENT))


def _plain(x: Any, function: str) -> tuple[Tensor, int, int]:
    """The matrices with axes that have no names, and their numbers of rows and columns."""
    tensor = as_tensor(x)
    if tensor.ndim < 2:
        raise AxisError(
            f"{function} needs matrices",
            where=f"linalg.{function}",
            expected="at least two axes",
            found=f"{tensor.ndim}",
        )
    rows, columns = (known_size(tensor.lazy, tensor.ndim - n, f"linalg.{function}") for n in (2, 1))
    return tensor.unnamed() if tensor.lazy.named else tensor, rows, columns


def _names(axes: Sequence[Axis]) -> tuple[str | None, ...]:
    return tuple(axis.name for axis in axes)


def _named(tensor: Tensor, given: Tensor, names: Sequence[str | None]) -> Tensor:
    """Name the axes of a result, if those of the matrices have names."""
    if not given.lazy.named:
        return tensor
    axes = (Axis(name, axis.size) for name, axis in zip(names, tensor.lazy.axes, strict=True))
    return Tensor(replace_axes(tensor.lazy, tuple(axes)))


def _add_columns(tensor: Tensor, count: int) -> Tensor:
    return pad(tensor, [(0, 0)] * (tensor.ndim - 1) + [(0, count)]) if count else tensor


def _complete_columns(vectors: Tensor) -> Tensor:
    """Orthonormal columns, with others behind them that make the matrices square."""
    *_, rows, columns = vectors.shape
    assert rows is not None
    assert columns is not None
    if rows == columns:
        return vectors
    completed = map_matrices("qr_q", _add_columns(vectors, rows - columns))
    others = crop_axis(completed.lazy, vectors.ndim - 1, columns, rows - columns)
    return concat([vectors, Tensor(others)], -1)
