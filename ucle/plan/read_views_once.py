"""Read a view of the database once, however many steps read it.

DuckDB computes a view for each of its readers, and what it computes may differ: sums of floats are
added in another order, ``random()`` goes on, a table of another system has changed. ``X > max(X)``
is to compare entries of one state of X. So a view that several parts of a statement read is kept
within it, and one that several statements read becomes a table. A view that would take too much of
the memory is read again.

What goes in: a plan whose steps are statements, with the views of a plan inside. What comes out:
the plan in which each scan of a view of the database is read by one step, or is kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import TableScan
from ucle.plan.relation_tree import reads
from ucle.plan.steps import Plan, Role, Step


def read_views_once(plan: Plan, context: PassContext) -> Plan:
    """Return the plan with tables in place of scans of views that are read several times."""
    memory = context.memory
    computed = [part for step in plan.steps for part in step.views if _is_computed(part)]
    scans = {
        part.name: part
        for part in computed
        if memory is None or memory.holds(part.tensor, part.relation.layout)
    }
    if not scans:
        return plan
    statements = Counter(x.name for step in plan.steps for x in step.views if x.name in scans)
    apart = {name for name, count in statements.items() if count > 1}
    steps = dict[str, Step]()
    for step in plan.steps:
        for view in step.views:
            if view.name in apart:
                steps.setdefault(view.name, _as_table(scans[view.name]))
        often = _evaluations(step)
        kept = {name for name in scans if often[name] > 1}
        views = (_as_table(x) if x.name in kept else x for x in step.views if x.name not in apart)
        made = _as_table(step) if step.name in apart else step
        steps[step.name] = replace(made, views=tuple(views))
    return replace(plan, steps=tuple(steps.values()))


def _evaluations(step: Step) -> Counter[str]:
    """Return how often a statement evaluates its views, by those that read them."""
    often = Counter({step.name: 1})
    for part in (step, *reversed(step.views)):
        once = part.role is Role.TABLE
        for name in reads(part.relation):
            often[name] += 1 if once else often[part.name]
    return often


def _as_table(step: Step) -> Step:
    return replace(step, role=Role.TABLE)


def _is_computed(step: Step) -> bool:
    return isinstance(step.relation, TableScan) and step.relation.source.computed
