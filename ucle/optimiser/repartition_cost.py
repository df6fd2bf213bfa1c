"""The cost of bringing a tensor from one layout to another, and the way that is cheapest.

A repartition decomposes to the labels that either layout promotes, and stacks (section 7.2 of
sparse_einsum.txt). If keys are exchanged for others, it may cost less to stack into blocks first
(`ucle.plan.decomposition.Blocks`).
"""

from __future__ import annotations

import math

from ucle.ir.layouts import Layout, Level
from ucle.optimiser.limits import stacked_bytes
from ucle.optimiser.sizes import SizedProgram
from ucle.plan.decomposition import Blocks
from ucle.plan.prices import CopyWork, LoadWork, RecodeWork, RepartitionWork, cost
from ucle.plan.repartition_paths import ChangeKind, LayoutChange, changes

RUN_BYTES = 12
"""Bytes of the keys of a run in a table: its row, and both ends."""


def repartition_cost(
    sized: SizedProgram, name: str, source: Layout | None, target: Layout
) -> float:
    """Return the cost of bringing a tensor from one layout, or from memory, to another."""
    type_ = sized.program.types[name]
    if source != target and (target.deferred or (source is not None and source.deferred)):
        return math.inf
    if source is None:
        rows = sized.rows(name, target)
        if target.compressed is not None:
            entries = sized.statistics.tensor(name).entries
            read = math.prod(type_.shape) * type_.dtype.bytes
            made = rows * sized.payload_bytes(name, target)
            return cost(RecodeWork(rows, read + made, entries), sized.profile)
        moved, places = not target.is_in_order, 0.0
        if not type_.entries.full:
            places = math.prod(type_.key_range(target, axis) for axis in target.promoted)
        return cost(LoadWork(rows, type_.tuple_bytes(target), moved, places), sized.profile)
    if _is_free(sized, name, source, target):
        return 0.0
    if stacked_bytes(sized, name, source, target) > sized.resources.memory / 2:
        return math.inf
    if source.plain and target.plain:
        way = _cheapest_way(sized, name, source, target)[0]
    else:
        way = _path_cost(sized, name, source, target)
    if name in sized.stored and sized.stored[name].pairs:
        way += _cost_of_pairs(sized, name)
    kept = name in sized.stored and sized.stored[name].kept
    return 0.0 if kept and way < math.inf else way


def _cost_of_pairs(sized: SizedProgram, name: str) -> float:
    """Return the cost to make pairs of times, which aggregates of SQL over their tuples need not.

    Each is unnested from a list, and its times are looked up in two dictionaries: 280 ns where
    windows of 30 times each over 1,000,000 days became a compressed array.
    """
    profile = sized.profile
    return sized.statistics.tensor(name).entries * (profile.group + 2 * profile.far)


def least_repartition_cost(sized: SizedProgram, name: str, source: Layout, target: Layout) -> float:
    """Return a lower bound of a repartition's cost: a step if the number of tuples changes.

    The number of tuples in between, which is most of the work of a price, is not computed.
    """
    if source != target and (source.deferred or target.deferred):
        return math.inf
    if _is_free(sized, name, source, target):
        return 0.0
    before, after = (sized.rows(name, x) for x in (source, target))
    return sized.profile.step if before != after else 0.0


def _is_free(sized: SizedProgram, name: str, source: Layout, target: Layout) -> bool:
    """Return whether a repartition has nothing to do, or is free under the profile."""
    free = sized.profile.inputs_free and name in sized.stored
    return free or source == target


def exchange_blocks(
    sized: SizedProgram, name: str, source: Layout | None, target: Layout
) -> Blocks | None:
    """Return the blocks of a repartition that exchanges keys; None if another way is cheaper."""
    if source is None or source == target or not (source.plain and target.plain):
        return None
    return _cheapest_way(sized, name, source, target)[1]


def _cheapest_way(
    sized: SizedProgram, name: str, source: Layout, target: Layout
) -> tuple[float, Blocks | None]:
    """Return the cost of a repartition, and the blocks if it exchanges keys."""
    direct = _direct_cost(sized, name, source, target)
    if (blocks := find_blocks(sized, name, source, target)) is None:
        return direct, None
    exchange = _exchange_cost(sized, name, source, target, blocks)
    return (exchange, blocks) if exchange < direct else (direct, None)


def _path_cost(sized: SizedProgram, name: str, source: Layout, target: Layout) -> float:
    """Return the cost of all changes between layouts of which one is tiled or compressed."""
    total = 0.0
    for change in changes(source, target, sized.program.types[name].shape):
        if change.kind in (ChangeKind.DECOMPOSE, ChangeKind.STACK):
            total += _direct_cost(sized, name, source, change.layout)
        else:
            total += cost(_recoding(sized, name, source, change), sized.profile)
        source = change.layout
    return total


