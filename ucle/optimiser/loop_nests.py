"""The order in which a multiway join binds labels, by the positions that it is expected to visit.

The estimate takes matrices one by one: the lists of two matrices are intersected, and real graphs
have many more common neighbours than chance would make. So the share of a list that an intersection
keeps is the square root of what chance would keep. A list that is reached along an edge is longer
than the average one: the geometric mean of the average and the longest stands for it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from ucle.foundation.dataclasses import dataclass
from ucle.plan.multiway import CandidateList, LoopNest

VISIT = 12.0
"""Nanoseconds to begin a list."""

LISTED, TOTALLED = 2.2, 1.2
"""Nanoseconds for an entry of a row that is looked up, if it is listed or only summed."""


@dataclass(frozen=True)
class Factor:
    """A factor of the product: its tensor's number, its labels, and the entries along each axis.

    `average` and `longest` are those of a row with entries; `positions` is the number of positions
    of each axis that have entries. A vector has one of each.
    """

    number: int
    labels: tuple[int, ...]
    positions: tuple[float, ...]
    average: tuple[float, ...]
    longest: tuple[float, ...]

    def other(self, label: int) -> int:
        """The other label of a matrix."""
        return self.labels[1 - self.labels.index(label)]

    def reached(self, label: int) -> float:
        """The expected length of the row of a label's position that was reached by an edge."""
        axis = self.labels.index(label)
        return math.sqrt(self.average[axis] * max(self.longest[axis], self.average[axis]))


@dataclass(frozen=True)
class PricedNest:
    """A loop nest with the order of its labels and its cost in nanoseconds.

    The operands of lists are `row_operand` of tensors, their scales numbers of tensors.
    """

    nest: LoopNest
    labels: tuple[int, ...]
    cost: float


def row_operand(number: int, axis: int) -> int:
    """Return the number of a matrix that is read by the rows of one of its axes."""
    return 2 * number + axis


def find_nest(
    factors: Sequence[Factor], sizes: Mapping[int, int], outputs: Sequence[int]
) -> PricedNest | None:
    """Return the cheapest loop nest for a product of matrices and vectors.

    Args:
        factors: matrices and vectors.
        sizes: the positions of each label.
        outputs: the labels of the result, two at most. The first label to be bound is one of them.

    Returns:
        None if there is none: matrices connect only some of the labels.
    """
    near = _neighbours(factors)
    if near.keys() != sizes.keys() or len(_reached(min(near), near, near.keys())) < len(near):
        return None
    nests = (_nest(first, factors, sizes, outputs, near) for first in outputs or sorted(near))
    return min(nests, key=lambda priced: priced.cost)


def _neighbours(factors: Sequence[Factor]) -> dict[int, set[int]]:
    near: dict[int, set[int]] = {}
    for factor in factors:
        if len(factor.labels) == 2:
            one, other = factor.labels
            near.setdefault(one, set()).add(other)
            near.setdefault(other, set()).add(one)
    return near


def _reached(start: int, near: Mapping[int, set[int]], among: Collection[int]) -> set[int]:
    found, waiting = {start}, [start]
    while waiting:
        new = {x for x in near[waiting.pop()] if x in among and x not in found}
        found |= new
        waiting += new
    return found


def _tree(
    first: int, near: Mapping[int, set[int]], lengths: Mapping[int, float]
) -> Iterator[tuple[int, int | None]]:
    """Yield labels with their parents: the most constrained label of each branch comes first."""
    waiting: list[tuple[int | None, set[int]]] = [(None, set(near))]
    bound: set[int] = set()
    while waiting:
        parent, branch = waiting.pop()
        label = first
        if parent is not None:
            label = min(branch, key=lambda x: (-len(near[x] & bound), lengths[x], x))
        yield label, parent
        bound.add(label)
        branch = branch - {label}
        while branch:
            part = _reached(min(branch), near, branch)
            waiting.append((label, part))
            branch -= part


