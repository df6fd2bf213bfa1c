"""Joined parts: factors of a product that are already joined, to build orders of many factors.

In every order, a factor whose labels another one has, too, is joined with that one first
(galley.txt, 4.4): a vertex label of a pattern leaves fewer edges before these are joined.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from ucle.foundation.dataclasses import dataclass
from ucle.ir.contraction_trees import Tree
from ucle.ir.vertices import Operand
from ucle.lowering.pairwise import Pairwise
from ucle.stats.estimate import Estimator, Statistics, as_measured


@dataclass(frozen=True)
class JoinedFactors:
    """Some factors, as bits, with their join tree and the tuples that its joins emit.

    `operand` and `statistics` describe the joined part. `statistics` are as derived: most parts are
    only inspected for the tuples they emit, and never joined with others.
    """

    factors: int
    tree: Tree
    emitted: float
    operand: Operand
    statistics: Statistics

    @property
    def first(self) -> int:
        """The first of its factors, as a bit."""
        return self.factors & -self.factors

    def shares_labels(self, other: JoinedFactors) -> bool:
        """Return whether another part shares a label with this one."""
        return not set(self.operand.names).isdisjoint(other.operand.names)


class Parts:
    """The parts of one product; each pair is joined once.

    Args:
        pairwise: the factors, and the vertices that join them.
        statistics: statistics of the factors, by their names there.
        estimator: estimates the tuples that joins emit.
    """

    def __init__(
        self, pairwise: Pairwise, statistics: Mapping[str, Statistics], estimator: Estimator
    ) -> None:
        self.factors = pairwise.factors
        self._pairwise = pairwise
        self._estimator = estimator
        self._joined: dict[tuple[str, str], JoinedFactors] = {}
        self._singles = [
            JoinedFactors(1 << n, n, 0.0, factor, statistics[factor.tensor])
            for n, factor in enumerate(self.factors)
        ]

    def join_parts(self, one: JoinedFactors, other: JoinedFactors) -> JoinedFactors:
        """Return two parts joined, with the part of the first factor on the left.

        Raises:
            UcleError: the pair has no type that holds its fill.
        """
        if one.first > other.first:
            one, other = other, one
        key = one.operand.tensor, other.operand.tensor
        if key not in self._joined:
            self._joined[key] = self._join(one, other)
        return self._joined[key]

    @property
    def looked_at(self) -> int:
        """The number of joins computed so far."""
        return len(self._joined)

    @cached_property
    def absorbed(self) -> list[JoinedFactors]:
        """The factors; one without labels of its own is joined with another that has them.

        Raises:
            UcleError: as `joined`.
        """
        parts = self._singles
        for part in sorted(parts, key=lambda x: len(x.operand.names)):
            names = set(part.operand.names)
            wider = [x for x in parts if x is not part and names <= set(x.operand.names)]
            if names and wider and part in parts:
                one = min(wider, key=lambda x: (self._get_statistics(x).counts.entries, x.factors))
                rest = [x for x in parts if x is not part and x is not one]
                parts = [*rest, self.join_parts(part, one)]
        return sorted(parts, key=lambda part: part.first)

    def _join(self, one: JoinedFactors, other: JoinedFactors) -> JoinedFactors:
        both = one.factors | other.factors
        rest = [x for n, x in enumerate(self.factors) if not both >> n & 1]
        vertex = self._pairwise.join_factors(one.operand, other.operand, rest)
        derived = self._estimator.derive(
            vertex, (self._get_statistics(one), self._get_statistics(other))
        )
        assert derived.derived is not None
        own = self._estimator.estimate_join(derived.derived, vertex.all_promoted).estimate
        return JoinedFactors(
            both,
            (one.tree, other.tree),
            one.emitted + other.emitted + own,
            Operand(vertex.name, vertex.labels),
            derived,
        )

    def _get_statistics(self, part: JoinedFactors) -> Statistics:
        """Return the statistics of a part that is joined with another one."""
        if isinstance(part.tree, int):
            return part.statistics
        return as_measured(self._estimator, part.statistics)
