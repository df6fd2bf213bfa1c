"""Move small arrays, views and tensors of one tuple into the statements that read them.

A table costs a statement, with a transaction of its own; a common table expression that is computed
once costs a tenth of that. With few tuples there is no other difference between the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import ConstantRelation, Densify, Load, TableScan
from ucle.plan.relation_tree import reads
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


def keep_in_statement(plan: Plan, context: PassContext) -> Plan:
    """Move tables of one tuple into the one statement that reads them."""
    apart = plan.results
    statements = {step.name: step for step in plan.steps}
    readers = _readers(plan.steps)
    for step in plan.steps:
        whole = step.role is Role.TABLE and not step.relation.layout.promoted
        if step.name in apart or not whole or len(readers.get(step.name, ())) != 1:
            continue
        (reader,) = readers[step.name]
        inner, outer = statements.pop(step.name), statements[reader]
        parts = (*inner.views, replace(inner, views=()), *outer.views)
        once = tuple({part.name: part for part in parts}.values())
        statements[reader] = replace(outer, views=once)
    steps = (statements[x.name] for x in plan.steps if x.name in statements)
    least = context.reference_bytes
    return replace(plan, steps=tuple(_scan_once(step, least) for step in steps))


def _readers(steps: Iterable[Step]) -> dict[str, set[str]]:
    """Return the statements that read each table."""
    readers: dict[str, set[str]] = {}
    for step in steps:
        for part in (*step.views, step):
            for name in reads(part.relation):
                readers.setdefault(name, set()).add(step.name)
    return readers


def _scan_once(step: Step, least: int) -> Step:
    """Return a statement that does not read a large array again for each of its parts."""
    uses = Counter(name for part in (*step.views, step) for name in reads(part.relation))

    def part(view: Step) -> Step:
        relation = view.relation
        array = isinstance(relation, TableScan | Densify) and not relation.layout.promoted
        large = array and relation.type.tuple_bytes(relation.layout) >= max(least, 1)
        again = large and not relation.layout.scalar and uses[view.name] > 1
        return replace(view, role=Role.TABLE) if again else view

    return replace(step, views=tuple(map(part, step.views)))
