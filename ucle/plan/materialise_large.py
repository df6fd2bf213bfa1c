"""Materialise views whose groups exceed the memory, so that they can be made in rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ucle.plan.materialise import with_tables
from ucle.plan.pass_context import Memory, PassContext
from ucle.plan.relation_nodes import Aggregate, BlockRepartition, Compress, Stack
from ucle.plan.relation_tree import inputs, reads
from ucle.plan.steps import Plan, Role, Step

GROUP_BYTES = 48
"""The bytes of a group in DuckDB's table, besides its keys and its state."""


def materialise_large(plan: Plan, context: PassContext) -> Plan:
    """Make tables of views whose groups exceed the memory, so that they can be made in rounds.

    Vertices that follow row by row are computed in the same table if that leaves less to write.
    """
    memory = context.memory
    if memory is None:
        return plan
    readers: dict[str, list[Step]] = {}
    for step in plan.steps:
        for name in reads(step.relation):
            readers.setdefault(name, []).append(step)
    tables: set[str] = set()
    for step in plan.steps:
        if step.role is Role.VIEW and memory.is_exceeded_by(group_bytes(step, memory)):
            chain = list(_row_by_row(step, readers))
            if all(each.role is Role.VIEW for each in chain):
                tables.add(min(chain, key=lambda each: _bytes(each, memory)).name)
    return with_tables(plan, tables)


def group_bytes(step: Step, memory: Memory) -> float:
    """Return the bytes of the groups in which a step gathers tuples; 0 if it gathers none."""
    match step.relation:
        case Aggregate(operation=None):
            return 0.0
        case Aggregate() | Stack() | BlockRepartition() | Compress():
            size = max(memory.payload(step.tensor, step.relation.layout), 1.0)
            state = float(1 << math.ceil(math.log2(size)))
            return memory.rows(step.tensor, step.relation.layout) * (state + GROUP_BYTES)
    return 0.0


def _row_by_row(step: Step, readers: Mapping[str, list[Step]]) -> Iterator[Step]:
    """Yield a step and the steps that make one row of each of its rows, in order."""
    while True:
        yield step
        following = readers.get(step.name, [])
        if len(following) != 1 or step.role is not Role.VIEW:
            return
        (step,) = following
        operands = inputs(step.relation)
        if not isinstance(step.relation, Aggregate) or step.relation.operation is not None:
            return
        if sum(bool(each.layout.promoted) for each in operands) != 1:
            return


def _bytes(step: Step, memory: Memory) -> float:
    layout = step.relation.layout
    return memory.rows(step.tensor, layout) * memory.payload(step.tensor, layout)
