"""Estimated entries of functions along an axis (`ucle.ir.axis_functions`), and of pairs.

A scan leaves a fibre without stored entries as it is; in all others every entry is made. Top-k
makes every entry of every fibre, unless the entries that are not stored come last; forests and
systems of linear equations make all as well.
"""

from __future__ import annotations

import math

from ucle.ir.layouts import Decomposition
from ucle.ir.vertices import Vertex
from ucle.stats.estimate import Rows
from ucle.stats.model import TensorStatistics


def running_counts(vertex: Vertex, fibres: float) -> TensorStatistics:
    """T and V of the tensor that a vertex with a scan makes.

    Args:
        vertex: the vertex.
        fibres: how many fibres along the axis hold an entry.
    """
    assert vertex.along is not None
    sizes = {label.name: float(label.bound) for label in vertex.labels}
    along = vertex.along.labels
    length = math.prod(sizes[name] for name in along)
    others = math.prod(n for name, n in sizes.items() if name not in along)
    kept = others if vertex.along.dense else min(fibres, others)
    distinct = tuple(sizes[x] if x in along else min(sizes[x], kept) for x in vertex.names)
    return TensorStatistics(kept * length, distinct)


def every_entry(vertex: Vertex) -> TensorStatistics:
    """T and V of the tensor that a vertex with top-k or a pair makes: all entries."""
    sizes = tuple(float(label.bound) for label in vertex.labels)
    return TensorStatistics(math.prod(sizes), sizes)


def top_counts(vertex: Vertex, source: TensorStatistics, fibres: float) -> TensorStatistics:
    """T and V of the tensor that a top-k vertex makes.

    Args:
        vertex: the vertex.
        source: T and V of the tensor whose entries it ranks.
        fibres: how many fibres along the axis hold an entry.
    """
    top = vertex.top
    assert top is not None
    if not top.stored_first:
        return every_entry(vertex)
    (operand,), count = vertex.inputs, float(vertex.labels[-2].bound)
    kept = [v for x, v in zip(operand.names, source.distinct, strict=True) if x != top.label]
    entries = min(source.entries, fibres * count)
    # The longest fibre is longer than most.
    longest = min(math.ceil(2 * source.entries / max(fibres, 1.0)), count, entries)
    return TensorStatistics(entries, (*(min(v, entries) for v in kept), longest, min(1.0, entries)))


def top_rows(vertex: Vertex, decomposition: Decomposition) -> Rows:
    """Tuples of the tensor that a top-k vertex makes, if it makes every entry."""
    layout = vertex.makes(decomposition)
    return Rows.from_guess(math.prod(float(vertex.labels[axis].bound) for axis in layout.promoted))
