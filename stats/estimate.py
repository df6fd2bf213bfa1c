"""Estimated sizes as an algebra: from the statistics of operands to those of their results.

An `Estimator` derives the statistics of a vertex's tensor from those of its operands, and estimates
the tuples of a tensor in a layout. `ProgramStatistics` folds it over the vertices of a program and
answers the optimiser's questions by name. Each estimator makes its own assumptions:
`ucle.stats.textbook` and `ucle.stats.chain_bound`. `ucle.stats.estimators` lists them by name.

The optimiser looks at one program in many orders and forms. `Remembered` is a cache in front of an
estimator: a vertex that occurs again over the same statistics gets the same object, with everything
that has been computed for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Protocol

from ucle.foundation.dataclasses import dataclass
from ucle.ir.layouts import Decomposition, Layout, Level
from ucle.ir.tensor_types import NamedTensor, TensorType
from ucle.ir.vertices import Program, Vertex
from ucle.stats.model import TensorStatistics


@dataclass(frozen=True)
class Rows:
    """A number of tuples: the estimate and the interval it must lie in."""

    estimate: float
    low: float
    high: float

    @staticmethod
    def from_guess(estimate: float) -> Rows:
        """An estimate about which nothing is certain."""
        return Rows(estimate, 0.0, math.inf)

    @property
    def exact(self) -> bool:
        """True if the number is certain."""
        return self.low == self.high


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of one tensor; an estimator that knows more has a subclass of its own.

    Answers are kept here, so statistics may only be passed to the estimator that derived them.
    """

    type: TensorType
    counts: TensorStatistics
    """T and V."""
    derived: DerivedVertex | None = None
    """The vertex that makes the tensor, with its operands; None for an input."""
    rows: dict[tuple[int, ...], Rows] = field(default_factory=dict, init=False, repr=False)
    """Tuples by promoted axes."""
    alone: list[Statistics] = field(default_factory=list, init=False, repr=False)
    """The statistics without their operands, once they were needed (`as_measured`)."""


@dataclass(frozen=True, eq=False)
class Support:
    """An input within whose places all entries of a tensor lie (`ucle.stats.supports`).

    `axes` are its axes for each axis of the tensor; None for an axis that it does not have.
    """

    name: str
    root: Statistics
    axes: tuple[int | None, ...]

    def same(self, other: Support) -> bool:
        """Return whether two tensors lie within the same projection."""
        return self.name == other.name and self.axes == other.axes


@dataclass(frozen=True, eq=False)
class DerivedVertex:
    """A vertex with the statistics of its operands, which hold those of theirs, back to inputs."""

    vertex: Vertex
    operands: tuple[Statistics, ...] = field(repr=False)
    support: Support | None = field(default=None, repr=False)
    """The input within whose places its entries lie, if one is known."""
    joined: dict[frozenset[str], Rows] = field(default_factory=dict, init=False, repr=False)
    """Tuples of the join by promoted labels, which alone determine tuples."""
    bounds: dict[frozenset[str], float] = field(default_factory=dict, init=False, repr=False)
    """Upper bounds on the tuples of the join, by promoted labels, if the estimator has them."""
    distinct: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    """Distinct values of labels after the join."""


def as_measured(estimator: Estimator, statistics: Statistics) -> Statistics:
    """Return the statistics of a derived tensor as if it were a measured input.

    Its operands are ignored from then on, as examining them takes longer the more there are.
    """
    if not statistics.alone:
        statistics.alone.append(
            replace(statistics, counts=estimator.counts(statistics), derived=None)
        )
    return statistics.alone[0]


