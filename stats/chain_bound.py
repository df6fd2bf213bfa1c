"""The estimator of ucle's own profiles: occupancy, limited by the chain bound.

Occupancy multiplies probabilities, as if labels were independent; in a product of many sparse
factors its estimate can be too low by any factor. Degrees give an upper bound
(`ucle.stats.degrees`). The truth lies between the two: the estimate is their geometric mean, and
never more than the bound, which is `Rows.high`. Both are derived independently, occupancy from
occupancy and bounds from bounds.

Source: galley.txt, section 6.3.2, for the bound; the mean is ucle's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field, replace

from ucle.foundation.dataclasses import dataclass
from ucle.ir.axis_functions import TopK
from ucle.ir.fills import JoinKind, absorbed_sides
from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Vertex
from ucle.stats.axis_functions import every_entry
from ucle.stats.degrees import Degrees, both, either, unknown
from ucle.stats.estimate import DerivedVertex, Rows, Statistics
from ucle.stats.index_maps import entries_of_one
from ucle.stats.model import TensorStatistics
from ucle.stats.textbook import Occupancy, dense_rows, rule_of


@dataclass(frozen=True, eq=False)
class Bounded(Statistics):
    """Statistics with degrees, which are computed when first needed.

    Programs in which every tensor is one array are planned without degrees.
    """

    vertex: Vertex | None = field(default=None, kw_only=True)
    """The vertex that makes the tensor; None for an input."""
    operands: tuple[Statistics, ...] = field(default=(), kw_only=True, repr=False)
    degrees: list[Degrees] = field(default_factory=list, kw_only=True, repr=False)
    """The degrees, once they have been computed; copies of the statistics share the list."""
    limited: list[TensorStatistics] = field(default_factory=list, init=False, repr=False)
    """T and V limited by the bound, once they have been computed."""


@dataclass(frozen=True)
class ChainBound(Occupancy):
    """Occupancy with the chain bound. Bounds are of tuples that hold an entry."""

    def from_counts(self, type_: TensorType, counts: TensorStatistics) -> Statistics:
        """Statistics of an input."""
        return Bounded(type_, counts)

    def derive(self, vertex: Vertex, operands: tuple[Statistics, ...]) -> Statistics:
        """Return T and V as occupancy derives them, and degrees."""
        statistics = super().derive(vertex, operands)
        return Bounded(
            statistics.type, statistics.counts, statistics.derived, vertex=vertex, operands=operands
        )

    def counts(self, statistics: Statistics) -> TensorStatistics:
        """T and V, limited by the bound."""
        counts, rank = statistics.counts, len(statistics.type.shape)
        if statistics.derived is None or not rank:
            return counts
        assert isinstance(statistics, Bounded)
        if not statistics.limited:
            entries = self.tuples(statistics, Layout.of([True] * rank)).estimate
            entries = max(entries, 1.0) if counts.entries else 0.0
            distinct = tuple(min(v, entries) for v in counts.distinct)
            statistics.limited.append(replace(counts, entries=entries, distinct=distinct))
        return statistics.limited[0]

    def signature(self, statistics: Statistics) -> tuple[object, ...]:
        """What occupancy depends on, and the degrees, which limit it."""
        return *super().signature(statistics), *_degrees(statistics).constraints.items()

    def tuples(self, statistics: Statistics, layout: Layout) -> Rows:
        """Tuples of a tensor in a layout."""
        rows = super().tuples(statistics, layout)
        if rows.exact or not layout.promoted:
            return rows
        most = _degrees(statistics).most(_bits(layout.promoted))
        between = statistics.derived is not None
        return _bound_rows(rows, most, between=between)

    def estimate_join(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        """Tuples that the join of a vertex emits."""
        return _bound_rows(
            super().estimate_join(derived, decomposition), _get_join_bound(derived, decomposition)
        )

    def estimate_groups(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        """Tuples that are left after the aggregation of a vertex."""
        rows = self._estimate_aggregation(
            derived, decomposition, super().estimate_join(derived, decomposition)
        )
        if derived.vertex.top is not None:
            return rows
        most = _get_join_bound(derived, decomposition)
        if derived.vertex.aggregates(decomposition):
            promoted = decomposition.promoted
            promoted_labels = (label for label in derived.vertex.labels if label.name in promoted)
            most = min(most, math.prod(float(label.bound) for label in promoted_labels))
        return _bound_rows(rows, most)


def _bound_rows(rows: Rows, most: float, *, between: bool = True) -> Rows:
    """Return an estimate between occupancy's and the bound, or occupancy's limited by the bound."""
    estimate = math.sqrt(rows.estimate * most) if between else rows.estimate
    if math.isnan(estimate):  # 0 times infinity
        estimate = rows.estimate
    return Rows(max(min(estimate, most), rows.low), rows.low, min(rows.high, most))


def _degrees(statistics: Statistics) -> Degrees:
    """The degrees of a tensor, which may be thousands of vertices away from inputs."""
    waiting = [statistics]
    while waiting:
        current = waiting[-1]
        assert isinstance(current, Bounded)
        if current.degrees:
            waiting.pop()
            continue
        missing = [x for x in current.operands if isinstance(x, Bounded) and not x.degrees]
        waiting += missing
        if not missing:
            vertex = current.vertex
            degrees = (
                _convert_counts(current)
                if vertex is None
                else _derived_degrees(vertex, current.operands)
            )
            current.degrees.append(degrees)
    assert isinstance(statistics, Bounded)
    return statistics.degrees[0]


def _convert_counts(statistics: Statistics) -> Degrees:
    """The counted degrees of an input."""
    counts, sizes = statistics.counts, tuple(map(float, statistics.type.shape))
    if not (counts.exact or counts.largest or counts.close):
        return unknown(sizes)
    distinct = counts.distinct if counts.exact else ()
    return Degrees.from_counts(sizes, counts.entries, distinct, counts.largest)


def _bits(axes: Iterable[int]) -> int:
    return sum(1 << axis for axis in set(axes))


def _derived_degrees(vertex: Vertex, operands: tuple[Statistics, ...]) -> Degrees:
    """The degrees of a vertex's tensor, as if every label were promoted."""
    if vertex.index is not None:
        return _reindexed_degrees(vertex, _degrees(operands[0]))
    if vertex.along is not None:
        return _running_degrees(vertex, _degrees(operands[0]))
    if vertex.top is not None and vertex.top.stored_first:
        return _top_degrees(vertex, vertex.top, _degrees(operands[0]))
    if vertex.top is not None or vertex.pair is not None:
        counts = every_entry(vertex)
        return Degrees.from_counts(counts.distinct, counts.entries, counts.distinct)
    labels = vertex.all_labels
    place = {label: number for number, label in enumerate(labels)}
    sizes = [float(label.bound) for label in labels]
    sides = [
        _degrees(statistics).on(sizes, [place[label] for label in operand.labels])
        for statistics, operand in zip(operands, vertex.inputs, strict=True)
    ]
    joined = sides[0] if len(sides) == 1 else _joined_degrees(vertex, operands, sides)
    if labels == vertex.labels:
        return joined
    return joined.project_axes([place[label] for label in vertex.labels])


