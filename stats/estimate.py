"""Estimated sizes: of intermediate tensors, of decompositions, of joins and aggregations.

The formulas are the textbook's, as sparse_einsum.txt prints them in sections 7.1 and 7.2, with two
corrections that keep them inside what is possible: Equation 7 is exact at both ends and clamped
between them, and an aggregation that aggregates nothing keeps its input's size. Other estimators
implement `Estimator`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from typing import Protocol

from ucle.foundation.stackless import Calls, run
from ucle.ir.fills import JoinKind, join_rule
from ucle.ir.layouts import Layout
from ucle.ir.vertices import Operand, Program, Vertex
from ucle.stats.model import TensorStatistics


@dataclass(frozen=True)
class Rows:
    """A number of tuples: the estimate and the interval it must lie in."""

    estimate: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether nothing is left to guess."""
        return self.low == self.high


class Estimator(Protocol):
    """What the optimiser asks of statistics; layouts and labels in, tuple counts out."""

    def tensor(self, name: str) -> TensorStatistics:
        """T and V of a tensor of the program."""
        ...

    def rows(self, name: str, layout: Layout) -> Rows:
        """Tuples of a tensor in a layout."""
        ...

    def join_rows(self, vertex: Vertex, promoted: Collection[str]) -> float:
        """Tuples that the join of a vertex (or the scan of a unary one) emits."""
        ...

    def output_rows(self, vertex: Vertex, promoted: Collection[str]) -> float:
        """Tuples that are left after the aggregation of a vertex."""
        ...


MANY_LABELS = 6
"""Labels of a tensor from which on estimates take one way and not the better of two."""


