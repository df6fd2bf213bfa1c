"""Decompositions beyond promoted and dense: labels in tiles, and labels compressed in arrays.

A vertex has few of these. Several labels may be tiled if a tensor is stored in such blocks
(`tile_labels`). One label of the output may be tiled while all others are inside the arrays. If the
fill of an operand annihilates the entries that it meets, a label of that operand may be compressed:
the operand is the *driver*, and the kernel follows its entries through the other operand, where the
label is dense. A masked matrix product may be *deferred*: the vertex that masks it computes it at
the places that the mask lists. All of these are offered only if there is a kernel
(`ucle.plan.kernel_choice`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from ucle.ir.layouts import RESULT, TILE, Decomposition, Label, Layout, Level
from ucle.ir.masked_products import (
    MaskedOperand,
    MaskedProduct,
    absorbing,
    adds_nothing,
    masked_products,
    reader_of,
    repeats,
)
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.plan.kernel_choice import needs_scalars
from ucle.plan.prices import OPEN

Drivers = tuple[tuple[int, str], ...]
"""Roles of tensors and the labels that are compressed in them."""


def list_levelled(vertex: Vertex, program: Program, tile: int = TILE) -> tuple[Decomposition, ...]:
    """Return the distinct decompositions of a vertex in which a label is tiled or compressed.

    Args:
        vertex: a unary or binary vertex.
        program: the program of the vertex.
        tile: positions of a tile; a shorter axis is not tiled.
    """
    if _is_plain(vertex):
        return ()
    bounds = {label.name: label.bound for label in vertex.all_labels}
    return tuple(
        each
        for each in dict.fromkeys(_generate_levelled(vertex, program, tile))
        if all(bounds.get(name, 0) <= MOST_COLUMNS for _, name in each.compressed)
    )


def _is_plain(vertex: Vertex) -> bool:
    """Return whether all decompositions of a vertex have only promoted and dense labels."""
    return not vertex.is_product or needs_scalars(vertex) or any(map(repeats, vertex.inputs))


def tile_labels(
    vertex: Vertex, program: Program, labels: Collection[str], tile: int
) -> Decomposition | None:
    """Return the decomposition that tiles some labels and has all others inside the arrays.

    Args:
        vertex: a unary or binary vertex.
        program: the program of the vertex.
        labels: labels to tile.
        tile: positions of a tile.

    Returns:
        None if the vertex cannot have it. An axis with fewer positions than a tile is not tiled.
        The length of a tile that is not met is unknown, so entries that are not stored must add
        nothing.
    """
    short = any(x.bound < tile for x in vertex.all_labels if x.name in labels)
    if short or _is_plain(vertex):
        return None
    reduced = {label.name for label in vertex.reduced}
    if not reduced.isdisjoint(labels) and not adds_nothing(vertex, program):
        return None
    levels = (Level.TILED if x in labels else Level.DENSE for x in vertex.label_names)
    return Decomposition(vertex.label_names, tuple(levels), tile=tile)


def all_blocked(vertex: Vertex, program: Program, tile: int) -> Iterator[Decomposition]:
    """Yield the decompositions that `tile_labels` gives and `list_levelled` does not."""
    for count in range(1, len(vertex.label_names) + 1):
        for labels in combinations(vertex.label_names, count):
            each = tile_labels(vertex, program, labels, tile)
            if each is not None and (count > 1 or labels[0] not in vertex.names):
                yield each


MOST_BLOCKED = 4
"""The most blocked decompositions of one vertex that a search considers."""


def stored_blocks(
    program: Program, stored: Mapping[str, Sequence[Layout]]
) -> dict[str, tuple[Decomposition, ...]]:
    """Return for each vertex the decompositions that use stored tiles, or tiles made from them.

    Args:
        program: the program.
        stored: the layouts in which inputs are stored.
    """
    layouts = {
        name: [x for x in every if x.tiled and x.tiled == x.promoted and x.compressed is None]
        for name, every in stored.items()
    }
    if not any(layouts.values()):
        return {}
    offered_: dict[str, tuple[Decomposition, ...]] = {}
    for vertex in program.vertices:
        read = [
            (frozenset(operand.names[axis] for axis in layout.tiled), layout.tile)
            for operand in vertex.inputs
            for layout in layouts.get(operand.tensor, ())
        ]
        joined = [(one | two, tile) for one, tile in read for two, size in read if tile == size]
        some = dict.fromkeys(sorted((*joined, *read), key=lambda x: -len(x[0])))
        every = (tile_labels(vertex, program, labels, tile) for labels, tile in some)
        chosen = tuple(each for each in every if each is not None)[:MOST_BLOCKED]
        offered_[vertex.name] = chosen
        layouts[vertex.name] = [x for each in chosen if (x := vertex.makes(each)).tiled]
    return offered_


def is_offered(vertex: Vertex, program: Program, decomposition: Decomposition) -> bool:
    """Return whether a vertex may have a decomposition; compressed labels depend on fills and data.

    Args:
        vertex: a unary or binary vertex.
        program: the program of the vertex, with the current types of its data.
        decomposition: a decomposition from a program of the same vertices.
    """
    if decomposition.plain or decomposition in list_levelled(vertex, program, decomposition.tile):
        return True
    if decomposition.compressed or decomposition.deferred is not None:
        return False
    return decomposition == tile_labels(vertex, program, decomposition.tiled, decomposition.tile)


def _generate_levelled(vertex: Vertex, program: Program, tile: int) -> Iterator[Decomposition]:
    for label in vertex.labels:
        if label.bound > tile:
            yield _decomposition(vertex, label, (), tile)
    for row, drivers in _drivers(vertex, program):
        yield _decomposition(vertex, row, drivers, tile)
        if row.bound > tile * OPEN:
            yield _decomposition(vertex, row, drivers, tall_tile(row.bound))
        if _is_small(vertex, drivers):
            yield _decomposition(vertex, row, drivers, max(row.bound, tile))
    reader = reader_of(program, vertex)
    if reader is not None:
        for product in masked_products(program, reader):
            if product.producer is vertex:
                yield from _deferring(product, program, tile)
    for product in masked_products(program, vertex):
        yield from _reading(product, program, tile)


MOST_COLUMNS = int(np.iinfo(np.uint32).max)
"""The most positions of a compressed label: numbers of this type point to them (``csrc/csr.h``)."""

WHOLE = 1 << 21
"""The most elements of each dense tensor of a vertex if one call computes all of it. For more, the
threads and the memory of several tuples are worth their cost."""


def tall_tile(bound: int) -> int:
    """Return the smallest power of two of which `OPEN` tiles cover an axis.

    Entries in any order go into so few tiles from the cache.

    >>> tall_tile(1_000_000), tall_tile(1024)
    (1024, 1)
    """
    return 1 << max(math.ceil(bound / OPEN) - 1, 0).bit_length()


def _is_small(vertex: Vertex, drivers: Drivers) -> bool:
    compressed = {role for role, _ in drivers}
    tensors = {**dict(enumerate(x.labels for x in vertex.inputs)), RESULT: vertex.labels}
    return all(
        math.prod(label.bound for label in labels) <= WHOLE
        for role, labels in tensors.items()
        if role not in compressed
    )


def _decomposition(
    vertex: Vertex,
    row: Label,
    compressed: Iterable[tuple[int, str]],
    tile: int,
    deferred: int | None = None,
) -> Decomposition:
    """Return the decomposition that tiles a label, if long enough, with all others in arrays."""
    tiled = row if row.bound > tile else None
    levels = tuple(Level.TILED if label == tiled else Level.DENSE for label in vertex.all_labels)
    size = TILE if tiled is None else tile
    return Decomposition(vertex.label_names, levels, frozenset(compressed), size, deferred)


def _drivers(vertex: Vertex, program: Program) -> Iterator[tuple[Label, Drivers]]:
    """Yield the labels that may be compressed together, with the label of the rows."""
    if not adds_nothing(vertex, program):
        return
    if len(vertex.inputs) == 1:
        yield from _of_one(vertex, program)
        return
    absorbs = absorbing(vertex, program)
    if any(absorbs) or not _are_full(vertex, program):
        yield from _both_entry_by_entry(vertex, program)
    for number in (0, 1):
        own, other = vertex.inputs[number], vertex.inputs[1 - number]
        if len(own.labels) == 2 and absorbs[number]:
            both = absorbs[1 - number]
            yield from _entry_by_entry(vertex, program, number)
            yield from _product(vertex, number, own, other, both=both)


def _ways(vertex: Vertex, own: Operand, program: Program) -> Iterator[tuple[Label, Label]]:
    """Yield row and column of a matrix whose entries are mapped or combined one by one.

    The entries stay as they are, or are aggregated along the rows, or all together. Those that stay
    are listed by columns, too, if they are going to be summed along them.
    """
    row, column = own.labels
    if set(vertex.names) == set(own.names):
        yield row, column
        if vertex.names.index(row.name) in program.summed_axes.get(vertex.name, ()):
            yield column, row
    if vertex.labels in ((row,), ()):
        yield row, column
    if vertex.labels == (column,):
        yield column, row


def _of_one(vertex: Vertex, program: Program) -> Iterator[tuple[Label, Drivers]]:
    (operand,) = vertex.inputs
    if len(operand.labels) == 2:
        for row, column in _ways(vertex, operand, program):
            yield row, _with_result(vertex, (0, column.name))
        if len(vertex.labels) == 1:  # the columns that are listed are aggregated
            (kept,), (inner,) = vertex.labels, vertex.reduced
            yield inner, ((0, kept.name),)


def _with_result(vertex: Vertex, *drivers: tuple[int, str]) -> Drivers:
    """Return the drivers, with the same label of the result if that has both axes."""
    kept = ((RESULT, drivers[0][1]),) if len(vertex.labels) == 2 else ()
    return *drivers, *kept


def _entry_by_entry(
    vertex: Vertex, program: Program, number: int
) -> Iterator[tuple[Label, Drivers]]:
    """Yield drivers for ⊗ of a matrix's entries with a number for each row, column or place."""
    own, other = vertex.inputs[number], vertex.inputs[1 - number]
    if not set(other.names) <= set(own.names):
        return
    for row, column in _ways(vertex, own, program):
        in_order = other.names == own.names == (row.name, column.name)
        if in_order or other.names in ((row.name,), (column.name,)):
            yield row, _with_result(vertex, (number, column.name))


