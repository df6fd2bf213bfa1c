"""Supports: tensors whose entries lie within the places of one input.

Labels are taken to be independent of each other, which is far from the truth for what an input
masks: ``when(any[c](L[s,p,c]), a[s] + b[p])`` has an entry at most where a projection of L has one.
Joined with L or another projection of it on s and p, nearly each tuple finds its partner, while
independent ones would hardly ever meet. The support says which input that is, and which of its axes
those of the tensor are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ucle.ir.fills import absorbed_sides
from ucle.ir.vertices import Operand, Vertex
from ucle.stats.estimate import Statistics, Support


def find_support(vertex: Vertex, operands: Sequence[Statistics]) -> Support | None:
    """Return the support of the tensor that a vertex makes; None if nothing is known."""
    if not vertex.is_product or len(vertex.names) < 2:
        return None  # one label alone is never common (`common_axes`)
    found = [
        _renamed(support, operand, vertex) if (support := support_of(operand, x)) else None
        for operand, x in zip(vertex.inputs, operands, strict=True)
    ]
    if len(found) == 1:
        return found[0]
    by_left, by_right = absorbed_sides(vertex, operands[0].type, operands[1].type)
    one, other = found
    if not (by_left or by_right):
        return one if one is not None and other is not None and one.same(other) else None
    within = [x for x, absorbs in ((one, by_left), (other, by_right)) if absorbs and x is not None]
    return max(within, key=lambda x: sum(axis is not None for axis in x.axes), default=None)


def support_of(operand: Operand, statistics: Statistics) -> Support | None:
    """Return the support of an operand: itself if it is an input of several axes."""
    if statistics.derived is not None:
        return statistics.derived.support
    rank = statistics.type.rank
    return Support(operand.tensor, statistics, tuple(range(rank))) if rank > 1 else None


def common_axes(
    vertex: Vertex, operands: Sequence[Statistics], shared: Sequence[str]
) -> tuple[Statistics, dict[str, int]] | None:
    """Return the input that both operands of a join lie within, and its axis for shared labels.

    None unless two labels or more are axes of it in both.
    """
    if len(shared) < 2:
        return None
    left, right = (support_of(x, y) for x, y in zip(vertex.inputs, operands, strict=True))
    if left is None or right is None or left.name != right.name:
        return None
    axes = [
        dict(zip(operand.names, support.axes, strict=True))
        for operand, support in zip(vertex.inputs, (left, right), strict=True)
    ]
    common = {
        name: axis
        for name in shared
        if (axis := axes[0][name]) is not None and axes[1][name] == axis
    }
    return (left.root, common) if len(common) > 1 else None


def _renamed(support: Support, operand: Operand, vertex: Vertex) -> Support | None:
    """Return a support under the labels of a vertex; None if no axis of it is left."""
    axis_of = dict(zip(operand.names, support.axes, strict=True))
    axes = tuple(axis_of.get(name) for name in vertex.names)
    return Support(support.name, support.root, axes) if any(x is not None for x in axes) else None
