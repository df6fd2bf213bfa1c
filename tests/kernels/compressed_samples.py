"""Compressed tensors on which the kernels are compared with their references.

Values are small powers of 2, so that sums of products are exact in every order: whether an entry
comes to the fill, and is left out, is not a matter of rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from conftest import base

from ucle.udf_kernels import ELEMENT_TYPES, KERNELS, Csr
from ucle.udf_kernels.reference import COMBINES, REDUCES, Array

SHAPES = ((3, 4), (1, 1), (1, 9), (9, 1), (0, 3), (3, 0), (0, 0), (17, 23), (40, 60))
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
    return [*pairs, *swapped, *([] if tag == "bool" else [""])]


def compressed_rows(name: str, rng: np.random.Generator) -> Iterator[list[Any]]:
    """Arguments for a scalar kernel of compressed tensors."""
    tag, plain = KERNELS[name].tag, base(name)
    fills = FILLS[ELEMENT_TYPES[tag].dtype.kind]
    for rows, cols in SHAPES:
        for density in (0.3, 0.0, 1.0):
            x = sparse(rng, tag, rows, cols, density)
            match plain:
                case "csr_with":
                    other = sparse(rng, str(rng.choice(list(ELEMENT_TYPES))), rows, cols, density)
                    yield [other, exact(rng, tag, len(other.idx))]
                case "csr_prune":
                    for fill in fills:
                        yield [x.with_values(with_fill(rng, x.values, fill)), fill]
                case "csr_to_mat":
                    yield [x, fills[0]]
                case "mat_to_csr":
                    for fill in fills if cols or not rows else ():
                        yield [with_fill(rng, exact(rng, tag, rows * cols), fill), cols, fill]
                case "csr_mat":
                    small = rows * cols < 20
                    for spec in specs(tag) if small else ("", specs(tag)[0], specs(tag)[7]):
                        for n in (1, 3) if small else (1, 2, 70, 300):
                            if spec or tag != "bool":
                                yield [spec, x, exact(rng, tag, cols * n), n]
                case _:
                    yield [x]


def compressed_groups(name: str, rng: np.random.Generator) -> Iterator[list[list[Any]]]:
    """Groups of rows for an aggregate of compressed tensors."""
    tag = KERNELS[name].tag
    for rows, cols in SHAPES:
        for density in (0.02, 0.3, 1.0):
            x = sparse(rng, tag, rows, cols, density)
            for fill in FILLS[ELEMENT_TYPES[tag].dtype.kind]:
                x = x.with_values(with_fill(rng, x.values, fill))
                entries = [[value.item(), i, j, rows, cols, fill] for i, j, value in x.entries]
                if entries:
                    yield [entries[k] for k in rng.permutation(len(entries))]
