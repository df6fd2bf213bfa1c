"""Join by inner joins, and complete nothing, where every tuple is stored.

A planned join keeps a tuple whose partner may be missing, by an outer join or by completing the
other side first: both put the tuples into hash tables, and arrays are copied with them. Whether a
tuple can be missing depends on how relations are made (`ucle.plan.every_tuple`), which is known
when all steps are planned. So a layer of a network, ``relu(X W + b)`` of features that all nodes
have, is a map of its rows.

Integers are left as they are. Where a product of theirs overflows, the program is refused, though
another factor may be 0 there: behind inner joins alone, DuckDB would not compute the product.

What goes in: a plan whose steps are those that were planned. What comes out: the plan without
completions of what is complete, and without outer joins with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ucle.foundation.tree_walk import fold
from ucle.ir.fills import JoinKind
from ucle.plan.every_tuple import expecting_gaps, steps_to_have_every_tuple
from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import (
    Aggregate,
    Compute,
    Densify,
    Join,
    Relation,
)
from ucle.plan.relation_tree import inputs, nodes, with_inputs
from ucle.plan.steps import Plan

KEEPS = {
    JoinKind.INNER: (False, False),
    JoinKind.LEFT: (True, False),
    JoinKind.RIGHT: (False, True),
    JoinKind.FULL: (True, True),
}
"""Whether a join keeps the tuples without a partner of its left and of its right side."""

BY_KEPT = {kept: kind for kind, kept in KEEPS.items()}


def relies_on_tuples(plan: Plan) -> bool:
    """Return whether a plan as it was planned relies on tuples that later data may not have."""
    if any(expecting_gaps(step.relation) is not step.relation for step in plan.steps):
        return True
    joined = join_every_tuple(plan, PassContext())
    return any(one is not other for one, other in zip(plan.steps, joined.steps, strict=True))


def join_every_tuple(plan: Plan, _: PassContext) -> Plan:
    """Return the plan without what is done for tuples that cannot be missing."""
    if not any(_expects_gaps(node) for step in plan.steps for node in nodes(step.relation)):
        return plan
    whole, steps = set[str](), []

    def is_whole(relation: Relation) -> bool:
        needed = steps_to_have_every_tuple(relation, plan.dictionaries)
        return needed is not None and whole.issuperset(needed)

    def rewrite(relation: Relation, children: Sequence[Relation]) -> Relation:
        if relation.type.dtype.kind == "i":
            return with_inputs(relation, children)
        if isinstance(relation, Densify) and is_whole(children[0]):
            return children[0]
        match made := with_inputs(relation, children):
            case Aggregate(Compute(Join(JoinKind.LEFT | JoinKind.RIGHT | JoinKind.FULL) as join)):
                left, right = KEEPS[join.kind]
                kept = left and not is_whole(join.right), right and not is_whole(join.left)
                joined = replace(join, kind=BY_KEPT[kept])
                return replace(made, input=replace(made.input, input=joined))
        return made

    for step in plan.steps:
        relation = fold(step.relation, inputs, rewrite)
        if is_whole(relation):
            whole.add(step.name)
        steps.append(step if relation is step.relation else replace(step, relation=relation))
    return replace(plan, steps=tuple(steps))


def _expects_gaps(relation: Relation) -> bool:
    match relation:
        case Densify():
            return True
        case Aggregate(Compute(Join(kind))):
            return kind is not JoinKind.INNER
    return False