def _both_entry_by_entry(vertex: Vertex, program: Program) -> Iterator[tuple[Label, Drivers]]:
    """Yield drivers for ⊗ of the entries of two matrices; those that are not listed are fills."""
    left, right = vertex.inputs
    if len(left.labels) == 2 and set(left.names) == set(right.names):
        for row, column in _ways(vertex, left, program):
            yield row, _with_result(vertex, (0, column.name), (1, column.name))


def _are_full(vertex: Vertex, program: Program) -> bool:
    """Return whether no operand has entries that are not stored: lists of them save nothing."""
    return all(program.types[operand.tensor].entries.full for operand in vertex.inputs)


def _product(
    vertex: Vertex, number: int, own: Operand, other: Operand, *, both: bool
) -> Iterator[tuple[Label, Drivers]]:
    """Yield drivers for a matrix times a vector or a matrix, whose rows its entries point to."""
    if len(vertex.reduced) != 1:
        return
    name = vertex.reduced[0].name
    if name not in own.names or name not in other.names:
        return
    (row,) = (label for label in own.labels if label.name != name)
    columns = tuple(x for x in other.names if x != name)
    if row.name in columns or other.names != (name, *columns):
        return
    if vertex.names != (row.name, *columns):
        return
    yield row, ((number, name),)
    if both and len(columns) == 1:
        (column,) = columns
        yield row, ((number, name), (1 - number, column), (RESULT, column))
    # The same matrix by its other axis: the kernel multiplies the transpose of what it lists.
    (inner,) = vertex.reduced
    yield inner, ((number, row.name),)


