"""Aggregations that may end early: one entry decides ``any`` or ``all``, whatever follows.

They end early where they make one number of tuples. Where tuples that are left out could raise an
error, such as an overflow of integers, all are computed, so that no plan hides an error that
another one raises.
"""

from __future__ import annotations

from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Decomposition
from ucle.ir.maps import Cast, Map, Partial, Pointwise
from ucle.ir.overflow import reaches_the_end
from ucle.ir.vertices import Program, Vertex
from ucle.operators import Reduce


def deciding_value(operation: Reduce) -> bool | None:
    """Return the truth value that decides an aggregation; None if no entry does.

    >>> from ucle.operators import ALL, ANY, SUM
    >>> deciding_value(ANY), deciding_value(ALL), deciding_value(SUM)
    (True, False, None)
    """
    merge = operation.merge
    if operation.kinds != "b" or merge is None or operation.identity is None:
        return None
    other = not operation.identity(DType.BOOL)
    return other if merge.absorbs_left(other) and merge.absorbs_right(other) else None


def may_end_early(vertex: Vertex, decomposition: Decomposition) -> bool:
    """Return whether a vertex makes one truth value of tuples, which one of them may decide."""
    if not vertex.is_product or vertex.reduce is None or not vertex.aggregates(decomposition):
        return False
    one = not vertex.labels and deciding_value(vertex.reduce) is not None
    return one and all(label.name in decomposition.promoted for label in vertex.all_labels)


def never_raises(program: Program, vertex: Vertex) -> bool:
    """Return whether no entry of a vertex, and of what it is computed from, may raise an error."""
    waiting, seen = [vertex.name], set[str]()
    while waiting:
        made = program.by_name.get(waiting.pop())
        if made is None or made.name in seen:
            continue
        seen.add(made.name)
        if may_raise(made):
            return False
        waiting += [operand.tensor for operand in made.inputs]
    return True


def may_raise(vertex: Vertex) -> bool:
    """Return whether some entries of a vertex may raise an error, such as an overflow."""
    type_ = vertex.tensor.type
    if not vertex.is_product or reaches_the_end(type_.entries, type_.dtype):
        return True
    if vertex.combine is not None and vertex.combine.rule is None:
        return True
    if vertex.reduce is not None and vertex.reduce.rule is None:
        return True
    return any(map(_may_raise, vertex.maps))


def _may_raise(step: Pointwise) -> bool:
    match step:
        case Cast(source, result):
            return result.kind == "i" and source.kind not in "bi"
        case Map(function):
            return function.rule is None or (step.dtype.kind == "i" and not function.indicates)
        case Partial(combine):
            return combine.rule is None or (step.dtype.kind == "i" and not combine.indicates)
