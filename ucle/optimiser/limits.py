"""Limits of decompositions: those of kernels, of the engine, and of the memory.

`fits` judges a vertex by itself, as the search does. `held_bytes` judges it together with the
repartitions of its operands, which are known once everything is decided (section 8.2 of
sparse_einsum.txt). The bytes that each part of a vertex holds come from the same model as the peak
of a plan (`ucle.plan.memory_model`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ucle.ir.fills import join_rule, meets_all
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.masked_products import repeats
from ucle.ir.vertices import Vertex
from ucle.optimiser.sizes import KEY_BYTES, SizedProgram
from ucle.plan.decomposition import DecomposedProgram
from ucle.plan.kernel_choice import MOST_OF_LITTLE, choose_kernel
from ucle.plan.memory_model import (
    CrossJoined,
    FilledTable,
    GroupStates,
    JoinTable,
    Part,
    RowVectors,
    count_unspilled_bytes,
    states,
    unspilled_statement,
    unspilled_states,
)
from ucle.udf_kernels.kernel_limits import kernel_limits


def is_small(sized: SizedProgram, vertex: Vertex) -> bool:
    """Return whether no decomposition of a vertex can reach the limits.

    Whatever is inside the arrays, all tuples together hold no more than the whole tensor, and the
    states of one thread no more than the result.
    """
    if not sized.resources.kernels:
        return False
    if sized.resources.copies:
        return _is_small_with_copies(sized, vertex)
    tensors = [sized.program.types[x.tensor] for x in vertex.inputs] + [vertex.tensor.type]
    whole = sum(math.prod(map(float, x.shape)) * x.dtype.bytes for x in tensors)
    most = min(
        sized.profile.kernel_bytes,
        sized.resources.memory / 2,
        sized.resources.limits.array_elements,
        kernel_limits().blob_bytes,
    )
    rank = max(x.rank for x in tensors)
    return rank <= kernel_limits().labels and 2 * whole * sized.resources.threads <= most


CELL_BYTES = 48
"""The most bytes of an entry in a compressed array that has nothing else, with both its ends."""

COPIED = 64
"""The most times that a cell of a join is held, for each thread: in operands and results, in states
of powers of two, in tables whose blocks are half full; and a margin."""


def _is_small_with_copies(sized: SizedProgram, vertex: Vertex) -> bool:
    """As `is_small`, where each row of a join has copies of its operands.

    Whatever is inside the arrays, all rows with their operands hold no more than each cell of the
    join with an entry of each operand.
    """
    if not vertex.is_product or any(map(repeats, vertex.inputs)):
        return False
    rank = len(vertex.all_labels)
    cells = math.prod(max(float(label.bound), 1.0) for label in vertex.all_labels)
    each = cells * (CELL_BYTES + KEY_BYTES * rank)
    held = COPIED * each * sized.resources.threads
    limits = sized.resources.limits
    most = min(sized.resources.memory / 2, limits.column_bytes, limits.array_elements)
    return (
        rank <= kernel_limits().labels
        and 3 * each <= sized.profile.kernel_bytes
        and held <= min(most, kernel_limits().blob_bytes)
    )


def fits(sized: SizedProgram, vertex: Vertex, decomposition: Decomposition) -> bool:
    """Return whether a decomposition of a vertex stays below the limits.

    One tensor in a tuple stays below 2^31 elements and 4 GiB. Tensors that are made for every row
    count as one vector of rows per thread; states that DuckDB cannot spill count in full.
    """
    if not (sized.resources.kernels or decomposition.relational):
        return False
    types = sized.program.types
    names = [*(operand.tensor for operand in vertex.inputs), vertex.name]
    layouts = [*vertex.reads(decomposition), vertex.makes(decomposition)]
    sizes = [sized.array_bytes(*each) for each in zip(names, layouts, strict=True)]
    for name, layout, size in zip(names, layouts, sizes, strict=True):
        if size > kernel_limits().blob_bytes or (
            layout.compressed is None
            and not layout.deferred
            and types[name].dense_size(layout) > sized.resources.limits.array_elements
        ):
            return False
    if decomposition.deferred is None:
        kernel = choose_kernel(vertex, decomposition)
        if not kernel.exists:
            return False
        if vertex.index is not None and kernel.name is not None:
            made, read = (types[names[n]].dense_size(layouts[n]) for n in (-1, 0))
            if made > max(read, MOST_OF_LITTLE):
                return False
    whole = sum(sized.payload_bytes(*each) for each in zip(names, layouts, strict=True))
    if whole > sized.profile.kernel_bytes:
        return False
    if densified_bytes(sized, vertex, decomposition) > sized.resources.memory:
        return False
    if sized.resources.copies:
        output_bytes = _unspilled_bytes(sized, _build_output_parts(sized, vertex, decomposition))
        copied = _copied_rows(sized, vertex, decomposition)
        if max(sizes) * copied > sized.resources.limits.column_bytes:
            return False
        operands = sized.operand_bytes(vertex, decomposition) * copied * sized.resources.threads
        return output_bytes + operands <= sized.resources.memory / 2
    return _held_by_vertex(sized, vertex, decomposition) <= sized.resources.memory


def densified_bytes(sized: SizedProgram, vertex: Vertex, decomposition: Decomposition) -> float:
    """Return the bytes of the operands that a vertex must make dense (`ucle.ir.fills`).

    For a prefix scan these are the bytes of the positions that it adds to the stored ones.
    """
    if vertex.along is not None:
        (operand,), (layout,) = vertex.inputs, vertex.reads(decomposition)
        made = vertex.makes(decomposition)
        stored = sized.rows(operand.tensor, layout) * sized.tuple_bytes(operand.tensor, layout)
        return sized.rows(vertex.name, made) * sized.tuple_bytes(vertex.name, made) - stored
    types = [sized.program.types[operand.tensor] for operand in vertex.inputs]
    if vertex.top is not None:  # along keys, only the stored or requested entries are made
        dense = [vertex.top.label not in decomposition.promoted]
    elif len(types) == 1:
        dense = [meets_all(vertex)]
    else:
        rule = join_rule(vertex, types[0], types[1], decomposition)
        dense = [rule.densify_left, rule.densify_right]
    total = 0.0
    read = vertex.reads(decomposition)
    for operand, layout, needed in zip(vertex.inputs, read, dense, strict=True):
        if needed:
            type_ = sized.program.types[operand.tensor]
            ranges = {operand.names[a]: type_.key_range(layout, a) for a in layout.promoted}
            rows = math.prod(map(float, ranges.values()))
            total += rows * sized.tuple_bytes(operand.tensor, layout)
    return total


def held_bytes(sized: SizedProgram, decomposed: DecomposedProgram, vertex: Vertex) -> float:
    """Return the bytes that a vertex with its repartitions holds and DuckDB cannot spill."""
    decomposition = decomposed.decompositions[vertex.name]
    if sized.resources.copies:  # operands are copied in batches, and DuckDB stacks lists itself
        return _unspilled_bytes(sized, _build_output_parts(sized, vertex, decomposition))
    # A repartition is part of the statement that reads its result.
    moved = sum(
        _repartition_bytes(sized, operand.tensor, source, needed)
        for operand, needed in decomposed.needed_layouts(vertex)
        if (source := decomposed.source_layout(operand.tensor, needed)) is not None
    )
    return _held_by_vertex(sized, vertex, decomposition) + moved


def stacked_bytes(sized: SizedProgram, name: str, source: Layout, target: Layout) -> float:
    """Return the bytes of a repartition's STACK states that DuckDB cannot spill."""
    stacked = _find_stack(sized, name, source, target)
    return 0.0 if stacked is None or stacked.size <= stacked.inline else states(stacked)