def _reindexed_degrees(vertex: Vertex, source: Degrees) -> Degrees:
    """The degrees of a tensor read by an index map: at most the entries made from each entry."""
    sizes = tuple(float(label.bound) for label in vertex.labels)
    assert vertex.index is not None
    entries = (
        math.prod(source.sizes) if vertex.index.dense else source.most((1 << len(source.sizes)) - 1)
    )
    if vertex.index.hit is not None:
        most = tuple(
            entries if x.name == vertex.index.hit else entries / max(x.bound, 1)
            for x in vertex.labels
        )
        return Degrees.from_counts(sizes, entries, sizes, most)
    each = entries_of_one(vertex)
    return Degrees.from_counts(sizes, min(entries * each, math.prod(sizes)), sizes)


def _running_degrees(vertex: Vertex, source: Degrees) -> Degrees:
    """The degrees of a scan along an axis: at most all entries of the fibres that are stored."""
    assert vertex.along is not None
    sizes = tuple(float(label.bound) for label in vertex.labels)
    others = [n for n, name in enumerate(vertex.names) if name not in vertex.along.labels]
    fibres = math.prod(sizes[n] for n in others)
    if not vertex.along.dense:
        fibres = min(fibres, source.most(_bits(others)) if others else 1.0)
    length = math.prod(size for n, size in enumerate(sizes) if n not in others)
    return Degrees.from_counts(sizes, fibres * length, sizes)


