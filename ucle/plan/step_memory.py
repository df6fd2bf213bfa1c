"""The memory of a plan's statements, by statistics: the parts for `ucle.plan.memory_model`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise, repeat

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Layout
from ucle.plan.kernel_choice import KERNELS_OF_RUNS
from ucle.plan.memory_model import (
    Account,
    ChunkCopies,
    CrossJoined,
    FilledTable,
    GroupStates,
    JoinTable,
    Part,
    RowVectors,
    count_held_bytes,
    kernel_states,
    peak,
    statement,
)
from ucle.plan.parameters import find_parameters, joins_rows
from ucle.plan.relation_nodes import (
    Aggregate,
    BlockRepartition,
    ByReference,
    ColumnExpressions,
    ColumnOfTimes,
    Compress,
    Compute,
    Decompose,
    Densify,
    Expand,
    FusedMaps,
    FusedStep,
    Gather,
    Load,
    LookupJoin,
    MultiwayJoin,
    Nested,
    PackedForest,
    Read,
    Rearrange,
    Recode,
    Reindex,
    Relation,
    Slot,
    Stack,
    TableScan,
    TopKEntries,
    WindowOfTimes,
)
from ucle.plan.relation_tree import inputs, nodes, reads
from ucle.plan.steps import Plan, Role, Step

Sizes = Callable[[str, Layout], float]


@dataclass(frozen=True)
class Estimates:
    """Estimates of tuples in a layout and of bytes of each value; threads and inline states.

    `expanded` are the bytes of a value after a kernel has made entries of its runs of one value.
    """

    rows: Sizes
    payload: Sizes
    expanded: Sizes
    threads: int
    inline: float


def plan_peak(plan: Plan, estimates: Estimates, account: Account = Account.ALL) -> float:
    """Return the most bytes of an account that a plan holds at a time, beyond those held before."""
    given = find_parameters(plan)
    return peak([statement_bytes(step, estimates, account, given) for step in plan.steps])


def most_states(plan: Plan, estimates: Estimates) -> float:
    """Return the most bytes of states that kernels hold in a statement."""
    return max((sum(map(kernel_states, _states(x, estimates))) for x in plan.steps), default=0.0)


def _states(step: Step, estimates: Estimates) -> list[GroupStates]:
    steps = (*step.views, step)
    made = _used_parts(steps, _uses(steps, {step.name: 1}), estimates)
    return [part for part in made if isinstance(part, GroupStates)]


def statement_bytes(
    step: Step,
    estimates: Estimates,
    account: Account = Account.ALL,
    given: Collection[str] = (),
) -> tuple[float, float]:
    """Return the bytes that a statement holds while it runs, and the bytes that it leaves.

    Args:
        step: the statement.
        estimates: the sizes of what it reads and makes.
        account: what is counted.
        given: the tables that its only query takes as parameters.
    """
    if step.role is Role.INPUT:
        return _loaded_bytes(step, estimates)
    steps = (*step.views, step)
    whole = {each.name for each in step.views if not each.relation.layout.promoted}
    then = _uses(steps, {step.name: 1}, whole)
    first = _uses(steps, {name: then[name] for name in whole & then.keys()})
    total = statement(
        _used_parts(steps, first, estimates),
        _used_parts(
            steps, Counter({x: n for x, n in then.items() if x not in whole}), estimates, given
        ),
        account,
    )
    if account is not Account.ALL or step.role is not Role.TABLE:
        return total, 0.0
    if isinstance(step.relation, FusedStep):
        slots = slot_bytes(step.relation, estimates)
        made = [(1.0, slots[x.number]) for x in step.relation.results.values()]
    else:
        made = [_size(step, step.relation, estimates)]
    kept = sum(count_held_bytes(FilledTable(*each)) for each in made)
    return total + kept, kept


def _loaded_bytes(step: Step, estimates: Estimates) -> tuple[float, float]:
    """Return the bytes of an array's tuples while they are made, and afterwards.

    Their keys are columns beside the array. While they are made, it is compared with the fill, and
    unless it differs everywhere, NumPy finds where it does as integers of 8 bytes.
    """
    if not isinstance(step.relation, Load):
        return 0.0, 0.0
    rows, each = _size(step, step.relation, estimates)
    keys = _key_bytes(step.relation)
    kept = rows * (each if _is_copied(step.relation) else keys)
    type_, layout = step.relation.type, step.relation.layout
    everywhere = math.prod(type_.key_range(layout, axis) for axis in layout.promoted)
    found = 0.0 if rows >= everywhere else 2 * keys
    return kept + rows * (1 + found), kept


def _is_copied(load: Load) -> bool:
    """Return whether an array is copied because its layout has another order than its own.

    See `ucle.run.array_tables`.
    """
    layout = load.layout
    handed_on = layout.is_in_order and layout.tiled in ((), (0,))
    return layout.compressed is not None or not handed_on


def _uses(
    steps: tuple[Step, ...], of: Mapping[str, int], ends: Collection[str] = ()
) -> Counter[str]:
    """Return how often each view is computed: once per read, but once for a table.

    Args:
        steps: steps of a statement, each after those that it reads.
        of: the number of reads of the steps in question.
        ends: views below which no other views are counted.
    """
    uses = Counter(of)
    for step in reversed(steps):
        if step.name in ends or not uses[step.name]:
            continue
        times = 1 if step.role is Role.TABLE else uses[step.name]
        for name in reads(step.relation):
            uses[name] += times
    return uses


def _used_parts(
    steps: tuple[Step, ...],
    uses: Mapping[str, int],
    estimates: Estimates,
    given: Collection[str] = (),
) -> Iterator[Part]:
    """Yield the parts of steps, as often as each step is computed."""
    for each in steps:
        times = uses.get(each.name, 0)
        for part in parts(each, estimates, given):
            yield from repeat(part, min(times, 1) if each.role is Role.TABLE else times)


def parts(step: Step, estimates: Estimates, given: Collection[str] = ()) -> Iterator[Part]:
    """Yield the memory of a step itself, including its intermediate relations.

    Without tables that are parameters (`given`), a step may read one table of one row alone, which
    no join then copies.
    """
    inner = _inner_tensors(step)
    alone = bool(given) and not joins_rows(step, given)

    def join_rows(
        operands: tuple[Relation, ...], sizes: list[tuple[float, float]]
    ) -> Iterator[Part]:
        return iter(()) if alone else _build_join_parts(operands, sizes, estimates.threads)

    def size(relation: Relation) -> tuple[float, float]:
        return _size(step, relation, estimates, inner.get(id(relation)))

    def build_states(met: float, node: Relation, *, stacked: bool) -> GroupStates:
        groups, each = size(node)
        state = each - _key_bytes(node)
        # Each round has the groups of one range of a key.
        met, groups = met / rounds, groups / rounds
        return GroupStates(met, groups, state, estimates.inline, estimates.threads, stacked)

    rounds = max(len(step.rounds), 1)

    for node in nodes(step.relation):
        rows, each = size(node)
        yield from _build_expanded_runs(step, node, estimates)
        match node:
            case TableScan() if node.gathers:
                before = estimates.rows(step.tensor, node.source.layout)
                yield build_states(before, node, stacked=True)
            case Stack() | Compress() | Gather() | BlockRepartition():
                (source,) = inputs(node)
                before, _ = size(source)
                yield build_states(before, node, stacked=True)
            case Aggregate(_, operation):
                operands = inputs(node)
                sizes = [size(operand) for operand in operands]
                yield from join_rows(operands, sizes)
                if operation is not None:
                    met = max((count for count, _ in sizes), default=rows)
                    yield build_states(met, node, stacked=False)
                elif not node.layout.scalar:
                    yield RowVectors(rows, each, estimates.threads)
            case MultiwayJoin(operands, held=held):
                yield from join_rows(operands, list(map(size, operands)))
                yield RowVectors(1, held, estimates.threads)
                # A matrix of unknown length grows in the kernel before it is copied.
                grown = 1 if node.layout.compressed is None else 2
                yield RowVectors(rows, grown * each, estimates.threads)
            case LookupJoin(operands):
                for other in operands[1:]:
                    pair = operands[0], other
                    yield from join_rows(pair, list(map(size, pair)))
                if not node.layout.scalar:
                    yield RowVectors(rows, each, estimates.threads)
            case FusedMaps(operands):
                yield from join_rows(operands, list(map(size, operands)))
                yield RowVectors(rows, each, estimates.threads)
            case FusedStep(operands):
                yield from join_rows(operands, list(map(size, operands)))
                for each in slot_bytes(node, estimates)[len(operands) :]:
                    yield RowVectors(1.0, each, estimates.threads)
            case Decompose(ByReference() as source):
                yield CrossJoined(size(source)[1])
                yield RowVectors(rows, each, estimates.threads)
            case (
                Decompose()
                | Recode()
                | Reindex()
                | TopKEntries()
                | Densify()
                | Nested()
                | PackedForest()
                | ColumnExpressions()
                | WindowOfTimes()
                | ColumnOfTimes()
            ):
                yield RowVectors(rows, each, estimates.threads)


def _build_join_parts(
    operands: tuple[Relation, ...], sizes: list[tuple[float, float]], threads: int
) -> Iterator[Part]:
    keyed = [size for each, size in zip(operands, sizes, strict=True) if each.layout.promoted]
    for each, (_, size) in zip(operands, sizes, strict=True):
        if each.layout.promoted:
            continue
        if keyed:
            yield CrossJoined(size)
        elif len(operands) > 1:  # a positional join copies its row
            yield RowVectors(1, size, threads)
    for one, other in pairwise(keyed):
        yield JoinTable(*one, *other)
        yield ChunkCopies(max(one[0], other[0]), one[1] + other[1], threads)


def _build_expanded_runs(step: Step, node: Relation, estimates: Estimates) -> Iterator[Part]:
    """Yield the entries that a kernel makes of its operands' runs: one value in each thread."""
    made = node.tensors if isinstance(node, FusedStep) else {}
    for each in (*node.lines, node) if isinstance(node, FusedStep) else (node,):
        for operand in _expanded_operands(each):
            name = made.get(operand.number) if isinstance(operand, Slot) else _tensor(step, operand)
            if name is None or operand.layout.compressed is None:
                continue
            if size := estimates.expanded(name, operand.layout):
                rows = min(estimates.rows(name, operand.layout), estimates.threads)
                yield RowVectors(rows, size, estimates.threads)


