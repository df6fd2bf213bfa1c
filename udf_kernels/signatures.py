"""The kernels as SQL sees them: names and types. What runs them stands in ``csrc/``.

Tensors in flight are BLOBs of little-endian elements, row-major; a BLOB carries neither shape nor
type, so there is a kernel for each element type. NULL arguments make NULL, or are skipped by
aggregates. Wrong lengths, and integers that overflow, are SQL errors. There is a kernel for each
operator that is compiled, named after its row (`ucle.operators`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from ucle import operators
from ucle.foundation.dataclasses import dataclass
from ucle.operators import MAX, MIN, RANDOM_BITS, Combine, PointwiseMap, Reduce, Typing
from ucle.udf_kernels.element_types import ELEMENT_TYPES, ElementType, typed_name


def _maps(kind: str) -> dict[str, PointwiseMap]:
    """Return the maps of a kind of numbers."""
    rows = (row for row in operators.MAPS.values() if row.compiled)
    return {row.name: row for row in rows if kind in (row.kernel_kinds or row.kinds)}


def _combines(kind: str) -> dict[str, Combine]:
    """Return the combinations of a kind of numbers; logic takes the kernels of others."""
    rows = (row for row in operators.COMBINES.values() if row.typing is not Typing.LOGICAL)
    return {row.stem: row for row in rows if row.compiled and kind in row.kinds}


def _reduces(kind: str) -> dict[str, Reduce]:
    """Return the reductions of a kind of numbers."""
    rows = (row for row in operators.REDUCES.values() if row.compiled)
    return {row.stem: row for row in rows if kind in row.kinds}


MAPS = {tag: _maps(element.dtype.kind) for tag, element in ELEMENT_TYPES.items()}
"""By tag and name, the pointwise maps."""

COMBINES = {tag: _combines(element.dtype.kind) for tag, element in ELEMENT_TYPES.items()}
"""By tag and name, the combinations of two tensors of one length, or of a tensor and a number."""

REDUCES = {tag: _reduces(element.dtype.kind) for tag, element in ELEMENT_TYPES.items()}
"""By tag and name, the reductions."""


BLOB, BIGINT, VARCHAR, BIGINTS, BLOBS = "BLOB", "BIGINT", "VARCHAR", "BIGINT[]", "BLOB[]"

WITH_FIRST_ENTRIES = ("f64", "i64")
"""The types with kernels of first entries: they hold positions as well as values."""
WITH_MATRICES = ("f32", "f64")
"""The types with functions of whole matrices."""

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
        compressed: which of the arguments are compressed tensors.
        grows: whether the state of an aggregate grows with its rows.
        variadic: whether any number of tensors come behind the other arguments, NULL among them.
    """

    name: str
    tag: str
    kind: Literal["scalar", "aggregate"]
    parameters: tuple[str, ...]
    returns: str
    doc: str
    gathered: tuple[bool, ...] = ()
    compressed: tuple[int, ...] = ()
    grows: bool = False
    variadic: bool = False

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


def _scalar(name: str, parameters: tuple[str, ...], returns: str, doc: str) -> Kernel:
    return Kernel(name, "f64", "scalar", parameters, returns, doc)


def _aggregate(name: str, parameters: tuple[str, ...], gathered: str, doc: str) -> Kernel:
    marks = tuple(mark == "x" for mark in gathered)
    return Kernel(name, "f64", "aggregate", parameters, BLOB, doc, marks)


