"""Compressed tensors on which the kernels are compared with their references.

Values are small powers of 2, so that sums of products are exact in every order: whether an entry
comes to the fill, and is left out, is not a matter of rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import compressed_meanings
import numpy as np
from kernel_table import KERNELS, base
from operator_meanings import COMBINES, ORDERED, REDUCES, Array

from ucle.udf_kernels import ELEMENT_TYPES, Csr

TOO_LARGE = "prod.random_bits"
"""A product of numbers of 53 bits overflows."""

SHAPES = ((3, 4), (1, 1), (1, 9), (9, 1), (0, 3), (3, 0), (0, 0), (17, 23), (30, 40))
VALUES = {
    "f": (0.5, 1.0, 2.0, 4.0),
    "i": (1, 2, 1, 3),
    "b": (False, True),
    "c": (1, 2, 1j, 0.5 + 0.5j),
}
FILLS = {
    "f": (0.0, np.nan, np.inf, 2.0),
    "i": (0, 2, 2**63 - 1),
    "b": (False, True),
    "c": (0j, complex(np.nan, 0), 2 + 0j),
}


def exact(rng: np.random.Generator, tag: str, length: int) -> Array:
    """Values whose sums of products are exact."""
    dtype = ELEMENT_TYPES[tag].dtype
    return rng.choice(np.array(VALUES[dtype.kind]), size=length).astype(dtype)


def sparse(rng: np.random.Generator, tag: str, rows: int, cols: int, density: float = 0.3) -> Csr:
    """Entries at random places."""
    row, col = np.nonzero(rng.random((rows, cols)) < density)
    return Csr.at_places(rows, cols, row, col, exact(rng, tag, len(row)))


def with_fill(rng: np.random.Generator, values: Array, fill: Any) -> Array:
    """Some of the values replaced by the fill."""
    return np.where(rng.random(len(values)) < 0.3, values.dtype.type(fill), values)


def specs(tag: str) -> list[str]:
    """Every pair of operations of a type, and some with their operands swapped."""
    pairs = [f"{reduce}.{combine}" for reduce in REDUCES[tag] for combine in COMBINES[tag]]
    swapped = [f"{reduce}.rwhen" for reduce in REDUCES[tag]]
    pairs = [pair for pair in pairs if pair != TOO_LARGE]
    return [*pairs, *swapped, *([] if tag == "bool" else [""])]


OF_PLACES = (
    "csr_scale_rows",
    "csr_scale_cols",
    "csr_at",
    "csr_csr_at",
    "csr_csr_filled",
    "csr_csr_union",
)
"""Kernels whose operations combine and reduce nothing."""


def operations(plain: str, tag: str, every: bool) -> list[str]:
    """Values of a kernel's first argument: every one, or some that no integers overflow with."""
    default = [] if tag == "bool" else [""]
    if plain.startswith("csr_reduce"):
        return [*(word for word in REDUCES[tag] if every or word != "prod"), *default]
    if plain in OF_PLACES:
        return [*COMBINES[tag], *(f"r{word}" for word in ORDERED if word in COMBINES[tag]), ""]
    towers = tag == "i64" and plain in ("csr_sddmm", "csr_csr_masked", "csr_csr_t_masked")
    grow = ("pow", "left_shift", "prod.bit")
    kept = [spec for spec in specs(tag) if not (towers and any(word in spec for word in grow))]
    return kept if every else [*default, specs(tag)[0], specs(tag)[7]]


def operands(
    plain: str, rng: np.random.Generator, tag: str, x: Csr, density: float, small: bool
) -> Iterator[list[Any]]:
    """The arguments that follow the operations and the first compressed tensor."""
    rows, cols = x.rows, x.cols
    match plain:
        case "csr_mat" | "csr_t_mat":
            for n in (1, 3) if small else (1, 70, 300):
                lines = cols if plain == "csr_mat" else rows
                yield [exact(rng, tag, lines * n), n]
        case "csr_csr":
            yield [sparse(rng, tag, cols, 5, density)]
        case "csr_csr_masked" | "csr_csr_t_masked":
            inner = 6
            a, b = sparse(rng, tag, rows, inner), sparse(rng, tag, inner, cols)
            yield [a, b if plain == "csr_csr_masked" else compressed_meanings.csr_transpose(b)]
        case "csr_sddmm":
            for d in (1, 3) if small else (0, 70):
                yield [exact(rng, tag, rows * d), exact(rng, tag, cols * d), d]
        case "csr_scale_rows" | "csr_scale_cols":
            yield [exact(rng, tag, rows if plain == "csr_scale_rows" else cols)]
        case "csr_at":
            yield [exact(rng, tag, rows * cols)]
        case "csr_csr_at":
            yield [sparse(rng, tag, rows, cols)]
        case "csr_csr_filled":
            fill = FILLS[ELEMENT_TYPES[tag].dtype.kind][0]
            yield [sparse(rng, tag, rows, cols), fill]
            yield [compressed_meanings.csr_with(x, exact(rng, tag, len(x.idx))), fill]
        case "csr_csr_union":
            fills = FILLS[ELEMENT_TYPES[tag].dtype.kind][:2]
            yield [sparse(rng, tag, rows, cols), *fills]
            yield [compressed_meanings.csr_with(x, exact(rng, tag, len(x.idx))), *fills]
        case _:
            yield []