class _Lists:
    """The lists of a nest, with their expected lengths and the time that each takes."""

    def __init__(self) -> None:
        self.lists: list[CandidateList] = []
        self.lengths: list[float] = []
        self.read: list[float] = []
        """The entries that are read to make each."""
        self._numbers: dict[tuple[object, ...], int] = {}

    def add(
        self,
        binder: int,
        label: int,
        source: int | None,
        factor: Factor,
        axis: int,
        operand: int,
        scales: tuple[int, ...],
        kept: float,
        positions: float,
    ) -> int:
        """Return the list with these entries; lists with the same ones are one list."""
        key = binder, source, operand, scales
        if key in self._numbers:
            return self._numbers[key]
        own = factor.labels[axis]
        row = factor.average[axis] if binder == 0 else factor.reached(own)
        if source is None:
            length, read = row * kept, row
        else:
            before = self.lengths[source]
            length = min(before, row) * _share_kept(min(1.0, row / max(positions, 1.0)))
            read = min(row, 8 * before)
        number = self._numbers[key] = len(self.lists)
        self.lists.append(CandidateList(binder, label, source, operand, scales))
        self.lengths.append(length)
        self.read.append(read)
        return number


def _share_kept(density: float) -> float:
    """Return the share of a list's entries that a row of this density keeps.

    By chance that is the density. Neighbours have more neighbours in common, where there are few:
    the square root of the density fits graphs of degrees up to a tenth of their size. From a
    quarter on, chance is all there is.
    """
    return math.pow(density, 0.5 + min(0.5, 2 * density))


def _nest(
    first: int,
    factors: Sequence[Factor],
    sizes: Mapping[int, int],
    outputs: Sequence[int],
    near: Mapping[int, set[int]],
) -> PricedNest:
    vectors: dict[int, list[Factor]] = {label: [] for label in near}
    matrices: dict[int, list[Factor]] = {label: [] for label in near}
    for factor in factors:
        for label in factor.labels:
            (vectors if len(factor.labels) == 1 else matrices)[label].append(factor)
    kept = {
        label: math.prod(x.positions[0] / max(sizes[label], 1) for x in vectors[label])
        for label in near
    }
    lengths = {
        label: kept[label] * min(x.reached(x.other(label)) for x in matrices[label])
        for label in near
    }
    parents = dict(_tree(first, near, lengths))
    order = tuple(parents)
    number = {label: n for n, label in enumerate(order)}
    scales = {label: tuple(sorted(x.number for x in vectors[label])) for label in near}
    made = _Lists()
    current: dict[int, int] = {}
    for label in order:
        for factor in sorted(matrices[label], key=lambda x: (number[x.other(label)], x.number)):
            other = factor.other(label)
            if number[other] < number[label]:
                continue
            axis = factor.labels.index(label)
            source = current.get(other)
            current[other] = made.add(
                number[label],
                number[other],
                source,
                factor,
                axis,
                row_operand(factor.number, axis),
                scales[other] if source is None else (),
                kept[other],
                factor.positions[1 - axis],
            )
    walked = tuple(current[label] for label in order[1:])
    above = tuple(number[parents[label]] for label in order[1:])  # type: ignore[index]
    last = [label for label in outputs if label != first]
    output = None if not outputs else number[last[0]] if last else 0
    nest = LoopNest(output, scales[first], tuple(made.lists), above, walked)
    start = min((x.positions[x.labels.index(first)] for x in matrices[first]), default=0.0)
    found = [min(x.positions[x.labels.index(label)] for x in matrices[label]) for label in order]
    cost = _cost(nest, made, start * kept[first], found)
    return PricedNest(nest, order, cost)


def _cost(nest: LoopNest, made: _Lists, start: float, positions: Sequence[float]) -> float:
    """Return the nanoseconds of a loop nest whose first label takes `start` positions."""
    visits = [start]
    for label, given in zip(range(1, len(positions)), nest.given, strict=True):
        parent, number = nest.parents[label - 1], nest.walked[label - 1]
        times = visits[parent]
        if label not in nest.way:  # sums are remembered by what they depend on
            times = min(times, math.prod(positions[x] for x in given))
        visits.append(times * made.lengths[number])
    cost = 0.0
    for number, each in enumerate(nest.lists):
        entry = LISTED if number in nest.listed else TOTALLED
        cost += visits[each.binder] * (VISIT + entry * made.read[number])
    return cost
