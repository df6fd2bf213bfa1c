"""Inline small arrays from memory in the statements that read them."""

from __future__ import annotations

from dataclasses import replace

from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import ConstantRelation, Load
from ucle.plan.steps import Plan, Role, Step


def inline_constants(plan: Plan, context: PassContext) -> Plan:
    """Write out arrays that are read as one small tuple.

    A table from memory takes a millisecond to register and to unregister.
    """

    def inline_step(step: Step) -> Step:
        load = step.relation
        if not isinstance(load, Load) or not may_be_written(load):
            return step
        data = context.constants.get(load.source.tensor)
        if data is None:
            return step
        return replace(
            step, role=Role.VIEW, relation=ConstantRelation(data, load.type, load.layout)
        )

    return replace(plan, steps=tuple(map(inline_step, plan.steps)))


def may_be_written(load: Load) -> bool:
    """Return whether an array is read as one tuple of its entries, in the order of its axes."""
    layout = load.layout
    return not layout.promoted and not layout.scalar and layout.compressed is None
