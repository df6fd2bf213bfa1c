"""The meaning of the kernels of compressed tensors in NumPy, as `kernel_meanings` has the others.

Nothing here is fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from operator_meanings import COMBINES, REDUCES, Array, Function

from ucle import operators
from ucle.foundation.dtypes import DType
from ucle.operators import MULT, SUM
from ucle.udf_kernels import ELEMENT_TYPES, Csr
from ucle.udf_kernels.compressed import differs


@dataclass(frozen=True)
class Semiring:
    """The operations of a spec for a type; `combine` knows whether its operands change places."""

    reduce: np.ufunc
    combine: Function
    identity: Any

    @staticmethod
    def of(tag: str, spec: str) -> Semiring:
        """``reduce.combine``, of which '' is ``sum.mult``."""
        reduce, _, combine = (spec or f"{SUM.stem}.{MULT.stem}").partition(".")
        return Semiring(reduction(tag, reduce), combination(tag, combine), identity(tag, reduce))


def combination(tag: str, word: str) -> Function:
    """The one that a word names; before it, ``r`` has its operands change places."""
    combines = COMBINES[tag]
    if (word or MULT.stem) in combines:
        return combines[word or MULT.stem]
    swapped = combines[word[1:]]
    return lambda x, y: swapped(y, x)


def reduction(tag: str, word: str) -> np.ufunc:
    """The one that a word names, '' the sum."""
    return REDUCES[tag][word or SUM.stem]


def identity(tag: str, word: str) -> Any:
    """Return what a reduction of nothing is."""
    dtype, of_nothing = ELEMENT_TYPES[tag].dtype, operators.REDUCES[word or SUM.stem].identity
    assert of_nothing is not None
    return dtype.type(of_nothing(DType(dtype.name)))


def entries(x: Csr) -> Iterator[tuple[int, int, Any]]:
    """Yield row, column and value of each entry, in order."""
    return zip(x.row.tolist(), x.idx.tolist(), x.values, strict=True)


def csr_nnz(x: Csr) -> int:
    """The number of entries."""
    return len(x.idx)


def csr_rows(x: Csr) -> list[int]:
    """The row of each entry."""
    return list(x.row.tolist())


def csr_cols(x: Csr) -> list[int]:
    """The column of each entry."""
    return list(x.idx.tolist())


def csr_values(x: Csr) -> Array:
    """The value of each entry."""
    return x.values


def csr_stored(x: Csr) -> Array:
    """The values that are stored: of entries all of them."""
    return x.values


def csr_with(x: Csr, values: Array) -> Csr:
    """The same places with other values."""
    return Csr(x.rows, x.cols, x.ptr, x.idx, np.asarray(values))


def csr_prune(x: Csr, fill: Any) -> Csr:
    """Without entries that are equal to the fill."""
    keep = differs(x.values, fill)
    return Csr.at_places(x.rows, x.cols, x.row[keep], x.idx[keep], x.values[keep])


def csr_to_mat(x: Csr, fill: Any) -> Array:
    """The dense matrix."""
    return x.dense(fill).ravel()


def mat_to_csr(matrix: Array, cols: int, fill: Any) -> Csr:
    """Compress the entries of a dense matrix that differ from the fill; no rows if no columns."""
    return Csr.of(matrix.reshape(-1, cols) if cols else matrix.reshape(0, 0), fill)


def csr_empty(rows: int, cols: int) -> Csr:
    """Nothing, in a matrix of values of any type."""
    return Csr(rows, cols, np.zeros(rows + 1, "u4"), np.zeros(0, "u4"), np.zeros(0, bool))


def csr_mat(tag: str, spec: str, x: Csr, matrix: Array, n: int) -> Array:
    """A compressed matrix times a dense one of n columns."""
    by = Semiring.of(tag, spec)
    out = np.full((x.rows, n), by.identity)
    lines = matrix.reshape(x.cols, n)
    for i, j, value in entries(x):
        out[i] = by.reduce(out[i], by.combine(value, lines[j]))
    return out.ravel()


def stack_csr(
    dtype: np.dtype[Any],
    values: Sequence[Any],
    row: Sequence[int],
    col: Sequence[int],
    rows: int,
    cols: int,
    fill: Any,
) -> Csr:
    """Entries at their places, those that are equal to the fill left out."""
    return csr_prune(Csr.at_places(rows, cols, row, col, np.array(values, dtype)), fill)


def stack_runs(
    dtype: np.dtype[Any],
    values: Sequence[Any],
    row: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    rows: int,
    cols: int,
    fill: Any,
) -> Csr:
    """Runs of one value from a column to before another, those of the fill left out."""
    pairs = list(zip(begin, end, strict=True))
    lengths = [b - a for a, b in pairs]
    col = [c for a, b in pairs for c in range(a, b)]
    every = np.repeat(np.array(values, dtype), lengths)
    return csr_prune(
        Csr.at_places(rows, cols, np.repeat(row, lengths).astype(int), np.array(col, int), every),
        fill,
    )


def csr_t_mat(tag: str, spec: str, x: Csr, matrix: Array, n: int) -> Array:
    """The transpose of a compressed matrix times a dense one of n columns."""
    return csr_mat(tag, spec, csr_transpose(x), matrix, n)


def sum_csr_t_mat(tag: str, xs: Sequence[Csr], matrices: Sequence[Array], n: int) -> Array:
    """The sum of such products."""
    pairs = zip(xs, matrices, strict=True)
    products = [csr_t_mat(tag, "sum.mult", x, matrix, n) for x, matrix in pairs]
    return np.asarray(np.add.reduce(np.array(products), axis=0))


def csr_transpose(x: Csr) -> Csr:
    """Rows as columns."""
    return Csr.at_places(x.cols, x.rows, x.idx, x.row, x.values)


def csr_row(x: Csr, r: int) -> Csr:
    """One row."""
    of_row = x.row == r
    return Csr.at_places(1, x.cols, 0 * x.idx[of_row], x.idx[of_row], x.values[of_row])


def csr_scale_rows(tag: str, combine: str, x: Csr, scales: Array) -> Csr:
    """Each value combined with the element for its row."""
    return csr_with(x, combination(tag, combine)(x.values, scales[x.row]))


def csr_scale_cols(tag: str, combine: str, x: Csr, scales: Array) -> Csr:
    """Each value combined with the element for its column."""
    return csr_with(x, combination(tag, combine)(x.values, scales[x.idx]))


def csr_at(tag: str, combine: str, x: Csr, matrix: Array) -> Csr:
    """Each value combined with what a dense matrix has at its place."""
    dense = matrix.reshape(x.rows, x.cols)
    return csr_with(x, combination(tag, combine)(x.values, dense[x.row, x.idx]))


def _matrix(tag: str, rows: int, cols: int, cells: dict[tuple[int, int], Any]) -> Csr:
    """A compressed matrix of what is at each place."""
    row, col = [place[0] for place in cells], [place[1] for place in cells]
    values = np.array(list(cells.values()), ELEMENT_TYPES[tag].dtype)
    return Csr.at_places(rows, cols, row, col, values)


def csr_csr_at(tag: str, combine: str, a: Csr, b: Csr) -> Csr:
    """Combine the entries that both matrices have."""
    by, other = combination(tag, combine), {(i, j): value for i, j, value in entries(b)}
    both = {(i, j): by(value, other[i, j]) for i, j, value in entries(a) if (i, j) in other}
    return _matrix(tag, a.rows, a.cols, both)


def csr_csr_filled(tag: str, combine: str, a: Csr, b: Csr, fill: Any) -> Csr:
    """Each value combined with what another matrix has at its place, or with the fill."""
    by, other = combination(tag, combine), {(i, j): value for i, j, value in entries(b)}
    filled = ELEMENT_TYPES[tag].dtype.type(fill)
    made = {(i, j): by(value, other.get((i, j), filled)) for i, j, value in entries(a)}
    return _matrix(tag, a.rows, a.cols, made)


def csr_csr_union(tag: str, combine: str, a: Csr, b: Csr, no_a: Any, no_b: Any) -> Csr:
    """Combine the values at each place where one matrix or the other has an entry."""
    by, dtype = combination(tag, combine), ELEMENT_TYPES[tag].dtype
    one, other = ({(i, j): value for i, j, value in entries(x)} for x in (a, b))
    fills = [dtype.type(fill) for fill in (no_a, no_b)]
    made = {
        place: by(one.get(place, fills[0]), other.get(place, fills[1]))
        for place in {**one, **other}
    }
    return _matrix(tag, a.rows, a.cols, made)


def _products(by: Semiring, a: Csr, b: Csr) -> dict[tuple[int, int], Any]:
    """A product of two compressed matrices, wherever a pair of entries comes to something."""
    lines: dict[int, list[tuple[int, Any]]] = {}
    for k, j, value in entries(b):
        lines.setdefault(k, []).append((j, value))
    cells: dict[tuple[int, int], Any] = {}
    for i, k, x in entries(a):
        for j, y in lines.get(k, []):
            cells[i, j] = by.reduce(cells.get((i, j), by.identity), by.combine(x, y))
    return cells


def csr_csr(tag: str, spec: str, a: Csr, b: Csr) -> Csr:
    """The product of two compressed matrices, without what is equal to the reduction of nothing."""
    by = Semiring.of(tag, spec)
    return csr_prune(_matrix(tag, a.rows, b.cols, _products(by, a, b)), by.identity)


def csr_csr_masked(tag: str, spec: str, mask: Csr, a: Csr, b: Csr) -> Csr:
    """The product at the places of a mask, combined with it: the mask's value stands first."""
    by = Semiring.of(tag, spec)
    cells = _products(by, a, b)
    kept = {
        (i, j): by.combine(value, cells[i, j]) for i, j, value in entries(mask) if (i, j) in cells
    }
    return csr_prune(_matrix(tag, mask.rows, mask.cols, kept), by.identity)


