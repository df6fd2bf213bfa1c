"""Degrees: upper bounds on the entries of a tensor where some of its coordinates are fixed.

A constraint D(X|Y) = d says that among the entries that agree on the axes Y there are at most d
different coordinates along X (galley.txt, section 6.3.2). D(X|{}) bounds the number of entries
projected to X. Constraints of a result follow from those of its operands without looking at data.
The product of constraints along the cheapest path from some axes to others is an upper bound on the
number of coordinates. It is never below the truth, whatever the correlations, while estimates that
multiply probabilities may be off by any factor.

Sets of axes are the bits of an integer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ucle.foundation.dataclasses import dataclass

MOST_AXES = 9
"""Axes up to which the cheapest of all paths is found; for more, a greedy path, also a bound."""

UNREACHED = 1e300
"""A number above any product; not infinity, whose product with 0 is NaN."""

Constraints = Mapping[tuple[int, int], float]
"""Upper bounds, by the given axes and the reached axes, which include the given ones."""


@dataclass(frozen=True)
class Degrees:
    """Degrees of a tensor with axes of certain sizes.

    A matrix of 1,000 entries with at most 10 in a row, 100 x 100:

    >>> matrix = Degrees.from_counts((100, 100), 1000, (100, 100), (10, 50))
    >>> matrix.most(0b11), matrix.most(0b11, given=0b01)
    (1000.0, 10.0)

    Two steps along it reach at most 10 times as many as one:

    >>> edges = matrix.on((100,) * 3, (0, 1)), matrix.on((100,) * 3, (1, 2))
    >>> both(*edges).most(0b111)
    10000.0
    """

    sizes: tuple[float, ...]
    constraints: Constraints
    _tables: dict[int, NDArray[np.float64]] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def from_counts(
        sizes: Sequence[float],
        entries: float,
        distinct: Sequence[float],
        largest: Sequence[float] = (),
    ) -> Degrees:
        """Return the degrees that GetStats counts: T, V, and the largest degree of each axis.

        Args:
            sizes: of the axes.
            entries: T, or more.
            distinct: V of each axis, or more.
            largest: degree of each axis, or more; empty where it is not known.
        """
        rank = len(sizes)
        every = (1 << rank) - 1
        constraints: dict[tuple[int, int], float] = {(0, every): entries} if rank else {}
        for axis, count in enumerate(distinct):
            _lower(constraints, (0, 1 << axis), count)
        for axis, count in enumerate(largest):
            _lower(constraints, (1 << axis, every), count)
        return Degrees(tuple(sizes), _useful(constraints, sizes))

    def on(self, sizes: Sequence[float], places: Sequence[int]) -> Degrees:
        """Return the degrees on more axes; `places` has the new axis of each, with repeats."""
        moved: dict[tuple[int, int], float] = {}
        for (given, reached), most in self.constraints.items():
            _lower(moved, (_move_axes(given, places), _move_axes(reached, places)), most)
        return Degrees(tuple(sizes), _useful(moved, sizes))

    def most(self, wanted: int, given: int = 0) -> float:
        """An upper bound on the coordinates along `wanted` axes that agree on `given` ones."""
        missing = wanted & ~given
        if not missing:
            return 1
        if not self._joint:
            return math.prod(self._apart(missing))
        if len(self.sizes) > MOST_AXES:
            return self._along_a_path(wanted, given)
        self._reach([given])
        return min(float(self._tables[given][wanted]), math.prod(self._apart(missing)))

    def _reach(self, givens: Sequence[int]) -> None:
        """Find the cheapest paths from some sets of axes."""
        new = [given for given in givens if given not in self._tables]
        if new:
            self._tables.update(zip(new, _cheapest(len(self.sizes), self._steps, new), strict=True))

    def project_axes(self, axes: Sequence[int]) -> Degrees:
        """Return the degrees of the projection to some of the axes."""
        sizes = tuple(self.sizes[axis] for axis in axes)
        every = (1 << len(axes)) - 1
        if not self._joint:
            alone = {(0, 1 << new): self._single[axis] for new, axis in enumerate(axes)}
            return Degrees(sizes, _useful(alone, sizes))
        constraints: dict[tuple[int, int], float] = {}
        singles = [1 << axis for axis in range(len(axes))]
        few = len(axes) <= MOST_AXES
        pairs = [x | y for x in singles for y in singles if x < y] if few else []
        if len(self.sizes) <= MOST_AXES:
            self._reach([_move_axes(given, axes) for given in (0, *singles, *pairs)])
        for given in (0, *singles, *pairs):
            for wanted in (*singles, every) if few else (every,):
                if wanted & ~given:
                    most = self.most(_move_axes(wanted, axes), _move_axes(given, axes))
                    _lower(constraints, (given, given | wanted), most)
        return Degrees(sizes, _useful(constraints, sizes))

    @cached_property
    def _single(self) -> list[float]:
        """The smallest bound of each axis alone."""
        most = self.constraints.get
        return [min(most((0, 1 << a), n), n) for a, n in enumerate(self.sizes)]

    @cached_property
    def _joint(self) -> list[tuple[int, int, float]]:
        """The constraints on more than single axes."""
        return [
            (given, reached, most)
            for (given, reached), most in self.constraints.items()
            if given or reached & (reached - 1)
        ]

    @cached_property
    def _steps(self) -> list[tuple[int, int, float]]:
        return [*self._joint, *((0, 1 << axis, most) for axis, most in enumerate(self._single))]

    def _apart(self, axes: int) -> Iterable[float]:
        return (most for axis, most in enumerate(self._single) if axes >> axis & 1)

    def _along_a_path(self, wanted: int, given: int) -> float:
        """The product along a greedy path, which reaches axes by the smallest factors."""
        steps = self._steps
        reached, product = given, 1.0
        while wanted & ~reached:
            missing = wanted & ~reached
            product_of, after = min(
                (most ** (1 / (missing & to).bit_count()), -(to & missing).bit_count(), most, to)
                for needs, to, most in steps
                if needs & ~reached == 0 and to & missing
            )[2:]
            product *= product_of
            reached |= after
        return min(product, math.prod(self._apart(wanted & ~given)))


def both(left: Degrees, right: Degrees) -> Degrees:
    """The degrees of a ⊗ whose operands both absorb, over the same axes."""
    constraints = dict(left.constraints)
    for key, most in right.constraints.items():
        _lower(constraints, key, most)
    return Degrees(left.sizes, constraints)


def either(left: Degrees, right: Degrees) -> Degrees:
    """The degrees of a tensor with an entry where either of the two has one, over the same axes."""
    every = (1 << len(left.sizes)) - 1
    whole = [(given, every) for given in (0, *(1 << axis for axis in range(len(left.sizes))))]
    constraints = {
        (given, reached): left.most(reached, given) + right.most(reached, given)
        for given, reached in [*left.constraints, *right.constraints, *whole]
    }
    return Degrees(left.sizes, _useful(constraints, left.sizes))


def unknown(sizes: Sequence[float]) -> Degrees:
    """The degrees of a tensor about which nothing is known."""
    return Degrees(tuple(sizes), {})


def _lower(constraints: dict[tuple[int, int], float], key: tuple[int, int], most: float) -> None:
    constraints[key] = min(most, constraints.get(key, math.inf))


def _move_axes(axes: int, places: Sequence[int]) -> int:
    moved = 0
    for axis, place in enumerate(places):
        if axes >> axis & 1:
            moved |= 1 << place
    return moved


def _useful(constraints: dict[tuple[int, int], float], sizes: Sequence[float]) -> Constraints:
    """Return the constraints that say more than those on single axes do."""
    single = [min(constraints.get((0, 1 << axis), n), n) for axis, n in enumerate(sizes)]

    def says_more(given: int, reached: int, most: float) -> bool:
        new = reached & ~given
        if not new:
            return False
        if not given and not new & (new - 1):
            return most < sizes[new.bit_length() - 1]
        return most < math.prod(n for axis, n in enumerate(single) if new >> axis & 1)

    return {key: most for key, most in constraints.items() if says_more(*key, most)}


def _cheapest(
    axes: int, steps: Sequence[tuple[int, int, float]], givens: Sequence[int]
) -> NDArray[np.float64]:
    """Compute for each given set, by sets of axes, the product along the cheapest path to them.

    The last step to T starts at a set that has T without what the step adds, and the axes that it
    needs. Every step is applied to all sets at once, until nothing becomes cheaper.
    """
    sets = np.arange(1 << axes)
    least = np.where(sets & ~np.array(givens)[:, None], UNREACHED, 1.0)
    sources = [(sets & ~to | needs, most) for needs, to, most in steps]
    changed = True
    with np.errstate(over="ignore"):
        while changed:
            before = least.copy()
            for source, most in sources:
                np.minimum(least, least[:, source] * most, out=least)
            changed = bool((least < before).any())
    return least
