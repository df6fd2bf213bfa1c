"""Split scans of few tuples with large arrays, so that statements run on several threads.

DuckDB gives each thread 122,880 rows of a table, so that a table of a hundred tuples with large
arrays keeps only one thread busy. A UNION ALL over parts of the table has a pipeline for each part.
The pipelines run at once if nothing above needs their order; an aggregation into groups does not,
nor does a sort. A join is driven by its probe side, so that side is split. The engine chooses the
probe side by the sizes of the two sides; if these are similar, both are split.

A part is a range of positions of one key, which is never NULL: each tuple is in one part, whatever
the table holds when the program runs. (DuckDB's own row numbers would split more evenly. But a
user's column may have their name, and a table may have become a view, which has none, when the
program runs.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.tree_walk import fold
from ucle.plan.pass_context import PassContext, Spreading
from ucle.plan.relation_nodes import (
    Aggregate,
    Compute,
    Decompose,
    Join,
    MaskedJoin,
    Read,
    Relation,
    Slices,
    Sorted,
    TableScan,
)
from ucle.plan.relation_tree import inputs, nodes, with_inputs
from ucle.plan.resources import DUCKDB_LIMITS
from ucle.plan.steps import Plan, Role, Step

SLICES = 12
"""The number of slices that cost as much as the cheapest statement that is split: DuckDB plans each
slice by itself, which takes 0.4 ms."""

STATE_BYTES, SORTED_BYTES = 3e6, 16e6
"""The bytes of states that take as long to merge as that statement, and of tuples to sort."""

ALIKE = 8.0
"""A side of a join surely drives it if it has this many times the tuples of the other side. (After
a filter, the engine only assumes a share of a fifth for each side.)"""

GAIN = 0.8
"""The largest share of a statement's time that may remain after splitting."""


def split_small_scans(plan: Plan, context: PassContext) -> Plan:
    """Split the tables that drive the kernels of a long statement and have few tuples.

    If nothing is aggregated, the result is sorted by its keys: DuckDB fills a table in the order in
    which its rows are made, one part after the other.
    """
    spreading = context.spreading
    if spreading is None or spreading.threads < 2:
        return plan
    tables = frozenset(step.name for step in plan.steps if step.role is Role.TABLE)
    steps = (
        _Statement(x, tables, spreading).slice_scans() if x.name in tables and not x.rounds else x
        for x in plan.steps
    )
    return replace(plan, steps=tuple(steps))


@dataclass(frozen=True)
class _Leaf:
    """The lower end of a pipeline.

    `owner` is the part of the statement that reads it, `tensor` the tensor that it holds.
    `grouping` has the axes by which the upper end groups. `whole` is True if it cannot be split.
    """

    owner: str
    relation: TableScan | Read
    tensor: str
    grouping: frozenset[int]
    whole: bool


