"""How much the statements of a plan hold, by statistics: the parts that `ucle.memory` prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ucle.ir.layouts import Layout
from ucle.memory import Beside, Gathered, Kept, Made, Matched, Part, held, peak
from ucle.plan.steps import (
    ByReference,
    Compress,
    Compute,
    Decompose,
    Densify,
    Exchange,
    FirstEntries,
    Gather,
    Join,
    MaskedJoin,
    Nested,
    Plan,
    Read,
    Recode,
    Reduce,
    Reindex,
    Relation,
    Role,
    Stack,
    Step,
    inputs,
    nodes,
    reads,
)

Sizes = Callable[[str, Layout], float]


@dataclass(frozen=True)
class Estimates:
    """Tuples of a tensor in a layout and bytes of the value of each; threads, inline states."""

    rows: Sizes
    payload: Sizes
    threads: int
    inline: float


def plan_peak(plan: Plan, estimates: Estimates) -> float:
    """Bytes that the execution of a plan holds at most, beside what was there before."""
    statements = [_statement(step, estimates) for step in plan.steps if step.role is not Role.INPUT]
    return peak(statements)


def _statement(step: Step, estimates: Estimates) -> tuple[float, float]:
    """What a statement holds while it runs, and what it leaves."""
    steps = (*step.views, step)
    uses = _uses(steps)
    total = sum(
        held(part) * (1 if each.role is Role.TABLE else uses[each.name])
        for each in steps
        for part in parts(each, estimates)
    )
    if step.role is not Role.TABLE:
        return total, 0.0
    kept = held(Kept(*_size(step.tensor, step.relation, estimates)))
    return total + kept, kept


def _uses(steps: tuple[Step, ...]) -> Counter[str]:
    """How often each view is computed: once for each time that it is read."""
    uses = Counter({steps[-1].name: 1})
    for step in reversed(steps):
        times = 1 if step.role is Role.TABLE else uses[step.name]
        for name in reads(step.relation):
            uses[name] += times
    return uses


def parts(step: Step, estimates: Estimates) -> Iterator[Part]:
    """What a step holds by itself, with what it makes of others on the way."""
    for node in nodes(step.relation):
        yield from _node(step.tensor, node, estimates)


def _node(tensor: str, node: Relation, estimates: Estimates) -> Iterator[Part]:
    rows, size = _size(tensor, node, estimates)
    match node:
        case Stack() | Compress() | Gather() | Exchange():
            (source,) = inputs(node)
            before = _size(tensor, source, estimates)[0]
            yield Gathered(before, rows, size, estimates.inline, estimates.threads)
        case Reduce(Compute(source), operation):
            met = rows
            if isinstance(source, Join | MaskedJoin):
                sizes = [_size(tensor, each, estimates) for each in inputs(node)]
                met = max(count for count, _ in sizes)
                yield from _joined(inputs(node), sizes)
            elif operation is not None:
                met = _size(tensor, source, estimates)[0]
            if operation is not None:
                yield Gathered(met, rows, size, estimates.inline, estimates.threads)
            elif not node.layout.scalar:
                yield Made(rows, size, estimates.threads)
        case Decompose(ByReference()):
            yield Beside(_size(tensor, node.input, estimates)[1])
            yield Made(rows, size, estimates.threads)
        case Decompose() | Recode() | Reindex() | FirstEntries() | Densify() | Nested():
            yield Made(rows, size, estimates.threads)


def _joined(operands: tuple[Relation, ...], sizes: list[tuple[float, float]]) -> Iterator[Part]:
    keyed = [size for each, size in zip(operands, sizes, strict=True) if each.layout.promoted]
    for each, (_, size) in zip(operands, sizes, strict=True):
        if not each.layout.promoted and keyed:
            yield Beside(size)
    for one, other in pairwise(keyed):
        yield Matched(*one, *other)


def _size(tensor: str, relation: Relation, estimates: Estimates) -> tuple[float, float]:
    """Rows of a relation, and bytes of each."""
    name = _tensor(tensor, relation)
    layout = relation.layout
    keys = 4.0 * len(layout.promoted)
    return estimates.rows(name, layout), estimates.payload(name, layout) + keys


def _tensor(tensor: str, relation: Relation) -> str:
    """The tensor that a relation holds: what is made of a step, or the step's own."""
    match relation:
        case Read():
            return relation.tensor
        case Reduce() | Reindex() | FirstEntries():
            return tensor
    below = inputs(relation)
    return _tensor(tensor, below[0]) if len(below) == 1 else tensor