def _tensors(element: ElementType) -> Iterator[Kernel]:
    """Kernels that make, read and take apart tensors."""
    number = element.sql
    yield _scalar("pack", (element.sql_list,), BLOB, "A list as a tensor.")
    yield _scalar(
        "count_null",
        (element.sql_list,),
        BIGINT,
        "How many elements of a list are NULL; of complex ones a part is enough.",
    )
    # Not "unpack": DuckDB keeps that name for UNPACK(COLUMNS(...)), even between quotes.
    yield _scalar("vec_to_list", (BLOB,), element.sql_list, "A tensor as a list.")
    yield _scalar("full", (BIGINT, number), BLOB, "n times one value.")
    yield _scalar("sca_to_vec", (number,), BLOB, "A tensor of one entry.")
    yield _scalar("element", (BLOB, BIGINT), number, "The entry at an offset.")
    yield _scalar(
        "slice",
        (BLOB, BIGINT, BIGINTS, BIGINTS),
        BLOB,
        "The sub-tensor at (offset, sizes, strides), made dense.",
    )
    yield _scalar(
        "reindex",
        (BLOB, BIGINTS, BIGINTS, number),
        BLOB,
        "Entries at affine functions of their places, given constants and a program, or a number.",
    )
    yield _scalar(
        "any_not",
        (BLOB, number),
        "BOOLEAN",
        "Whether an entry differs from the fill value.",
    )
    yield _scalar("count_not", (BLOB, number), BIGINT, "How many entries differ from it.")
    yield _scalar("all_finite", (BLOB,), "BOOLEAN", "Whether no entry is NaN or infinite.")


def _entry_by_entry(element: ElementType) -> Iterator[Kernel]:
    """Pointwise maps, and combinations of two tensors or of a tensor and a number."""
    number = element.sql
    for name in MAPS[element.tag]:
        yield _scalar(f"vec_{name}", (BLOB,), BLOB, f"{name} of every entry.")
    for name, row in COMBINES[element.tag].items():
        yield _scalar(f"vec_{name}", (BLOB, BLOB), BLOB, f"a {name} b, entry by entry.")
        yield _scalar(f"vec_sca_{name}", (BLOB, number), BLOB, f"v {name} c.")
        if not row.commutative:
            yield _scalar(f"sca_vec_{name}", (number, BLOB), BLOB, f"c {name} v.")


def _contractions(element: ElementType) -> Iterator[Kernel]:
    """Contractions of any shape, and the reductions of tensors and contractions over rows."""
    number = element.sql
    of_two, of_one = (VARCHAR, BIGINTS, BLOB, BLOB), (VARCHAR, BIGINTS, BLOB)
    yield _scalar("ein", of_two, BLOB, "Any contraction of two tensors.")
    yield _scalar("ein_sca", of_two, number, "A contraction to a number.")
    yield _scalar("ein1", of_one, BLOB, "Any reduction, diagonal or transpose.")
    yield _scalar("ein1_sca", of_one, number, "A reduction to a number.")
    for name in REDUCES[element.tag]:
        doc = f"The {name} of each entry and those before it, given the axis and what is inside."
        yield _scalar(f"cum{name}", (BLOB, BIGINT, BIGINT), BLOB, doc)
        yield _aggregate(f"{name}_vec", (BLOB,), "x", f"The {name}, entry by entry.")
        yield _aggregate(f"{name}_ein", of_two, "--xx", f"The {name} of contractions.")
        yield _aggregate(f"{name}_ein1", of_one, "--x", f"The {name} of reductions.")


def _chains(element: ElementType) -> Iterator[Kernel]:
    """Pointwise functions of a few tensors in one call, reduced to a number or not."""
    for count in range(1, 5):
        parameters = (VARCHAR, *[BLOB] * count)
        yield _scalar(f"chain{count}", parameters, BLOB, "A chain of pointwise functions.")
        doc = "A chain that ends in a reduction of all entries."
        yield _scalar(f"chain{count}_sca", parameters, element.sql, doc)


def _stacks(element: ElementType) -> Iterator[Kernel]:
    """Aggregates that put tensors at their places in a larger one."""
    number = element.sql
    yield _aggregate(
        "stack_sca",
        (number, BIGINT, BIGINT, number),
        "xx--",
        "Numbers at their offsets in a tensor of total entries, fill elsewhere.",
    )
    yield _aggregate(
        "stack",
        (BLOB, BIGINT, BIGINT, number),
        "xx--",
        "Tensors at their offsets likewise.",
    )
    yield _aggregate(
        "stack_strided",
        (BLOB, BIGINT, BIGINTS, BIGINTS, BIGINT, number),
        "xx----",
        "Tensors scattered over (offset, sizes, strides) likewise.",
    )


