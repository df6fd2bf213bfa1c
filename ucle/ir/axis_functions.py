"""Functions along axes that stay: functions of whole matrices, prefix scans, and top-k.

Of functions of matrices, such as ``inv`` and ``cholesky``, every entry of the result depends on all
entries of the matrix, stored or not. Only kernels compute them; SQL cannot express them. As in
NumPy, only the lower triangle of positive definite and of symmetric matrices is read. Eigenvalues
stand in a diagonal matrix in ascending order, and eigenvectors in its columns. Each result has the
shape of the matrix: what is smaller, such as singular values, is followed by zeros.

A factorisation, such as ``svd``, has several results, the parts. They are told apart by a label,
which the matrix has, too: it is the first part of the operand, whose other parts are not read. One
vertex gives all parts, and a reader takes the part that it needs.

Of prefix scans (``cumsum``, ``cumprod``, ``cummax``, ``cummin``), an entry is the aggregate of all
entries of its fibre up to it, in the order of the axis, stored or not. If ⊕ of two fills is the
fill, as 0 + 0 is, a fibre with nothing stored is fill from end to end. Otherwise each entry has a
value of its own, and all of them must be met.

Top-k (``top_k``, ``bottom_k``) keeps the k greatest or least entries of each fibre, best first,
whether they are stored or not. Of two equal entries the one at the smaller position comes first, so
that the values alone decide; NaN counts as the greatest number. An entry is a pair of a value and a
position, told apart by a label of size 2: one vertex gives both, and a reader takes the part that
it needs. If no reader takes a position, and what is not stored is an infinity that follows all that
is stored, the first entries are those that are stored, in order, and the others are that infinity:
nothing has to be made of a fibre but what it stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import ClassVar

from ucle.errors import ValueTypeError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar, same_value
from ucle.ir.ranges import reduce_values
from ucle.operators import MAX, MIN, REDUCES, Reduce
from ucle.operators.values import Values, hull


class MatrixShape(Enum):
    """The shapes of matrices that have a function."""

    SQUARE = "labels {row} and {column} of one size"
    ANY = "labels {row} and {column}"

    def fits(self, rows: int, columns: int) -> bool:
        """Return whether a matrix has this shape.

        >>> [shape.fits(2, 3) for shape in MatrixShape]
        [False, True]
        """
        return self is MatrixShape.ANY or rows == columns


@dataclass(frozen=True)
class MatrixFunction:
    """One row of the table of functions of matrices.

    `part_of` is the factorisation that has this result among others, and its number there; None for
    a function with a single result. `parts` is the number of results of a factorisation.
    """

    name: str
    shape: MatrixShape
    part_of: tuple[str, int] | None = None
    parts: int = 1


MATRIX_FUNCTIONS: Mapping[str, MatrixFunction] = {
    row.name: row
    for row in (
        MatrixFunction("cholesky", MatrixShape.SQUARE),
        MatrixFunction("inv", MatrixShape.SQUARE),
        MatrixFunction("eigenvalues", MatrixShape.SQUARE),
        MatrixFunction("eigenvectors", MatrixShape.SQUARE),
        MatrixFunction("pivots", MatrixShape.SQUARE),
        MatrixFunction("singular_values", MatrixShape.ANY),
        MatrixFunction("qr", MatrixShape.ANY, parts=2),
        MatrixFunction("qr_q", MatrixShape.ANY, part_of=("qr", 0)),
        MatrixFunction("qr_r", MatrixShape.ANY, part_of=("qr", 1)),
        MatrixFunction("svd", MatrixShape.ANY, parts=3),
        MatrixFunction("svd_u", MatrixShape.ANY, part_of=("svd", 0)),
        MatrixFunction("svd_s", MatrixShape.ANY, part_of=("svd", 1)),
        MatrixFunction("svd_vh", MatrixShape.ANY, part_of=("svd", 2)),
    )
}
"""All functions of matrices and factorisations, by their names."""

MATRIX_MAPS = tuple(name for name, row in MATRIX_FUNCTIONS.items() if row.parts == 1)
"""The functions of matrices that programs call, by their names."""


@dataclass(frozen=True)
class MatrixMap:
    """A function of the matrices over two axes, or a factorisation with a label for its parts."""

    name: str
    row: str
    column: str
    part: str | None = None
    dense: ClassVar[bool] = True
    """True: all entries must be met, stored or not."""

    @property
    def function(self) -> MatrixFunction:
        """The row of the table that describes the function."""
        return MATRIX_FUNCTIONS[self.name]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the parts, if there are several, of the rows and of the columns."""
        matrix = self.row, self.column
        return matrix if self.part is None else (self.part, *matrix)

    @property
    def kernel(self) -> str:
        """The name of the function in kernels."""
        return f"mat_{self.name}"

    def rename_labels(self, names: Mapping[str, str]) -> MatrixMap:
        """Return this function with its labels renamed."""
        row, column = (names.get(label, label) for label in (self.row, self.column))
        part = None if self.part is None else names.get(self.part, self.part)
        return replace(self, row=row, column=column, part=part)


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
            f"{name} needs matrices of real numbers",
            where=where,
            expected="real numbers, integers or truth values",
            found=dtype.value,
            hint="real and imag make real numbers of complex ones",
        )
    return dtype if dtype.kind == "f" else DType.FLOAT64