@dataclass(frozen=True)
class _Statement:
    """A step with its views, the tables that exist, and the statistics for spreading."""

    step: Step
    tables: frozenset[str]
    spreading: Spreading

    @property
    def parts(self) -> Mapping[str, Step]:
        """The views of the step, and the step itself, by name."""
        return {part.name: part for part in (*self.step.views, self.step)}

    def slice_scans(self) -> Step:
        """Return the step with the tables split for which that pays."""
        cuts: dict[tuple[str, Relation], Slices] = {}
        ends: set[tuple[str, Relation]] = set()
        for part in self.parts.values():
            for node in nodes(part.relation):
                if isinstance(node, Aggregate) and self._gathers(part, node):
                    of_node = self._cuts(part, node)
                    cuts.update(of_node)
                    ends.update([(part.name, node)] if of_node else [])
        if not cuts:
            return self.step

        def rewrite_part(part: Step) -> Step:
            def cut(relation: Relation, children: list[Relation]) -> Relation:
                same = with_inputs(relation, children)
                if isinstance(same, Aggregate) and (part.name, relation) in ends:
                    return replace(same, unordered=True) if same.operation else Sorted(same)
                return cuts.get((part.name, relation), same)

            relation = fold(part.relation, inputs, cut)
            notes = [_note(x) for x in nodes(relation) if isinstance(x, Slices)]
            comment = "; in ".join(dict.fromkeys([part.comment, *notes]))
            return replace(part, relation=relation, comment=comment)

        return replace(rewrite_part(self.step), views=tuple(map(rewrite_part, self.step.views)))

    def _gathers(self, part: Step, node: Aggregate) -> bool:
        """Return whether a pipeline ends here: in groups, or in the statement's table."""
        if node.operation is not None:
            return True
        return part is self.step and node is part.relation and bool(node.layout.promoted)

    def _cuts(self, part: Step, end: Aggregate) -> dict[tuple[str, Relation], Slices]:
        """Return the tables to split in the pipeline that ends in a node."""
        leaves, steps = self._pipeline(part, end)
        if all(x.relation.layout.scalar for x in leaves):
            return {}  # computing on numbers is as fast as reading them
        rows = [self.spreading.rows(x.tensor, x.relation.layout) for x in leaves]
        most = max(rows)
        cost = sum(step.cost for step in steps)
        long = most >= self.spreading.threads * DUCKDB_LIMITS.rows_a_thread
        if long or cost < self.spreading.least:
            return {}
        cuts: dict[tuple[str, Relation], Slices] = {}
        for leaf, count in zip(leaves, rows, strict=True):
            if leaf.whole or count * ALIKE < most:
                continue
            axis, positions = self._axis(leaf)
            merged = end.operation is not None and axis not in leaf.grouping
            number = min(int(positions), self._number(part, end, cost, merged=merged))
            if number > 1:
                bound = leaf.relation.type.key_range(leaf.relation.layout, axis)
                starts = tuple(n * bound // number for n in range(1, number))
                cuts[leaf.owner, leaf.relation] = Slices(leaf.relation, axis, starts)
        return cuts

    def _pipeline(self, part: Step, end: Aggregate) -> tuple[list[_Leaf], list[Step]]:
        """Return the tables that may drive the pipeline that ends in a node, and its steps."""
        grouped = {end.labels[axis] for axis in end.layout.promoted}
        leaves, steps = list[_Leaf](), [part]
        waiting = [(part, relation, axes) for relation, axes in _operands(end, grouped)]
        while waiting:
            owner, relation, axes = waiting.pop()
            match relation:
                case Read(name) if (view := self.parts.get(name)) and view.role is Role.VIEW:
                    steps.append(view)
                    waiting.append((view, view.relation, axes))
                case Read(name, tensor):
                    whole = name in self.parts or name not in self.tables
                    leaves.append(_Leaf(owner.name, relation, tensor, axes, whole))
                case TableScan(source):
                    whole = source.sum_duplicates or source.symmetric or not source.table
                    leaves.append(_Leaf(owner.name, relation, owner.tensor, axes, whole))
                case Decompose(source):
                    waiting.append((owner, source, axes))
                case Aggregate(_, None, labels):
                    names = {labels[axis] for axis in axes}
                    waiting += [(owner, *operand) for operand in _operands(relation, names)]
        return [x for x in leaves if x.relation.layout.promoted], steps

    def _axis(self, leaf: _Leaf) -> tuple[int, float]:
        """Return the key by which a table is split, and its number of positions.

        A key that groups is preferred: then slices have no groups in common.
        """
        type_, layout = leaf.relation.type, leaf.relation.layout
        # Positions of a tiled axis are its tiles.
        positions = {
            axis: min(count, type_.key_range(layout, axis))
            for axis, count in enumerate(self.spreading.positions(leaf.tensor))
        }
        threads = self.spreading.threads
        best = max(
            layout.promoted,
            key=lambda axis: (
                min(positions[axis], threads),
                axis in leaf.grouping,
                positions[axis],
            ),
        )
        return best, positions[best]

    def _number(self, part: Step, end: Aggregate, cost: float, *, merged: bool) -> int:
        """Return the fastest number of slices; 1 if splitting does not pay."""
        threads, least = self.spreading.threads, self.spreading.least
        of = part.tensor, end.layout
        size = self.spreading.rows(*of) * self.spreading.payload(*of)
        each = least / SLICES + (size * least / STATE_BYTES if merged else 0.0)
        once = 0.0 if end.operation is not None else size * least / SORTED_BYTES
        # The cost is infinite if a repartition exceeds the memory.
        number = math.isqrt(int(min(cost / each, threads**2))) if each else threads
        return number if number > 1 and cost / number + number * each + once <= GAIN * cost else 1


def _operands(node: Aggregate, names: set[str]) -> Iterator[tuple[Relation, frozenset[int]]]:
    """Yield the relations that a node reads, each with its axes that have one of some labels."""
    compute: Compute = node.input
    if isinstance(compute.input, Join):
        joined = compute.input
        sides = [(joined.left, joined.left_labels), (joined.right, joined.right_labels)]
    elif isinstance(compute.input, MaskedJoin):
        masked = compute.input
        sides = [
            (masked.mask, masked.labels),
            (masked.left, masked.left_labels),
            (masked.right, masked.right_labels),
        ]
    else:
        sides = [(compute.input, compute.labels)]
    for relation, labels in sides:
        yield relation, frozenset(n for n, label in enumerate(labels) if label in names)


def _note(cut: Slices) -> str:
    return f"{len(cut.starts) + 1} slices by {cut.type.axes[cut.axis].name}"