# ---- Products behind masks ----


def _deferring(product: MaskedProduct, program: Program, tile: int) -> Iterator[Decomposition]:
    """Yield the decompositions that do not make the tensor inside a masked product."""
    names = dict(
        zip(product.reader.inputs[product.number].names, product.producer.names, strict=True)
    )
    row = names[product.row.name]
    (label,) = (x for x in product.producer.all_labels if x.name == row)
    for drivers in _masked_drivers(product, program):
        own = [(part.number, name) for part, name in drivers if part.of_producer]
        marked = ((RESULT, product.column.name),) if len(drivers) > 1 else ()
        renamed = ((n, names.get(name, name)) for n, name in (*own, *marked))
        yield _decomposition(product.producer, label, renamed, tile, RESULT)


def _reading(product: MaskedProduct, program: Program, tile: int) -> Iterator[Decomposition]:
    """Yield the decompositions that read that tensor only where the mask has entries."""
    for drivers in _masked_drivers(product, program):
        own = [(part.number, name) for part, name in drivers if not part.of_producer]
        marked = ((product.number, product.column.name),) if len(drivers) > 1 else ()
        if len(product.reader.labels) == 2:
            own.append((RESULT, product.column.name))
        yield _decomposition(product.reader, product.row, (*own, *marked), tile, product.number)


def _masked_drivers(
    product: MaskedProduct, program: Program
) -> Iterator[tuple[tuple[MaskedOperand, str], ...]]:
    """Yield the compressed operands and their labels: the mask, and possibly the factors."""
    mask = (product.mask, product.column.name)
    if product.is_dense:
        yield (mask,)
    if all(absorbing(product.producer, program)) and all(absorbing(product.reader, program)):
        inner = product.inner.name
        yield mask, (product.left, inner), (product.right, product.column.name)
        yield mask, (product.left, inner), (product.right, inner)
