"""The textbook's estimator: the paper's formulas, as printed, and with Equation 7 throughout.

The formulas are those printed in sections 7.1 and 7.2 of sparse_einsum.txt, with two corrections
that keep them within possible values: Equation 7 is exact at both ends and clamped between them,
and an aggregation that merges nothing keeps the size of its input. `Occupancy`, the estimator of
ucle's own profiles, takes Equation 7 for aggregations, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Set
from itertools import product

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.tree_walk import Calls, run
from ucle.ir.fills import JoinKind, JoinRule, join_rule
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Operand, Vertex
from ucle.stats.axis_functions import every_entry, running_counts, top_counts, top_rows
from ucle.stats.estimate import DerivedVertex, Rows, Statistics
from ucle.stats.index_maps import estimate_occupied, reindexed_counts
from ucle.stats.model import TensorStatistics
from ucle.stats.supports import common_axes, find_support

MANY_LABELS = 6
"""Labels of a tensor from which on one estimate is computed instead of the better of two."""


@dataclass(frozen=True)
class Textbook:
    """The paper's estimator over measured statistics of the inputs (`ucle.stats.estimate`)."""

    def from_counts(self, type_: TensorType, counts: TensorStatistics) -> Statistics:
        """Statistics of an input."""
        return Statistics(type_, counts)

    def counts(self, statistics: Statistics) -> TensorStatistics:
        """T and V of a tensor."""
        return statistics.counts

    def signature(self, statistics: Statistics) -> tuple[object, ...]:
        """T, V, and the tuples in all layouts, of which there are 2^axes."""
        layouts = map(Layout.of, product((False, True), repeat=statistics.type.rank))
        rows = tuple(Textbook.tuples(self, statistics, layout) for layout in layouts)
        return statistics.counts, statistics.derived is None, rows

    def derive(self, vertex: Vertex, operands: tuple[Statistics, ...]) -> Statistics:
        """T and V of a vertex's tensor, as if every label were promoted (GetStats)."""
        derived = DerivedVertex(vertex, operands, find_support(vertex, operands))
        if vertex.index is not None:
            counts = reindexed_counts(vertex, self.counts(operands[0]))
            return Statistics(vertex.tensor.type, counts, derived)
        if vertex.along is not None:
            counts = self._running_counts(vertex, operands[0])
            return Statistics(vertex.tensor.type, counts, derived)
        if vertex.top is not None:
            counts = self._top_counts(vertex, operands[0])
            return Statistics(vertex.tensor.type, counts, derived)
        if vertex.pair is not None:
            return Statistics(vertex.tensor.type, every_entry(vertex), derived)
        cells = math.prod(float(label.bound) for label in vertex.labels)
        entries = min(run(self._projected_rows(derived, set(vertex.names))), cells)
        if 0 < entries < 1:
            # With a fraction of a tuple, everything that holds whole arrays would appear cheap.
            entries = 1.0
        distinct = tuple(
            min(self._label_distinct(derived, label.name), entries) for label in vertex.labels
        )
        return Statistics(vertex.tensor.type, TensorStatistics(entries, distinct), derived)

    def _running_counts(self, vertex: Vertex, source: Statistics) -> TensorStatistics:
        assert vertex.along is not None
        others = (n for n, name in enumerate(vertex.names) if name not in vertex.along.labels)
        return running_counts(vertex, _promoted_rows(source.counts, tuple(others)).estimate)

    def _top_counts(self, vertex: Vertex, source: Statistics) -> TensorStatistics:
        assert vertex.top is not None
        counts, names = self.counts(source), vertex.inputs[0].names
        others = tuple(n for n, name in enumerate(names) if name != vertex.top.label)
        return top_counts(vertex, counts, _promoted_rows(counts, others).estimate)

    def tuples(self, statistics: Statistics, layout: Layout) -> Rows:
        """Tuples of a tensor in a layout.

        Equation 7 uses only T and V and takes entries to lie anywhere. For a tensor that a vertex
        makes, more is known: its tuples are those of its operands in the same layout, joined. The
        smaller of the two estimates is used. (An edge list that scales dense vectors has one tuple
        for each edge; by Equation 7 alone it would have nearly one for each pair of vertices.)
        """
        cached = statistics.rows.get(layout.promoted)
        return run(self._find_rows(statistics, layout)) if cached is None else cached

    def estimate_join(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        """T_join of section 7.2; outer joins and densified sides count as the rows they emit."""
        cached = derived.joined.get(decomposition.promoted)
        return run(self._find_joined(derived, decomposition)) if cached is None else cached

    def estimate_groups(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        """T_agg of section 7.2; equal to T_join where no promoted label is aggregated."""
        joined = self.estimate_join(derived, decomposition)
        return self._estimate_aggregation(derived, decomposition, joined)

    def occupied_groups(self, joined: float, possible: float) -> float:
        """Groups that an aggregation of `joined` tuples leaves of `possible` ones."""
        return min(joined / 2 if joined > 1 else joined, possible)

    # The entries of a tensor follow from its operands, back to the inputs of the program, which may
    # be thousands of vertices away: hence `ucle.foundation.tree_walk`.

    def _find_rows(self, statistics: Statistics, layout: Layout) -> Calls[Rows]:
        promoted = layout.promoted
        if promoted not in statistics.rows:
            counts, derived = statistics.counts, statistics.derived
            rows = _promoted_rows(counts, promoted)
            if derived is not None and promoted and derived.vertex.is_product:
                kept = {derived.vertex.labels[axis].name for axis in promoted}
                joined = min(rows.estimate, (yield self._projected_rows(derived, kept)))
                least = max(counts.distinct[axis] for axis in promoted)
                rows = Rows(max(joined, least), rows.low, rows.high)
            statistics.rows[promoted] = rows
        return statistics.rows[promoted]

    def _projected_rows(self, derived: DerivedVertex, kept: Set[str]) -> Calls[float]:
        """Tuples of a vertex's tensor when `kept` of its labels are promoted.

        Aggregated labels may be counted entry by entry and grouped, or left inside the arrays,
        where they make no tuples. Either estimate can be far too high, and neither is much too low.
        For a tensor of many labels only the likelier one is computed: a chain of vertices would
        branch at each of them.
        """
        vertex = derived.vertex
        apart = every = vertex.decomposition(kept)
        if vertex.reduced:
            every = vertex.decomposition(kept | {label.name for label in vertex.reduced})
        if len(vertex.labels) > MANY_LABELS:
            likelier = every if len(kept) == len(vertex.labels) else apart
            rows: float = yield self._find_grouped(derived, likelier)
            return rows
        inside: float = yield self._find_grouped(derived, apart)
        grouped: float = yield self._find_grouped(derived, every)
        return min(inside, grouped)

    def _find_grouped(self, derived: DerivedVertex, decomposition: Decomposition) -> Calls[float]:
        cached = derived.joined.get(decomposition.promoted)
        joined: Rows = (
            (yield self._find_joined(derived, decomposition)) if cached is None else cached
        )
        return self._estimate_aggregation(derived, decomposition, joined).estimate

    def _estimate_aggregation(
        self, derived: DerivedVertex, decomposition: Decomposition, joined: Rows
    ) -> Rows:
        vertex = derived.vertex
        if vertex.top is not None and vertex.top.stored_first:
            made = vertex.makes(decomposition).promoted
            return _promoted_rows(self._top_counts(vertex, derived.operands[0]), made)
        if vertex.top is not None:
            return top_rows(vertex, decomposition)
        if not vertex.aggregates(decomposition):
            return joined
        groups, promoted = 1.0, decomposition.promoted
        for label in vertex.labels:
            if label.name in promoted:
                groups *= self._label_distinct(derived, label.name)
        return Rows.from_guess(self.occupied_groups(joined.estimate, groups))

    def _find_joined(self, derived: DerivedVertex, decomposition: Decomposition) -> Calls[Rows]:
        promoted = decomposition.promoted
        if promoted not in derived.joined:
            rows = yield self._join_rows(derived, decomposition)
            derived.joined[promoted] = Rows.from_guess(rows)
        return derived.joined[promoted]

    def _join_rows(self, derived: DerivedVertex, decomposition: Decomposition) -> Calls[float]:
        vertex = derived.vertex
        if vertex.index is not None:
            counts = reindexed_counts(vertex, self.counts(derived.operands[0]))
            layout = vertex.makes(decomposition)
            return _promoted_rows(counts, layout.promoted).estimate
        if vertex.along is not None:
            counts = self._running_counts(vertex, derived.operands[0])
            return _promoted_rows(counts, vertex.makes(decomposition).promoted).estimate
        left_rows: float
        if len(vertex.inputs) == 1:
            left_rows = yield self._operand_rows(derived, 0, decomposition)
            return left_rows
        left, right = vertex.inputs
        rule, promoted = rule_of(derived, decomposition), decomposition.promoted
        left_rows = yield self._operand_rows(derived, 0, decomposition)
        right_rows: float = yield self._operand_rows(derived, 1, decomposition)
        if rule.densify_left:
            left_rows = dense_rows(left, promoted)
        if rule.densify_right:
            right_rows = dense_rows(right, promoted)
        matches = left_rows * right_rows
        shared = list(dict.fromkeys(x for x in left.names if x in right.names and x in promoted))
        densified = rule.densify_left or rule.densify_right
        within = None if densified else common_axes(vertex, derived.operands, shared)
        if within is not None:
            root, axes = within
            kept = Layout.of(axis in axes.values() for axis in range(root.type.rank))
            places: Rows = yield self._find_rows(root, kept)
            matches /= max(places.estimate, 1.0)
            shared = [label for label in shared if label not in axes]
        for label in shared:
            wider = max(_distinct(derived, 0, label), _distinct(derived, 1, label), 1.0)
            if densified:
                wider = max(wider, _bound(left, label))
            matches /= wider
        match rule.kind:
            case JoinKind.INNER:
                return matches
            case JoinKind.LEFT:
                return max(matches, left_rows)
            case JoinKind.RIGHT:
                return max(matches, right_rows)
            case JoinKind.FULL:
                return max(left_rows + right_rows - matches, left_rows, right_rows)

    def _operand_rows(
        self, derived: DerivedVertex, side: int, decomposition: Decomposition
    ) -> Calls[float]:
        layout = derived.vertex.reads(decomposition)[side]
        cached = derived.operands[side].rows.get(layout.promoted)
        rows: Rows = (
            (yield self._find_rows(derived.operands[side], layout)) if cached is None else cached
        )
        return rows.estimate

    def _label_distinct(self, derived: DerivedVertex, label: str) -> float:
        """Distinct values of a label after the join."""
        if label not in derived.distinct:
            derived.distinct[label] = _joined_distinct(derived, label)
        return derived.distinct[label]


def _joined_distinct(derived: DerivedVertex, label: str) -> float:
    inputs = derived.vertex.inputs
    if len(inputs) == 1:
        return _distinct(derived, 0, label)
    rule = rule_of(derived, derived.vertex.all_promoted)
    values = [
        _bound(operand, label) if densified else _distinct(derived, side, label)
        for side, (operand, densified) in enumerate(
            zip(inputs, (rule.densify_left, rule.densify_right), strict=True)
        )
        if label in operand.names
    ]
    return min(values) if rule.kind is JoinKind.INNER else max(values)


def rule_of(derived: DerivedVertex, decomposition: Decomposition) -> JoinRule:
    """The rule by which a binary vertex is joined under a decomposition."""
    left, right = derived.operands
    return join_rule(derived.vertex, left.type, right.type, decomposition)


def _distinct(derived: DerivedVertex, side: int, label: str) -> float:
    axis = derived.vertex.inputs[side].names.index(label)
    return derived.operands[side].counts.distinct[axis]


def _bound(operand: Operand, label: str) -> float:
    return float(operand.labels[operand.names.index(label)].bound)


def dense_rows(operand: Operand, promoted: Collection[str]) -> float:
    """Tuples of an operand that is made dense."""
    bounds = {label: float(label.bound) for label in operand.labels if label.name in promoted}
    return math.prod(bounds.values())


def _promoted_rows(statistics: TensorStatistics, promoted: tuple[int, ...]) -> Rows:
    entries = statistics.entries
    if not entries:
        return Rows(0, 0, 0)
    if not promoted:
        return Rows(1, 1, 1)
    if len(promoted) == len(statistics.distinct):
        return _interval(entries, entries, entries, statistics.exact)
    values = [statistics.distinct[axis] for axis in promoted]
    if len(values) == 1:
        return _interval(values[0], values[0], values[0], statistics.exact)
    possible = math.prod(values)
    low, high = max(values), min(entries, possible)
    return _interval(
        min(max(estimate_occupied(entries, possible), low), high), low, high, statistics.exact
    )


def _interval(estimate: float, low: float, high: float, exact: bool) -> Rows:
    return Rows(estimate, low, high) if exact else Rows.from_guess(estimate)


@dataclass(frozen=True)
class Occupancy(Textbook):
    """Counts the groups that T tuples occupy of n possible ones.

    T_agg as printed halves its input wherever all of it would fit: after a join with a diagonal
    matrix, where the aggregation in fact merges nothing, every estimate is half of the last.
    Equation 7, which the paper uses for decompositions, answers the same question. After the two
    diagonal joins of graph convolution it is right, where halving is off by a factor of 4.
    """

    def occupied_groups(self, joined: float, possible: float) -> float:
        """Groups that an aggregation of `joined` tuples leaves of `possible` ones."""
        return min(estimate_occupied(joined, possible), joined)
