"""Statements over few tuples with large arrays, spread over threads.

DuckDB gives one thread 122,880 rows of a table, so that a table of a hundred tuples with large
arrays keeps one busy. A UNION ALL over parts of the table has a pipeline for each part. They run at
once where nothing above asks for their order: an aggregation into groups does not, nor does a sort.
A join hands on what drives it, its probe side, and so that is what is cut. Which of two sides it is
the engine decides by their sizes; where these are alike, both are cut.

A part is a range of positions of one key, which is never NULL: each tuple is in one part, whatever
the table holds by then. (DuckDB's own numbers of rows would cut more evenly; but a user's column
may bear their name, and a table may have become a view, which has none, when the program runs.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ucle.foundation.engine_limits import DUCKDB_LIMITS
from ucle.foundation.tree_walk import fold
from ucle.plan.pass_context import PassContext, Spreading
from ucle.plan.steps import (
    Aggregate,
    Compute,
    Decompose,
    Join,
    MaskedJoin,
    Plan,
    Read,
    Relation,
    Role,
    Slices,
    Sorted,
    Step,
    TableScan,
    inputs,
    nodes,
    with_inputs,
)

SLICES = 12
"""How many slices cost as much as the cheapest statement that is cut: DuckDB plans each by itself,
which takes 0.4 ms."""

STATE_BYTES, SORTED_BYTES = 3e6, 16e6
"""Bytes of states that take as long to merge as that statement, and of tuples to sort."""

ALIKE = 8.0
"""Times the tuples of the other side that a side of a join has which surely drives it: of what a
filter leaves the engine knows no more than a share of a fifth for each."""

GAIN = 0.8
"""The share of a statement's time that may be left."""


def split_small_scans(plan: Plan, context: PassContext) -> Plan:
    """Cut the tables that drive the kernels of a statement, where it is long and they are short.

    What is not aggregated is sorted by its keys: DuckDB fills a table in the order in which its
    rows are made, one part after the other.
    """
    spreading = context.spreading
    if spreading is None or spreading.threads < 2:
        return plan
    tables = frozenset(step.name for step in plan.steps if step.role is Role.TABLE)
    steps = (
        _Statement(x, tables, spreading).sliced() if x.name in tables and not x.rounds else x
        for x in plan.steps
    )
    return replace(plan, steps=tuple(steps))


@dataclass(frozen=True)
class _Leaf:
    """The lower end of a pipeline.

    `owner` is the part of the statement that reads it, `tensor` what it holds. `grouping` has those
    of its axes by which the upper end groups. `whole` says that it cannot be cut.
    """

    owner: str
    relation: TableScan | Read
    tensor: str
    grouping: frozenset[int]
    whole: bool


@dataclass(frozen=True)
class _Statement:
    """A step with its views, the tables that there are, and what is known of them."""

    step: Step
    tables: frozenset[str]
    spreading: Spreading

    @property
    def parts(self) -> Mapping[str, Step]:
        """Its views and itself."""
        return {part.name: part for part in (*self.step.views, self.step)}

    def sliced(self) -> Step:
        """The step with those tables cut that are worth it."""
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

        def rewritten(part: Step) -> Step:
            def cut(relation: Relation, children: list[Relation]) -> Relation:
                same = with_inputs(relation, children)
                if isinstance(same, Aggregate) and (part.name, relation) in ends:
                    return replace(same, unordered=True) if same.operation else Sorted(same)
                return cuts.get((part.name, relation), same)

            relation = fold(part.relation, inputs, cut)
            notes = [_note(x) for x in nodes(relation) if isinstance(x, Slices)]
            comment = "; in ".join(dict.fromkeys([part.comment, *notes]))
            return replace(part, relation=relation, comment=comment)

        return replace(rewritten(self.step), views=tuple(map(rewritten, self.step.views)))

    def _gathers(self, part: Step, node: Aggregate) -> bool:
        """Whether a pipeline ends here: in groups, or in the table that the statement makes."""
        if node.operation is not None:
            return True
        return part is self.step and node is part.relation and bool(node.layout.promoted)

    def _cuts(self, part: Step, end: Aggregate) -> dict[tuple[str, Relation], Slices]:
        """The tables to cut of the pipeline that ends in a node."""
        leaves, steps = self._pipeline(part, end)
        if all(x.relation.layout.scalar for x in leaves):
            return {}  # numbers are worked on as fast as they are read
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
        """The tables that may drive the pipeline that ends in a node, and the steps on its way."""
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
        """By which key a table is cut, and how many positions that has.

        It is rather one that groups: slices have no groups in common then.
        """
        type_, layout = leaf.relation.type, leaf.relation.layout
        # Those of a tiled axis are the tiles.
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
        """How many slices are the fastest; 1 where none are."""
        threads, least = self.spreading.threads, self.spreading.least
        of = part.tensor, end.layout
        size = self.spreading.rows(*of) * self.spreading.payload(*of)
        each = least / SLICES + (size * least / STATE_BYTES if merged else 0.0)
        once = 0.0 if end.operation is not None else size * least / SORTED_BYTES
        # Where a repartition is beyond the memory, the cost has no end.
        number = math.isqrt(int(min(cost / each, threads**2))) if each else threads
        return number if number > 1 and cost / number + number * each + once <= GAIN * cost else 1


def _operands(node: Aggregate, names: set[str]) -> Iterator[tuple[Relation, frozenset[int]]]:
    """What a node reads, and the axes of each that have one of some labels."""
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
