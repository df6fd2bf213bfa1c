"""What entries that are not stored mean for a join and an aggregation.

An inner join drops a pair when one side is not stored. That is right only where that side's fill
absorbs whatever the other side holds (0 * x = 0, and more generally where fill ⊗ x is one value for
all x); otherwise the pair must be made, by an outer join where the other side knows all the keys,
by densifying where it does not. Every pair that a join leaves out is then worth
the same, fill ⊗ fill, and an aggregation over fibres that are partly stored is made right by
counting: what the bounds allow less what was aggregated, times that value. These rules stand here
and nowhere else; planning and estimation both ask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from ucle.foundation.dtypes import DType, Scalar, same_value
from ucle.ir.layouts import Decomposition
from ucle.ir.maps import Pointwise
from ucle.ir.ranges import absorbed_worth, absorbs, pair_fill
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Program, Vertex
from ucle.operators import Combine
from ucle.operators.values import Values


class JoinKind(Enum):
    """Which rows of a join survive without a partner; the value is its SQL name."""

    INNER = ""
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"


@dataclass(frozen=True)
class JoinRule:
    """How to join the two sides of a vertex so that no entry is lost."""

    kind: JoinKind
    densify_left: bool = False
    densify_right: bool = False


def join_rule(
    vertex: Vertex, left: TensorType, right: TensorType, decomposition: Decomposition
) -> JoinRule:
    """The join that a binary vertex needs under a decomposition.

    Args:
        vertex: a binary vertex.
        left: type of its first input.
        right: type of its second input.
        decomposition: the levels of its labels.
    """
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
    """Whether what only one side of a binary vertex stores is worth what nobody stores.

    First whether the left's fill absorbs what the right holds there, then the right's the left's.
    """
    assert vertex.combine is not None
    fills, dtype = (left.fill, right.fill), vertex.tensor.type.dtype
    return _absorbed(vertex.combine, dtype, fills, left.entries, right.entries)


def same_joins(one: Program, other: Program) -> bool:
    """Whether the vertices of two programs that do the same join alike and have the same fills."""

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


@lru_cache(maxsize=1 << 10, typed=True)  # asked for every decomposition of every vertex
def _absorbed(
    operator: Combine, dtype: DType, fills: tuple[Scalar, Scalar], left: Values, right: Values
) -> tuple[bool, bool]:
    """Whether the fills of the left and of the right absorb what they meet.

    Then a row of the other side without a partner is worth what all such pairs are.
    """
    joined = pair_fill(operator, left, right, fills, dtype)
    by_left, by_right = absorbs(operator, left, right, fills, dtype)
    return (
        by_left and same_value(joined, absorbed_worth(operator, fills[0], dtype, left=True)),
        by_right and same_value(joined, absorbed_worth(operator, fills[1], dtype, left=False)),
    )


def joined_fill(vertex: Vertex, types: Mapping[str, TensorType]) -> Scalar:
    """What a pair (or an entry, mapped) is worth that a vertex's join leaves out."""
    first, *second = (types[operand.tensor] for operand in vertex.inputs)
    if vertex.combine is not None:
        return combined_fill(vertex.combine, first, second[0])
    return apply_maps(vertex.maps, first.fill)


def combined_fill(operator: Combine, left: TensorType, right: TensorType) -> Scalar:
    """What a pair is worth that a join of two tensors leaves out."""
    fills = left.fill, right.fill
    return pair_fill(operator, left.entries, right.entries, fills, left.dtype)


@dataclass(frozen=True)
class Missing:
    """What an aggregation must account for: of `cells` tuples, those not met are worth `value`."""

    value: Scalar
    cells: int


def missing_entries(
    vertex: Vertex, types: Mapping[str, TensorType], decomposition: Decomposition
) -> Missing | None:
    """What the aggregation of a vertex must account for; None where it is the identity of ⊕.

    Only promoted labels are counted: inside an array every entry is there, and a tuple that is not
    met would have brought its kernel's reduction of a whole array of fill.
    """
    if vertex.reduce is None:
        return None
    operator, dtype = vertex.reduce, vertex.tensor.type.dtype
    if operator.repeat is None:
        return None  # every entry is met: see `meets_all`
    promoted = decomposition.promoted
    inside = math.prod(label.bound for label in vertex.reduced if label.name not in promoted)
    value = operator.repeated(joined_fill(vertex, types), inside, dtype)
    if operator.identity is not None and same_value(value, operator.identity(dtype)):
        return None
    cells = math.prod(label.bound for label in vertex.reduced if label.name in promoted)
    return Missing(value, cells)


def meets_all(vertex: Vertex) -> bool:
    """Whether a vertex has to meet every entry, stored or not, for its aggregation or elsewhere."""
    if vertex.index is not None:
        return vertex.index.dense
    if vertex.along is not None:
        return vertex.along.dense
    return vertex.reduce is not None and vertex.reduce.repeat is None


def apply_maps(maps: tuple[Pointwise, ...], value: Scalar) -> Scalar:
    """A value sent through pointwise maps, first to last."""
    for function in maps:
        value = function(value)
    return value
