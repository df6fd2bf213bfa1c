"""The meaning of the kernels of whole matrices in NumPy, as `kernel_meanings` has the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from operator_meanings import Array

from ucle.ir.axis_functions import MATRIX_FUNCTIONS
from ucle.testing.oracle_operators import MATRICES, solve_systems

KERNEL_PARTS: Mapping[str, Sequence[str]] = {
    name: [each.name for each in MATRIX_FUNCTIONS.values() if name in (each.part_of or ())]
    or [name]
    for name, row in MATRIX_FUNCTIONS.items()
    if row.part_of is None
}
"""The results that a kernel returns one after the other, by its name without ``mat_``."""

_FINITE = {"eigenvalues", "eigenvectors", *KERNEL_PARTS["qr"], *KERNEL_PARTS["svd"]}
_FINITE |= {"singular_values"}


def _apply(name: str, matrix: Array) -> Array:
    if not MATRIX_FUNCTIONS[name].shape.fits(*matrix.shape):
        raise ValueError("a matrix of another shape")
    if name in _FINITE and not np.isfinite(matrix).all():
        raise np.linalg.LinAlgError("not finite")
    return MATRICES[name](matrix)


def mat_map(names: Sequence[str], v: Array, rows: int, columns: int) -> Array:
    """A function of each of some matrices that follow each other."""
    return mat_parts(names, v, 1, rows, columns)


def mat_parts(names: Sequence[str], v: Array, parts: int, rows: int, columns: int) -> Array:
    """Results of each of some matrices, which follow each other in their first parts."""
    if parts != len(names) or not MATRIX_FUNCTIONS[names[0]].shape.fits(rows, columns):
        raise ValueError("other parts, or a matrix of another shape")
    if not rows * columns:
        return v.reshape(0)
    blocks = v.reshape(-1, parts, rows, columns)[:, 0].astype(np.float64)
    made = [_apply(name, block).reshape(-1) for block in blocks for name in names]
    return np.concatenate(made).astype(v.dtype) if made else v[:0]


def mat_solve(matrices: Array, sides: Array, n: int) -> Array:
    """Solutions of some systems of n equations, with as many right-hand sides each."""
    rows = len(matrices) // n if n else 0
    if len(matrices) != rows * n or rows % max(n, 1) or (len(sides) % rows if rows else len(sides)):
        raise ValueError("other numbers of equations")
    if not len(sides):
        return sides
    A = matrices.reshape(-1, n, n).astype(np.float64)
    solved = solve_systems(A, sides.reshape(len(A), n, -1).astype(np.float64))
    return solved.reshape(-1).astype(sides.dtype)
