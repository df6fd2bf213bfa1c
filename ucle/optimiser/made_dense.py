"""Report the sparse tensors that a program has to make dense, with the reasons.

If the fill of a tensor does not absorb the entries that it meets, every entry that is not stored
gives a result of its own, and a join makes all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ucle.foundation.dtypes import is_finite
from ucle.ir.fills import absorbed_sides, join_rule
from ucle.ir.layouts import Decomposition
from ucle.ir.maps import number_text
from ucle.ir.tensor_types import TensorType
from ucle.ir.vertices import Program, Vertex
from ucle.operators.rows import Division
from ucle.plan.decomposition import DecomposedProgram
from ucle.stats.estimate import ProgramStatistics

DENSE = 0.5
"""The share of stored entries from which a tensor is not reported as sparse."""

IDS = 1e6
"""The size from which on the coordinates of an axis may be ids."""

SELDOM = 0.01
"""The share of positions with entries below which coordinates may be ids."""

FEW = 1e4
"""The number of entries up to which making a tensor dense is not worth a report."""


def describe_dense_tensors(
    decomposed: DecomposedProgram, statistics: ProgramStatistics
) -> tuple[str, ...]:
    """Return a line about each sparse tensor that a join fills up, with the reason."""
    return tuple(
        line
        for vertex in decomposed.program.vertices
        if vertex.combine is not None
        for line in _of_vertex(vertex, decomposed, statistics)
    )


def _of_vertex(
    vertex: Vertex, decomposed: DecomposedProgram, statistics: ProgramStatistics
) -> Iterator[str]:
    types = decomposed.program.types
    chosen = decomposed.decompositions[vertex.name]
    for number, why in _find_filled(vertex, types, statistics, chosen):
        operand = vertex.inputs[number]
        size = math.prod(types[operand.tensor].shape)
        entries = statistics.tensor(operand.tensor).entries
        yield f"{operand}, {entries:,.0f} of {size:,} entries, for {vertex.name}: {why}"


def instead(
    vertex: Vertex, types: Mapping[str, TensorType], statistics: ProgramStatistics
) -> str | None:
    """Return advice that keeps a sparse operand sparse, with the reason; None if none is filled.

    Args:
        vertex: the vertex.
        types: types of its operands, by name.
        statistics: statistics of the program.
    """
    if vertex.combine is None:
        return None
    filled = next(_find_filled(vertex, types, statistics, vertex.all_promoted), None)
    if filled is None:
        return None
    number, why = filled
    own, other = vertex.inputs[number], vertex.inputs[1 - number]
    text = vertex.combine.text(*map(str, vertex.inputs))
    ways = [f"when({own}, {text}) for the entries of {own.tensor} alone"]
    if vertex.combine.division is Division.TRUE and number == 0:
        ways.append(f"max({other}, 1), which is never 0")
    elif not types[other.tensor].entries.finite:
        ways.append("nonfinite='sparse', with which an entry that is not stored annihilates")
    return f"{why}. Instead: {'; or '.join(ways)}"


def number_ids(program: Program, statistics: ProgramStatistics) -> str | None:
    """Return advice for an input whose positions are ids, few of which have entries; or None."""
    for tensor in program.inputs:
        distinct = statistics.tensor(tensor.name).distinct
        for axis, (label, used) in enumerate(zip(tensor.type.axes, distinct, strict=True)):
            if label.dictionary is None and label.bound > IDS and used < SELDOM * label.bound:
                return (
                    f'ucle.table(..., coordinates="dictionary") for {tensor.name}, which has '
                    f"entries at {used:,.0f} of {label.bound:,} positions of its axis {axis}: "
                    "then, only these count"
                )
    return None


def first_nonfinite(program: Program) -> Vertex | None:
    """The first vertex that may make NaN or infinities of finite numbers; None if none does."""
    for vertex in program.vertices:
        operands = [program.types[operand.tensor] for operand in vertex.inputs]
        if not _is_finite(vertex.tensor.type) and all(map(_is_finite, operands)):
            return vertex
    return None


def _is_finite(type_: TensorType) -> bool:
    return type_.entries.finite and is_finite(type_.fill)


def _find_filled(
    vertex: Vertex,
    types: Mapping[str, TensorType],
    statistics: ProgramStatistics,
    chosen: Decomposition,
) -> Iterator[tuple[int, str]]:
    """Yield the sparse operands that a join fills up, by number, with the reasons."""
    sides = [types[operand.tensor] for operand in vertex.inputs]
    rule = join_rule(vertex, sides[0], sides[1], chosen)
    absorbed = absorbed_sides(vertex, sides[0], sides[1])
    filled = rule.densify_left, rule.densify_right
    stored = [statistics.tensor(operand.tensor).entries for operand in vertex.inputs]
    sparse = [x < DENSE * math.prod(type_.shape) for x, type_ in zip(stored, sides, strict=True)]
    if math.prod(label.bound for label in vertex.all_labels) <= FEW:
        return
    for one, other in ((0, 1), (1, 0)):
        if sparse[one] and (filled[one] or not (absorbed[one] or sparse[other])):
            yield one, _reason(vertex, one, str(vertex.inputs[other]), sides[one], sides[other])


def _reason(vertex: Vertex, number: int, other: str, own: TensorType, met: TensorType) -> str:
    """Return the reason why the entries of an operand that are not stored have to be there."""
    assert vertex.combine is not None
    sides = [number_text(own.fill), other]
    text = vertex.combine.text(*(sides if number == 0 else reversed(sides)))
    absorbs = vertex.combine.absorbs_left if number == 0 else vertex.combine.absorbs_right
    if absorbs(own.fill) and not met.entries.finite:
        return f"{other} may hold NaN or infinities, so that {text} is not always one value"
    return f"{text} is not one value"
