"""A pass for views: the statistics of today's data say nothing about the data they will read."""

from __future__ import annotations

from dataclasses import replace

from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import Densify, Relation, TopKEntries
from ucle.plan.relation_tree import inputs, with_inputs
from ucle.plan.steps import Plan


def expect_gaps(plan: Plan, _: PassContext) -> Plan:
    """Treat tuples as possibly missing even if all are there now: rows may be deleted."""
    steps = tuple(replace(step, relation=_expecting(step.relation)) for step in plan.steps)
    return replace(plan, steps=steps)


def _expecting(relation: Relation) -> Relation:
    if isinstance(relation, TopKEntries) and relation.axis in relation.input.layout.promoted:
        return replace(relation, whole=False)
    if isinstance(relation, TopKEntries) and not isinstance(relation.input, Densify):
        return replace(relation, input=Densify(relation.input))
    return with_inputs(relation, [_expecting(x) for x in inputs(relation)])