def _first_entries(element: ElementType) -> Iterator[Kernel]:
    """The first k entries in an order, as pairs of value and position."""
    number = element.sql
    for name in (MAX.stem, MIN.stem):
        doc = f"The k entries that are {name}, given the axis and what is inside, as pairs."
        yield _scalar(f"vec_top_{name}", (BLOB, BIGINT, BIGINT, BIGINT), BLOB, doc)
        doc = f"The same of rows at positions, of each of their entries; {EMPTY}."
        yield _aggregate(f"top_{name}", (BLOB, BIGINT, BIGINT), "xx-", doc)
        yield _aggregate(f"top_{name}_sca", (number, BIGINT, BIGINT), "xx-", doc)


EMPTY = "of too few, the rest of a list is -k"


def _matrices(element: ElementType) -> Iterator[Kernel]:
    """Functions of square matrices, which follow each other; they compute in float64."""
    del element  # whatever they are handed
    for name, what in (
        ("cholesky", "The lower triangle of which, times its transpose, it is made"),
        ("inv", "The inverse"),
        ("eigenvalues", "A diagonal matrix of the eigenvalues of a symmetric one, ascending"),
        ("eigenvectors", "Its eigenvectors as columns, in the same order"),
    ):
        doc = f"{what}: of each of square matrices, given their rows and columns."
        yield _scalar(f"mat_{name}", (BLOB, BIGINT, BIGINT), BLOB, doc)


def _products(element: ElementType) -> Iterator[Kernel]:
    """Products of vectors and matrices, and their sums over rows."""
    number, two = element.sql, (BLOB, BLOB)
    outer, matrix = "Every entry of a times every one of b.", "A (m x k) times B (k x n), given k."
    yield _scalar("inner_prod", two, number, "The sum of a times b.")
    yield _scalar("outer_prod", two, BLOB, outer)
    yield _scalar("mat_vec_mult", two, BLOB, "A (m x k) times x (k).")
    yield _scalar("vec_mat_mult", two, BLOB, "x (k) times A (k x n).")
    yield _scalar("mat_mat_mult", (*two, BIGINT), BLOB, matrix)
    for name, parameters in (
        ("vec_sca_mult", (BLOB, number)),
        ("vec_mult", two),
        ("outer_prod", two),
        ("vec_mat_mult", two),
        ("mat_vec_mult", two),
    ):
        yield _aggregate(f"sum_{name}", parameters, "xx", f"The sum of {name}.")
    yield _aggregate("sum_mat_mat_mult", (*two, BIGINT), "xx-", "The sum of products.")


CSR = BLOB
"""A compressed tensor, among the parameters of the kernels that follow."""


def _generate_compressed(element: ElementType) -> Iterator[Kernel]:
    """Kernels of compressed tensors: `of` says which arguments these are."""
    number = element.sql

    def scalar(
        name: str, parameters: tuple[str, ...], returns: str, of: tuple[int, ...], doc: str
    ) -> Kernel:
        return replace(_scalar(name, parameters, returns, doc), compressed=of)

    yield scalar("csr_nnz", (CSR,), BIGINT, (0,), "How many entries there are.")
    yield scalar("csr_rows", (CSR,), BIGINTS, (0,), "The row of each entry.")
    yield scalar("csr_cols", (CSR,), BIGINTS, (0,), "The column of each entry.")
    yield scalar("csr_values", (CSR,), BLOB, (0,), "The value of each entry.")
    yield scalar("csr_with", (CSR, BLOB), CSR, (0,), "Other values at places of any type.")
    yield scalar("csr_prune", (CSR, number), CSR, (0,), "Without entries equal to the fill.")
    yield scalar("csr_to_mat", (CSR, number), BLOB, (0,), "The dense matrix, given its fill.")
    yield scalar("mat_to_csr", (BLOB, BIGINT, number), CSR, (), "What differs from the fill.")
    yield scalar("csr_transpose", (CSR,), CSR, (0,), "Rows as columns.")
    yield scalar("csr_row", (CSR, BIGINT), CSR, (0,), "One row.")


