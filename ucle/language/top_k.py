"""The functions of the language for what comes first along a label, and where it is.

``top_k[j,r](...)`` has the greatest entries along j, the r-th of them at r; ``arg_top_k[j,r](...)``
their positions, and ``among_top_k[j,r](...)`` yes along j where they are. Without r it is the first
one alone. ``argmax[j](...)`` is the position of the greatest one, which in NumPy is that of the
first NaN, if there is one; so is ``argmin``, where ``bottom_k`` has NaN at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Direction(Enum):
    """Which entries come first."""

    GREATEST = "the greatest, NaN before them"
    LEAST = "the least, NaN at the end"
    LEAST_OR_NAN = "the least, NaN before them"


class Gives(Enum):
    """What a function says of the first entries."""

    VALUES = "what they are"
    POSITIONS = "where they are"
    MEMBERS = "yes where they are, no elsewhere"


@dataclass(frozen=True)
class FirstFunction:
    """A function: its order, what it gives, and whether there may be several first entries."""

    name: str
    order: Direction
    gives: Gives
    several: bool = True

    @property
    def form(self) -> str:
        """How it is written."""
        return f"{self.name}[j,r](...)" if self.several else f"{self.name}[j](...)"


FIRST: Mapping[str, FirstFunction] = {
    each.name: each
    for each in (
        FirstFunction("top_k", Direction.GREATEST, Gives.VALUES),
        FirstFunction("bottom_k", Direction.LEAST, Gives.VALUES),
        FirstFunction("arg_top_k", Direction.GREATEST, Gives.POSITIONS),
        FirstFunction("arg_bottom_k", Direction.LEAST, Gives.POSITIONS),
        FirstFunction("among_top_k", Direction.GREATEST, Gives.MEMBERS),
        FirstFunction("among_bottom_k", Direction.LEAST, Gives.MEMBERS),
        FirstFunction("argmax", Direction.GREATEST, Gives.POSITIONS, several=False),
        FirstFunction("argmin", Direction.LEAST_OR_NAN, Gives.POSITIONS, several=False),
    )
}
"""By their names in programs."""