class Estimator(Protocol):
    """Derives statistics of tensors from those of others, and sizes from statistics."""

    def from_counts(self, type_: TensorType, counts: TensorStatistics) -> Statistics:
        """Statistics of a tensor whose entries were counted, such as an input."""
        ...

    def derive(self, vertex: Vertex, operands: tuple[Statistics, ...]) -> Statistics:
        """Statistics of a vertex's tensor."""
        ...

    def counts(self, statistics: Statistics) -> TensorStatistics:
        """T and V of a tensor."""
        ...

    def tuples(self, statistics: Statistics, layout: Layout) -> Rows:
        """Tuples of a tensor in a layout."""
        ...

    def signature(self, statistics: Statistics) -> tuple[object, ...]:
        """All of the statistics that estimates for readers of the tensor depend on, hashable.

        Where fills absorb what they meet in readers is beside that.
        """
        ...

    def estimate_join(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        """Tuples that the join of a vertex (or the scan of a unary one) emits."""
        ...

    def estimate_groups(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        """Tuples that are left after the aggregation of a vertex."""
        ...


@dataclass(frozen=True)
class MeasuredInputs:
    """Statistics measured of inputs, and the estimator that derives all others from them."""

    counts: Mapping[str, TensorStatistics]
    """T and V by name."""
    estimator: Estimator

    def of(self, program: Program) -> ProgramStatistics:
        """Statistics of the tensors of a program over these inputs."""
        return ProgramStatistics(program, self.counts, self.estimator)

    def input(self, name: str, type_: TensorType) -> Statistics:
        """The estimator's statistics of an input."""
        return self.estimator.from_counts(type_, self.counts[name])


@dataclass(frozen=True, eq=False)
class ProgramStatistics:
    """Statistics of all tensors of a program: those of its inputs, and derived ones.

    Args:
        program: the program.
        measured: T and V of every input by name, or what an estimator made of them.
        estimator: derives those of the others, and answers for all.

    >>> from ucle.ir.layouts import Label
    >>> from ucle.ir.tensor_types import NamedTensor
    >>> from ucle.stats.textbook import Textbook
    >>> X = NamedTensor("X", TensorType((Label("i", 4), Label("j", 4))))
    >>> measured = {"X": TensorStatistics(5, (2, 4), True)}
    >>> statistics = ProgramStatistics(Program((X,), (), ()), measured, Textbook())
    >>> statistics.rows("X", Layout.of([True, False])).estimate
    2
    """

    program: Program
    measured: Mapping[str, TensorStatistics] | Mapping[str, Statistics]
    estimator: Estimator
    _rows: dict[tuple[str, Layout], Rows] = field(default_factory=dict, init=False, repr=False)
    """Answers so far: a search prices thousands of repartitions between few layouts."""

    @cached_property
    def _known(self) -> dict[str, Statistics]:
        statistics = {x.name: self._input(x) for x in self.program.inputs}
        for vertex in self.program.vertices:
            operands = tuple(statistics[operand.tensor] for operand in vertex.inputs)
            statistics[vertex.name] = self.estimator.derive(vertex, operands)
        return statistics

    def _input(self, tensor: NamedTensor) -> Statistics:
        measured = self.measured[tensor.name]
        if isinstance(measured, Statistics):
            return measured
        return self.estimator.from_counts(tensor.type, measured)

    def tensor(self, name: str) -> TensorStatistics:
        """T and V of a tensor of the program."""
        return self.estimator.counts(self._known[name])

    def signature(self, name: str) -> tuple[object, ...]:
        """All of a tensor's statistics: those of equal signatures give equal estimates."""
        return self.estimator.signature(self._known[name])

    def rows(self, name: str, layout: Layout) -> Rows:
        """Tuples of a tensor in a layout."""
        asked = name, layout
        if (rows := self._rows.get(asked)) is None:
            tuples = self._tiles if layout.tiled else self.estimator.tuples
            rows = self._rows[asked] = tuples(self._known[name], layout)
        return rows

    def _tiles(self, statistics: Statistics, layout: Layout) -> Rows:
        """Tuples of a tensor in tiles: at most as many as the entries that they hold."""
        apart = layout.with_level(layout.tiled, Level.PROMOTED)
        together = layout.with_level(layout.tiled, Level.DENSE)
        most, least = (self.estimator.tuples(statistics, x) for x in (apart, together))
        tiles = math.prod(statistics.type.key_range(layout, axis) for axis in layout.tiled)
        if (counted := statistics.counts.tuples_of(layout)) is not None:
            return Rows(counted, counted, counted)
        estimate = min(most.estimate, tiles * least.estimate)
        return Rows(estimate, least.low, min(most.high, tiles * least.high))

    def payload_bytes(self, name: str, layout: Layout) -> float:
        """Bytes of the value of a tuple: a number, an array, or the list of a compressed one."""
        type_ = self.program.types[name]
        if layout.deferred:
            return 0.0
        if layout.compressed is None:
            return float(type_.tuple_bytes(layout))
        tensor, tuples = self.tensor(name), max(self.rows(name, layout).estimate, 1.0)
        lines = type_.dense_size(layout) / max(type_.shape[layout.compressed], 1)
        if tensor.runs and layout.compressed == type_.rank - 1:
            return 24.0 + 4.0 * lines + (8.0 + type_.dtype.bytes) * tensor.runs / tuples
        return 24.0 + 4.0 * lines + (4.0 + type_.dtype.bytes) * tensor.entries / tuples

    def expanded_bytes(self, name: str, layout: Layout) -> float:
        """Bytes of a compressed tuple once its runs have become entries; 0 if it has no runs."""
        type_, tensor = self.program.types[name], self.tensor(name)
        if not tensor.runs or layout.compressed != type_.rank - 1:
            return 0.0
        more = (4.0 + type_.dtype.bytes) * tensor.entries - (8.0 + type_.dtype.bytes) * tensor.runs
        tuples = max(self.rows(name, layout).estimate, 1.0)
        return self.payload_bytes(name, layout) + more / tuples

    def join_rows(self, vertex: Vertex, decomposition: Decomposition) -> float:
        """Tuples that the join of a vertex (or the scan of a unary one) emits."""
        if decomposition.tiled:
            return self._joined_tiles(vertex, decomposition)
        return self.estimator.estimate_join(self._get_derived(vertex), decomposition).estimate

    def output_rows(self, vertex: Vertex, decomposition: Decomposition) -> float:
        """Tuples that are left after the aggregation of a vertex."""
        if decomposition.tiled:
            rows = self._joined_tiles(vertex, decomposition)
            places = math.prod(
                vertex.tensor.type.key_range(layout, axis)
                for layout in (vertex.makes(decomposition),)
                for axis in layout.promoted
            )
            return rows if not vertex.aggregates(decomposition) else _estimate_filled(rows, places)
        return self.estimator.estimate_groups(self._get_derived(vertex), decomposition).estimate

    def _joined_tiles(self, vertex: Vertex, decomposition: Decomposition) -> float:
        """The pairs of tiles that meet, where nothing else is promoted; tiles lie anywhere."""
        tiles = {
            x.name: -(-x.bound // decomposition.tile)
            for x in vertex.all_labels
            if x.name in decomposition.tiled
        }
        rows = float(math.prod(tiles.values()))
        for operand, layout in zip(vertex.inputs, vertex.reads(decomposition), strict=True):
            places = math.prod(tiles.get(name, 1) for name in set(operand.names))
            stored = self.rows(operand.tensor, layout).estimate
            rows *= min(stored / places, 1.0) if places else 0.0
        return rows

    def _get_derived(self, vertex: Vertex) -> DerivedVertex:
        derived = self._known[vertex.name].derived
        assert derived is not None, f"{vertex.name} is an input"
        return derived


def _estimate_filled(rows: float, places: float) -> float:
    """The expected number of places that have a row, where rows lie anywhere."""
    if places <= 1 or rows <= 1:
        return min(rows, places)
    return places * -math.expm1(rows * math.log1p(-1 / places))


class Remembered:
    """Results of another estimator, one for each vertex; the vertex's name does not matter.

    >>> from ucle.ir.layouts import Label
    >>> from ucle.operators import SUM
    >>> from ucle.ir.tensor_types import NamedTensor
    >>> from ucle.ir.vertices import Operand
    >>> from ucle.stats.textbook import Textbook
    >>> i, j = Label("i", 4), Label("j", 4)
    >>> estimator = Remembered(Textbook())
    >>> A = estimator.from_counts(TensorType((i, j)), TensorStatistics(5, (2, 4), True))
    >>> tensors = NamedTensor("x", TensorType((i,))), NamedTensor("y", TensorType((i,)))
    >>> x, y = (Vertex(t, (Operand("A", (i, j)),), (i,), reduce=SUM) for t in tensors)
    >>> estimator.derive(x, (A,)) is estimator.derive(y, (A,))
    True
    """

    def __init__(self, plain: Estimator) -> None:
        self.plain = plain
        self._measured: dict[tuple[TensorType, TensorStatistics], Statistics] = {}
        self._derived: dict[tuple[object, ...], Statistics] = {}

    def forget(self) -> None:
        """Clear the cache; a program that is kept needs only a part of it."""
        self._measured.clear()
        self._derived.clear()

    def from_counts(self, type_: TensorType, counts: TensorStatistics) -> Statistics:
        """Statistics of a counted tensor; equal arguments give the same object."""
        if (type_, counts) not in self._measured:
            self._measured[type_, counts] = self.plain.from_counts(type_, counts)
        return self._measured[type_, counts]

    def derive(self, vertex: Vertex, operands: tuple[Statistics, ...]) -> Statistics:
        """Statistics of a vertex's tensor; the same operands give the same object."""
        axes = vertex.labels, *(operand.labels for operand in vertex.inputs)
        does = vertex.combine, vertex.maps, vertex.reduce, vertex.index, vertex.tensor.type
        key = (*does, *axes, *operands)
        if (statistics := self._derived.get(key)) is None:
            statistics = self._derived[key] = self.plain.derive(vertex, operands)
        return statistics

    def counts(self, statistics: Statistics) -> TensorStatistics:
        """T and V of a tensor."""
        return self.plain.counts(statistics)

    def signature(self, statistics: Statistics) -> tuple[object, ...]:
        """All that estimates for readers of a tensor depend on."""
        return self.plain.signature(statistics)

    def tuples(self, statistics: Statistics, layout: Layout) -> Rows:
        """Tuples of a tensor in a layout."""
        return self.plain.tuples(statistics, layout)

    def estimate_join(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        """Tuples that the join of a vertex emits."""
        return self.plain.estimate_join(derived, decomposition)

    def estimate_groups(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        """Tuples that are left after the aggregation of a vertex."""
        return self.plain.estimate_groups(derived, decomposition)