def _compressed_operations(element: ElementType) -> Iterator[Kernel]:
    """Those that a spec gives their operations; before a combination, ``r`` swaps its operands."""
    number = element.sql

    def scalar(
        name: str, parameters: tuple[str, ...], returns: str, of: tuple[int, ...], doc: str
    ) -> Kernel:
        return replace(_scalar(name, parameters, returns, doc), compressed=of)

    with_dense = (VARCHAR, CSR, BLOB, BIGINT)
    yield scalar("csr_mat", with_dense, BLOB, (1,), "A times a dense matrix of n columns.")
    yield scalar("csr_t_mat", with_dense, BLOB, (1,), "The transpose of A times such a one.")
    yield scalar("csr_csr", (VARCHAR, CSR, CSR), CSR, (1, 2), "A times B.")
    masked = (VARCHAR, CSR, CSR, CSR)
    yield scalar("csr_csr_masked", masked, CSR, (1, 2, 3), "A mask combined with A times B.")
    yield scalar("csr_csr_t_masked", masked, CSR, (1, 2, 3), "The same, of B transposed.")
    dots = (VARCHAR, CSR, BLOB, BLOB, BIGINT)
    yield scalar("csr_sddmm", dots, CSR, (1,), "A mask combined with rows of Q times rows of K.")
    scaled = (VARCHAR, CSR, BLOB)
    yield scalar("csr_scale_rows", scaled, CSR, (1,), "Values combined with one for each row.")
    yield scalar("csr_scale_cols", scaled, CSR, (1,), "Values combined with one for each column.")
    yield scalar("csr_at", scaled, CSR, (1,), "Values combined with a matrix at their places.")
    yield scalar("csr_csr_at", (VARCHAR, CSR, CSR), CSR, (1, 2), "What both have, combined.")
    yield scalar("csr_reduce_rows", (VARCHAR, CSR), BLOB, (1,), "The entries of each row.")
    yield scalar("csr_reduce_cols", (VARCHAR, CSR), BLOB, (1,), "The entries of each column.")
    yield scalar("csr_reduce", (VARCHAR, CSR), number, (1,), "All entries.")


def _compressed_aggregates(element: ElementType) -> Iterator[Kernel]:
    """Aggregates that make compressed tensors or take them."""
    number = element.sql
    stack = _aggregate(
        "stack_csr",
        (number, BIGINT, BIGINT, BIGINT, BIGINT, number),
        "xxx---",
        "Entries at (row, column) in a compressed tensor of rows x columns, fill left out.",
    )
    yield replace(stack, grows=True)
    stack_rows = _aggregate(
        "stack_csr_rows",
        (CSR, BIGINT, BIGINT, BIGINT),
        "xx--",
        "Compressed tensors, each from a row on, in one of rows x columns.",
    )
    yield replace(stack_rows, grows=True, compressed=(0,))
    if element.tag != "bool":
        product = _aggregate(
            "sum_csr_t_mat",
            (CSR, BLOB, BIGINT),
            "xx-",
            "The sum of csr_t_mat.",
        )
        yield replace(product, compressed=(0,))


def _kernels() -> Iterator[Kernel]:
    doc = "Calls of kernels, of which each may take what earlier ones made, in one call."
    empty = _scalar("csr_empty", (BIGINT, BIGINT), CSR, "No entries, of any type.")
    yield replace(empty, tag="bool")
    bits = "53 random bits, of a seed and a position; their SQL takes a hundred times as long."
    yield replace(_scalar(RANDOM_BITS.stem, (BIGINT, BIGINT), BIGINT, bits), tag="i64")
    yield replace(_scalar("tape", (VARCHAR,), BLOBS, doc), tag="bool", variadic=True)
    for tag, element in ELEMENT_TYPES.items():
        families = [_tensors, _entry_by_entry, _contractions, _chains, _stacks]
        families += [_generate_compressed, _compressed_operations, _compressed_aggregates]
        if tag != "bool":
            families.append(_products)
        if tag in WITH_FIRST_ENTRIES:
            families.append(_first_entries)
        if tag in WITH_MATRICES:
            families.append(_matrices)
        for family in families:
            for kernel in family(element):
                yield replace(kernel, name=typed_name(kernel.name, tag), tag=tag)
        for to in ELEMENT_TYPES:
            doc = f"The elements as {ELEMENT_TYPES[to].dtype.name}."
            cast = _scalar(f"vec_cast_{tag}_{to}", (BLOB,), BLOB, doc)
            yield replace(cast, tag=tag)


KERNELS: Mapping[str, Kernel] = MappingProxyType({kernel.name: kernel for kernel in _kernels()})
"""Every kernel by its name."""
