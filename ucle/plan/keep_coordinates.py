"""Keep the coordinates of rows as keys where nothing needs their positions.

A dictionary numbers the values of a key column, and each scan looks the numbers up. For a million
rows that takes longer than most of what a program makes of them. Where each step takes such keys
over as they are, joins them or aggregates them away, they stay coordinates; a result numbers its
keys when a reader asks for positions (`ucle.run.number_keys`).

What goes in: a plan after all passes, for an execution whose results can do that. What comes out:
the plan without the dictionaries that nothing looks up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from ucle.foundation.tree_walk import fold
from ucle.ir.layouts import Level
from ucle.plan.every_tuple import has_every_tuple
from ucle.plan.relation_nodes import (
    Aggregate,
    ColumnExpressions,
    ColumnOfTimes,
    MaskedJoin,
    PairedScan,
    Read,
    Relation,
    TableScan,
    WindowOfTimes,
)
from ucle.plan.relation_tree import inputs, nodes, with_inputs
from ucle.plan.sources import Names
from ucle.plan.steps import Plan, Step


def keep_coordinates(plan: Plan) -> Plan:
    """Return the plan without dictionaries that nothing looks up.

    Those whose coordinates are keys of results instead are in `Plan.unnumbered`.
    """
    if not plan.dictionaries:
        return plan
    relations = dict(_relations(plan))
    kept = {
        each.name: next(iter(_results(plan, each.name)), None)
        for each in plan.dictionaries
        if _is_kept(plan, each.name, relations)
    }
    looked_up = {
        x.type.axes[axis].dictionary
        for relation in relations.values()
        for x in nodes(relation)
        if isinstance(x, TableScan)
        for axis in _numbered_axes(x)
    }
    shown = {*plan.shown_dictionaries, *looked_up} - kept.keys()
    dictionaries = tuple(x for x in plan.dictionaries if x.name in shown)
    if len(dictionaries) == len(plan.dictionaries):
        return plan
    steps = tuple(_keep(step, kept) for step in plan.steps)
    unnumbered = {name: result for name, result in kept.items() if result is not None}
    return replace(plan, steps=steps, dictionaries=dictionaries, unnumbered=unnumbered)


def _relations(plan: Plan) -> Iterator[tuple[str, Relation]]:
    """Yield the relations of all steps by name; those of rounds have names that no step reads."""
    for step in plan.steps:
        for part in (*step.views, step):
            yield part.name, part.relation
        for number, each in enumerate(step.rounds):
            for table in each.tables:
                for part in (*table.views, table):
                    yield part.name, part.relation
            for view in each.views:
                yield view.name, view.relation
            yield f"{step.name} {number}", each.relation


def _numbered_axes(scan: TableScan) -> Iterator[int]:
    """Yield the axes along which a table looks positions up."""
    source = scan.source
    if isinstance(source.origin, Names):
        yield from range(scan.type.rank)
    keyed = source.layout if scan.gathers else scan.layout
    for number, axis in enumerate(keyed.promoted):
        if source.is_encoded(number) or source.kept_as is not None:
            yield axis
    if source.placed:
        yield scan.type.rank - 1


def _results(plan: Plan, name: str) -> list[str]:
    """Return the results that have an axis of a dictionary."""
    return [x for x, read in plan.outputs.items() if _axes_of(read, name)]


def _is_kept(plan: Plan, name: str, relations: Mapping[str, Relation]) -> bool:
    """Return whether no position is needed, and each result has all values of a dictionary."""
    if name in plan.positions_in.values() or any(step.rounds for step in plan.steps):
        return False
    if not all(_takes_over(x, name) for each in relations.values() for x in nodes(each)):
        return False
    for result in _results(plan, name):
        read = plan.outputs[result]
        alone = len(read.layout.promoted) == 1 and read.column is None
        if not alone or not has_every_tuple(read, relations, plan.dictionaries):
            return False
    return True


def _axes_of(relation: Relation, name: str) -> list[int]:
    return [n for n, axis in enumerate(relation.type.axes) if axis.dictionary == name]


def _takes_over(relation: Relation, name: str) -> bool:
    """Return whether keys of a dictionary stay as they are, are compared or aggregated away."""
    axes = _axes_of(relation, name)
    if not axes and not any(_axes_of(each, name) for each in inputs(relation)):
        return True
    if any(relation.layout.levels[axis] is not Level.PROMOTED for axis in axes):
        return False
    match relation:
        case Read() | PairedScan() | ColumnExpressions() | WindowOfTimes() | ColumnOfTimes():
            return True
        case TableScan(source):
            return source.kept_as is None and not source.tiles
        case Aggregate(compute):
            return not isinstance(compute.input, MaskedJoin)
    return False


def _keep(step: Step, kept: Collection[str]) -> Step:
    """Return a step whose tables keep coordinates."""

    def keep_in(relation: Relation, children: list[Relation]) -> Relation:
        same = with_inputs(relation, children)
        if not isinstance(same, TableScan):
            return same
        axes = (n for n, axis in enumerate(same.type.axes) if axis.dictionary in kept)
        promoted = frozenset(axes) & set(same.layout.promoted)
        return replace(same, unnumbered=promoted) if promoted else same

    def rewrite(part: Step) -> Step:
        return replace(part, relation=fold(part.relation, inputs, keep_in))

    if not kept:
        return step
    return replace(rewrite(step), views=tuple(map(rewrite, step.views)))
