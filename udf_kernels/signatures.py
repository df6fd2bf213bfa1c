"""The kernels as SQL sees them: names, types, meaning. What runs them stands in ``csrc/``.

Tensors in flight are BLOBs of little-endian elements, row-major; a BLOB carries neither shape nor
type, so there is a kernel for each element type. NULL arguments make NULL, or are skipped by
aggregates. Wrong lengths, and integers that overflow, are SQL errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ucle.udf_kernels import compressed
from ucle.udf_kernels import reference as ref
from ucle.udf_kernels.element_types import ELEMENT_TYPES, ElementType, typed_name

BLOB, BIGINT, VARCHAR, BIGINTS = "BLOB", "BIGINT", "VARCHAR", "BIGINT[]"

ROW_FIELDS = ("a", "b", "c")
"""Names of the arguments that the Arrow route gathers together: fields of a struct."""


@dataclass(frozen=True)
class Kernel:
    """One SQL function.

    Attributes:
        name: on the extension route an aggregate's name has a capacity suffix behind it, unless
            its state grows.
        tag: the type of the elements that it takes; all but casts return the same.
        parameters: SQL types of the arguments of one row.
        gathered: for aggregates, which arguments the Arrow route gets as one ``list`` of them
            all (`arrow_parameters`); they stand side by side, and the others are constant within a
            group.
        reference: its meaning in NumPy. Tensors are one-dimensional arrays, compressed ones of
            type `Csr`; gathered arguments are sequences.
        compressed: which of the arguments are compressed tensors.
        grows: whether the state of an aggregate grows with its rows.
    """

    name: str
    tag: str
    kind: Literal["scalar", "aggregate"]
    parameters: tuple[str, ...]
    returns: str
    doc: str
    reference: Callable[..., Any]
    gathered: tuple[bool, ...] = ()
    compressed: tuple[int, ...] = ()
    grows: bool = False

    @property
    def arrow_parameters(self) -> tuple[str, ...]:
        """SQL types of the arguments on the Arrow route.

        Several arguments are gathered as structs: DuckDB does not say that two lists of one GROUP
        BY are in the same order, and 2.0 aggregates each below a join.
        """
        if self.kind == "scalar":
            return self.parameters
        rows = [kind for kind, mark in zip(self.parameters, self.gathered, strict=True) if mark]
        start = self.gathered.index(True)
        row = rows[0]
        if len(rows) > 1:
            fields = (f"{name} {kind}" for name, kind in zip(ROW_FIELDS, rows, strict=False))
            row = f"STRUCT({', '.join(fields)})"
        return (*self.parameters[:start], f"{row}[]", *self.parameters[start + len(rows) :])


def _scalar(
    name: str,
    parameters: tuple[str, ...],
    returns: str,
    doc: str,
    reference: Callable[..., Any],
) -> Kernel:
    return Kernel(name, "f64", "scalar", parameters, returns, doc, reference)


def _aggregate(
    name: str,
    parameters: tuple[str, ...],
    gathered: str,
    doc: str,
    reference: Callable[..., Any],
) -> Kernel:
    marks = tuple(mark == "x" for mark in gathered)
    return Kernel(name, "f64", "aggregate", parameters, BLOB, doc, reference, marks)


def _tensors(element: ElementType) -> Iterator[Kernel]:
    """Kernels that make, read and take apart tensors."""
    number, dtype = element.sql, element.dtype
    as_tensor = partial(np.asarray, dtype=dtype)
    yield _scalar("pack", (element.sql_list,), BLOB, "A list as a tensor.", as_tensor)
    yield _scalar(
        "count_null",
        (element.sql_list,),
        BIGINT,
        "How many elements of a list are NULL; of complex ones a part is enough.",
        ref.count_null,
    )
    # Not "unpack": DuckDB keeps that name for UNPACK(COLUMNS(...)), even between quotes.
    yield _scalar("vec_to_list", (BLOB,), element.sql_list, "A tensor as a list.", as_tensor)
    yield _scalar(
        "full", (BIGINT, number), BLOB, "n times one value.", lambda n, x: np.full(n, x, dtype)
    )
    yield _scalar(
        "sca_to_vec", (number,), BLOB, "A tensor of one entry.", lambda x: np.array([x], dtype)
    )
    yield _scalar("element", (BLOB, BIGINT), number, "The entry at an offset.", lambda v, i: v[i])
    yield _scalar(
        "slice",
        (BLOB, BIGINT, BIGINTS, BIGINTS),
        BLOB,
        "The sub-tensor at (offset, sizes, strides), made dense.",
        ref.slice_,
    )
    yield _scalar(
        "any_not",
        (BLOB, number),
        "BOOLEAN",
        "Whether an entry differs from the fill value.",
        lambda v, fill: ref.count_not(v, fill) > 0,
    )
    yield _scalar(
        "count_not", (BLOB, number), BIGINT, "How many entries differ from it.", ref.count_not
    )
    yield _scalar(
        "all_finite", (BLOB,), "BOOLEAN", "Whether no entry is NaN or infinite.", ref.all_finite
    )


def _entry_by_entry(element: ElementType) -> Iterator[Kernel]:
    """Pointwise maps, and combinations of two tensors or of a tensor and a number."""
    number = element.sql
    for name, function in ref.MAPS[element.tag].items():
        yield _scalar(f"vec_{name}", (BLOB,), BLOB, f"{name} of every entry.", function)
    for name, function in ref.COMBINES[element.tag].items():
        yield _scalar(f"vec_{name}", (BLOB, BLOB), BLOB, f"a {name} b, entry by entry.", function)
        yield _scalar(f"vec_sca_{name}", (BLOB, number), BLOB, f"v {name} c.", function)
        if name in ref.ORDERED:
            yield _scalar(f"sca_vec_{name}", (number, BLOB), BLOB, f"c {name} v.", function)


def _contractions(element: ElementType) -> Iterator[Kernel]:
    """Contractions of any shape, and the reductions of tensors and contractions over rows."""
    tag, number = element.tag, element.sql
    ein, ein_sca = partial(ref.ein, tag), partial(ref.ein_sca, tag)
    of_two, of_one = (VARCHAR, BIGINTS, BLOB, BLOB), (VARCHAR, BIGINTS, BLOB)
    yield _scalar("ein", of_two, BLOB, "Any contraction of two tensors.", ein)
    yield _scalar("ein_sca", of_two, number, "A contraction to a number.", ein_sca)
    yield _scalar(
        "ein_path", (VARCHAR, BLOB), BLOB, "A tree of contractions.", partial(ref.ein_path, tag)
    )
    yield _scalar("ein1", of_one, BLOB, "Any reduction, diagonal or transpose.", ein)
    yield _scalar("ein1_sca", of_one, number, "A reduction to a number.", ein_sca)
    for name, reduce in ref.REDUCES[tag].items():
        each = ref.reduced(reduce, np.copy)
        whole = ref.reduced_ein(reduce, tag)
        yield _aggregate(f"{name}_vec", (BLOB,), "x", f"The {name}, entry by entry.", each)
        yield _aggregate(f"{name}_ein", of_two, "--xx", f"The {name} of contractions.", whole)
        yield _aggregate(f"{name}_ein1", of_one, "--x", f"The {name} of reductions.", whole)


def _stacks(element: ElementType) -> Iterator[Kernel]:
    """Aggregates that put tensors at their places in a larger one."""
    number, dtype = element.sql, element.dtype
    yield _aggregate(
        "stack_sca",
        (number, BIGINT, BIGINT, number),
        "xx--",
        "Numbers at their offsets in a tensor of total entries, fill elsewhere.",
        partial(ref.stack_sca, dtype),
    )
    yield _aggregate(
        "stack",
        (BLOB, BIGINT, BIGINT, number),
        "xx--",
        "Tensors at their offsets likewise.",
        partial(ref.stack, dtype),
    )
    yield _aggregate(
        "stack_strided",
        (BLOB, BIGINT, BIGINTS, BIGINTS, BIGINT, number),
        "xx----",
        "Tensors scattered over (offset, sizes, strides) likewise.",
        partial(ref.stack_strided, dtype),
    )


def _products(element: ElementType) -> Iterator[Kernel]:
    """Products of vectors and matrices, and their sums over rows."""
    number, two = element.sql, (BLOB, BLOB)
    scale = ref.COMBINES[element.tag]["mult"]
    outer, matrix = "Every entry of a times every one of b.", "A (m x k) times B (k x n), given k."
    yield _scalar("inner_prod", two, number, "The sum of a times b.", ref.inner_prod)
    yield _scalar("outer_prod", two, BLOB, outer, ref.outer_prod)
    yield _scalar("mat_vec_mult", two, BLOB, "A (m x k) times x (k).", ref.mat_vec_mult)
    yield _scalar("vec_mat_mult", two, BLOB, "x (k) times A (k x n).", ref.vec_mat_mult)
    yield _scalar("mat_mat_mult", (*two, BIGINT), BLOB, matrix, ref.mat_mat_mult)
    for name, parameters, function in (
        ("vec_sca_mult", (BLOB, number), scale),
        ("vec_mult", two, scale),
        ("outer_prod", two, ref.outer_prod),
        ("vec_mat_mult", two, ref.vec_mat_mult),
        ("mat_vec_mult", two, ref.mat_vec_mult),
    ):
        summed = ref.reduced(np.add, function)
        yield _aggregate(f"sum_{name}", parameters, "xx", f"The sum of {name}.", summed)
    yield _aggregate(
        "sum_mat_mat_mult", (*two, BIGINT), "xx-", "The sum of products.", ref.reduced_mat_mat
    )


CSR = BLOB
"""A compressed tensor."""


def _compressed(element: ElementType) -> Iterator[Kernel]:
    """Kernels of compressed tensors."""
    number, tag = element.sql, element.tag
    mapping: dict[str, Callable[..., Any]] = {
        "csr_mat": partial(compressed.csr_mat, tag),
    }
    for name, parameters, returns, doc, at in (
        ("csr_nnz", (CSR,), BIGINT, "How many entries there are.", (0,)),
        ("csr_rows", (CSR,), BIGINTS, "The row of each entry.", (0,)),
        ("csr_cols", (CSR,), BIGINTS, "The column of each entry.", (0,)),
        ("csr_values", (CSR,), BLOB, "The value of each entry.", (0,)),
        ("csr_with", (CSR, BLOB), CSR, "The places of one, of any type, with values.", (0,)),
        ("csr_prune", (CSR, number), CSR, "Without entries equal to the fill.", (0,)),
        ("csr_to_mat", (CSR, number), BLOB, "Dense, with the fill.", (0,)),
        ("mat_to_csr", (BLOB, BIGINT, number), CSR, "Of a dense one, given cols, fill.", ()),
        (
            "csr_mat",
            (VARCHAR, CSR, BLOB, BIGINT),
            BLOB,
            "A compressed matrix times a dense one of n columns.",
            (1,),
        ),
    ):
        function = mapping.get(name) or getattr(compressed, name)
        kernel = _scalar(name, parameters, returns, doc, function)
        yield replace(kernel, compressed=at)
    stack = _aggregate(
        "stack_csr",
        (number, BIGINT, BIGINT, BIGINT, BIGINT, number),
        "xxx---",
        "Entries at (row, column) in a compressed tensor of rows x columns, fill left out.",
        partial(compressed.stack_csr, element.dtype),
    )
    yield replace(stack, grows=True)


def _kernels() -> Iterator[Kernel]:
    for tag, element in ELEMENT_TYPES.items():
        families = [_tensors, _entry_by_entry, _contractions, _stacks, _compressed]
        if tag != "bool":
            families.append(_products)
        for family in families:
            for kernel in family(element):
                yield replace(kernel, name=typed_name(kernel.name, tag), tag=tag)
        for to in ELEMENT_TYPES:
            doc = f"The elements as {ELEMENT_TYPES[to].dtype.name}."
            cast = _scalar(f"vec_cast_{tag}_{to}", (BLOB,), BLOB, doc, ref.cast(to))
            yield replace(cast, tag=tag)


KERNELS: Mapping[str, Kernel] = MappingProxyType({kernel.name: kernel for kernel in _kernels()})
"""Every kernel by its name."""
