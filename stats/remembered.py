"""A cache in front of an estimator, for many programs that have most vertices in common.

The optimiser looks at one program in many orders and forms. Statistics keep their answers
(`ucle.stats.estimate.Statistics`), so a vertex that occurs again over the same statistics gets the
same object, with everything that has been computed for it.
"""

from __future__ import annotations

from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Vertex
from ucle.stats.estimate import DerivedVertex, Estimator, Rows, Statistics
from ucle.stats.model import TensorStatistics


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
        if key not in self._derived:
            self._derived[key] = self.plain.derive(vertex, operands)
        return self._derived[key]

    def counts(self, statistics: Statistics) -> TensorStatistics:
        """T and V of a tensor."""
        return self.plain.counts(statistics)

    def tuples(self, statistics: Statistics, layout: Layout) -> Rows:
        """Tuples of a tensor in a layout."""
        return self.plain.tuples(statistics, layout)

    def estimate_join(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        """Tuples that the join of a vertex emits."""
        return self.plain.estimate_join(derived, decomposition)

    def estimate_groups(self, derived: DerivedVertex, decomposition: Decomposition) -> Rows:
        """Tuples that are left after the aggregation of a vertex."""
        return self.plain.estimate_groups(derived, decomposition)
