"""Inline views in the statements that read them."""

from __future__ import annotations

from dataclasses import replace

from ucle.plan.pass_context import PassContext
from ucle.plan.relation_tree import reads
from ucle.plan.steps import Plan, Role, Step


def inline_views(plan: Plan, context: PassContext) -> Plan:
    """Inline in each table the views that it reads, directly or not; no view stays separate.

    One statement is bound once, but a view is bound again for each statement that reads it.
    """
    number = {step.name: n for n, step in enumerate(plan.steps)}
    views = {step.name: step for step in plan.steps if step.role is Role.VIEW}
    sources = {step.name: set(reads(step.relation)) & views.keys() for step in plan.steps}

    def whole(step: Step) -> Step:
        needed: set[str] = set()
        waiting = [step.name]
        while waiting:
            new = sources[waiting.pop()] - needed
            needed |= new
            waiting += new
        inner = tuple(views[name] for name in sorted(needed, key=number.__getitem__))
        return replace(step, views=inner) if inner else step

    return replace(plan, steps=tuple(whole(x) for x in plan.steps if x.name not in views))
