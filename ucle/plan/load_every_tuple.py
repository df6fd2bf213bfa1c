"""Hand over arrays from memory with every tuple, where all that reads them completes them.

A relation leaves out the tuples that hold only the fill. A position that is read from an array,
as in `x[idx[i]]`, may be that of the fill as well as any other one: an outer join would find again
which numbers were left out, for more than their place in the table of an array costs.

What goes in: a plan whose steps are those that were planned. What comes out: the plan with
these arrays as complete ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from ucle.foundation.tree_walk import fold
from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import Densify, Load, Read, Relation
from ucle.plan.relation_tree import inputs, nodes, with_inputs
from ucle.plan.sources import ArraySource
from ucle.plan.steps import Plan, Step

LEAST_SHARE = 0.5
"""The share of tuples that are stored from which on an array is handed over with all of them."""


def load_every_tuple(plan: Plan, context: PassContext) -> Plan:
    """Return the plan without completions of arrays that no step reads as they are."""
    loads = {step.name for step in plan.steps if _may_have_all(step.relation, context)}
    if not loads:
        return plan
    read, completed = Counter[str](), Counter[str]()
    for step in plan.steps:
        read.update(x.step for x in nodes(step.relation) if isinstance(x, Read))
        completed.update(_completed(step.relation))
    shown = {x.step for x in plan.outputs.values()} | {x.read.step for x in plan.checked}
    loads = {name for name in loads - shown if read[name] == completed[name] > 0}
    if not loads:
        return plan
    return replace(plan, steps=tuple(_with_all(step, loads) for step in plan.steps))


def _may_have_all(relation: Relation, context: PassContext) -> bool:
    """Return whether a relation is an array along keys, most of whose tuples are stored."""
    match relation:
        case Load(ArraySource(tensor=tensor), type_, layout):
            entries = type_.entries
            if not layout.promoted or not layout.plain or entries.full or entries.varies:
                return False
            every = math.prod(type_.key_range(layout, axis) for axis in layout.promoted)
            rows = None if context.meanings is None else context.meanings.rows
            return rows is not None and rows(tensor, layout) >= LEAST_SHARE * every
    return False


def _completed(relation: Relation) -> Iterator[str]:
    for node in nodes(relation):
        if isinstance(node, Densify) and isinstance(node.input, Read):
            yield node.input.step


def _with_all(step: Step, loads: Collection[str]) -> Step:
    if isinstance(step.relation, Load) and step.name in loads:
        return replace(step, relation=replace(step.relation, complete=True))

    def rewrite(relation: Relation, children: list[Relation]) -> Relation:
        match relation, children:
            case Densify(), [Read(step=name) as read] if name in loads:
                return read
        return with_inputs(relation, children)

    return replace(step, relation=fold(step.relation, inputs, rewrite))