def _top_degrees(vertex: Vertex, top: TopK, source: Degrees) -> Degrees:
    """The degrees of a top-k that leaves out what is not stored: those of the entries it ranks."""
    sizes = tuple(float(label.bound) for label in vertex.labels)
    names = vertex.inputs[0].names
    kept = [axis for axis, name in enumerate(names) if name != top.label]
    every = _bits(range(len(names)))
    longest = min(sizes[-2], source.most(_bits([names.index(top.label)])))
    entries = min(source.most(every), (source.most(_bits(kept)) if kept else 1.0) * longest)
    distinct = *(source.most(_bits([axis])) for axis in kept), longest, 1.0
    largest = *(source.most(every, _bits([axis])) for axis in kept), entries, entries
    return Degrees.from_counts(sizes, entries, distinct, largest)


def _joined_degrees(
    vertex: Vertex, operands: tuple[Statistics, ...], sides: list[Degrees]
) -> Degrees:
    """The degrees of the pairs whose value differs from that of a pair of fills."""
    left, right = sides
    by_left, by_right = absorbed_sides(vertex, operands[0].type, operands[1].type)
    if by_left and by_right:
        return both(left, right)
    if by_left or by_right:
        return left if by_left else right
    return either(left, right)


def _get_join_bound(derived: DerivedVertex, decomposition: Decomposition) -> float:
    """The bound on a join, which is needed both before and after its aggregation."""
    promoted = decomposition.promoted
    if promoted not in derived.bounds:
        derived.bounds[promoted] = _most_joined(derived, decomposition)
    return derived.bounds[promoted]


def _most_joined(derived: DerivedVertex, decomposition: Decomposition) -> float:
    """An upper bound on the tuples with an entry that the join of a vertex emits.

    Sides are joined on promoted labels only: each side has its own copy of the other labels.
    """
    vertex, promoted = derived.vertex, decomposition.promoted
    axes = [
        [axis for axis, name in enumerate(operand.names) if name in promoted]
        for operand in vertex.inputs
    ]
    if vertex.index is not None:  # one array may be read for many keys
        places = [n for n, name in enumerate(vertex.names) if name in promoted]
        return _reindexed_degrees(vertex, _degrees(derived.operands[0])).most(_bits(places))
    if not any(axes):
        return 1.0
    if vertex.along is not None:
        return _running_degrees(vertex, _degrees(derived.operands[0])).most(_bits(axes[0]))
    degrees = [_degrees(operand) for operand in derived.operands]
    if len(axes) == 1:
        return degrees[0].most(_bits(axes[0]))
    left, right = vertex.inputs
    shared = {x for x in left.names if x in right.names and x in promoted}
    rule = rule_of(derived, decomposition)
    alone, following = [], []
    dense = rule.densify_left, rule.densify_right
    for operand, own, operand_degrees, densified in zip(
        vertex.inputs, axes, degrees, dense, strict=True
    ):
        if densified:
            alone.append(dense_rows(operand, promoted))
            following.append(dense_rows(operand, promoted - shared))
        else:
            common = [axis for axis in own if operand.names[axis] in shared]
            alone.append(operand_degrees.most(_bits(own)))
            following.append(operand_degrees.most(_bits(own), _bits(common)))
    # A row that survives without a partner counts as one row, and a partner has at least one.
    left_first = alone[0] * max(following[1], 1.0)
    right_first = alone[1] * max(following[0], 1.0)
    match rule.kind:
        case JoinKind.INNER:
            return min(alone[0] * following[1], alone[1] * following[0])
        case JoinKind.LEFT:
            return left_first
        case JoinKind.RIGHT:
            return right_first
        case JoinKind.FULL:
            return min(left_first + alone[1], right_first + alone[0])