def _repartition_bytes(sized: SizedProgram, name: str, source: Layout, target: Layout) -> float:
    """Return the bytes of a repartition's states; its result counts with its reader."""
    stacked = _find_stack(sized, name, source, target) if target.promoted else None
    return 0.0 if stacked is None else unspilled_states(stacked, sized.resources.memory)


def _find_stack(
    sized: SizedProgram, name: str, source: Layout, target: Layout
) -> GroupStates | None:
    """Return the STACK of a repartition; None if it has none, or if DuckDB's own lists do it."""
    finer = source.union(target)
    if finer == target or sized.resources.copies:
        return None
    rows, groups = (sized.rows(name, layout) for layout in (finer, target))
    size = sized.payload_bytes(name, target)
    resources = sized.resources
    return GroupStates(rows, groups, size, resources.inline_state, resources.threads, stacked=True)


def _held_by_vertex(sized: SizedProgram, vertex: Vertex, decomposition: Decomposition) -> float:
    """Return the bytes that a statement of one vertex holds: whole tensors exist all the time."""
    parts = [
        *_build_output_parts(sized, vertex, decomposition),
        *_build_operand_parts(sized, vertex, decomposition),
    ]
    filled = [part for part in parts if isinstance(part, FilledTable)]
    others = [part for part in parts if not isinstance(part, FilledTable)]
    return _unspilled_bytes(sized, filled) + unspilled_statement(others, sized.resources.memory)


def _unspilled_bytes(sized: SizedProgram, parts: Iterable[Part]) -> float:
    return sum(count_unspilled_bytes(part, sized.resources.memory) for part in parts)


def _build_output_parts(
    sized: SizedProgram, vertex: Vertex, decomposition: Decomposition
) -> Iterator[Part]:
    """Yield the memory for a vertex's results: finished states, or vectors of rows."""
    output, threads = vertex.makes(decomposition), sized.resources.threads
    payload = sized.array_bytes(vertex.name, output)
    groups = sized.statistics.output_rows(vertex, decomposition) or 1.0
    if vertex.aggregates(decomposition) and not sized.resources.copies:
        rows = sized.statistics.join_rows(vertex, decomposition)
        yield GroupStates(rows, groups, payload, sized.resources.inline_state, threads)
        return
    # Where tensors are copied, states are DuckDB's own lists.
    yield RowVectors(groups, payload, threads)
    if not output.promoted:
        yield FilledTable(1, payload)


def _build_operand_parts(
    sized: SizedProgram, vertex: Vertex, decomposition: Decomposition
) -> Iterator[Part]:
    """Yield the memory for a vertex's operands: whole tensors, vectors of rows, a join's table."""
    tables = []
    read = vertex.reads(decomposition)
    for operand, layout in zip(vertex.inputs, read, strict=True):
        size = sized.array_bytes(operand.tensor, layout)
        if not layout.promoted:
            yield FilledTable(1, size)
            yield CrossJoined(size)
            continue
        rows = sized.rows(operand.tensor, layout)
        yield RowVectors(rows, size, sized.resources.threads)
        tables.append((rows, size))
    if len(tables) == 2:
        yield JoinTable(*tables[0], *tables[1])


def _copied_rows(sized: SizedProgram, vertex: Vertex, decomposition: Decomposition) -> float:
    """Return the rows whose operands one thread holds at a time, where operands are copied.

    That is a vector of rows; if an aggregation gathers arrays, it is the rows of a vector of
    groups.
    """
    rows = sized.statistics.join_rows(vertex, decomposition)
    groups = sized.statistics.output_rows(vertex, decomposition)
    if vertex.makes(decomposition).scalar:
        return min(rows, sized.resources.limits.vector_rows)
    return sized.gathered_rows(rows, groups)
