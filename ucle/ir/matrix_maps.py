"""Functions of whole matrices: ``inv``, ``cholesky`` and the like, over two axes that both stay.

Every entry of the result depends on all entries of the matrix, stored or not. Only kernels compute
these functions; SQL cannot express them. As in NumPy, only the lower triangle of positive definite
and of symmetric matrices is read. Eigenvalues stand in a diagonal matrix in ascending order, and
eigenvectors in its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ucle.errors import ValueTypeError
from ucle.foundation.dtypes import DType


@dataclass(frozen=True)
class MatrixMap:
    """A function of the matrices over two axes of one size."""

    name: str
    row: str
    column: str
    dense: ClassVar[bool] = True
    """True: all entries must be met, stored or not."""

    @property
    def labels(self) -> tuple[str, str]:
        """The labels of the rows and of the columns."""
        return self.row, self.column

    @property
    def kernel(self) -> str:
        """The name of the function in kernels."""
        return f"mat_{self.name}"

    def renamed(self, names: Mapping[str, str]) -> MatrixMap:
        """Return this function with its labels renamed."""
        row, column = (names.get(label, label) for label in self.labels)
        return replace(self, row=row, column=column)


def matrix_dtype(name: str, dtype: DType, where: str) -> DType:
    """Return the element type of the result of a function of matrices.

    Args:
        name: name of the function.
        dtype: element type of the matrices.
        where: place in the program, for messages.

    Raises:
        ValueTypeError: the matrices are complex.

    >>> [matrix_dtype("inv", x, "") for x in (DType.FLOAT32, DType.BOOL)]
    [<DType.FLOAT32: 'float32'>, <DType.FLOAT64: 'float64'>]
    """
    if dtype.kind == "c":
        raise ValueTypeError(
            f"{name} is of matrices of real numbers",
            where=where,
            expected="real numbers, integers or truth values",
            found=dtype.value,
            hint="real and imag make real numbers of complex ones",
        )
    return dtype if dtype.kind == "f" else DType.FLOAT64


MATRIX_MAPS = ("cholesky", "inv", "eigenvalues", "eigenvectors")
"""All functions of matrices, by their names in programs."""
