"""Masked matrix products over two vertices: only entries under a stored mask entry are needed.

Either the first vertex makes the product and the second masks it, ``S[i,j] += Q[i,k] * K[j,k]`` and
``Z[i,j] = M[i,j] * S[i,j]``, or the first masks one factor, ``T[i,j,k] = M[i,j] * Q[i,k]``, and the
second multiplies the result, ``Z[i,j] += T[i,j,k] * K[j,k]``. The tensor between the two has no
other reader, so it need not be made.
"""

from __future__ import annotations

from collections.abc import Iterator

from ucle.foundation.dataclasses import dataclass
from ucle.ir.fills import absorbed_sides, meets_all, missing_entries
from ucle.ir.layouts import Label
from ucle.ir.vertices import Operand, Program, Vertex


@dataclass(frozen=True)
class MaskedOperand:
    """An operand of one of the two vertices, with the labels that the second one uses."""

    of_producer: bool
    number: int
    operand: Operand


@dataclass(frozen=True)
class MaskedProduct:
    """A mask over `row` and `column`, and two factors that share the label `inner`."""

    producer: Vertex
    reader: Vertex
    mask: MaskedOperand
    left: MaskedOperand
    right: MaskedOperand
    row: Label
    column: Label
    inner: Label

    @property
    def number(self) -> int:
        """The number of the reader's operand that need not be made."""
        return next(n for n, x in enumerate(self.reader.inputs) if x.tensor == self.producer.name)

    @property
    def masks_a_factor(self) -> bool:
        """True if the mask is an operand of the first vertex."""
        return self.mask.of_producer

    @property
    def is_dense(self) -> bool:
        """True if both factors have the inner label last, so that their rows lie along it."""
        names = (self.row.name, self.inner.name), (self.column.name, self.inner.name)
        return (self.left.operand.names, self.right.operand.names) == names


def masked_products(program: Program, vertex: Vertex) -> Iterator[MaskedProduct]:
    """Yield the masked products whose second vertex is `vertex`."""
    for number, operand in enumerate(vertex.inputs):
        producer = program.by_name.get(operand.tensor)
        if producer is not None and len(vertex.inputs) == 2:
            yield from _find_products(program, producer, vertex, number)


def reader_of(program: Program, producer: Vertex) -> Vertex | None:
    """Return the only reader of a vertex; None if it has several, or if it is a result."""
    uses = program.uses[producer.name]
    if len(uses) != 1 or producer.name in program.results:
        return None
    return program.vertices[uses[0][0]]


def adds_nothing(vertex: Vertex, program: Program) -> bool:
    """Return whether entries that are not stored add nothing to the aggregation of a vertex."""
    if vertex.reduce is None:
        return True
    if meets_all(vertex):
        return False
    return missing_entries(vertex, program.types, vertex.all_promoted) is None


def absorbing(vertex: Vertex, program: Program) -> tuple[bool, bool]:
    """Return whether each operand's fill annihilates the entries it meets."""
    left, right = (program.types[operand.tensor] for operand in vertex.inputs)
    return absorbed_sides(vertex, left, right)


def repeats(operand: Operand) -> bool:
    """Return whether two axes have the same label, so that there are no rows and columns."""
    return len(set(operand.names)) < len(operand.names)


def _find_products(
    program: Program, producer: Vertex, reader: Vertex, number: int
) -> Iterator[MaskedProduct]:
    combine = reader.combine
    if reader_of(program, producer) is not reader or combine is None or producer.combine != combine:
        return
    if not combine.commutative or any(map(repeats, (*producer.inputs, *reader.inputs))):
        return
    if not (adds_nothing(producer, program) and adds_nothing(reader, program)):
        return
    renamed = dict(zip(producer.labels, reader.inputs[number].labels, strict=True))
    if len(renamed) < len(producer.labels):
        return
    parts = [
        MaskedOperand(
            True, n, Operand(x.tensor, tuple(renamed.get(label, label) for label in x.labels))
        )
        for n, x in enumerate(producer.inputs)
    ]
    if {label.name for label in producer.reduced} & {label.name for label in reader.all_labels}:
        return  # one name for two labels
    other = MaskedOperand(False, 1 - number, reader.inputs[1 - number])
    if len(producer.labels) == 2 and len(producer.reduced) == 1:
        if absorbing(reader, program)[1 - number]:
            yield from _behind(producer, reader, other, parts, producer.reduced[0])
    elif len(producer.labels) == 3 and producer.reduce is None and _distributes(program, reader):
        for mask, factor in (parts, parts[::-1]):
            inner = [label for label in factor.operand.labels if label not in mask.operand.labels]
            if len(inner) == 1 and absorbing(producer, program)[mask.number]:
                yield from _behind(producer, reader, mask, [factor, other], inner[0])


def _distributes(program: Program, reader: Vertex) -> bool:
    """Return whether a factor may be moved out of the sum of products, all finite."""
    assert reader.combine is not None
    if reader.reduce is None or reader.reduce.name not in reader.combine.distributes_over:
        return False
    types = [program.types[operand.tensor] for operand in reader.inputs]
    return types[0].dtype.kind in "fcb" and all(type_.entries.finite for type_ in types)


def _behind(
    producer: Vertex,
    reader: Vertex,
    mask: MaskedOperand,
    factors: list[MaskedOperand],
    inner: Label,
) -> Iterator[MaskedProduct]:
    """Yield the masked product of a mask and two factors, if their labels fit one."""
    if any(len(part.operand.labels) != 2 for part in (mask, *factors)):
        return
    row, column = mask.operand.labels
    if inner in (row, column):
        return
    kept = reader.labels in ((row, column), (row,), ())
    if not kept or (mask.of_producer and inner not in reader.reduced):
        return
    for left, right in (factors, factors[::-1]):
        sides = set(left.operand.names), set(right.operand.names)
        if sides == ({row.name, inner.name}, {column.name, inner.name}):
            yield MaskedProduct(producer, reader, mask, left, right, row, column, inner)
            return
