"""Placements: the partitions on which the tuples of a tensor lie.

A layout says what is in a tuple. A placement says where the tuple is: at which sites of a physical
relation (tensor_relational_algebra.txt, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Spread(Enum):
    """The distribution of tuples over partitions."""

    SINGLE = "single"
    """All tuples lie on the first partition."""
    REPLICATED = "replicated"
    """All tuples lie on every partition (the paper's BCAST)."""
    BY_AXES = "by axes"
    """Tuples that agree on some keys lie on one partition (the paper's SHUF)."""
    SCATTERED = "scattered"
    """Any partition may hold a tuple, but only one does."""


@dataclass(frozen=True)
class Placement:
    """The partitions of a tensor's tuples.

    >>> print(Placement(Spread.BY_AXES, (0,)), REPLICATED)
    by axes 0 replicated
    """

    spread: Spread
    axes: tuple[int, ...] = ()
    """The axes whose keys decide the partition of a tuple."""

    @staticmethod
    def by(*axes: int) -> Placement:
        """Return the placement in which tuples that agree on the keys of some axes lie together."""
        return Placement(Spread.BY_AXES, axes)

    def serves(self, wanted: Placement) -> bool:
        """Return whether tuples placed like this can be used where another placement is wanted.

        >>> Placement.by(0).serves(SCATTERED), SCATTERED.serves(Placement.by(0))
        (True, False)
        >>> REPLICATED.serves(SINGLE), REPLICATED.serves(SCATTERED)
        (True, False)
        """
        if self == wanted:
            return True
        if wanted.spread is Spread.SCATTERED:
            # Copies would each be counted; a single partition's tuples are computed on one
            # partition only.
            return self.spread is Spread.BY_AXES
        return wanted.spread is Spread.SINGLE and self.spread is Spread.REPLICATED

    def describe(self, labels: tuple[str, ...]) -> str:
        """Return the placement in words, with labels for axes."""
        if self.spread is not Spread.BY_AXES:
            return str(self.spread.value)
        return "by " + ", ".join(labels[axis] for axis in self.axes)

    def __str__(self) -> str:
        return " ".join([self.spread.value, *map(str, self.axes)])


SINGLE = Placement(Spread.SINGLE)
REPLICATED = Placement(Spread.REPLICATED)
SCATTERED = Placement(Spread.SCATTERED)
