"""Estimated entries of a scan along an axis (`ucle.ir.scans`).

A fibre without stored entries stays as it is; in all others every entry is made.
"""

from __future__ import annotations

import math

from ucle.ir.vertices import Vertex
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
