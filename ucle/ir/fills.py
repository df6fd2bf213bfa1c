"""The effect of entries that are not stored on joins and aggregations.

An inner join drops a pair if one side is not stored. That is right only if that side's fill absorbs
whatever the other side holds (0 * x = 0, and more generally if fill ⊗ x has one value for all x).
Otherwise the pair must be made: by an outer join if the other side knows all the keys, else by
densifying. Every pair that a join leaves out then has the same value, fill ⊗ fill. An aggregation
over fibres that are partly stored is corrected by counting: the number of entries that the bounds
allow, less the number aggregated, times that value.

Both planning and estimation use these rules. The conditions on values are in `ucle.ir.ranges`:
whether a fill absorbs what it meets (`absorbs`), and the value of the pairs that are left out
(`pair_fill`, `absorbed_worth`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar, same_value
from ucle.ir.layouts import Decomposition
from ucle.ir.maps import Pointwise
from ucle.ir.ranges import absorbed_worth, absorbs, pair_fill
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Program, Vertex
from ucle.operators import Combine
from ucle.operators.values import Values


class JoinKind(Enum):
    """The rows of a join that survive without a partner; the value is the SQL name of the join."""

    INNER = ""
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"


@dataclass(frozen=True)
class JoinRule:
    """The join of the two sides of a vertex that loses no entry."""

    kind: JoinKind
    densify_left: bool = False
    densify_right: bool = False


def join_rule(
    vertex: Vertex, left: TensorType, right: TensorType, decomposition: Decomposition
) -> JoinRule:
    """Return the join that a binary vertex needs under a decomposition.

    Args:
        vertex: a binary vertex.
        left: type of its first input.
        right: type of its second input.
        decomposition: the levels of its labels.
    """
    if vertex.pair is not None:  # the kernel alone knows what comes of fills
        return JoinRule(JoinKind.INNER, not left.entries.full, not right.entries.full)
    absorbed_by_left, absorbed_by_right = absorbed_sides(vertex, left, right)
    promoted = decomposition.promoted
    left_keys = {name for name in vertex.inputs[0].names if name in promoted}
    right_keys = {name for name in vertex.inputs[1].names if name in promoted}
    # Rows of one side without a partner matter unless the partner's fill absorbs them.
    keep_left, keep_right = not absorbed_by_right, not absorbed_by_left
    densify_right = keep_left and not right_keys <= left_keys
    densify_left = keep_right and not left_keys <= right_keys
    # A densified side is never missing, so rows of the other side always find their partner.
    keep_left, keep_right = keep_left and not densify_right, keep_right and not densify_left
    if keep_left and keep_right:
        kind = JoinKind.FULL
    elif keep_left:
        kind = JoinKind.LEFT
    else:
        kind = JoinKind.RIGHT if keep_right else JoinKind.INNER
    return JoinRule(kind, densify_left, densify_right)


def absorbed_sides(vertex: Vertex, left: TensorType, right: TensorType) -> tuple[bool, bool]:
    """Return which fills of a binary vertex absorb the entries that only the other side stores.

    Such a pair has the same value as a pair that neither side stores. The first result is for the
    left side's fill, the second for the right side's.

    First whether the left's fill absorbs what the right holds there, then the right's the left's.
    """
    if vertex.pair is not None:
        return False, False
    assert vertex.combine is not None
    fills, dtype = (left.fill, right.fill), vertex.tensor.type.dtype
    return _find_absorbing(vertex.combine, dtype, fills, left.entries, right.entries)


def same_joins(one: Program, other: Program) -> bool:
    """Return whether corresponding vertices of two programs join alike and have equal fills."""

    def facts(program: Program) -> list[object]:
        types = program.types
        return [
            (str(v.tensor.type.fill), None if v.combine is None else _of_vertex(v, types))
            for v in program.vertices
        ]

    return facts(one) == facts(other)


def _of_vertex(vertex: Vertex, types: Mapping[str, TensorType]) -> tuple[bool, bool]:
    left, right = (types[operand.tensor] for operand in vertex.inputs)
    return absorbed_sides(vertex, left, right)


@lru_cache(maxsize=1 << 10, typed=True)  # called for every decomposition of every vertex
def _find_absorbing(
    operator: Combine, dtype: DType, fills: tuple[Scalar, Scalar], left: Values, right: Values
) -> tuple[bool, bool]:
    """Return whether the fill of the left, and that of the right, absorbs the entries it meets.

    A row of the other side without a partner then has the value that all such pairs have.
    """
    joined = pair_fill(operator, left, right, fills, dtype)
    by_left, by_right = absorbs(operator, left, right, fills, dtype)
    return (
        by_left and same_value(joined, absorbed_worth(operator, fills[0], dtype, left=True)),
        by_right and same_value(joined, absorbed_worth(operator, fills[1], dtype, left=False)),
    )


def joined_fill(vertex: Vertex, types: Mapping[str, TensorType]) -> Scalar:
    """Return the value of a pair (or of a mapped entry) that the join of a vertex leaves out."""
    first, *second = (types[operand.tensor] for operand in vertex.inputs)
    if vertex.combine is not None:
        return combined_fill(vertex.combine, first, second[0])
    return apply_maps(vertex.maps, first.fill)


def combined_fill(operator: Combine, left: TensorType, right: TensorType) -> Scalar:
    """Return the value of a pair that a join of two tensors leaves out."""
    fills = left.fill, right.fill
    return pair_fill(operator, left.entries, right.entries, fills, left.dtype)


@dataclass(frozen=True)
class Missing:
    """A correction of an aggregation: of `cells` tuples, those not met have the value `value`."""

    value: Scalar
    cells: int


def missing_entries(
    vertex: Vertex, types: Mapping[str, TensorType], decomposition: Decomposition
) -> Missing | None:
    """Return the correction that an aggregation needs; None if it is the identity of ⊕.

    Only promoted labels are counted. Inside an array every entry is there, so a tuple that is not
    met stands for the kernel's reduction of a whole array of fill.
    """
    if vertex.reduce is None:
        return None
    operator, dtype = vertex.reduce, vertex.tensor.type.dtype
    if operator.repeat is None:
        return None  # every entry is met: see `meets_all`
    promoted = decomposition.promoted
    inside = math.prod(label.bound for label in vertex.reduced if label.name not in promoted)
    value = operator.reduce_copies(joined_fill(vertex, types), inside, dtype)
    if operator.identity is not None and same_value(value, operator.identity(dtype)):
        return None
    cells = math.prod(label.bound for label in vertex.reduced if label.name in promoted)
    return Missing(value, cells)


def meets_all(vertex: Vertex) -> bool:
    """Return whether a vertex must meet every entry, stored or not, to aggregate or otherwise."""
    if vertex.index is not None:
        return vertex.index.dense
    if vertex.along is not None:
        return vertex.along.dense
    if vertex.pair is not None:
        return True
    return vertex.reduce is not None and vertex.reduce.repeat is None


def apply_maps(maps: tuple[Pointwise, ...], value: Scalar) -> Scalar:
    """Apply pointwise maps to a value, first to last."""
    for function in maps:
        value = function(value)
    return value
