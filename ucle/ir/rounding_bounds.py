"""Count the roundings of sums of products, and how ill-conditioned a sum may be for a tolerance.

The error of a sum of products is at most γ_d * B, where B adds up the absolute values of its terms,
d counts the roundings on the longest path from a factor to the result, and γ_d = d u / (1 - d u)
(Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4). d depends on the form
that runs: nested sums add up the numbers of their terms, and do not multiply them.

`ucle.lowering.condition_numbers` computes B / abs(y), the condition number of a sum y, together
with a rewritten sum. `largest_condition_numbers` says up to where the result is accurate enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Label
from ucle.ir.maps import Cast, Map, Partial, Pointwise
from ucle.ir.vertices import Program, Vertex
from ucle.operators import ADD, DIV, MULT, NEG, POW, SQUARE, SUB, SUM
from ucle.operators.rows import Exactness

TOLERANCES: Mapping[DType, float] = {DType.FLOAT64: 1e-9, DType.FLOAT32: 1e-4}
"""The largest relative error of rewritten sums, by default."""


@dataclass(frozen=True)
class Entries:
    """Upper bounds of the entries of a tensor that differ from its fill.

    `largest` has those of the fullest sub-tensor of each axis; it is empty where they are unknown.
    """

    total: float
    largest: tuple[float, ...] = ()


def largest_condition_numbers(
    program: Program, entries_of: Callable[[str], Entries], tolerance: float | None = None
) -> dict[str, float]:
    """Return the largest values that the condition numbers of a program may have.

    Args:
        program: the program as it runs.
        entries_of: bounds for the entries of an input.
        tolerance: the largest relative error; by default that of the element type.

    >>> largest_condition_numbers(Program((), (), ()), lambda name: Entries(0))
    {}
    """
    if not program.condition_numbers:
        return {}
    roundings, largest = count_roundings(program, entries_of), dict[str, float]()
    for name in program.condition_numbers:
        dtype = program.types[name].dtype
        allowed = TOLERANCES[dtype] if tolerance is None else tolerance
        error = relative_error(roundings[name], dtype)
        largest[name] = allowed * (1 - error) / (error * (1 + allowed)) if error < 1 else 0.0
    return largest


def count_roundings(program: Program, entries_of: Callable[[str], Entries]) -> Mapping[str, float]:
    """Return the most roundings on a path from a factor to each tensor of a program.

    Tensors that are no sums of products of others have none: all forms of a sum read the same
    numbers.
    """
    return _Counting(program, entries_of).roundings


def relative_error(roundings: float, dtype: DType) -> float:
    """Return γ_d for d roundings in an element type, and infinity where it has no value.

    >>> round(relative_error(1000, DType.FLOAT64) * 2**53)
    1000
    """
    lost = roundings * float(np.finfo(dtype.numpy).eps) / 2
    return lost / (1 - lost) if lost < 1 else math.inf


class _Counting:
    """The roundings and the largest numbers of entries of all tensors of a program."""

    def __init__(self, program: Program, entries_of: Callable[[str], Entries]) -> None:
        self._types = program.types
        self._entries = {tensor.name: entries_of(tensor.name) for tensor in program.inputs}
        self.roundings: dict[str, float] = {tensor.name: 0.0 for tensor in program.inputs}
        for vertex in program.vertices:
            self._entries[vertex.name] = Entries(self._count_entries(vertex))
            self.roundings[vertex.name] = self._count_roundings(vertex)

    def _count_roundings(self, vertex: Vertex) -> float:
        if not vertex.is_product:
            return 0.0 if vertex.index is None else self.roundings[vertex.inputs[0].tensor]
        operands = [self.roundings[x.tensor] for x in vertex.inputs]
        if vertex.combine is MULT:
            count = sum(operands) + 1
        elif vertex.combine is DIV:
            count = operands[0] + 2 * operands[1] + 1
        else:
            count = max(operands)
            if vertex.combine in (ADD, SUB):
                count += 1
            elif vertex.combine is not None and vertex.combine.exactness is Exactness.ROUNDED:
                count = 0.0
        for step in vertex.maps:
            count = _round_map(step, count)
        if vertex.reduce is SUM:
            return count + max(self._count_terms(vertex) - 1, 0)
        exact = vertex.reduce is None or vertex.reduce.exactness is Exactness.EXACT
        return count if exact else 0.0

    def _count_terms(self, vertex: Vertex) -> float:
        """Return an upper bound of the terms that differ from 0 of an entry of a sum."""
        bounds = [_positions(vertex.reduced)]
        for operand in vertex.inputs if _adds_where_stored(vertex) else ():
            if self._types[operand.tensor].fill != 0:
                continue
            outside = [x for x in vertex.reduced if x not in operand.labels]
            entries = self._entries[operand.tensor]
            kept = [x in vertex.labels for x in operand.labels]
            degrees = [n for n, stays in zip(entries.largest, kept, strict=False) if stays]
            bounds.append(min([entries.total, *degrees]) * _positions(outside))
        return min(bounds)

    def _count_entries(self, vertex: Vertex) -> float:
        """Return an upper bound of the entries that differ from the fill."""
        bounds = [_positions(vertex.labels)]
        if vertex.is_product and self._types[vertex.name].fill == 0 and _adds_where_stored(vertex):
            for operand in vertex.inputs:
                if self._types[operand.tensor].fill == 0:
                    outside = [x for x in vertex.labels if x not in operand.labels]
                    bounds.append(self._entries[operand.tensor].total * _positions(outside))
        return min(bounds)


def _adds_where_stored(vertex: Vertex) -> bool:
    """Return whether the terms of a vertex are 0 wherever one of its operands is."""
    if vertex.combine is not None:
        return vertex.combine is MULT
    return all(_keeps_zero(step) for step in vertex.maps)


def _keeps_zero(step: Pointwise) -> bool:
    return step(0) == 0


def _round_map(step: Pointwise, count: float) -> float:
    """Return the relative error of a function of a number, in roundings."""
    match step:
        case Cast():
            return count + 1
        case Map(function=function) if function is NEG:
            return count
        case Map(function=function) if function is SQUARE:
            return 2 * count + 1
        case Map(function=function):
            return count if function.exactness is Exactness.EXACT else 0.0
        case Partial(combine=combine, constant=power) if combine is POW and power in range(2, 9):
            return int(abs(power)) * (count + 1)
        case Partial(combine=combine, constant_first=first) if combine is DIV:
            return (2 * count if first else count) + 2
        case Partial(combine=combine) if combine in (ADD, SUB, MULT):
            return count + 2  # the number itself may be rounded
        case Partial(combine=combine):
            return count if combine.exactness is Exactness.EXACT else 0.0


def _positions(labels: list[Label] | tuple[Label, ...]) -> float:
    return float(math.prod(label.bound for label in labels))