def _recoding(sized: SizedProgram, name: str, source: Layout, change: LayoutChange) -> RecodeWork:
    """Return the work to make compressed arrays or to take them apart."""
    tensor = sized.statistics.tensor(name)
    if tensor.runs and change.kind is ChangeKind.COMPRESS and source.scalar:
        return _compressed_runs(sized, name, tensor.runs, change.layout)
    entries = tensor.entries
    layouts = source, change.layout
    read, made = (sized.rows(name, x) * sized.payload_bytes(name, x) for x in layouts)
    match change.kind:
        case ChangeKind.RECODE:
            return RecodeWork(sized.rows(name, source), read + made, 0.0, in_place=True)
        case ChangeKind.GATHER:
            return RecodeWork(sized.rows(name, source), 6 * made, 0.0)
        case _:
            groups = sized.rows(name, change.layout)
            return RecodeWork(entries, read + made, entries, groups)


def _compressed_runs(sized: SizedProgram, name: str, runs: float, layout: Layout) -> RecodeWork:
    """Return the work to compress the runs of an input table, which are read as they are."""
    groups, read = (
        sized.rows(name, layout),
        runs * (RUN_BYTES + sized.program.types[name].dtype.bytes),
    )
    return RecodeWork(runs, read + groups * sized.payload_bytes(name, layout), runs, groups)


def _direct_cost(sized: SizedProgram, name: str, source: Layout, target: Layout) -> float:
    """Return the cost to decompose to the labels that either layout promotes, then STACK."""
    type_, finer = sized.program.types[name], source.union(target)
    before, between, after = (sized.rows(name, layout) for layout in (source, finer, target))
    part_bytes = type_.tuple_bytes(finer)
    states = sized.state_bytes(type_.tuple_bytes(target), between, after)
    positions = math.prod(
        type_.key_range(finer, axis)
        if source.levels[axis] is Level.DENSE
        else min(type_.shape[axis], source.tile)
        for axis in finer.promoted
        if source.levels[axis] is not finer.levels[axis]
    )
    added = finer != source
    work = RepartitionWork(before, between, after, part_bytes, states, before * positions)
    total = cost(work, sized.profile)
    if sized.profile.once and added:
        # A tuple is paired with every position, and copied for each vector of positions.
        vectors = max(positions / sized.resources.limits.vector_rows, 1.0)
        total += cost(CopyWork(before * vectors * type_.tuple_bytes(source)), sized.profile)
    if sized.resources.copies:
        whole = 0 if source.scalar or finer == source else type_.tuple_bytes(source)
        part = 0 if finer.scalar or finer == target else part_bytes
        most = max(
            whole * min(between, sized.resources.limits.vector_rows),
            part * sized.gathered_rows(between, after),
        )
        if most > sized.resources.limits.column_bytes:
            return math.inf
        total += cost(CopyWork(between * (whole + part)), sized.profile)
    return total


def find_blocks(sized: SizedProgram, name: str, source: Layout, target: Layout) -> Blocks | None:
    """Return the largest blocks whose state is inline, if keys can be exchanged; else None.

    All blocks have the same size if the cuts do not stay in one piece (`Blocks`).
    """
    type_ = sized.program.types[name]
    removed = set(source.promoted) - set(target.promoted)
    added = set(target.promoted) - set(source.promoted)
    if not removed or not added or not sized.profile.once or sized.resources.copies:
        return None
    if not (tuple_bytes := type_.tuple_bytes(source)):  # an axis without positions
        return None
    axis = max(sorted(removed), key=lambda a: type_.shape[a])
    size = min(type_.shape[axis], sized.resources.inline_state // tuple_bytes)
    unmoved = tuple(a for a in source.dense if a not in added)
    if target.dense[-1 - len(unmoved) :] != (axis, *unmoved):
        size = max((n for n in range(1, size + 1) if type_.shape[axis] % n == 0), default=0)
    return Blocks(axis, size) if size > 1 else None


def _exchange_cost(
    sized: SizedProgram, name: str, source: Layout, target: Layout, blocks: Blocks
) -> float:
    """Return the cost to stack into blocks, cut them at every new key, and place the cuts."""
    type_, statistics = sized.program.types[name], sized.statistics
    coarse = Layout.of(a in source.promoted and a != blocks.axis for a in range(type_.rank))
    before, after = (statistics.rows(name, x).estimate for x in (source, target))
    count = statistics.rows(name, coarse).estimate * -(-type_.shape[blocks.axis] // blocks.size)
    count = min(before, count)
    added = set(target.promoted) - set(source.promoted)
    cuts = math.prod(type_.shape[axis] for axis in added)
    whole, end = type_.tuple_bytes(source), type_.tuple_bytes(target)
    block, parts = blocks.size * whole, count * cuts
    stacked, placed = sized.state_bytes(block, before, count), sized.state_bytes(end, parts, after)
    stack = RepartitionWork(before, before, count, whole, stacked)
    cut = RepartitionWork(count, parts, after, block / cuts, placed, parts)
    return cost(stack, sized.profile) + cost(cut, sized.profile)