def compressed_rows(name: str, rng: np.random.Generator) -> Iterator[list[Any]]:
    """Arguments for a scalar kernel of compressed tensors."""
    tag, plain = KERNELS[name].tag, base(name)
    for rows, cols in SHAPES:
        for density in (0.3, 0.0, 1.0):
            x = sparse(rng, tag, rows, cols, density)
            small, every = rows * cols < 20, (rows, cols) == SHAPES[0] and density > 0
            if KERNELS[name].parameters[0] == "VARCHAR":
                for spec in operations(plain, tag, every):
                    for others in operands(plain, rng, tag, x, density, small):
                        yield [spec, x, *others]
            else:
                yield from _part_rows(plain, rng, tag, x)


def _part_rows(plain: str, rng: np.random.Generator, tag: str, x: Csr) -> Iterator[list[Any]]:
    """Arguments of the kernels without operations."""
    fills = FILLS[ELEMENT_TYPES[tag].dtype.kind]
    match plain:
        case "csr_with":
            other = sparse(rng, str(rng.choice(list(ELEMENT_TYPES))), x.rows, x.cols)
            yield [other, exact(rng, tag, len(other.idx))]
        case "csr_prune":
            for fill in fills:
                yield [compressed_meanings.csr_with(x, with_fill(rng, x.values, fill)), fill]
        case "csr_to_mat":
            yield [x, fills[0]]
        case "mat_to_csr":
            for fill in fills if x.cols or not x.rows else ():
                yield [with_fill(rng, exact(rng, tag, x.rows * x.cols), fill), x.cols, fill]
        case "csr_empty":
            yield [x.rows, x.cols]
        case "csr_row":
            for r in range(min(x.rows, 3)):
                yield [x, r]
        case _:
            yield [x]


def compressed_groups(name: str, rng: np.random.Generator) -> Iterator[list[list[Any]]]:
    """Groups of rows for an aggregate of compressed tensors."""
    tag, plain = KERNELS[name].tag, base(name)
    for rows, cols in SHAPES:
        for density in (0.02, 0.3, 1.0):
            match plain:
                case "stack_csr":
                    yield from _entries(rng, tag, sparse(rng, tag, rows, cols, density))
                case "stack_runs":
                    yield from _runs(rng, tag, rows, cols)
                case "stack_csr_rows":
                    tiles = [
                        [sparse(rng, tag, count, cols, density), first, rows + 9, cols]
                        for first, count in ((3, rows), (0, 2), (rows + 5, 3), (rows + 4, 0))
                    ]
                    yield [tiles[k] for k in rng.permutation(len(tiles))]
                case _:
                    for n in (1, 3):
                        yield [
                            [sparse(rng, tag, m, cols, density), exact(rng, tag, m * n), n]
                            for m in (rows, 2, 150)
                        ]


def _runs(rng: np.random.Generator, tag: str, rows: int, cols: int) -> Iterator[list[list[Any]]]:
    """Runs in any order, some of which are empty and some of the fill."""
    for fill in FILLS[ELEMENT_TYPES[tag].dtype.kind]:
        cuts = [np.sort(rng.integers(0, cols + 1, size=6)).tolist() for _ in range(rows)]
        places = [
            (r, *pair) for r in range(rows) for pair in zip(cuts[r], cuts[r][1:], strict=False)
        ]
        values = with_fill(rng, exact(rng, tag, len(places)), fill)
        runs = [
            [value.item(), *place, rows, cols, fill]
            for value, place in zip(values, places, strict=True)
            if rng.random() < 0.7
        ]
        if runs:
            yield [runs[k] for k in rng.permutation(len(runs))]


def _entries(rng: np.random.Generator, tag: str, x: Csr) -> Iterator[list[list[Any]]]:
    """The entries of a tensor, shuffled, with some that are the fill among them."""
    for fill in FILLS[ELEMENT_TYPES[tag].dtype.kind]:
        filled = compressed_meanings.csr_with(x, with_fill(rng, x.values, fill))
        entries = [
            [value.item(), i, j, x.rows, x.cols, fill]
            for i, j, value in compressed_meanings.entries(filled)
        ]
        if entries:
            yield [entries[k] for k in rng.permutation(len(entries))]
