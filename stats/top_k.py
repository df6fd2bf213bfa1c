"""The entries of the first ones along an axis (`ucle.ir.top_k`): those of every fibre."""

from __future__ import annotations

import math

from ucle.ir.layouts import Decomposition
from ucle.ir.vertices import Vertex
from ucle.stats.estimate import Rows
from ucle.stats.model import TensorStatistics


def top_counts(vertex: Vertex) -> TensorStatistics:
    """T and V of the tensor that a top-k vertex makes."""
    sizes = tuple(float(label.bound) for label in vertex.labels)
    return TensorStatistics(math.prod(sizes), sizes)


def top_rows(vertex: Vertex, decomposition: Decomposition) -> Rows:
    """Tuples of the tensor that a top-k vertex makes."""
    layout = vertex.makes(decomposition)
    return Rows.guessed(math.prod(float(vertex.labels[axis].bound) for axis in layout.promoted))
