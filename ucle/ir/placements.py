"""Placements: on which partitions the tuples of a tensor lie.

A layout says what is in a tuple, a placement says where the tuple is: at which sites of a physical
relation (tensor_relational_algebra.txt, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Spread(Enum):
    """How tuples are spread over partitions."""

    SINGLE = "single"
    """All lie on the first partition."""
    REPLICATED = "replicated"
    """All lie on every partition (the paper's BCAST)."""
    BY_AXES = "by axes"
    """Tuples that agree on some keys lie on one partition (the paper's SHUF)."""
    SCATTERED = "scattered"
    """Each lies on one partition, whichever that is."""


@dataclass(frozen=True)
class Placement:
    """Where the tuples of a tensor are.

    >>> print(Placement(Spread.BY_AXES, (0,)), REPLICATED)
    by axes 0 replicated
    """

    spread: Spread
    axes: tuple[int, ...] = ()
    """The axes by whose keys tuples are placed."""

    @staticmethod
    def by(*axes: int) -> Placement:
        """Tuples that agree on the keys of some axes lie together."""
        return Placement(Spread.BY_AXES, axes)

    def serves(self, wanted: Placement) -> bool:
        """Whether tuples that lie so can be taken as if they lay in another way.

        >>> Placement.by(0).serves(SCATTERED), SCATTERED.serves(Placement.by(0))
        (True, False)
        >>> REPLICATED.serves(SINGLE), REPLICATED.serves(SCATTERED)
        (True, False)
        """
        if self == wanted:
            return True
        if wanted.spread is Spread.SCATTERED:
            # Of copies each would count several times; what is single is made on one partition.
            return self.spread is Spread.BY_AXES
        return wanted.spread is Spread.SINGLE and self.spread is Spread.REPLICATED

    def named(self, labels: tuple[str, ...]) -> str:
        """The placement in words, with labels for axes."""
        if self.spread is not Spread.BY_AXES:
            return str(self.spread.value)
        return "by " + ", ".join(labels[axis] for axis in self.axes)

    def __str__(self) -> str:
        return " ".join([self.spread.value, *map(str, self.axes)])


SINGLE = Placement(Spread.SINGLE)
REPLICATED = Placement(Spread.REPLICATED)
SCATTERED = Placement(Spread.SCATTERED)