def csr_csr_t_masked(tag: str, spec: str, mask: Csr, a: Csr, bt: Csr) -> Csr:
    """The same of the transpose of the second operand."""
    return csr_csr_masked(tag, spec, mask, a, csr_transpose(bt))


def csr_sddmm(tag: str, spec: str, mask: Csr, q: Array, k: Array, d: int) -> Csr:
    """Inner products of rows of q and k at the places of a mask, combined with it."""
    by = Semiring.of(tag, spec)
    left, right = q.reshape(mask.rows, d), k.reshape(mask.cols, d)
    cells = {
        (i, j): by.combine(value, by.reduce.reduce(by.combine(left[i], right[j])))
        for i, j, value in entries(mask)
        if d
    }
    return csr_prune(_matrix(tag, mask.rows, mask.cols, cells), by.identity)


def csr_reduce_rows(tag: str, reduce: str, x: Csr) -> Array:
    """The entries of each row, reduced."""
    out = np.full(x.rows, identity(tag, reduce))
    for i, _, value in entries(x):
        out[i] = reduction(tag, reduce)(out[i], value)
    return out


def csr_reduce_cols(tag: str, reduce: str, x: Csr) -> Array:
    """The entries of each column, reduced."""
    return csr_reduce_rows(tag, reduce, csr_transpose(x))


def csr_reduce(tag: str, reduce: str, x: Csr) -> Any:
    """All entries, reduced."""
    return reduction(tag, reduce).reduce(x.values, initial=identity(tag, reduce))


def stack_csr_rows(tiles: Sequence[Csr], first: Sequence[int], rows: int, cols: int) -> Csr:
    """Compressed matrices one below the other, each from a row on."""
    row = np.concatenate([tile.row + start for tile, start in zip(tiles, first, strict=True)])
    col = np.concatenate([tile.idx for tile in tiles])
    return Csr.at_places(rows, cols, row, col, np.concatenate([tile.values for tile in tiles]))
