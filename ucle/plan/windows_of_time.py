"""Aggregate over windows and steps of time without the pairs of times in them.

`ucle.rolling` with a length of time aggregates entries over pairs: of a time, and of each time in
its window (`ucle.plan.sources.TimePairs`). The number of pairs grows with the length of windows. A
window of SQL needs no pairs, and takes as long whatever the length is. It sees each time of each
fibre once, so that it takes over where there are not many more of these than pairs. `ucle.resample`
pairs steps with their times; the step of an entry follows from its time, without a join.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ucle.foundation.dtypes import same_value
from ucle.foundation.names import fold_name, unique_names
from ucle.ir.fills import JoinKind
from ucle.ir.maps import Cast
from ucle.ir.vertices import Vertex
from ucle.operators import SUM, WHEN, WHEN_HIGHEST, WHEN_LOWEST
from ucle.plan.pass_context import Meanings, PassContext
from ucle.plan.relation_nodes import (
    COUNTED,
    Aggregate,
    ColumnOfTimes,
    Compute,
    Densify,
    Join,
    MaskedJoin,
    Read,
    Relation,
    TableScan,
    WindowOfTimes,
)
from ucle.plan.sources import Nulls
from ucle.plan.steps import Plan, Role, Step

MOST_MORE = 4
"""The most rows of a window for each pair that it replaces, or for each entry."""

SELECTIONS = (WHEN, WHEN_HIGHEST, WHEN_LOWEST)
"""The ⊗ of a pair and an entry: the entry."""


def windows_of_time(plan: Plan, context: PassContext) -> Plan:
    """Replace aggregates over pairs of times by windows of SQL and groups of steps."""
    facts = context.meanings
    if facts is None or not any(_is_windows(step.relation) for step in plan.steps):
        return plan
    by_name = {step.name: step.relation for step in plan.steps}

    def rewrite(step: Step) -> Step:
        vertex = facts.vertices.get(step.tensor)
        if vertex is None or not isinstance(step.relation, Aggregate):
            return step
        found = _find_window(vertex, step.relation, by_name, facts)
        return step if found is None else replace(step, relation=found)

    return replace(plan, steps=_count_beside(tuple(map(rewrite, plan.steps)), by_name))


def _count_beside(steps: tuple[Step, ...], by_name: Mapping[str, Relation]) -> tuple[Step, ...]:
    """Count times beside the entries of the table that they are from, where both are wanted.

    So its rows are sorted or grouped once.
    """
    taken = {fold_name(step.name) for step in steps}
    made: dict[str, Step] = {}
    new: dict[str, Relation] = {}
    for step in steps:
        node = step.relation
        if not isinstance(node, WindowOfTimes) or (scan := _own_entries(node, by_name)) is None:
            continue
        count = next((x for x in steps if x.name not in new and _counts(x, node.times)), None)
        if count is None:
            continue
        both = replace(node, input=scan, counted=True)
        (name,) = unique_names([f"{step.name}_and_{COUNTED}"], taken)
        taken.add(fold_name(name))
        read = Read(name, step.tensor, node.type, node.layout)
        new[step.name] = ColumnOfTimes(read, None, node.type, node.layout)
        new[count.name] = ColumnOfTimes(read, COUNTED, count.relation.type, count.relation.layout)
        comment = f"{step.comment}, and the number of times"
        cost = step.cost + count.cost
        first = next(x.name for x in steps if x.name in (step.name, count.name))
        made[first] = Step(name, step.tensor, Role.TABLE, both, comment, cost)
    found: list[Step] = []
    for step in steps:
        if step.name in made:
            found.append(made[step.name])
        found.append(replace(step, relation=new[step.name], cost=0.0) if step.name in new else step)
    return tuple(found)


def _own_entries(node: WindowOfTimes, by_name: Mapping[str, Relation]) -> TableScan | None:
    """Return the scan of the entries of a window if its rows are those that have the times."""
    times, read = node.times.source.times, node.input
    if times is None or not times.unique or times.of is not None:
        return None
    if not isinstance(read, Read) or node.axes != (0,):
        return None
    scan = by_name[read.step]
    if not isinstance(scan, TableScan) or not scan.layout.scalar:
        return None
    source = scan.source
    plain = not (source.sum_duplicates or source.tiles or source.ragged) and source.has_entry_in_row
    same = source.origin == node.times.source.origin and source.keys == (times.column,)
    if not plain or not same or source.nulls is not Nulls.REFUSED or source.presence:
        return None
    return scan if times.kind == "window" or node.operation is SUM else None


def _counts(step: Step, times: TableScan) -> bool:
    """Return whether a step counts the times of some pairs."""
    node = step.relation
    return isinstance(node, WindowOfTimes) and node.input is None and node.times == times


def _is_windows(relation: Relation) -> bool:
    """Return whether a relation is the pairs of times or steps with the times in them."""
    if not isinstance(relation, TableScan) or relation.source.times is None:
        return False
    return relation.source.times.kind in ("window", "step") and relation.layout.scalar


def _find_windows(
    relation: Relation, by_name: Mapping[str, Relation]
) -> tuple[TableScan, str] | None:
    """Return the pairs that a relation has as its tuples, and the tensor of the pairs."""
    here, tensor = relation, ""
    while True:
        match here:
            case Read(step, tensor, column=None):
                here = by_name[step]
            case Densify(source):
                here = source
            case Aggregate(Compute(source, maps=(Cast(),)), operation=None):
                if isinstance(source, Join | MaskedJoin):
                    return None
                here = source  # true as a number
            case TableScan() if _is_windows(here):
                return here, tensor
            case _:
                return None


def _find_window(
    vertex: Vertex, relation: Aggregate, by_name: Mapping[str, Relation], facts: Meanings
) -> WindowOfTimes | None:
    """Return an aggregate over pairs as a window; None for all other vertices."""
    reduce, compute, layout = vertex.reduce, relation.input, relation.layout
    plain = vertex.is_product and relation.type.dtype.kind in "if"
    if reduce is None or not reduce.has_window or not layout.scalar or not plain:
        return None
    if isinstance(compute.input, Join):
        return _window_of_entries(vertex, relation, compute.input, by_name, facts)
    found = None if isinstance(compute.input, MaskedJoin) else _find_windows(compute.input, by_name)
    counted = reduce is SUM and len(compute.maps) == 1 and isinstance(compute.maps[0], Cast)
    if found is None or not counted or relation.labels != compute.labels[:1]:
        return None
    if relation.missing is not None:
        return None
    return WindowOfTimes(found[0], None, 0, (0,), reduce, relation.type, layout)


def _window_of_entries(
    vertex: Vertex,
    relation: Aggregate,
    joined: Join,
    by_name: Mapping[str, Relation],
    facts: Meanings,
) -> WindowOfTimes | None:
    """Return an aggregate of the entries at the times in windows as a window."""
    found, entries = _find_windows(joined.left, by_name), joined.right
    while isinstance(entries, Densify):
        entries = entries.input
    if found is None or vertex.combine not in SELECTIONS or not isinstance(entries, Read):
        return None
    pairs, pairs_name = found
    period, time = joined.left_labels
    if joined.right_labels.count(time) != 1 or period in joined.right_labels:
        return None
    named = tuple(period if x == time else x for x in joined.right_labels)
    if sorted(named) != sorted(relation.labels) or not entries.layout.scalar:
        return None
    same = entries.type.dtype is relation.type.dtype
    if not same or vertex.reduce is None:
        return None
    place, axes = named.index(period), tuple(named.index(x) for x in relation.labels)
    times = pairs.source.times
    if times is not None and times.kind == "step":
        if joined.kind is not JoinKind.INNER or entries is not joined.right or relation.missing:
            return None
        return WindowOfTimes(
            pairs, entries, place, axes, vertex.reduce, relation.type, relation.layout
        )
    # Each time of each fibre is a row of the window.
    rows, count = facts.rows(entries.tensor, entries.layout), pairs.type.shape[1]
    met = rows * facts.rows(pairs_name, pairs.layout) / max(count, 1)
    if math.prod(entries.type.shape) > MOST_MORE * max(rows, met):
        return None
    # A fibre without an entry is left out if its windows are worth the fill of the result.
    whole = len(named) == 1 or _fill_stays(vertex, entries.type.fill)
    read = entries if whole else Densify(entries)
    return WindowOfTimes(pairs, read, place, axes, vertex.reduce, relation.type, relation.layout)


def _fill_stays(vertex: Vertex, fill: complex) -> bool:
    """Return whether a window without an entry is worth the fill of the result."""
    assert vertex.reduce is not None
    if vertex.reduce.repeat is None:
        return False
    type_ = vertex.tensor.type
    return all(
        same_value(vertex.reduce.reduce_copies(fill, n, type_.dtype), type_.fill) for n in (1, 7)
    )
