"""Functions of whole matrices: ``inv`` and its kin, of two axes that both stay.

Every entry of the result is made of all entries of the matrix, stored or not, by a kernel: no SQL
says what they do. Of positive definite and of symmetric matrices the lower triangle is read, as by
NumPy. Eigenvalues stand in a diagonal matrix, from the least on, and eigenvectors in its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ucle.errors import ValueTypeError
from ucle.foundation.dtypes import DType


@dataclass(frozen=True)
class MatrixMap:
    """A function of the matrices that two axes of one size are."""

    name: str
    row: str
    column: str
    dense: ClassVar[bool] = True
    """All entries have to be met, stored or not."""

    @property
    def labels(self) -> tuple[str, str]:
        """Those of its axes."""
        return self.row, self.column

    @property
    def kernel(self) -> str:
        """What kernels call it."""
        return f"mat_{self.name}"

    def renamed(self, names: Mapping[str, str]) -> MatrixMap:
        """The same along labels by other names."""
        row, column = (names.get(label, label) for label in self.labels)
        return replace(self, row=row, column=column)


def matrix_dtype(name: str, dtype: DType, where: str) -> DType:
    """The type of what a function makes of matrices of a type.

    Args:
        name: of the function.
        dtype: of the matrices.
        where: the place, for a message.

    Raises:
        ValueTypeError: they are complex.

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
"""The functions that there are, by their names in programs."""
