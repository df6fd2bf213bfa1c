"""An estimator that is asked for the tensors of many programs which have most vertices in common.

The optimiser looks at one program in many orders and forms. Statistics keep what they were asked
(`ucle.stats.estimate.Statistics`), so that a vertex which is there again, over the same statistics,
gets the same object, with all that is known of it by then.
"""

from __future__ import annotations

from ucle.ir.layouts import Decomposition, Layout
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Vertex
from ucle.stats.estimate import Derived, Estimator, Rows, Statistics
from ucle.stats.model import TensorStatistics


class Remembered:
    """What another estimator derives, once for each vertex; a vertex may be called anything.

    >>> from ucle.ir.layouts import Label
    >>> from ucle.operators import SUM
    >>> from ucle.ir.tensor_types import Tensor
    >>> from ucle.ir.vertices import Operand
    >>> from ucle.stats.textbook import Textbook
    >>> i, j = Label("i", 4), Label("j", 4)
    >>> estimator = Remembered(Textbook())
    >>> A = estimator.measured(TensorType((i, j)), TensorStatistics(5, (2, 4), True))
    >>> tensors = Tensor("x", TensorType((i,))), Tensor("y", TensorType((i,)))
    >>> x, y = (Vertex(t, (Operand("A", (i, j)),), (i,), reduce=SUM) for t in tensors)
    >>> estimator.derive(x, (A,)) is estimator.derive(y, (A,))
    True
    """

    def __init__(self, plain: Estimator) -> None:
        self.plain = plain
        self._measured: dict[tuple[TensorType, TensorStatistics], Statistics] = {}
        self._derived: dict[tuple[object, ...], Statistics] = {}

    def forget(self) -> None:
        """Drop what is known, of which a program that is kept needs but a part."""
        self._measured.clear()
        self._derived.clear()

    def measured(self, type_: TensorType, counts: TensorStatistics) -> Statistics:
        """Statistics of a tensor of which it is told what was counted, the same object for it."""
        if (type_, counts) not in self._measured:
            self._measured[type_, counts] = self.plain.measured(type_, counts)
        return self._measured[type_, counts]

    def derive(self, vertex: Vertex, operands: tuple[Statistics, ...]) -> Statistics:
        """Statistics of a vertex's tensor, the same object for the same operands."""
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

    def joined(self, derived: Derived, decomposition: Decomposition) -> Rows:
        """Tuples that the join of a vertex emits."""
        return self.plain.joined(derived, decomposition)

    def grouped(self, derived: Derived, decomposition: Decomposition) -> Rows:
        """Tuples that are left after the aggregation of a vertex."""
        return self.plain.grouped(derived, decomposition)
