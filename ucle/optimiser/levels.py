"""Decompositions beyond promoted and dense: one label in tiles, labels compressed in the arrays.

A vertex has few of these. One label of its output may be tiled while all others are inside the
arrays; and where the fill of an operand annihilates what it meets, a label of that operand may be
compressed: the *driver*, of which the kernel follows the entries through the other operand, where
the label is dense. They are offered only where there is a kernel (`ucle.plan.kernel_choice`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ucle.ir.fills import absorbed_sides, meets_all, missing_entries
from ucle.ir.layouts import RESULT, TILE, Decomposition, Label, Level
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Operand, Vertex
from ucle.plan.kernel_choice import needs_scalars


def levelled(
    vertex: Vertex, types: Mapping[str, TensorType], tile: int = TILE
) -> Iterator[Decomposition]:
    """The decompositions of a vertex in which a label is tiled or compressed.

    Args:
        vertex: unary or binary.
        types: of its operands, by name.
        tile: positions of a tile; an axis of no more is not tiled.
    """
    if needs_scalars(vertex) or any(_repeats(operand) for operand in vertex.inputs):
        return
    for label in vertex.labels:
        if label.bound > tile:
            yield _decomposition(vertex, label, (), tile)
    for drivers in _drivers(vertex, types):
        row = _row(vertex, *drivers[0])
        yield _decomposition(vertex, row if row.bound > tile else None, drivers, tile)


def _repeats(operand: Operand) -> bool:
    """Whether two axes have one label: then there is no row or column to speak of."""
    return len(set(operand.names)) < len(operand.names)


def _decomposition(
    vertex: Vertex, tiled: Label | None, compressed: Iterable[tuple[int, str]], tile: int
) -> Decomposition:
    """One label in tiles, all others inside the arrays."""
    levels = tuple(Level.TILED if label == tiled else Level.DENSE for label in vertex.all_labels)
    size = TILE if tiled is None else tile
    return Decomposition(vertex.label_names, levels, frozenset(compressed), size)


def _row(vertex: Vertex, number: int, name: str) -> Label:
    """The label of the rows of an operand whose other label is compressed."""
    (row,) = (label for label in vertex.inputs[number].labels if label.name != name)
    return row


def _drivers(
    vertex: Vertex, types: Mapping[str, TensorType]
) -> Iterator[tuple[tuple[int, str], ...]]:
    """What may be compressed together: the operand whose rows are tiled first."""
    if len(vertex.inputs) == 1:
        yield from _of_one(vertex, types)
        return
    assert vertex.combine is not None
    left, right = (types[operand.tensor] for operand in vertex.inputs)
    absorbs = absorbed_sides(vertex, left, right)
    if meets_all(vertex) or missing_entries(vertex, types, vertex.all_promoted) is not None:
        return
    for number in (0, 1):
        own, other = vertex.inputs[number], vertex.inputs[1 - number]
        if len(own.labels) != 2 or not absorbs[number]:
            continue
        both = absorbs[1 - number]
        if vertex.reduce is None:
            yield from _entry_by_entry(vertex, number, own, other, both=both)
        else:
            yield from _product(vertex, number, own, other, both=both)


def _of_one(
    vertex: Vertex, types: Mapping[str, TensorType]
) -> Iterator[tuple[tuple[int, str], ...]]:
    """Maps of the entries of a matrix, and ⊕ over its rows of what its fill adds nothing to."""
    (operand,) = vertex.inputs
    if len(operand.labels) != 2:
        return
    column = operand.names[1]
    if vertex.reduce is None and vertex.names == operand.names:
        yield (0, column), (RESULT, column)
    if vertex.reduce is None or meets_all(vertex) or len(vertex.reduced) != 1:
        return
    if missing_entries(vertex, types, vertex.all_promoted) is None:
        yield ((0, vertex.reduced[0].name),)


def _entry_by_entry(
    vertex: Vertex, number: int, own: Operand, other: Operand, *, both: bool
) -> Iterator[tuple[tuple[int, str], ...]]:
    """⊗ of the entries of a matrix with a number for each row, column or place."""
    if vertex.names != own.names or not set(other.names) <= set(own.names):
        return
    row, column = own.names
    if other.names in ((row,), (column,), (row, column)):
        yield (number, column), (RESULT, column)
    if both and number == 0 and other.names == own.names:
        yield (0, column), (1, column), (RESULT, column)


def _product(
    vertex: Vertex, number: int, own: Operand, other: Operand, *, both: bool
) -> Iterator[tuple[tuple[int, str], ...]]:
    """A matrix times a vector or a matrix, whose rows its entries point to."""
    if len(vertex.reduced) != 1:
        return
    name = vertex.reduced[0].name
    if name not in own.names or name not in other.names:
        return
    (row,) = (x for x in own.names if x != name)
    columns = tuple(x for x in other.names if x != name)
    if row in columns or other.names != (name, *columns) or vertex.names != (row, *columns):
        return
    yield ((number, name),)
    if both and len(columns) == 1:
        (column,) = columns
        yield (number, name), (1 - number, column), (RESULT, column)