def _expanded_operands(node: Relation) -> tuple[Relation, ...]:
    """Return the operands of whose runs the kernel of a relation makes entries."""
    match node:
        case Aggregate(Compute(kernel=kernel)):
            reads_runs = kernel.name is None or kernel.name in KERNELS_OF_RUNS
            return () if reads_runs else inputs(node)
        case MultiwayJoin() | Gather() | Expand():
            return inputs(node)
    return ()


def _inner_tensors(step: Step) -> dict[int, str]:
    """Return the tensors of relations that others bring into other tuples, by their identity."""
    found: dict[int, str] = {}
    for node in nodes(step.relation):
        name = found.get(id(node)) or _tensor(step, node)
        if name is not None and isinstance(node, Rearrange):
            found[id(node.input)] = name
    return found


def _size(
    step: Step, relation: Relation, estimates: Estimates, name: str | None = None
) -> tuple[float, float]:
    """Return the rows of a relation and the bytes of each; an upper bound if it has no name."""
    type_, layout = relation.type, relation.layout
    keys = _key_bytes(relation)
    if (name := name or _tensor(step, relation)) is not None:
        return estimates.rows(name, layout), estimates.payload(name, layout) + keys
    if isinstance(relation, LookupJoin):
        return _size(step, relation.operands[0], estimates)[0], type_.tuple_bytes(layout) + keys
    rows = math.prod(type_.key_range(layout, axis) for axis in layout.promoted)
    return float(rows), type_.tuple_bytes(layout) + keys


def slot_bytes(fused: FusedStep, estimates: Estimates) -> list[float]:
    """Return the bytes of each operand and each line of a fused step, in the order of its slots.

    A compressed operand that is made ready for the lines stays compressed.
    """
    made: list[float] = []
    for number, relation in enumerate((*fused.operands, *fused.lines)):
        name = relation.tensor if isinstance(relation, Read) else fused.tensors.get(number)
        match relation:
            case Densify(Slot(number=source)):
                made.append(made[source])
            case _ if name is not None:
                made.append(estimates.payload(name, relation.layout))
            case _:
                made.append(float(relation.type.tuple_bytes(relation.layout)))
    return made


def _key_bytes(relation: Relation) -> float:
    return 4.0 * len(relation.layout.promoted)


def _tensor(step: Step, relation: Relation) -> str | None:
    """Return the tensor that a relation holds, if it is the tensor of a step."""
    if relation is step.relation:
        # A fused step makes several tensors, of which a step has the name of one only.
        return None if isinstance(relation, FusedStep) else step.tensor
    match relation:
        case Read() | Nested():
            return relation.tensor
        case Rearrange(source):
            return _tensor(step, source)
    return None