@dataclass(frozen=True)
class Running:
    """A prefix scan with ⊕ along an axis, which stays."""

    reduce: Reduce
    label: str
    dense: bool = False
    """True if all entries must be met, stored or not, because ⊕ of two fills is not the fill."""

    @property
    def name(self) -> str:
        """The name of the function in programs."""
        return f"cum{self.reduce.stem}"

    @property
    def kernel(self) -> str:
        """The name of the function in kernels."""
        return self.name

    @property
    def labels(self) -> tuple[str, ...]:
        """The label that the scan runs along, alone in a tuple."""
        return (self.label,)

    def rename_labels(self, names: Mapping[str, str]) -> Running:
        """Return this scan with its label renamed."""
        return replace(self, label=names.get(self.label, self.label))

    def is_stable(self, fill: Scalar, dtype: DType) -> bool:
        """Return whether a fibre of fill alone is unchanged by the scan.

        >>> [Running(RUNNING["cumsum"], "i").is_stable(x, DType.FLOAT64) for x in (0.0, 1.0)]
        [True, False]
        """
        assert self.reduce.merge is not None
        try:
            return same_value(self.reduce.merge.scalar(fill, fill, dtype), fill)
        except OverflowError:
            return False

    def is_exact(self, dtype: DType) -> bool:
        """Return whether the order of the steps cannot change the result."""
        return self.reduce.extreme is not None or dtype.kind in "bi"

    def values(self, every: Values, fill: Scalar, size: int, dtype: DType) -> Values:
        """Return the range of the scan's entries from the range and the size of a fibre."""
        if not size:
            return every
        whole = reduce_values(self.reduce, every, fill, size, dtype)
        values = hull(replace(every, full=False), replace(whole, full=False))
        if self.reduce.may_alternate:
            values = replace(values, low=Values().low, high=Values().high, nonzero=False)
        return values


Along = Running | MatrixMap
"""An operation on fibres along labels that stay: a prefix scan or a function of matrices."""

RUNNING: Mapping[str, Reduce] = {row.scan_name: row for row in REDUCES.values() if row.has_scan}
"""The aggregations with a prefix scan, by their names in programs."""


VALUE, POSITION = 0, 1
"""The coordinates of the two parts of a pair."""

PAIR = 2

LONGEST_AXIS = 1 << 53
"""The longest axis whose positions float64 holds exactly."""


@dataclass(frozen=True)
class TopK:
    """Top-k along one axis, which is replaced by a rank and by the part of a pair."""

    label: str
    rank: str
    part: str
    largest: bool
    stored_first: bool = False
    """True if entries that are not stored follow all others, and no reader takes a position: the
    result has the fill of the tensor."""

    @property
    def kernel(self) -> str:
        """The name of the order in kernels."""
        return MAX.stem if self.largest else MIN.stem

    @property
    def name(self) -> str:
        """The name of the function in programs."""
        return "top_k" if self.largest else "bottom_k"

    def rename_labels(self, names: Mapping[str, str]) -> TopK:
        """Return this top-k with its labels renamed."""
        label, rank, part = (names.get(x, x) for x in (self.label, self.rank, self.part))
        return replace(self, label=label, rank=rank, part=part)

    def text(self, source: str, label: str) -> str:
        """Return the call on a tensor along a label, as a person would write it."""
        return f"{self.name}[{label},{self.rank}]({source})"


def pair_dtype(dtype: DType) -> DType | None:
    """Return the type that holds both values of `dtype` and positions exactly; None if unordered.

    >>> [pair_dtype(x) for x in (DType.FLOAT32, DType.BOOL, DType.COMPLEX128)]
    [<DType.FLOAT64: 'float64'>, <DType.INT64: 'int64'>, None]
    """
    return {"f": DType.FLOAT64, "i": DType.INT64, "b": DType.INT64}.get(dtype.kind)
