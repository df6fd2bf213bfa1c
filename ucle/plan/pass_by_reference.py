"""Pass large tensors in one tuple to cross joins by reference, also to joins with positions."""

from __future__ import annotations

from dataclasses import replace

from ucle.foundation.tree_walk import fold
from ucle.ir.fills import JoinKind
from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import (
    Aggregate,
    ByReference,
    Compute,
    Decompose,
    Join,
    MaskedJoin,
    Relation,
)
from ucle.plan.relation_tree import inputs, with_inputs
from ucle.plan.steps import Plan, Step


def pass_by_reference(plan: Plan, context: PassContext) -> Plan:
    """Pass large tensors to cross joins as the only element of a list.

    A cross join copies a BLOB twice; with few tuples per chunk it copies the BLOB again for each
    tuple, as does a filter above it that lets some tuples through. The contents of a list are
    passed by reference.
    """

    def side(relation: Relation) -> Relation:
        whole = not relation.layout.promoted
        large = relation.type.tuple_bytes(relation.layout) >= context.reference_bytes
        return ByReference(relation) if whole and large else relation

    def hand_over(relation: Relation, children: list[Relation]) -> Relation:
        match relation:
            case Aggregate(Compute(Join() as joined)) if _is_crossed(joined):
                return with_inputs(relation, [side(x) for x in children])
            case Aggregate(Compute(MaskedJoin(mask))) if mask.layout.promoted:
                return with_inputs(relation, [side(x) for x in children])
            case Decompose():
                return with_inputs(relation, [side(x) for x in children])
        return with_inputs(relation, children)

    def rewrite_step(step: Step) -> Step:
        relation = fold(step.relation, inputs, hand_over)
        return replace(step, relation=relation, views=tuple(map(rewrite_step, step.views)))

    return replace(plan, steps=tuple(map(rewrite_step, plan.steps)))


def _is_crossed(joined: Join) -> bool:
    """Return whether a join pairs every tuple with every other one, and there are several."""
    left = {joined.left_labels[axis] for axis in joined.left.layout.promoted}
    right = {joined.right_labels[axis] for axis in joined.right.layout.promoted}
    return joined.kind is JoinKind.INNER and bool(left | right) and not left & right
