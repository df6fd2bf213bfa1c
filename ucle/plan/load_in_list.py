"""Hand over large arrays from memory in a list, where cross joins get them by reference.

DuckDB copies an array that it puts into a list, and the list once more for a cross join. In
Arrow's memory an array is an element of a list without being copied.

What goes in: a plan in which cross joins get large arrays by reference (`pass_by_reference`). What
comes out: the plan whose arrays from memory lie in lists where they are read like that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ucle.foundation.tree_walk import fold
from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import LISTED, ByReference, Load, Read, Relation
from ucle.plan.relation_tree import inputs, nodes, with_inputs
from ucle.plan.steps import Plan, Step


def load_in_list(plan: Plan, context: PassContext) -> Plan:
    """Return the plan with `listed` arrays, which are read by reference as they are."""
    loads = {step.name for step in plan.steps if _is_array(step.relation)}
    listed = loads & {name for step in plan.steps for name in _read_by_reference(step)}
    if not listed:
        return plan
    return replace(plan, steps=tuple(_in_list(step, listed) for step in plan.steps))


def _is_array(relation: Relation) -> bool:
    return isinstance(relation, Load) and relation.layout.plain and not relation.layout.promoted


def _read_by_reference(step: Step) -> Iterator[str]:
    for node in nodes(step.relation):
        match node:
            case ByReference(Read(name, column=None)):
                yield name
    for view in step.views:
        yield from _read_by_reference(view)


def _in_list(step: Step, listed: Collection[str]) -> Step:
    if isinstance(step.relation, Load) and step.name in listed:
        return replace(step, relation=replace(step.relation, listed=True))

    def rewrite(relation: Relation, children: list[Relation]) -> Relation:
        match relation, children:
            case ByReference(), [Read(name, column=None) as read] if name in listed:
                return ByReference(replace(read, column=LISTED))
        return with_inputs(relation, children)

    relation = fold(step.relation, inputs, rewrite)
    views = tuple(_in_list(view, listed) for view in step.views)
    return replace(step, relation=relation, views=views)