class Textbook:
    """The paper's estimator over measured statistics of the inputs.

    Args:
        program: the program.
        measured: T and V of every input, by name.

    >>> from ucle.ir.layouts import Label
    >>> from ucle.ir.tensor_types import Tensor, TensorType
    >>> X = Tensor("X", TensorType((Label("i", 4), Label("j", 4))))
    >>> textbook = Textbook(Program((X,), (), ()), {"X": TensorStatistics(5, (2, 4), True)})
    >>> textbook.rows("X", Layout.of([True, False])).estimate
    2
    """

    def __init__(self, program: Program, measured: Mapping[str, TensorStatistics]) -> None:
        self._types = program.types
        self._vertices: dict[str, Vertex] = {}
        self._tensors = {tensor.name: measured[tensor.name] for tensor in program.inputs}
        self._rows: dict[tuple[str, tuple[int, ...]], Rows] = {}
        self._joined: dict[tuple[str, frozenset[str]], float] = {}
        self._met: dict[tuple[str, str], float] = {}
        for vertex in program.vertices:
            self._tensors[vertex.name] = self._vertex_statistics(vertex)
            self._vertices[vertex.name] = vertex

    def tensor(self, name: str) -> TensorStatistics:
        """T and V of a tensor of the program."""
        return self._tensors[name]

    def rows(self, name: str, layout: Layout) -> Rows:
        """Tuples of a tensor in a layout.

        Equation 7 knows T and V alone and takes entries to lie anywhere. For a tensor that a vertex
        makes, more is known: its tuples are those of its operands in the same layout, joined. The
        smaller of the two answers holds. (An edge list that scales dense vectors has one tuple for
        each edge; by Equation 7 alone it would have nearly one for each pair of vertices.)
        """
        known = self._rows.get((name, layout.promoted))
        return run(self._find_rows(name, layout)) if known is None else known

    # What a tensor holds follows from its operands, back to the inputs of the program, which may be
    # thousands of vertices away: hence `ucle.foundation.stackless`.

    def _find_rows(self, name: str, layout: Layout) -> Calls[Rows]:
        key = (name, layout.promoted)
        if key not in self._rows:
            rows = _promoted_rows(self._tensors[name], layout.promoted)
            if (vertex := self._vertices.get(name)) is not None and layout.promoted:
                kept = {vertex.labels[axis].name for axis in layout.promoted}
                joined = min(rows.estimate, (yield self._projected_rows(vertex, kept)))
                least = max(self._tensors[name].distinct[axis] for axis in layout.promoted)
                rows = Rows(max(joined, least), rows.low, rows.high)
            self._rows[key] = rows
        return self._rows[key]

    def _projected_rows(self, vertex: Vertex, kept: Set[str]) -> Calls[float]:
        """Tuples of a vertex's tensor when `kept` of its labels are promoted.

        What is aggregated may be counted entry by entry and grouped, or left inside the arrays,
        where it makes no tuples at all. Either can be far too high and neither too low by much.
        Of a tensor of many labels only the likelier one is asked for: a chain of vertices would go
        both ways at each of them.
        """
        every = kept | {label.name for label in vertex.reduced}
        if len(vertex.labels) > MANY_LABELS:
            likelier = every if len(kept) == len(vertex.labels) else kept
            rows: float = yield self._find_output(vertex, likelier)
            return rows
        apart: float = yield self._find_output(vertex, kept)
        grouped: float = yield self._find_output(vertex, every)
        return min(apart, grouped)

    def join_rows(self, vertex: Vertex, promoted: Collection[str]) -> float:
        """T_join of section 7.2; outer joins and densified sides counted as what they emit."""
        return run(self._find_joined(vertex, promoted))

    def _find_joined(self, vertex: Vertex, promoted: Collection[str]) -> Calls[float]:
        key = (vertex.name, frozenset(promoted))
        if key not in self._joined:
            self._joined[key] = yield self._join_rows(vertex, key[1])
        return self._joined[key]

    def _join_rows(self, vertex: Vertex, promoted: frozenset[str]) -> Calls[float]:
        left_rows: float
        if len(vertex.inputs) == 1:
            left_rows = yield self._operand_rows(vertex.inputs[0], promoted)
            return left_rows
        left, right = vertex.inputs
        types = self._types[left.tensor], self._types[right.tensor]
        rule = join_rule(vertex, *types, promoted)
        left_rows = yield self._operand_rows(left, promoted)
        right_rows: float = yield self._operand_rows(right, promoted)
        if rule.densify_left:
            left_rows = self._dense_rows(left, promoted)
        if rule.densify_right:
            right_rows = self._dense_rows(right, promoted)
        matches = left_rows * right_rows
        for label in set(left.names) & set(right.names) & set(promoted):
            wider = max(self._distinct(left, label), self._distinct(right, label), 1.0)
            if rule.densify_left or rule.densify_right:
                wider = max(wider, self._bound(left, label))
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

    def output_rows(self, vertex: Vertex, promoted: Collection[str]) -> float:
        """T_agg of section 7.2; equal to T_join where no promoted label is aggregated."""
        return run(self._find_output(vertex, promoted))

    def _find_output(self, vertex: Vertex, promoted: Collection[str]) -> Calls[float]:
        joined: float = yield self._find_joined(vertex, promoted)
        if not vertex.aggregates(promoted):
            return joined
        groups = 1.0
        for label in vertex.labels:
            if label.name in promoted:
                groups *= self._label_distinct(vertex, label.name)
        return self._groups(joined, groups)

    def _groups(self, joined: float, possible: float) -> float:
        """Groups that an aggregation of `joined` tuples leaves of `possible` ones."""
        return min(joined / 2 if joined > 1 else joined, possible)

    def _vertex_statistics(self, vertex: Vertex) -> TensorStatistics:
        """T and V of a vertex's tensor, as if every label were promoted (GetStats)."""
        everything = set(vertex.names)
        cells = math.prod(float(label.bound) for label in vertex.labels)
        entries = min(run(self._projected_rows(vertex, everything)), cells)
        if 0 < entries < 1:
            # A fraction of a tuple would make everything cheap that holds whole arrays of it.
            entries = 1.0
        distinct = tuple(
            min(self._label_distinct(vertex, label.name), entries) for label in vertex.labels
        )
        return TensorStatistics(entries, distinct)

    def _label_distinct(self, vertex: Vertex, label: str) -> float:
        """Distinct values of a label after the join."""
        key = (vertex.name, label)
        if key not in self._met:
            self._met[key] = self._met_distinct(vertex, label)
        return self._met[key]

    def _met_distinct(self, vertex: Vertex, label: str) -> float:
        if len(vertex.inputs) == 1:
            return self._distinct(vertex.inputs[0], label)
        left, right = (self._types[operand.tensor] for operand in vertex.inputs)
        rule = join_rule(vertex, left, right, {x.name for x in vertex.all_labels})
        values = [
            self._bound(operand, label) if densified else self._distinct(operand, label)
            for operand, densified in zip(
                vertex.inputs, (rule.densify_left, rule.densify_right), strict=True
            )
            if label in operand.names
        ]
        return min(values) if rule.kind is JoinKind.INNER else max(values)

    def _operand_rows(self, operand: Operand, promoted: Collection[str]) -> Calls[float]:
        layout = Layout.promoting(operand.names, frozenset(promoted))
        rows: Rows = yield self._find_rows(operand.tensor, layout)
        return rows.estimate

    def _dense_rows(self, operand: Operand, promoted: Collection[str]) -> float:
        bounds = {label: float(label.bound) for label in operand.labels if label.name in promoted}
        return math.prod(bounds.values())

    def _distinct(self, operand: Operand, label: str) -> float:
        return self._tensors[operand.tensor].distinct[operand.names.index(label)]

    def _bound(self, operand: Operand, label: str) -> float:
        return float(operand.labels[operand.names.index(label)].bound)


class Occupancy(Textbook):
    """The paper's estimator with Equation 7 for aggregations as well.

    T_agg halves its input wherever there is room for all of it: after a join with a diagonal
    matrix, which aggregates nothing in truth, every estimate is half of the last. Counting the
    groups that T tuples occupy of n possible ones is what Equation 7 does for decompositions; after
    the two diagonal joins of graph convolution it is right where halving is off by a factor of 4.
    """

    def _groups(self, joined: float, possible: float) -> float:
        return min(_occupied(joined, possible), joined)


def _occupied(balls: float, bins: float) -> float:
    """How many of `bins` are hit when `balls` fall at random (Equation 7)."""
    return -bins * math.expm1(-balls / bins) if bins else 0.0


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
    return _interval(min(max(_occupied(entries, possible), low), high), low, high, statistics.exact)


def _interval(estimate: float, low: float, high: float, exact: bool) -> Rows:
    return Rows(estimate, low, high) if exact else Rows(estimate, 0.0, math.inf)
